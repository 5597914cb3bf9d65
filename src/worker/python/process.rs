//! The operating system's side of a child: starting it, knowing that it has ended, ending it.

use super::PythonError;
use super::journal::Journal;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::io::{self, IoSlice, Write as _};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// Loads [`SCRIPT`]; short, as it is seen in a list of processes.
const BOOT: &str = include_str!("../../../assets/boot.py");
/// What a child runs.
const SCRIPT: &str = include_str!("../../../assets/child.py");

/// How children are started.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    pub interpreter: PathBuf,
    pub directory: PathBuf,
    pub threads: usize,
    /// The first frame, ready to be sent.
    pub config: Vec<u8>,
}

/// A child that was started.
pub(crate) struct Started {
    pub process: Process,
    pub socket: UnixStream,
    pub journal: Journal,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
    /// How it ended, once it has.
    pub exit: oneshot::Receiver<ExitStatus>,
}

/// A handle to end a child by.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pid: Pid,
    /// Set before the id can be given to another process.
    ended: Arc<Mutex<bool>>,
}

impl Process {
    /// Its id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Ends it and what it has started, now.
    pub fn kill(&self) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if !*ended {
            kill_all(self.pid);
        }
    }

    /// Its resident memory in bytes, where the system tells it.
    pub fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
    }
}

fn kill_all(pid: Pid) {
    // The group holds what its tasks have started. It may not have its own group yet.
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = kill_process(pid, Signal::KILL);
}

/// Starts a child on a thread that lives as long as it does: the kernel ends a child when the thread that started it ends.
pub(crate) async fn start(launch: Launch) -> Result<Started, PythonError> {
    let (answer, started) = oneshot::channel();
    let interpreter = launch.interpreter.clone();
    let failed = |error| PythonError::Start { interpreter, error };
    let thread = std::thread::Builder::new().name("python-child".into()).spawn(move || keep(&launch, answer));
    match (thread, started.await) {
        (Ok(_), Ok(Ok(started))) => Ok(started),
        (Err(error), _) | (_, Ok(Err(error))) => Err(failed(error)),
        (_, Err(_)) => Err(failed(io::Error::other("the thread that starts it ended"))),
    }
}

fn keep(launch: &Launch, answer: oneshot::Sender<io::Result<Started>>) {
    let (mut child, journal, socket) = match spawn(launch) {
        Ok(spawned) => spawned,
        Err(error) => return drop(answer.send(Err(error))),
    };
    let process = Process { pid: Pid::from_child(&child), ended: Arc::default() };
    let (ended, exit) = oneshot::channel();
    if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
        let started = Started { process: process.clone(), socket, journal, stdout, stderr, exit };
        if answer.send(Ok(started)).is_err() {
            // Nobody waits for it any more.
            process.kill();
        }
    }
    // The id is the child's until it is waited for; what a crash has left behind is ended before that.
    let end = waitid(WaitId::Pid(process.pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let in_order = end.is_ok_and(|end| end.is_some_and(|end| end.exit_status() == Some(0)));
    let mut guard = process.ended.lock().unwrap_or_else(PoisonError::into_inner);
    if !in_order {
        kill_all(process.pid);
    }
    *guard = true;
    let status = child.wait();
    drop(guard);
    if let Ok(status) = status {
        let _ = ended.send(status);
    }
}

fn spawn(launch: &Launch) -> io::Result<(Child, Journal, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    let journal = Journal::new(launch.threads)?;
    let mut child = Command::new(&launch.interpreter)
        .args(["-c", BOOT, "threadmill-child"])
        .current_dir(&launch.directory)
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Signals from the terminal are the supervisor's to act on.
        .process_group(0)
        .spawn()?;
    if let Err(error) = hand_over(&ours, &journal, &launch.config) {
        // One that has ended already says why on its standard error; its end is reported as that of any other.
        if error.kind() != io::ErrorKind::BrokenPipe {
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    }
    Ok((child, journal, ours))
}

/// Sends the journal's descriptor, the script and the configuration.
fn hand_over(mut socket: &UnixStream, journal: &Journal, config: &[u8]) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let length = (SCRIPT.len() as u32).to_be_bytes();
    let descriptors = [journal.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(socket, &[IoSlice::new(&length)], &mut control, SendFlags::empty())?;
    socket.write_all(SCRIPT.as_bytes())?;
    socket.write_all(config)?;
    socket.set_nonblocking(true)
}

/// How a process ended, for a person: `was ended by SIGKILL`, `ended with exit code 3`.
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => match SIGNALS.iter().find(|(number, _)| number.as_raw() == signal) {
            Some((_, name)) => format!("was ended by {name}"),
            None => format!("was ended by signal {signal}"),
        },
        (None, None) => "ended".to_owned(),
    }
}

const SIGNALS: [(Signal, &str); 13] = [
    (Signal::ABORT, "SIGABRT"),
    (Signal::ALARM, "SIGALRM"),
    (Signal::BUS, "SIGBUS"),
    (Signal::FPE, "SIGFPE"),
    (Signal::HUP, "SIGHUP"),
    (Signal::ILL, "SIGILL"),
    (Signal::INT, "SIGINT"),
    (Signal::KILL, "SIGKILL"),
    (Signal::PIPE, "SIGPIPE"),
    (Signal::QUIT, "SIGQUIT"),
    (Signal::SEGV, "SIGSEGV"),
    (Signal::TERM, "SIGTERM"),
    (Signal::XCPU, "SIGXCPU"),
];
