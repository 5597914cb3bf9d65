//! Child processes that do not outlive the tests.
//!
//! The kernel can end a child when the *thread* that started it ends, so all are started by one thread that lives as
//! long as the test process. A test that panics kills its children by drop; a test process that is killed takes them
//! with it.

use super::wait::eventually;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{OnceLock, mpsc};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// Starts the command; it gets this signal when the test process dies.
pub fn spawn(mut command: Command, when_orphaned: Signal) -> io::Result<Child> {
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::process::CommandExt as _;
        let tie = move || Ok(rustix::process::set_parent_process_death_signal(Some(when_orphaned))?);
        // SAFETY: between fork and exec only the async-signal-safe prctl(2) is called; nothing is allocated.
        unsafe { command.pre_exec(tie) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = when_orphaned;
    on_nursery(move || command.spawn())
}

/// Runs this on the thread that outlives every test.
pub fn on_nursery<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    static NURSERY: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    let nursery = NURSERY.get_or_init(|| {
        let (sender, jobs) = mpsc::channel::<Job>();
        std::thread::Builder::new()
            .name("nursery".into())
            .spawn(move || jobs.into_iter().for_each(|job| job()))
            .expect("a thread can be started");
        sender
    });
    let (answer, answers) = mpsc::sync_channel(1);
    nursery.send(Box::new(move || drop(answer.send(work())))).expect("the nursery runs");
    answers.recv().expect("the nursery answers")
}

/// Sends a signal; a process that is already gone is no error.
pub fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}

/// Waits for the end of the process, and kills it where that does not come.
pub fn wait_bounded(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    while start.elapsed() < limit {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    kill(child);
    None
}

/// Ends the process now and takes its exit status off the system.
pub fn kill(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Whether a process of this id exists and is not just waiting to be reaped.
pub fn is_alive(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => !stat.rsplit(") ").next().unwrap_or("").starts_with(['Z', 'X']),
        Err(_) => {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
        }
    }
}

/// Waits until no process of this id is left.
#[track_caller]
pub fn wait_until_gone(pid: u32) {
    eventually(&format!("process {pid} ends"), || !is_alive(pid));
}
