//! The worker against a real Redis.

use crate::common::{TestRedis, eventually_async};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threadmill::backend::{Backend, RedisUrl, Settings};
use threadmill::native::{State, Task, TaskContext, TaskError};
use threadmill::task::Segment;
use threadmill::worker::{Stopper, Summary, Worker, WorkerError, WorkerOptions};

const NOTE: Task<(u64,), u64> = Task::new("tests.note");

/// What ran how often.
type Notes = Arc<Mutex<BTreeMap<u64, usize>>>;

async fn note((number,): (u64,), State(notes): State<Notes>) -> Result<u64, TaskError> {
    *notes.lock().unwrap().entry(number).or_default() += 1;
    Ok(number * 2)
}

fn backend(url: &str) -> Backend {
    Backend::new(Settings::new(RedisUrl::parse(url).unwrap())).unwrap()
}

fn quick() -> WorkerOptions {
    WorkerOptions { broker_interval: Duration::from_millis(50), ..WorkerOptions::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_task_runs_once_and_its_value_is_kept() {
    let redis = TestRedis::spawn();
    let backend = backend(&redis.url());
    let calls: Vec<_> = (0..2000).map(|number| NOTE.with((number,))).collect();
    let handles = backend.enqueue_tasks(&calls).await.unwrap();
    let notes = Notes::default();
    let options = WorkerOptions { exit_empty: true, ..quick() };
    let summary =
        Worker::new(backend.clone()).options(options).state(notes.clone()).task(NOTE, note).run().await.unwrap();
    assert_eq!(summary, Summary { successful: 2000, is_settled: true, ..Summary::default() });
    assert!(notes.lock().unwrap().values().all(|count| *count == 1));
    assert_eq!(notes.lock().unwrap().len(), 2000);
    assert_eq!(handles[7].result().await.unwrap(), Some(14));
    let counts = &backend.counts(&["default".into()]).await.unwrap()[0];
    assert_eq!(counts.of(Segment::Successful), 2000);
    assert_eq!(counts.of(Segment::Running), 0);
}
