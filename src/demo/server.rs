//! A private redis-server: in a temporary folder, behind a socket that only this user can reach, gone at the end.

use rustix::process::Signal;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the server may take until its socket answers.
const START_LIMIT: Duration = Duration::from_secs(10);
const START_LOOK: Duration = Duration::from_millis(5);

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The program is not there.
    #[error(
        "redis-server is not on PATH; install it (Debian: `apt install redis-server`), or run ./script/demo, which does"
    )]
    Missing,
    /// Its folder cannot be made.
    #[error("no temporary folder can be made at {path}")]
    Folder {
        /// Where.
        path: PathBuf,
        /// What the attempt ended with.
        #[source]
        source: io::Error,
    },
    /// It cannot be started.
    #[error("redis-server cannot be started")]
    Start(#[source] io::Error),
    /// It ended at once, or never answered.
    #[error("redis-server does not come up: {0}")]
    NotUp(String),
}

/// A running server. It is killed, and its folder removed, when this is dropped.
pub(crate) struct Server {
    folder: PathBuf,
    /// Its end tells the keeper to end the server.
    life: Option<mpsc::Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one and waits until it answers.
    pub async fn start() -> Result<Self, ServerError> {
        let folder = make_folder()?;
        let (life, end) = mpsc::channel();
        let (started, start) = tokio::sync::oneshot::channel();
        let place = folder.clone();
        // The kernel ends a child with the thread that started it, so one thread starts it and stays with it.
        let keeper = std::thread::Builder::new().name("demo-redis".into()).spawn(move || keep(&place, started, &end));
        let keeper = keeper.map_err(ServerError::Start)?;
        let server = Self { folder, life: Some(life), keeper: Some(keeper) };
        match start.await {
            Ok(Ok(())) => Ok(server),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(ServerError::NotUp("its keeper ended".into())),
        }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("unix://{}", socket(&self.folder).display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.life.take());
        if let Some(keeper) = self.keeper.take() {
            // A keeper that panicked has dropped the server's process already.
            let _ = keeper.join();
        }
    }
}

/// Kills the process and removes the folder, whatever happens in between.
struct Kept<'a> {
    child: Option<Child>,
    folder: &'a Path,
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // Nothing of it is to be kept, so there is nothing that it should save; it may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(self.folder);
    }
}

fn keep(folder: &Path, started: tokio::sync::oneshot::Sender<Result<(), ServerError>>, end: &mpsc::Receiver<()>) {
    let mut kept = Kept { child: None, folder };
    let outcome = spawn(folder).and_then(|child| wait_until_up(kept.child.insert(child), folder));
    let is_up = outcome.is_ok();
    if started.send(outcome).is_ok() && is_up {
        // Nothing is ever sent: it ends when the other side goes.
        let _ = end.recv();
    }
}

fn spawn(folder: &Path) -> Result<Child, ServerError> {
    let mut command = Command::new("redis-server");
    command
        .args(["--port", "0", "--daemonize", "no", "--save", "", "--appendonly", "yes", "--unixsocketperm", "700"])
        .arg("--unixsocket")
        .arg(socket(folder))
        .arg("--dir")
        .arg(folder)
        .arg("--logfile")
        .arg(folder.join("log"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    detach(&mut command);
    command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ServerError::Missing,
        _ => ServerError::Start(error),
    })
}

/// Keeps the terminal's Ctrl-C from the server, which has to outlive the worker's last words, and ties its life to this
/// process where the kernel can.
fn detach(command: &mut Command) {
    use std::os::unix::process::CommandExt as _;
    command.process_group(0);
    #[cfg(target_os = "linux")]
    {
        let tie = || Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?);
        // SAFETY: between fork and exec only the async-signal-safe prctl(2) is called; nothing is allocated.
        #[expect(unsafe_code, reason = "there is no safe way to say it before the server runs")]
        unsafe {
            command.pre_exec(tie)
        };
    }
}

fn wait_until_up(child: &mut Child, folder: &Path) -> Result<(), ServerError> {
    let start = Instant::now();
    let log = || fs::read_to_string(folder.join("log")).unwrap_or_default();
    while std::os::unix::net::UnixStream::connect(socket(folder)).is_err() {
        if let Some(status) = child.try_wait().map_err(ServerError::Start)? {
            return Err(ServerError::NotUp(format!("{status}\n{}", log())));
        }
        if start.elapsed() > START_LIMIT {
            return Err(ServerError::NotUp(format!("it does not answer\n{}", log())));
        }
        std::thread::sleep(START_LOOK);
    }
    Ok(())
}

fn make_folder() -> Result<PathBuf, ServerError> {
    let path = std::env::temp_dir().join(format!("threadmill-demo-{}-{:08x}", std::process::id(), fastrand::u32(..)));
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ServerError::Folder { path, source }),
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("redis.sock")
}
