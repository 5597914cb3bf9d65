//! What the inspector costs: time to the first useful frame, key to frame, idle CPU, memory; on a Redis with many tasks,
//! answering and frozen. Prints figures and asserts none.
//!
//!   cargo bench --bench inspector [-- READY FAILED]      default 1,000,000 and 200,000
//!
//! `THREADMILL_BINARY` names another program to measure.

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Keys that are measured.
const KEYS: usize = 400;
/// What ends a frame: the end of a synchronized update.
const FRAME_END: &[u8] = b"\x1b[?2026l";

/// A private Redis.
struct Server {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|at| at.local_addr()).expect("a free port").port();
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--dir"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server can be started");
        Self { child, port, _dir: dir }
    }

    fn connection(&self) -> redis::Connection {
        let client = redis::Client::open(self.url()).expect("the URL is good");
        loop {
            match client.get_connection() {
                Ok(connection) => return connection,
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.child.id().to_string()]).status();
    }

    /// Fills it with tasks as the Python package stores them.
    fn fill(&self, ready: u64, failed: u64) {
        let mut connection = self.connection();
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis() as u64;
        let mut pipe = redis::pipe();
        for number in 0..ready + failed {
            let is_ready = number < ready;
            let id = format!("01a22df8-34ed-7724-a9cf-{number:012}");
            let record = record(&id, number, is_ready);
            if is_ready {
                pipe.cmd("HSET").arg(format!("threadmill:{{default}}:task:{id}")).arg("data").arg(record).ignore();
                pipe.cmd("ZADD")
                    .arg("threadmill:{default}:emails:ready")
                    .arg(now - 250_000 + number % 250_000)
                    .arg(id)
                    .ignore();
            } else {
                pipe.cmd("SET").arg(format!("threadmill:{{default}}:result:{id}")).arg(record).ignore();
                pipe.cmd("ZADD").arg("threadmill:{default}:emails:failed").arg(now - number).arg(id).ignore();
            }
            if number % 5_000 == 4_999 || number + 1 == ready + failed {
                pipe.query::<()>(&mut connection).expect("Redis takes it");
                pipe.clear();
            }
        }
    }
}

fn record(id: &str, number: u64, is_ready: bool) -> String {
    let at = "\"2026-11-30T19:39:31.000Z\"";
    let (status, at, errors, workers) = if is_ready {
        ("READY", "null", String::new(), "")
    } else {
        let traceback = format!(
            "Traceback (most recent call last):\\n  File \\\"/srv/shop/mail.py\\\", line 88, in send\\n    client.send(message)\\n  \
             File \\\"/usr/lib/python3.14/smtplib.py\\\", line 760, in sendmail\\n    raise X\\nConnectionError: SMTP refused \
             user {number}\\n"
        );
        let error =
            format!("{{\"exception_class_path\": \"builtins.ConnectionError\", \"traceback\": \"{traceback}\"}}");
        ("FAILED", at, error, "\"web1-4711\"")
    };
    format!(
        "{{\"task\": {{\"priority\": 0, \"backend\": \"default\", \"queue_name\": \"emails\", \"run_after\": null, \
         \"takes_context\": false, \"func\": \"shop.tasks.welcome_email\", \"retry\": null}}, \"id\": \"{id}\", \"status\": \
         \"{status}\", \"enqueued_at\": \"2026-11-30T19:39:30.881Z\", \"started_at\": {at}, \"finished_at\": {at}, \
         \"last_attempted_at\": {at}, \"args\": [{number}], \"kwargs\": {{\"locale\": \"de\"}}, \"backend\": \"default\", \
         \"errors\": [{errors}], \"worker_ids\": [{workers}], \"_return_value\": null}}"
    )
}

fn screen_of(columns: u16, rows: u16) -> vt100::Parser {
    let at_least_one = |number| NonZeroU16::new(number).unwrap_or(NonZeroU16::MIN);
    vt100::Parser::new(at_least_one(rows), at_least_one(columns), 0)
}

/// The inspector in a terminal; its output comes with the moment at which it was read.
struct Inspector {
    keyboard: Box<dyn Write + Send>,
    output: Receiver<(Instant, Vec<u8>)>,
    pid: u32,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    started: Instant,
    parser: vt100::Parser,
}

