//! A master, a replica, and three sentinels that watch them.

use super::process;
use super::server::{TestRedis, free_port, program};
use super::wait::eventually;
use rustix::process::Signal;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The name that the sentinels know the master by.
pub const MASTER: &str = "my-master";
/// Below this a busy machine looks like a dead server.
const DOWN_AFTER: &str = "1500";

/// The whole of it. All of it ends on drop.
pub struct Sentinels {
    /// The first master and its replica.
    pub servers: [TestRedis; 2],
    sentinels: Vec<Sentinel>,
}

struct Sentinel {
    port: u16,
    child: Child,
    _dir: TempDir,
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

impl Sentinels {
    /// Starts everything and waits until a failover can take place.
    pub fn spawn() -> Self {
        let master = TestRedis::setup().append_only().start();
        let replicaof = format!("127.0.0.1 {}", master.port());
        let replica = TestRedis::setup().append_only().set("replicaof", &replicaof).start();
        eventually("the replica has the data", || {
            replica.cli::<String>(&["INFO", "replication"]).contains("master_link_status:up")
        });
        let sentinels = (0..3).map(|_| Sentinel::spawn(master.port())).collect();
        let group = Self { servers: [master, replica], sentinels };
        for sentinel in &group.sentinels {
            eventually("the sentinels know each other and the replica", || {
                let known = |what: &str| sentinel.list(what).len();
                sentinel.ask(&["SENTINEL", "CKQUORUM", MASTER]).is_some()
                    && known("SENTINELS") == 2
                    && known("REPLICAS") == 1
            });
        }
        group
    }

    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port)).collect();
        format!("redis+sentinel://{}/{MASTER}/0", hosts.join(","))
    }

    /// The port of the master by what the sentinel of this number says.
    pub fn master_port(&self, sentinel: usize) -> Option<u16> {
        let answer = self.sentinels[sentinel].ask(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER])?;
        match answer {
            redis::Value::Array(parts) => redis::from_redis_value::<u16>(parts.into_iter().nth(1)?).ok(),
            _ => None,
        }
    }

    /// Asks for a failover without anything being wrong.
    pub fn failover(&self) {
        eventually("the sentinel takes the order", || {
            self.sentinels[0].ask(&["SENTINEL", "FAILOVER", MASTER]).is_some()
        });
    }

    /// Ends one of the sentinels.
    pub fn kill_sentinel(&mut self) {
        self.sentinels.remove(0);
    }
}

impl Sentinel {
    fn spawn(master: u16) -> Self {
        for _ in 0..10 {
            let dir = tempfile::Builder::new().prefix("threadmill-sentinel-").tempdir().expect("a temporary folder");
            let port = free_port();
            let config = dir.path().join("sentinel.conf");
            let lines = [
                format!("port {port}"),
                "bind 127.0.0.1".to_owned(),
                format!("dir {}", dir.path().display()),
                format!("logfile {}", dir.path().join("log").display()),
                format!("sentinel monitor {MASTER} 127.0.0.1 {master} 2"),
                format!("sentinel down-after-milliseconds {MASTER} {DOWN_AFTER}"),
                format!("sentinel failover-timeout {MASTER} 6000"),
            ];
            std::fs::write(&config, lines.join("\n") + "\n").expect("the folder can be written");
            let mut command = Command::new(program());
            command.arg(&config).arg("--sentinel");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let child = process::spawn(command, Signal::KILL).expect("the server's program runs");
            let mut sentinel = Sentinel { port, child, _dir: dir };
            let mut running = true;
            eventually("the sentinel answers or ends", || {
                running = matches!(sentinel.child.try_wait(), Ok(None));
                !running || sentinel.list("MASTERS").len() == 1
            });
            if running {
                return sentinel;
            }
        }
        panic!("no sentinel starts");
    }

    fn ask(&self, words: &[&str]) -> Option<redis::Value> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port)).ok()?;
        let mut connection = client.get_connection_with_timeout(std::time::Duration::from_secs(5)).ok()?;
        connection.set_read_timeout(Some(std::time::Duration::from_secs(5))).ok()?;
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(word);
        }
        command.query(&mut connection).ok()
    }

    fn list(&self, what: &str) -> Vec<redis::Value> {
        let words = ["SENTINEL", what, MASTER];
        match self.ask(if what == "MASTERS" { &words[..2] } else { &words }) {
            Some(redis::Value::Array(values)) => values,
            _ => Vec::new(),
        }
    }
}
