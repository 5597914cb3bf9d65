//! The `threadmill` binary, from the outside.

use super::process;
use super::wait::{LIMIT, eventually};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tempfile::TempDir;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_threadmill");

/// An empty home folder and an environment of its own, so that nothing of the user's reaches the binary.
pub struct Home {
    dir: TempDir,
    env: Vec<(String, String)>,
}

impl Home {
    pub fn empty() -> Self {
        let dir = tempfile::Builder::new().prefix("threadmill-home-").tempdir().expect("a temporary folder");
        Home { dir, env: Vec::new() }
    }

    /// With `THREADMILL_REDIS_URL` set.
    pub fn on(redis_url: &str) -> Self {
        Self::empty().env("THREADMILL_REDIS_URL", redis_url)
    }

    /// A further variable of the environment.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The home folder, which is the working folder too.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Everything that the binary's environment holds.
    pub fn environment(&self) -> Vec<(String, String)> {
        let home = self.path().display().to_string();
        let mut all = vec![("HOME".into(), home), ("LANG".into(), "C.UTF-8".into())];
        all.extend(std::env::var("PATH").map(|path| ("PATH".into(), path)));
        all.extend(std::env::var("TMPDIR").map(|path| ("TMPDIR".into(), path)));
        all.extend(self.env.iter().cloned());
        all
    }

    /// The binary with these arguments, ready to be started.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(args).env_clear().envs(self.environment()).current_dir(self.path());
        command
    }

    /// Runs the binary to its end, with no standard input.
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Output {
        self.spawn(args).wait()
    }

    /// As [`Self::run`], with this text on standard input.
    #[track_caller]
    pub fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut running = Running::start(self.command(args), Stdio::piped());
        let mut stdin = running.child.stdin.take().expect("stdin is piped");
        let input = input.to_owned();
        // On a thread: a child that writes much before it reads would block both. One that reads nothing is no error.
        let writer = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
        let output = running.wait();
        let _ = writer.join();
        output
    }

    /// Starts the binary, and goes on.
    pub fn spawn(&self, args: &[&str]) -> Running {
        Running::start(self.command(args), Stdio::null())
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    /// The exit code; 128 + the signal where one ended it, as a shell says it.
    pub code: i32,
}

impl Output {
    /// Fails, showing all, where the exit code is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error} in:\n{}", self.stdout))
    }

    /// Standard output as one JSON document a line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in: {line}")))
            .collect()
    }
}

/// A process that runs; killed on drop.
pub struct Running {
    child: Child,
    stdout: Capture,
    stderr: Capture,
}

impl Running {
    /// Starts a command, capturing what it writes.
    pub fn start(mut command: Command, stdin: Stdio) -> Self {
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = process::spawn(command, Signal::KILL).expect("the program can be started");
        let stdout = Capture::of(child.stdout.take().expect("stdout is piped"));
        let stderr = Capture::of(child.stderr.take().expect("stderr is piped"));
        Running { child, stdout, stderr }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has written so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has written so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until standard error holds this text.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        eventually(&format!("stderr holds {text:?}"), || self.stderr().contains(text));
    }

    /// Waits until standard output holds this text.
    #[track_caller]
    pub fn wait_for_stdout(&self, text: &str) {
        eventually(&format!("stdout holds {text:?}"), || self.stdout().contains(text));
    }

    pub fn signal(&self, signal: Signal) {
        process::signal(&self.child, signal);
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// SIGTERM, then the end.
    #[track_caller]
    pub fn stop(self) -> Output {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// Waits for the end.
    #[track_caller]
    pub fn wait(mut self) -> Output {
        let Some(status) = process::wait_bounded(&mut self.child, LIMIT) else {
            panic!("it does not end\nstdout:\n{}\nstderr:\n{}", self.stdout(), self.stderr());
        };
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Output { stdout: self.stdout.finish(), stderr: self.stderr.finish(), code }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// Reads a pipe on a thread, so that the writer never waits for the test.
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(read @ 1..) = pipe.read(&mut chunk) {
                shared.lock().expect("no holder panics").extend_from_slice(&chunk[..read]);
            }
        });
        Capture { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().expect("no holder panics")).into_owned()
    }

    /// All of it: waits until the last writer has closed the pipe.
    fn finish(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        self.text()
    }
}
