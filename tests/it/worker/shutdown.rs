//! The end of a worker.

use super::*;
use threadmill::native::Backoff;
use threadmill::task::LEASE_LOST_CLASS;

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_finishes_what_runs_and_gives_back_the_rest_uncharged() {
    const BLOCKS: Task<(u64,), u64> = Task::new("tests.blocks");
    let lab = Lab::new();
    lab.enqueue(HOLD, 2).await;
    let options = WorkerOptions { concurrency: 2, threads: 1, ..quick() };
    let worker = Hired::new(lab.worker().options(options));
    lab.until_begun(2).await;
    let waiting = lab.enqueue(NOTE, 50).await;
    worker.stopper.stop();
    lab.gate.let_go(2);
    let summary = worker.ended().await;
    assert_eq!((summary.successful, summary.failed, summary.is_settled), (2, 0, true));
    assert_eq!((lab.count(Segment::Ready).await, lab.count(Segment::Running).await), (50, 0));
    assert_eq!(lab.record(waiting[0].id()).await.attempts(), 0);

    // Blocking work that waits for a thread is given back as well.
    let started = lab.enqueue(BLOCKS, 2).await;
    let (enter, entered) = std::sync::mpsc::channel();
    let (leave, left) = std::sync::mpsc::channel::<()>();
    let left = Arc::new(Mutex::new(left));
    let options = WorkerOptions { threads: 1, ..quick() };
    let worker = lab.worker().options(options).blocking_task(BLOCKS, move |(number,): (u64,)| {
        enter.send(number).ok();
        left.lock().unwrap().recv().ok();
        Ok::<_, TaskError>(number)
    });
    let worker = Hired::new(worker);
    let first = tokio::task::spawn_blocking(move || entered.recv().unwrap()).await.unwrap();
    worker.stopper.stop();
    drop(leave);
    let summary = worker.ended().await;
    assert!(summary.is_settled && summary.lost == 0, "{summary:?}");
    let other = lab.record(started[1 - first as usize].id()).await;
    assert!(other.attempts() <= 1);
    assert_eq!(lab.count(Segment::Running).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_word_cuts_off_what_runs_and_sends_it_through_retry() {
    let lab = Lab::new();
    let plain = lab.backend.enqueue_task(&HOLD.with((1,))).await.unwrap();
    let again = lab.backend.enqueue_task(&HOLD.retry(Backoff::new()).with((2,))).await.unwrap();
    let worker = Hired::new(lab.worker());
    lab.until_begun(2).await;
    worker.stopper.escalate();
    worker.stopper.escalate();
    let summary = worker.ended().await;
    assert_eq!((summary.failed, summary.retried, summary.is_settled), (1, 1, true));
    assert_eq!(failure(&plain).await.class_path, LEASE_LOST_CLASS);
    let record = lab.record(again.id()).await;
    assert_eq!((record.errors[0].class_path.as_str(), record.attempts()), (LEASE_LOST_CLASS, 1));
    assert_eq!(lab.count(Segment::Scheduled).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_grace_ends_a_worker_whose_tasks_do_not() {
    let lab = Lab::new();
    lab.backend.enqueue_task(&HOLD.with((1,))).await.unwrap();
    let grace = Some(Duration::from_millis(50));
    let worker = Hired::new(lab.worker().options(WorkerOptions { grace, ..quick() }));
    lab.until_begun(1).await;
    assert_eq!(worker.stop().await, Summary { failed: 1, is_settled: true, ..Summary::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn max_tasks_and_run_until_end_it() {
    let lab = Lab::new();
    lab.enqueue(NOTE, 10).await;
    let options = WorkerOptions { max_tasks: Some(4), ..quick() };
    let summary = lab.worker().options(options).run().await.unwrap();
    assert_eq!((summary.successful, lab.count(Segment::Ready).await), (4, 6));
    let lab_ref = &lab;
    let shutdown = async move { lab_ref.until(Segment::Successful, 10).await };
    assert_eq!(lab.worker().run_until(shutdown).await.unwrap().successful, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn max_tasks_may_be_more_by_chance() {
    let lab = Lab::new();
    lab.enqueue(NOTE, 20).await;
    let options = WorkerOptions { max_tasks: Some(4), max_tasks_jitter: 3, ..quick() };
    let successful = lab.worker().options(options).run().await.unwrap().successful;
    assert!((4..=7).contains(&successful), "{successful}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_empty_waits_for_a_retry_only_until_its_time_is_over() {
    const FAILS: Task<(), ()> = Task::new("tests.fails").retry(Backoff::new().base_delay(Duration::from_secs(3600)));
    let lab = Lab::new();
    lab.backend.enqueue_task(&FAILS.with(())).await.unwrap();
    let worker = lab.worker().task(FAILS, || async { Err::<(), _>(TaskError::new("not yet")) });
    let options = WorkerOptions { exit_timeout: Some(Duration::from_millis(100)), ..draining() };
    let summary = Hired::new(worker.options(options)).ended().await;
    assert!(summary.is_settled && summary.successful + summary.failed == 0, "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_empty_leaves_what_is_scheduled_and_does_not_wait_for_others() {
    let lab = Lab::new();
    lab.enqueue(NOTE, 3).await;
    lab.backend.enqueue_task(&NOTE.with((9,)).run_in(Duration::from_secs(3600))).await.unwrap();
    let summary = lab.worker().options(draining()).run().await.unwrap();
    assert_eq!((summary.successful, lab.count(Segment::Scheduled).await), (3, 1));
}
