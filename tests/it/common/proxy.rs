//! A TCP proxy in front of a Redis that can fail in the ways a network does: a reply is lost after its request was carried
//! out, connections are cut, a link goes silent, answers come late. It reads the frames that pass, so a fault hits exactly
//! one command. It runs on a thread of its own: blocking tests and the binary can use it too.

use super::server::{TestRedis, free_listener};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What the client sees in place of a lost reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lose {
    /// The connection is closed.
    ByCut,
    /// Nothing, ever again, on this connection; requests still arrive at the server.
    InSilence,
}

/// A command that passed.
#[derive(Clone, Debug)]
pub struct Command {
    /// In upper case.
    pub name: String,
    pub args: Vec<Vec<u8>>,
}

impl Command {
    /// Whether one of the arguments is this text.
    pub fn has(&self, text: &str) -> bool {
        self.args.iter().any(|arg| arg == text.as_bytes())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
    Up,
    Refusing,
    Silent,
}

struct Rule {
    matches: Box<dyn Fn(&Command) -> bool + Send>,
    /// How many matching replies are still to pass before the one that is lost.
    to_pass: u64,
    lose: Lose,
}

/// Something to do before one command is let through.
struct Interlude {
    matches: Box<dyn Fn(&Command) -> bool + Send>,
    to_pass: u64,
    /// None cuts the connection instead: the command never arrives.
    action: Option<Box<dyn FnOnce() + Send>>,
}

struct State {
    link: Link,
    delay: Duration,
    rules: Vec<Rule>,
    interludes: Vec<Interlude>,
    counts: BTreeMap<String, u64>,
    lost: u64,
    open: u64,
}

struct Shared {
    upstream: u16,
    state: Mutex<State>,
    /// Connections end when this number changes.
    epoch: watch::Sender<u64>,
}

/// The running proxy; its thread and connections end on drop.
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before this server; it outlives the server's stops and starts.
    pub fn before(server: &TestRedis) -> Self {
        let listener = free_listener();
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared {
            upstream: server.port(),
            state: Mutex::new(State {
                link: Link::Up,
                delay: Duration::ZERO,
                rules: Vec::new(),
                interludes: Vec::new(),
                counts: BTreeMap::new(),
                lost: 0,
                open: 0,
            }),
            epoch: watch::Sender::new(0),
        });
        let (stop, stopped) = watch::channel(false);
        listener.set_nonblocking(true).expect("a listener can be non-blocking");
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
                runtime.block_on(serve(listener, shared, stopped));
            }
        });
        Proxy { port, shared, stop, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Loses one reply: that of the nth command (from 1) from now on of which `matches` holds. The server has carried the
    /// command out by then. An answer NOSCRIPT does not count.
    pub fn lose_reply(&self, nth: u64, lose: Lose, matches: impl Fn(&Command) -> bool + Send + 'static) {
        assert!(nth > 0, "the first is 1");
        self.state().rules.push(Rule { matches: Box::new(matches), to_pass: nth - 1, lose });
    }

    /// Cuts the connection before the nth command (from 1) from now on of which `matches` holds: it never arrives.
    pub fn lose_request(&self, nth: u64, matches: impl Fn(&Command) -> bool + Send + 'static) {
        assert!(nth > 0, "the first is 1");
        self.state().interludes.push(Interlude { matches: Box::new(matches), to_pass: nth - 1, action: None });
    }

    /// Does something before the nth command (from 1) from now on of which `matches` holds is let through, when all before
    /// it have been answered.
    pub fn interpose(
        &self,
        nth: u64,
        matches: impl Fn(&Command) -> bool + Send + 'static,
        action: impl FnOnce() + Send + 'static,
    ) {
        assert!(nth > 0, "the first is 1");
        let action: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(action));
        self.state().interludes.push(Interlude { matches: Box::new(matches), to_pass: nth - 1, action });
    }

    /// Forgets what was still to be lost or done.
    pub fn forget(&self) {
        let mut state = self.state();
        state.rules.clear();
        state.interludes.clear();
    }

    /// How many commands were forwarded.
    pub fn commands(&self) -> u64 {
        self.state().counts.values().sum()
    }

    /// How many replies were lost by [`Self::lose_reply`].
    pub fn lost(&self) -> u64 {
        self.state().lost
    }

    /// Closes every connection; new ones are served.
    pub fn cut(&self) {
        self.shared.epoch.send_modify(|epoch| *epoch += 1);
    }

    /// Closes every connection, and each new one at once, until [`Self::heal`].
    pub fn refuse(&self) {
        self.state().link = Link::Refusing;
        self.cut();
    }

    /// Lets nothing through in either direction and closes nothing, until [`Self::heal`]. New connections are accepted.
    pub fn half_open(&self) {
        self.state().link = Link::Silent;
    }

    /// Holds each answer back for this long.
    pub fn delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Everything passes again. Connections that lost something in the silence are closed, as a router does that has
    /// forgotten them.
    pub fn heal(&self) {
        let was = std::mem::replace(&mut self.state().link, Link::Up);
        self.delay(Duration::ZERO);
        if was == Link::Silent {
            self.cut();
        }
    }

    /// How many commands of this name were forwarded.
    pub fn count(&self, name: &str) -> u64 {
        self.state().counts.get(&name.to_uppercase()).copied().unwrap_or(0)
    }

    /// How many connections stand.
    pub fn connections(&self) -> u64 {
        self.state().open
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Whether the reply to this command is to be lost.
    fn loses(&self, command: &Command, reply: &[u8]) -> Option<Lose> {
        if reply.starts_with(b"-NOSCRIPT") {
            return None;
        }
        let mut state = self.state();
        let at = state.rules.iter_mut().position(|rule| {
            let due = (rule.matches)(command) && rule.to_pass == 0;
            if (rule.matches)(command) && !due {
                rule.to_pass -= 1;
            }
            due
        })?;
        state.lost += 1;
        Some(state.rules.remove(at).lose)
    }
}

