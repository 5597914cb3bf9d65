//! The worker against a real Redis.

mod faults;
mod idle;
mod process;
mod run;
mod shutdown;
mod takeover;

use crate::common::{TestRedis, eventually_async};
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threadmill::backend::{Backend, RedisUrl, Settings};
use threadmill::native::{Handle, State, Task, TaskError, WaitError};
use threadmill::task::{ErrorRecord, Segment, TaskId, TaskRecord};
use threadmill::worker::{Stopper, Summary, Worker, WorkerError, WorkerOptions};
use tokio::task::JoinHandle;

const QUEUE: &str = "default";
const NOTE: Task<(u64,), u64> = Task::new("tests.note");
const HOLD: Task<(u64,), u64> = Task::new("tests.hold");

/// What ran how often.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<BTreeMap<u64, usize>>>);

impl Notes {
    fn add(&self, number: u64) {
        *self.0.lock().unwrap().entry(number).or_default() += 1;
    }

    fn of(&self, number: u64) -> usize {
        self.0.lock().unwrap().get(&number).copied().unwrap_or(0)
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }

    /// Whether this many ran, each once.
    fn is_each_once(&self, count: usize) -> bool {
        let notes = self.0.lock().unwrap();
        notes.len() == count && notes.values().all(|times| *times == 1)
    }
}

/// Holds tasks until they are let go.
#[derive(Clone)]
struct Gate(Arc<tokio::sync::Semaphore>);

impl Gate {
    fn closed() -> Self {
        Self(Arc::new(tokio::sync::Semaphore::new(0)))
    }

    fn let_go(&self, count: usize) {
        self.0.add_permits(count);
    }
}

async fn note((number,): (u64,), State(notes): State<Notes>) -> Result<u64, TaskError> {
    notes.add(number);
    Ok(number * 2)
}

async fn hold((number,): (u64,), State(notes): State<Notes>, State(gate): State<Gate>) -> Result<u64, TaskError> {
    notes.add(number);
    gate.0.acquire().await?.forget();
    Ok(number)
}

/// A server, a backend on it, and what the tasks share.
struct Lab {
    redis: TestRedis,
    backend: Backend,
    notes: Notes,
    gate: Gate,
}

impl Lab {
    fn new() -> Self {
        Self::on(TestRedis::spawn())
    }

    fn on(redis: TestRedis) -> Self {
        let backend = backend(&redis.url());
        Self { redis, backend, notes: Notes::default(), gate: Gate::closed() }
    }

    /// A worker with the tasks that note and hold.
    fn worker(&self) -> Worker {
        self.worker_on(&self.backend)
    }

    fn worker_on(&self, backend: &Backend) -> Worker {
        let states = Worker::new(backend.clone()).options(quick()).state(self.notes.clone()).state(self.gate.clone());
        states.task(NOTE, note).task(HOLD, hold)
    }

    async fn enqueue(&self, task: Task<(u64,), u64>, count: u64) -> Vec<Handle<u64>> {
        let calls: Vec<_> = (0..count).map(|number| task.with((number,))).collect();
        self.backend.enqueue_tasks(&calls).await.unwrap()
    }

    async fn count(&self, segment: Segment) -> u64 {
        self.backend.counts(&[QUEUE.to_owned()]).await.unwrap()[0].of(segment)
    }

    async fn record(&self, id: &TaskId) -> TaskRecord {
        self.backend.find(id, Some(QUEUE)).await.unwrap().unwrap().record().unwrap().clone()
    }

    /// Waits until this many tasks have begun.
    async fn until_begun(&self, count: usize) {
        eventually_async("the tasks have begun", async || self.notes.count() == count).await;
    }

    /// Waits until a worker listens to the telemetry.
    async fn until_listening(&self) {
        eventually_async("a worker listens", async || {
            let channels: (String, u64) = self.redis.cli(&["PUBSUB", "NUMSUB", "threadmill:{default}:telemetry"]);
            channels.1 == 1
        })
        .await;
    }

    async fn until(&self, segment: Segment, count: u64) {
        eventually_async(segment.name(), async || self.count(segment).await == count).await;
    }
}

/// A worker in the background.
struct Hired {
    stopper: Stopper,
    work: JoinHandle<Result<Summary, WorkerError>>,
}

impl Hired {
    fn new(worker: Worker) -> Self {
        let stopper = Stopper::new();
        Self { work: tokio::spawn(worker.run_with(stopper.clone())), stopper }
    }

    async fn ended(self) -> Summary {
        self.work.await.unwrap().unwrap()
    }

    async fn stop(self) -> Summary {
        self.stopper.stop();
        self.ended().await
    }
}

fn backend(url: &str) -> Backend {
    let mut settings = Settings::new(RedisUrl::parse(url).unwrap());
    settings.timeout = Duration::from_secs(1);
    Backend::new(settings).unwrap()
}

fn quick() -> WorkerOptions {
    WorkerOptions { broker_interval: Duration::from_millis(50), ..WorkerOptions::default() }
}

fn draining() -> WorkerOptions {
    WorkerOptions { exit_empty: true, ..quick() }
}

async fn failure<O: DeserializeOwned>(handle: &Handle<O>) -> ErrorRecord {
    match handle.wait(crate::common::wait::LIMIT).await {
        Err(WaitError::Failed(Some(error))) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it did not fail"),
    }
}
