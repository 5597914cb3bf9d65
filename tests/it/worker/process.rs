//! A worker as a process of its own: what signals do to it.

use super::*;
use crate::common::{Running, eventually};
use rustix::process::Signal;
use std::process::{Command, Stdio};
use threadmill::task::LEASE_LOST_CLASS;
use threadmill::worker::log;

/// The variable that makes this program a worker.
const URL: &str = "THREADMILL_TEST_WORKER_URL";
const SERVE: &str = "worker::process::serve";
/// The queue whose name lets the tasks of that worker end.
const GO: &str = "tests:go";

/// Holds until that queue is known.
async fn hold_until_go((number,): (u64,), State(go): State<Backend>) -> Result<u64, TaskError> {
    while go.known_queues().await?.iter().all(|queue| queue != GO) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(number)
}

/// Not a test by itself: the others run it as a process of its own.
#[test]
fn serve() {
    let Ok(url) = std::env::var(URL) else { return };
    log::init_json(std::io::stderr, "info").unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let worker = Worker::new(backend(&url)).options(quick()).state(backend(&url)).task(HOLD, hold_until_go);
    let summary = runtime.block_on(worker.run()).unwrap();
    assert!(summary.is_settled);
    println!("{} successful, {} failed, {} given back", summary.successful, summary.failed, summary.given_back);
}

/// A worker that holds one task.
async fn holding(lab: &Lab) -> (Running, Handle<u64>) {
    let handle = lab.backend.enqueue_task(&HOLD.with((1,))).await.unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", SERVE, "--nocapture"]).env(URL, lab.redis.url());
    let worker = Running::start(command, Stdio::null());
    lab.until(Segment::Running, 1).await;
    (worker, handle)
}

/// Sends a signal and waits until the worker has heard it this often.
fn tell(worker: &Running, signal: Signal, times: usize) {
    worker.signal(signal);
    let heard = || worker.stderr().matches("the worker is told to end").count();
    eventually("it hears the signal", || heard() == times);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_signal_takes_no_more_and_finishes_what_runs() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let lab = Lab::new();
        let (worker, handle) = holding(&lab).await;
        tell(&worker, signal, 1);
        let late = lab.backend.enqueue_task(&HOLD.with((2,))).await.unwrap();
        lab.backend.record_queues(&[GO.to_owned()]).await.unwrap();
        let output = worker.wait().expect(0);
        assert!(output.stdout.contains("1 successful, 0 failed"), "{}", output.stdout);
        assert_eq!(handle.result().await.unwrap(), Some(1));
        assert_eq!(late.result().await.unwrap(), None);
        assert_eq!((lab.count(Segment::Ready).await, lab.count(Segment::Running).await), (1, 0));
        assert!(lab.backend.workers().await.unwrap().is_empty(), "its record went with it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_it_now_and_what_ran_is_a_lost_lease() {
    let lab = Lab::new();
    let (worker, handle) = holding(&lab).await;
    tell(&worker, Signal::TERM, 1);
    worker.signal(Signal::INT);
    let output = worker.wait().expect(0);
    assert!(output.stdout.contains("0 successful, 1 failed"), "{}", output.stdout);
    assert_eq!(failure(&handle).await.class_path, LEASE_LOST_CLASS);
}