impl Shared {
    /// What is to be done before this command.
    fn interlude(&self, command: &Command) -> Option<Interlude> {
        let mut state = self.state();
        let at = state.interludes.iter_mut().position(|next| {
            let due = (next.matches)(command) && next.to_pass == 0;
            if (next.matches)(command) && !due {
                next.to_pass -= 1;
            }
            due
        })?;
        Some(state.interludes.remove(at))
    }
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>, mut stopped: watch::Receiver<bool>) {
    let listener = TcpListener::from_std(listener).expect("the listener belongs to this runtime");
    loop {
        let client = tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((client, _)) = client else { continue };
        if shared.state().link == Link::Refusing {
            continue;
        }
        // Before the task starts: a cut that comes now already ends this connection.
        let epoch = shared.epoch.subscribe();
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            shared.state().open += 1;
            let _ = relay(client, &shared, epoch).await;
            shared.state().open -= 1;
        });
    }
}

/// Serves one connection to its end; dropping the sockets closes both sides.
async fn relay(client: TcpStream, shared: &Shared, mut epoch: watch::Receiver<u64>) -> io::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.upstream)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let waiting = Mutex::new(Waiting::default());
    tokio::select! {
        _ = epoch.changed() => Ok(()),
        ended = requests(from_client, to_server, shared, &waiting) => ended,
        ended = replies(from_server, to_client, shared, &waiting) => ended,
    }
}

/// Commands whose replies are still to come, in order.
#[derive(Default)]
struct Waiting {
    commands: VecDeque<Command>,
    /// Set by a subscription: what the server sends is no longer one reply a command.
    unordered: bool,
}

async fn requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    waiting: &Mutex<Waiting>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    while from.read_buf(&mut buffer).await? > 0 {
        if shared.state().link == Link::Silent {
            buffer.clear();
            continue;
        }
        let mut end = 0;
        while let Some(length) = frame_length(&buffer[end..]) {
            let command = parse_command(&buffer[end..end + length]);
            if let Some(interlude) = shared.interlude(&command) {
                to.write_all(&buffer[..end]).await?;
                buffer.drain(..end);
                end = 0;
                while !waiting.lock().expect("no holder panics").commands.is_empty() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                match interlude.action {
                    Some(action) => tokio::task::spawn_blocking(action).await.expect("the action does not panic"),
                    None => {
                        shared.state().lost += 1;
                        return Ok(());
                    }
                }
            }
            end += length;
            *shared.state().counts.entry(command.name.clone()).or_default() += 1;
            let mut waiting = waiting.lock().expect("no holder panics");
            waiting.unordered |= command.name.ends_with("SUBSCRIBE") || command.name == "MONITOR";
            waiting.commands.push_back(command);
        }
        to.write_all(&buffer[..end]).await?;
        buffer.drain(..end);
    }
    Ok(())
}

