//! A private redis-server for one test.

use super::process;
use super::snapshot::{self, Snapshot};
use super::wait::LIMIT;
use redis::{Connection, FromRedisValue, RedisResult};
use rustix::process::Signal;
use std::collections::{BTreeMap, HashSet};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How many servers may be starting at the same moment; running ones are bounded by the test threads.
const STARTING_AT_ONCE: usize = 4;
static STARTING: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());
/// Ports that this test process has used; none is used twice, so that a restarted server finds its own free.
static TAKEN: LazyLock<Mutex<HashSet<u16>>> = LazyLock::new(Mutex::default);
/// How long a reply may take before a helper here gives up.
const REPLY_LIMIT: Duration = Duration::from_secs(30);

/// How a server is to be set up.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    append_only: bool,
    tls: bool,
    bus_port: Option<u16>,
    args: Vec<String>,
}

impl Setup {
    /// Keeps the data over `stop` and `start`, and over `crash` and `start` too: each write is synced.
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// A further setting, such as `("maxmemory", "2mb")`; several values are split at spaces.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.args.push(format!("--{name}"));
        self.args.extend(value.split(' ').map(str::to_owned));
        self
    }

    /// Its port takes TLS only; the certificates are settings like others.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// A node of a cluster, without slots.
    pub fn cluster(mut self) -> Self {
        self.bus_port = Some(free_port());
        self
    }

    /// Starts the server and waits until it answers.
    pub fn start(self) -> TestRedis {
        TestRedis::start_with(self)
    }
}

/// A running server with its own folder, port and socket. It is killed and removed on drop.
pub struct TestRedis {
    setup: Setup,
    port: u16,
    child: Option<Child>,
    dir: TempDir,
}

impl TestRedis {
    /// A server that keeps nothing on disk.
    pub fn spawn() -> Self {
        Setup::default().start()
    }

    /// For a server that needs settings of its own.
    pub fn setup() -> Setup {
        Setup::default()
    }

    fn start_with(setup: Setup) -> Self {
        let dir = tempfile::Builder::new().prefix("threadmill-redis-").tempdir().expect("a temporary folder");
        let mut server = TestRedis { setup, port: 0, child: None, dir };
        let mut last = String::new();
        // Another process can take the port between the look and the start.
        for _ in 0..10 {
            server.port = free_port();
            match server.run(|answer| answer == "+PONG") {
                Ok(()) => return server,
                Err(why) => last = why,
            }
        }
        panic!("redis-server does not start: {last}");
    }

    /// Starts a stopped server again: the same port, socket and folder. A running one stays as it is.
    pub fn start(&mut self) {
        self.start_until(|answer| answer == "+PONG");
    }

    /// As [`Self::start`], and returns as soon as the server answers at all, be it that it is still loading.
    pub fn start_loading(&mut self) {
        self.start_until(|answer| answer == "+PONG" || answer.starts_with("-LOADING"));
    }

    fn start_until(&mut self, ready: fn(&str) -> bool) {
        if self.child.is_none()
            && let Err(why) = self.run(ready)
        {
            panic!("redis-server does not start again: {why}");
        }
    }

