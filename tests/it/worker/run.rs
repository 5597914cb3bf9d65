//! Tasks that run, fail, come again.

use super::*;
use threadmill::backend::new_id;
use threadmill::native::Backoff;
use threadmill::task::{LEASE_LOST_CLASS, NewTask, RawJson, Retry};

const MOMENT: Duration = Duration::from_millis(10);
const QUICKLY: Backoff = Backoff::new().base_delay(MOMENT).factor(1.0).max_retries(3);
const FLAKY: Task<(u64,), u64> = Task::new("tests.flaky").retry(QUICKLY);
const BY_FUNCTION: Task<(u64,), u64> = Task::new("tests.by_function")
    .retry_by(|failure| (failure.is::<std::fmt::Error>() && failure.attempt < 4).then_some(Duration::from_millis(10)));
const PANICS: Task<(), ()> = Task::new("tests.panics");

/// Fails twice.
async fn flaky((number,): (u64,), State(notes): State<Notes>) -> Result<u64, TaskError> {
    notes.add(number);
    if notes.of(number) < 3 {
        return Err(TaskError::from(std::fmt::Error).class("builtins.ConnectionError"));
    }
    Ok(number)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_runs_once_and_its_value_is_kept() {
    let lab = Lab::new();
    let handles = lab.enqueue(NOTE, 2000).await;
    let summary = lab.worker().options(draining()).run().await.unwrap();
    assert_eq!(summary, Summary { successful: 2000, is_settled: true, ..Summary::default() });
    assert!(lab.notes.is_each_once(2000));
    assert_eq!(handles[7].result().await.unwrap(), Some(14));
    assert_eq!((lab.count(Segment::Successful).await, lab.count(Segment::Running).await), (2000, 0));
    let record = lab.record(handles[7].id()).await;
    assert_eq!(record.attempts(), 1);
    assert!(record.started_at.unwrap().at() >= record.enqueued_at.unwrap().at());
    assert!(lab.backend.workers().await.unwrap().is_empty(), "its record went with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_worker_is_woken_and_its_caller_too() {
    let lab = Lab::new();
    let slow = Duration::from_secs(3600);
    let worker = Hired::new(lab.worker().options(WorkerOptions { poll_max_interval: slow, ..quick() }));
    lab.until_listening().await;
    for number in 0..20 {
        let handle = lab.backend.enqueue_task(&NOTE.with((number,))).await.unwrap();
        assert_eq!(handle.wait(crate::common::wait::LIMIT).await.unwrap(), number * 2);
    }
    assert_eq!(worker.stop().await.successful, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_by_a_stored_backoff_and_by_a_function() {
    let lab = Lab::new();
    let stored = lab.backend.enqueue_task(&FLAKY.with((1,))).await.unwrap();
    let own = lab.backend.enqueue_task(&BY_FUNCTION.with((2,))).await.unwrap();
    let worker = lab.worker().task(FLAKY, flaky).task(BY_FUNCTION, flaky).options(draining());
    let summary = worker.run().await.unwrap();
    assert_eq!(summary, Summary { successful: 2, retried: 4, is_settled: true, ..Summary::default() });
    for handle in [&stored, &own] {
        let record = lab.record(handle.id()).await;
        assert_eq!((record.attempts(), record.errors.len()), (3, 2));
        assert_eq!(record.errors[0].class_path, "builtins.ConnectionError");
        assert!(record.errors[0].traceback.starts_with("core::fmt::Error\n"));
    }
    assert!(lab.record(stored.id()).await.spec.retry.is_some());
    assert_eq!(lab.record(own.id()).await.spec.retry, None, "a function is never stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_go_on_is_failed_and_keeps_its_error() {
    let lab = Lab::new();
    let unknown = lab.backend.enqueue_task(&Task::<(), ()>::new("tests.nobody").retry(QUICKLY).with(())).await.unwrap();
    let panics = lab.backend.enqueue_task(&PANICS.with(())).await.unwrap();
    let misfit = lab.backend.enqueue_task(&Task::<(&str,), u64>::new(NOTE.name()).with(("x",))).await.unwrap();
    let mut python = NewTask::new(new_id(), FLAKY.name());
    python.args = RawJson::new("[9]");
    python.retry = Some(Retry::Callback("shop.retry.policy".into(), RawJson::new("\"shop.retry.policy\"")));
    lab.backend.enqueue(std::slice::from_ref(&python)).await.unwrap();
    let worker = lab.worker().task(FLAKY, flaky).task(PANICS, || async {
        if true {
            panic!("it broke");
        }
        Ok::<_, TaskError>(())
    });
    let worker = Hired::new(worker);

    let error = failure(&unknown).await;
    assert_eq!(error.class_path, "builtins.LookupError");
    assert!(error.summary().contains("tests.nobody") && error.summary().contains("tests.flaky"), "{}", error.traceback);
    let error = failure(&panics).await;
    assert!(error.summary().starts_with("RuntimeError: panicked at tests/it/worker/run.rs:"), "{}", error.traceback);
    let error = failure(&misfit).await;
    assert_eq!(error.class_path, "builtins.TypeError");
    assert!(error.summary().contains("argument 1"), "{}", error.traceback);
    let error = failure::<u64>(&lab.backend.handle(python.id, QUEUE)).await;
    assert_eq!(error.class_path, "builtins.ConnectionError");
    assert_eq!(worker.stop().await.failed, 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scheduled_task_runs_when_it_is_due_and_a_snoozed_one_spends_no_attempt() {
    const SNOOZES: Task<(), u32> = Task::new("tests.snoozes");
    let lab = Lab::new();
    let due = chrono::Utc::now() + Duration::from_millis(200);
    let later = lab.backend.enqueue_task(&NOTE.with((1,)).run_after(due)).await.unwrap();
    let never = lab.backend.enqueue_task(&NOTE.with((2,)).run_in(Duration::from_secs(3600))).await.unwrap();
    let snoozes = lab.backend.enqueue_task(&SNOOZES.with(())).await.unwrap();
    let worker = lab.worker().task(SNOOZES, |State(notes): State<Notes>, context: threadmill::native::TaskContext| {
        notes.add(9);
        let first = notes.of(9) == 1;
        async move { if first { Err(TaskError::snooze(MOMENT)) } else { Ok(context.attempt()) } }
    });
    let worker = Hired::new(worker);
    assert_eq!(snoozes.wait(crate::common::wait::LIMIT).await.unwrap(), 1);
    assert_eq!(later.wait(crate::common::wait::LIMIT).await.unwrap(), 2);
    let record = lab.record(later.id()).await;
    assert!(record.started_at.unwrap().at() >= due - Duration::from_millis(1));
    assert_eq!(lab.record(snoozes.id()).await.errors, []);
    assert_eq!(never.result().await.unwrap(), None);
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocking_task_has_a_thread_and_a_limit_of_time_ends_an_async_one() {
    const BLOCKS: Task<(), bool> = Task::new("tests.blocks");
    const LONG: Task<(), ()> = Task::new("tests.long").time_limit(MOMENT);
    let lab = Lab::new();
    let blocks = lab.backend.enqueue_task(&BLOCKS.with(())).await.unwrap();
    let long = lab.backend.enqueue_task(&LONG.with(())).await.unwrap();
    let main = std::thread::current().id();
    let worker = lab.worker().blocking_task(BLOCKS, move || Ok::<_, TaskError>(std::thread::current().id() != main));
    let worker = worker.task(LONG, |context: threadmill::native::TaskContext| async move {
        context.cancellation().cancelled().await;
        Err::<(), _>(TaskError::new("told to stop").class("builtins.TimeoutError"))
    });
    let worker = Hired::new(worker);
    assert!(blocks.wait(crate::common::wait::LIMIT).await.unwrap());
    assert_eq!(failure(&long).await.summary(), "TimeoutError: told to stop");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_neighbour_is_set_aside_and_harms_nobody() {
    let lab = Lab::new();
    let handles = lab.enqueue(NOTE, 3).await;
    let key = format!("threadmill:{{default}}:task:{}", handles[1].id());
    lab.redis.cli::<u64>(&["HSET", &key, "data", "{\"task\": nonsense"]);
    let summary = lab.worker().options(draining()).run().await.unwrap();
    assert_eq!(summary, Summary { successful: 2, set_aside: 1, is_settled: true, ..Summary::default() });
    let detail = lab.backend.find(handles[1].id(), Some(QUEUE)).await.unwrap().unwrap();
    assert!(detail.quarantined && detail.stored == b"{\"task\": nonsense");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_ran_out_goes_through_retry() {
    let lab = Lab::new();
    let handle = lab.backend.enqueue_task(&HOLD.with((1,))).await.unwrap();
    let mut settings = lab.backend.settings().clone();
    settings.lease_ttl = Duration::from_millis(100);
    let first = Hired::new(lab.worker_on(&Backend::new(settings).unwrap()));
    let error = failure(&handle).await;
    assert_eq!(error.class_path, LEASE_LOST_CLASS);
    assert_eq!(error.summary(), "threadmill.exceptions.AcknowledgementTimeoutError: Task processing lease expired.");
    lab.gate.let_go(1);
    first.stop().await;
    assert_eq!(lab.count(Segment::Failed).await, 1);
}

#[tokio::test]
async fn a_worker_that_lacks_a_state_or_a_queue_does_not_start() {
    let lab = Lab::new();
    let worker = Worker::new(lab.backend.clone()).task(NOTE, note);
    assert!(matches!(worker.run().await, Err(WorkerError::MissingState { task, .. }) if task == NOTE.name()));
    let worker = Worker::new(lab.backend.clone()).queues(Vec::<String>::new());
    assert!(matches!(worker.run().await, Err(WorkerError::NoQueue)));
}