async fn replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    waiting: &Mutex<Waiting>,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut mute = false;
    while from.read_buf(&mut buffer).await? > 0 {
        let delay = shared.state().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        let mut end = 0;
        let mut lost = None;
        while lost.is_none()
            && let Some(length) = frame_length(&buffer[end..])
        {
            let reply = &buffer[end..end + length];
            if !reply.starts_with(b">") {
                let mut waiting = waiting.lock().expect("no holder panics");
                if !waiting.unordered
                    && let Some(command) = waiting.commands.pop_front()
                {
                    lost = shared.loses(&command, reply);
                }
            }
            if lost.is_none() {
                end += length;
            }
        }
        mute |= shared.state().link == Link::Silent;
        if !mute {
            to.write_all(&buffer[..end]).await?;
        }
        match lost {
            Some(Lose::ByCut) => return Ok(()),
            Some(Lose::InSilence) => {
                mute = true;
                buffer.clear();
            }
            None => drop(buffer.drain(..end)),
        }
    }
    Ok(())
}

/// The length of the first whole frame, RESP2 or RESP3; `None` where more has to come.
fn frame_length(bytes: &[u8]) -> Option<usize> {
    let line = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let count = || std::str::from_utf8(&bytes[1..line - 2]).ok()?.parse::<i64>().ok();
    let items = match bytes[0] {
        b'$' | b'=' | b'!' => {
            let whole = count().filter(|length| *length >= 0).map_or(line, |length| line + length as usize + 2);
            return (bytes.len() >= whole).then_some(whole);
        }
        b'*' | b'~' | b'>' => count().unwrap_or(0).max(0),
        b'%' => count().unwrap_or(0).max(0) * 2,
        // An attribute stands before the value that it belongs to.
        b'|' => count().unwrap_or(0).max(0) * 2 + 1,
        _ => 0,
    };
    let mut end = line;
    for _ in 0..items {
        end += frame_length(&bytes[end..])?;
    }
    Some(end)
}

/// The words of a command: an array of bulk strings, as every client sends.
fn parse_command(frame: &[u8]) -> Command {
    let mut words = Vec::new();
    let mut at = frame.iter().position(|byte| *byte == b'\n').map_or(frame.len(), |end| end + 1);
    while at < frame.len() {
        let end = at + frame_length(&frame[at..]).expect("the frame is whole");
        let head = at + frame[at..end].iter().position(|byte| *byte == b'\n').expect("a line ends") + 1;
        words.push(frame[head..end - 2].to_vec());
        at = end;
    }
    let mut words = words.into_iter();
    let name = words.next().map(|name| String::from_utf8_lossy(&name).to_uppercase()).unwrap_or_default();
    Command { name, args: words.collect() }
}

#[test]
fn frames_are_measured() {
    assert_eq!(frame_length(b"+OK\r\n:1\r\n"), Some(5));
    assert_eq!(frame_length(b"$3\r\na\r\n\r\n"), Some(9));
    assert_eq!(frame_length(b"$3\r\nab"), None);
    assert_eq!(frame_length(b"$-1\r\n+"), Some(5));
    assert_eq!(frame_length(b"*2\r\n*1\r\n:1\r\n$-1\r\n"), Some(17));
    assert_eq!(frame_length(b"*2\r\n:1\r\n"), None);
    assert_eq!(frame_length(b"%1\r\n+a\r\n:1\r\n#t\r\n"), Some(12));
    assert_eq!(frame_length(b"|1\r\n+a\r\n:1\r\n#t\r\n"), Some(16));
    let command = parse_command(b"*2\r\n$4\r\nping\r\n$2\r\nab\r\n");
    assert_eq!((command.name.as_str(), command.args), ("PING", vec![b"ab".to_vec()]));
}