    /// Ends the server in good order; clients see it gone.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            process::signal(&child, Signal::CONT);
            process::signal(&child, Signal::TERM);
            process::wait_bounded(&mut child, LIMIT);
        }
    }

    /// Ends the server as a power cut does.
    pub fn crash(&mut self) {
        if let Some(mut child) = self.child.take() {
            process::kill(&mut child);
        }
    }

    /// Stops the process without closing anything: connections stand, nothing is answered.
    pub fn freeze(&self) {
        process::signal(self.child.as_ref().expect("the server runs"), Signal::STOP);
    }

    /// Lets a frozen server go on.
    pub fn thaw(&self) {
        process::signal(self.child.as_ref().expect("the server runs"), Signal::CONT);
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The process id of the running server.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the server runs").id()
    }

    /// `redis://127.0.0.1:<port>/0`
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// `unix://<path>`, as redis-py writes it.
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("s")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// What the server has logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// A client for the TCP port.
    pub fn client(&self) -> redis::Client {
        redis::Client::open(self.url()).expect("a plain URL")
    }

    /// A blocking connection over the socket: faults of the network do not touch it.
    pub fn connection(&self) -> Connection {
        self.try_connection().expect("the server accepts connections")
    }

    fn try_connection(&self) -> RedisResult<Connection> {
        let url = format!("redis+unix://{}", self.socket().display());
        let connection = redis::Client::open(url)?.get_connection_with_timeout(REPLY_LIMIT)?;
        connection.set_read_timeout(Some(REPLY_LIMIT))?;
        Ok(connection)
    }

    /// Runs one command, as `redis-cli` does: `server.cli::<i64>(&["ZCARD", key])`.
    #[track_caller]
    pub fn cli<T: FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_cli(words).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    }

    /// As [`Self::cli`], for a command that the server may refuse.
    pub fn try_cli<T: FromRedisValue>(&self, words: &[&str]) -> RedisResult<T> {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query(&mut self.try_connection()?)
    }

    /// The whole keyspace of database 0.
    pub fn snapshot(&self) -> Snapshot {
        snapshot::take(&mut self.connection())
    }

    /// Fills in a recorded state: `keys` holds by name a `type` (hash, zset or string), a `value`, and a `ttl` in seconds,
    /// negative for none.
    #[track_caller]
    pub fn load_state(&self, json: &str) {
        let state: serde_json::Value = serde_json::from_str(json).expect("a state is JSON");
        let text = |value: &serde_json::Value| value.as_str().expect("a text").to_owned();
        for (key, entry) in state["keys"].as_object().expect("a state has keys") {
            let value = &entry["value"];
            let words = match text(&entry["type"]).as_str() {
                "string" => vec!["SET".to_owned(), key.clone(), text(value)],
                "hash" => {
                    let fields = value.as_object().expect("a hash is an object").iter();
                    let fields = fields.flat_map(|(name, value)| [name.clone(), text(value)]);
                    ["HSET".to_owned(), key.clone()].into_iter().chain(fields).collect()
                }
                "zset" => {
                    let members = value.as_array().expect("a sorted set is an array").iter();
                    let members = members.flat_map(|member| [text(&member[1]), text(&member[0])]);
                    ["ZADD".to_owned(), key.clone()].into_iter().chain(members).collect()
                }
                other => panic!("a state has no {other}"),
            };
            self.cli::<()>(&words.iter().map(String::as_str).collect::<Vec<_>>());
            if let Some(ttl @ 0..) = entry["ttl"].as_i64() {
                self.cli::<()>(&["EXPIRE", key, &ttl.to_string()]);
            }
        }
    }

    /// How often each command was called since the start (or the last [`Self::reset_stats`]), by lower-case name; calls
    /// made by scripts are among them.
    pub fn commandstats(&self) -> BTreeMap<String, u64> {
        let info: String = self.cli(&["INFO", "commandstats"]);
        info.lines()
            .filter_map(|line| {
                let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
                Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
            })
            .collect()
    }

    pub fn reset_stats(&self) {
        self.cli::<()>(&["CONFIG", "RESETSTAT"]);
    }

    /// The port of the bus between the nodes of a cluster.
    pub fn bus_port(&self) -> u16 {
        self.setup.bus_port.expect("it is a node of a cluster")
    }

    /// What the server's socket answers to a PING, as it comes.
    fn ping(&self) -> Option<String> {
        use std::io::{BufRead as _, BufReader, Write as _};
        let mut stream = std::os::unix::net::UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(REPLY_LIMIT)).ok()?;
        stream.write_all(b"PING\r\n").ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    }

    fn run(&mut self, ready: fn(&str) -> bool) -> Result<(), String> {
        let _turn = Turn::take();
        let log = self.dir.path().join("log");
        let mut command = Command::new(program());
        let port = self.port.to_string();
        match self.setup.tls {
            true => command.args(["--port", "0", "--tls-port", &port]),
            false => command.args(["--port", &port]),
        };
        if let Some(bus) = self.setup.bus_port {
            command.args(["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"]);
            command.args(["--cluster-port", &bus.to_string()]);
        }
        command
            .args(["--bind", "127.0.0.1", "--daemonize", "no", "--save", ""])
            .args(["--unixsocket", &self.socket().display().to_string(), "--unixsocketperm", "700"])
            .args(["--dir", &self.dir.path().display().to_string(), "--logfile", &log.display().to_string()])
            .args(["--appendonly", if self.setup.append_only { "yes" } else { "no" }, "--appendfsync", "always"])
            .args(&self.setup.args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut child = process::spawn(command, Signal::KILL)
            .map_err(|error| format!("{error}; is redis-server on PATH? script/test installs it"))?;
        let start = Instant::now();
        loop {
            // The socket is this server's own; at the port somebody else's could answer.
            if self.ping().is_some_and(|answer| ready(&answer)) {
                self.child = Some(child);
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                return Err(format!("{status}\n{}", self.log()));
            }
            if start.elapsed() > LIMIT {
                process::kill(&mut child);
                return Err(format!("it never answers PING\n{}", self.log()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for TestRedis {
    fn drop(&mut self) {
        self.crash();
    }
}

/// The server's program; THREADMILL_TEST_SERVER names another than the one on PATH.
pub fn program() -> PathBuf {
    std::env::var_os("THREADMILL_TEST_SERVER").map_or_else(|| PathBuf::from("redis-server"), PathBuf::from)
}

/// The right to start a server.
struct Turn;

impl Turn {
    fn take() -> Self {
        let mut starting = STARTING.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        while *starting >= STARTING_AT_ONCE {
            starting = STARTING.1.wait(starting).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        *starting += 1;
        Turn
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *STARTING.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) -= 1;
        STARTING.1.notify_one();
    }
}

/// A port that nobody listens on, below the range from which systems take the ports of outgoing connections: otherwise a
/// client could sit on it while its server is down.
pub fn free_port() -> u16 {
    free_listener().local_addr().expect("it is bound").port()
}

/// A listener on such a port. Whoever can use it should: closing it and binding again can fail, since a process that is
/// being started at that moment holds a copy of it.
pub fn free_listener() -> TcpListener {
    let mut taken = TAKEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for _ in 0..10_000 {
        let port = fastrand::u16(12_000..32_000);
        if !taken.contains(&port)
            && let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        {
            taken.insert(port);
            return listener;
        }
    }
    panic!("no free port");
}
