//! One child and what is read from it.

use super::PythonError;
use super::frame::{Frame, FrameError, decode};
use super::journal::{Begun, Journal};
use super::output::{Line, follow};
use super::process::{Launch, Process, Started, start};
use bytes::{Bytes, BytesMut};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::sync::{mpsc, oneshot};

/// A child that has closed its socket has this long to end.
const END_LIMIT: Duration = Duration::from_secs(5);
/// Bytes of answers that are read at once.
const READ_AHEAD: usize = 256 << 10;

/// Where children report to.
#[derive(Clone)]
pub(crate) struct Reports {
    pub said: mpsc::UnboundedSender<(u32, Said)>,
    pub lines: mpsc::Sender<(u32, Line)>,
}

/// What a child reported.
#[derive(Debug)]
pub(crate) enum Said {
    /// These frames, in their order.
    Frames(Vec<Frame>),
    /// It is dead. Nothing follows.
    Gone(Death),
}

/// The end of a child, and what it left.
#[derive(Debug)]
pub(crate) struct Death {
    /// How it ended, where the system said it.
    pub status: Option<ExitStatus>,
    /// Its last words made no sense.
    pub fault: Option<FrameError>,
    /// Answers that had not been sent.
    pub frames: Vec<Frame>,
    /// What its threads had begun last.
    pub begun: Vec<Begun>,
}

/// A child that runs.
pub(crate) struct Link {
    pub process: Process,
    pub journal: Arc<Journal>,
    writer: mpsc::UnboundedSender<Bytes>,
}

impl Link {
    /// Starts a child. What it says goes to `reports`, under this number.
    pub async fn open(launch: Launch, number: u32, reports: Reports) -> Result<Self, PythonError> {
        let interpreter = launch.interpreter.clone();
        let Started { process, socket, journal, stdout, stderr, exit } = start(launch).await?;
        let failed = |error| PythonError::Start { interpreter: interpreter.clone(), error };
        let (reading, writing) = UnixStream::from_std(socket).map_err(failed)?.into_split();
        let stdout = pipe::Receiver::from_owned_fd(stdout.into()).map_err(failed)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr.into()).map_err(failed)?;
        let journal = Arc::new(journal);
        let (writer, frames) = mpsc::unbounded_channel();
        tokio::spawn(write(writing, frames));
        tokio::spawn(follow(stdout, "stdout", number, reports.lines.clone()));
        tokio::spawn(follow(stderr, "stderr", number, reports.lines.clone()));
        let reader = Reader { socket: reading, exit, process: process.clone(), journal: Arc::clone(&journal) };
        tokio::spawn(reader.run(number, reports.said));
        Ok(Self { process, journal, writer })
    }

    /// Sends frames; to a child that is gone they go nowhere, and its end is reported.
    pub fn send(&self, frames: BytesMut) {
        if !frames.is_empty() {
            let _ = self.writer.send(frames.freeze());
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.process.kill();
    }
}

async fn write(mut socket: OwnedWriteHalf, mut frames: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(next) = frames.recv().await {
        if socket.write_all(&next).await.is_err() {
            return;
        }
    }
    // The last sender is gone: so is the supervisor, as the child sees it.
}

struct Reader {
    socket: OwnedReadHalf,
    exit: oneshot::Receiver<ExitStatus>,
    process: Process,
    journal: Arc<Journal>,
}

impl Reader {
    async fn run(mut self, number: u32, said: mpsc::UnboundedSender<(u32, Said)>) {
        let mut buffer = BytesMut::with_capacity(READ_AHEAD);
        let mut received = 0;
        let mut status = None;
        let mut fault = None;
        loop {
            if status.is_none() {
                tokio::select! {
                    biased;
                    readable = self.socket.readable() => if readable.is_err() { break },
                    // Something that it started may hold the socket open: what is in it now is all there will be.
                    ended = &mut self.exit => status = Some(ended.ok()),
                }
            }
            match self.socket.try_read_buf(&mut buffer) {
                Ok(0) => break,
                Ok(read) => received += read as u64,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock && status.is_none() => continue,
                Err(_) => break,
            }
            match whole_frames(&mut buffer) {
                Ok(frames) if frames.is_empty() => {}
                Ok(frames) => drop(said.send((number, Said::Frames(frames)))),
                Err(error) => {
                    fault = Some(error);
                    self.process.kill();
                    break;
                }
            }
            buffer.reserve(READ_AHEAD);
        }
        let status = match status {
            Some(status) => status,
            None => self.end().await,
        };
        let mut frames = Vec::new();
        if fault.is_none() {
            buffer.extend_from_slice(&self.journal.rest(received));
            frames = whole_frames(&mut buffer).unwrap_or_default();
        }
        let death = Death { status, fault, frames, begun: self.journal.begun() };
        let _ = said.send((number, Said::Gone(death)));
    }

    /// Waits for the end of a child that has closed its socket, and makes sure of it.
    async fn end(&mut self) -> Option<ExitStatus> {
        match tokio::time::timeout(END_LIMIT, &mut self.exit).await {
            Ok(ended) => ended.ok(),
            Err(_) => {
                self.process.kill();
                (&mut self.exit).await.ok()
            }
        }
    }
}

fn whole_frames(buffer: &mut BytesMut) -> Result<Vec<Frame>, FrameError> {
    let mut frames = Vec::new();
    while let Some(frame) = decode(buffer)? {
        frames.push(frame);
    }
    Ok(frames)
}