impl Inspector {
    fn start(url: &str) -> Self {
        let size = PtySize { rows: 50, cols: 160, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let binary = std::env::var("THREADMILL_BINARY").unwrap_or_else(|_| env!("CARGO_BIN_EXE_threadmill").into());
        let mut command = CommandBuilder::new(binary);
        command.args(["--redis-url", url, "inspector"]);
        command.env("TERM", "xterm-256color");
        let started = Instant::now();
        let child = pair.slave.spawn_command(command).expect("the program can be started");
        drop(pair.slave);
        let mut reader = pair.master.try_clone_reader().expect("the terminal can be read");
        let keyboard = pair.master.take_writer().expect("the terminal can be written");
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let _master = pair.master;
            let mut chunk = [0; 65_536];
            while let Ok(read @ 1..) = reader.read(&mut chunk) {
                if sender.send((Instant::now(), chunk[..read].to_vec())).is_err() {
                    return;
                }
            }
        });
        let pid = child.process_id().expect("it runs");
        Self { keyboard, output, pid, child, started, parser: screen_of(160, 50) }
    }

    /// When the screen was as wanted.
    fn wait_until(&mut self, wanted: impl Fn(&str) -> bool) -> Instant {
        loop {
            let (at, chunk) = self.output.recv().expect("it runs");
            self.parser.process(&chunk);
            if wanted(&self.parser.screen().contents()) {
                return at;
            }
        }
    }

    /// Presses a key: the time until the next frame has ended.
    fn key(&mut self, key: &str) -> Duration {
        while let Ok((_, chunk)) = self.output.try_recv() {
            self.parser.process(&chunk);
        }
        let pressed = Instant::now();
        self.send(key);
        loop {
            let (at, chunk) = self.output.recv().expect("it runs");
            self.parser.process(&chunk);
            if chunk.windows(FRAME_END.len()).any(|window| window == FRAME_END) {
                return at - pressed;
            }
        }
    }

    fn send(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it takes keys");
        self.keyboard.flush().expect("it takes keys");
    }

    fn keys(&mut self, what: &str) {
        let mut times: Vec<Duration> = (0..KEYS)
            .map(|nth| {
                std::thread::sleep(Duration::from_millis(20));
                self.key(if nth % 20 < 10 { "j" } else { "k" })
            })
            .collect();
        times.sort();
        let at = |part: f64| times[((KEYS - 1) as f64 * part) as usize].as_secs_f64() * 1_000.0;
        println!(
            "key to frame, {what}: median {:.2} ms, 99 of 100 {:.2} ms, most {:.2} ms",
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }

    /// Memory that is resident, in MiB, and seconds of CPU so far.
    fn usage(&self) -> (f64, f64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: f64 = resident.and_then(|text| text.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0.0);
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks: f64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<f64>().ok()).sum();
        (kib / 1_024.0, ticks / 100.0)
    }
}

fn main() {
    let mut counts = std::env::args().skip(1).filter_map(|arg| arg.parse().ok());
    let (ready, failed) = (counts.next().unwrap_or(1_000_000), counts.next().unwrap_or(200_000));
    let server = Server::start();
    server.fill(ready, failed);
    println!("{ready} READY, {failed} FAILED");
    let mut inspector = Inspector::start(&server.url());
    let first = inspector.wait_until(|text| text.contains("emails"));
    println!("first useful frame: {:.0} ms after the start", (first - inspector.started).as_secs_f64() * 1_000.0);
    // The incidents are being looked at meanwhile.
    std::thread::sleep(Duration::from_secs(8));
    inspector.key("5");
    inspector.keys("Redis answers");
    let (_, before) = inspector.usage();
    let idle = Duration::from_secs(20);
    std::thread::sleep(idle);
    let (resident, after) = inspector.usage();
    println!("at rest: {resident:.1} MiB resident, {:.2} % of a core", (after - before) / idle.as_secs_f64() * 100.0);
    server.signal("-STOP");
    std::thread::sleep(Duration::from_secs(3));
    inspector.keys("Redis frozen");
    server.signal("-CONT");
    std::thread::sleep(Duration::from_secs(3));
    inspector.key("/");
    let begun = Instant::now();
    inspector.send("args.0:1000100 -error:KeyError\r");
    let ended = inspector.wait_until(|text| text.contains("filter args") && !text.contains("Esc stops"));
    println!("a filter through {failed} tasks: {:.1} s, within its budget", (ended - begun).as_secs_f64());
    println!("after it: {:.1} MiB resident", inspector.usage().0);
    inspector.send("\x03");
    let _ = inspector.child.wait();
}
