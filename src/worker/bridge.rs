//! Between the dispatcher's leases and the pool of Python children.

use crate::backend::Outcome;
use crate::backend::codec::{Attempt, encode, encode_error, failure, next_attempt, success};
use crate::task::{ErrorRecord, LEASE_LOST_CLASS, LEASE_LOST_TEXT, TaskRecord};
use crate::worker::clock::Clock;
use crate::worker::lease::{End, Finished, Lease};
use crate::worker::python::{Ended, Hello, Job, Pool, PoolEvent, PythonEnd, PythonError, PythonOptions};
use chrono::{DateTime, Utc};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// How long children that have nothing to do may take to end.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The pool, started, before there is a worker for it.
pub(crate) struct Crew {
    pub pool: Pool,
    events: UnboundedReceiver<Vec<PoolEvent>>,
}

impl Crew {
    /// Starts the children; what is wrong with the site shows here, before any task is taken.
    pub async fn start(options: PythonOptions) -> Result<Self, PythonError> {
        let (pool, hello, events) = Pool::start(options).await?;
        greet(&hello);
        Ok(Self { pool, events })
    }
}

fn greet(hello: &Hello) {
    let (python, django, settings) = (&hello.python, &hello.django, hello.settings.as_deref());
    tracing::info!(python, django, settings, threadmill = hello.threadmill.as_deref(), "the site is loaded");
    if hello.free_threaded && hello.gil {
        let reason = hello.gil_warning.as_deref().unwrap_or("PYTHON_GIL or -X gil may say so");
        tracing::warn!(reason, "this free-threaded Python runs with its global lock on: threads take turns");
    }
}

/// The leases that the pool has, and since when.
type Held = Arc<Mutex<HashMap<u64, (Lease, Instant)>>>;

/// Runs leases in the pool.
pub(crate) struct Bridge {
    pool: Pool,
    held: Held,
    submitted: Vec<Job>,
    /// Attempts that the dispatcher counts as ended already.
    cut_off: HashSet<u64>,
}

impl Bridge {
    pub fn new(crew: Crew, clock: Arc<Clock>, result_max: usize, results: UnboundedSender<Finished>) -> Self {
        let Crew { pool, events } = crew;
        let held = Held::default();
        tokio::spawn(pass_on(events, held.clone(), clock, result_max, results));
        Self { pool, held, submitted: Vec::new(), cut_off: HashSet::new() }
    }

    /// How many tasks the pool has use for.
    pub fn places(&self) -> usize {
        self.pool.places()
    }

    /// Notes a lease to be run; [`Bridge::flush`] hands over what was noted.
    pub fn start(&mut self, lease: &Lease, record: &TaskRecord) {
        let ticket = lease.sequence;
        self.submitted.push(Job { ticket, record: Arc::new(record.clone()), worker: lease.worker.clone() });
        lock(&self.held).insert(ticket, (lease.clone(), Instant::now()));
    }

    pub fn flush(&mut self) {
        if !self.submitted.is_empty() {
            self.pool.submit(std::mem::take(&mut self.submitted));
        }
    }

    /// Gives back what has not begun.
    pub fn drain(&mut self) {
        self.flush();
        self.pool.recall();
    }

    /// Nobody wants the end of this attempt any more.
    pub fn cancel(&mut self, sequence: u64) {
        lock(&self.held).remove(&sequence);
    }

    /// Ends all attempts as lost leases. Their ends come as those of others do.
    pub fn cut_off(&mut self) {
        self.flush();
        self.cut_off = lock(&self.held).keys().copied().collect();
        self.pool.cut_off(lost());
    }

    /// Whether the pool has this attempt.
    pub fn holds(&self, sequence: u64) -> bool {
        lock(&self.held).contains_key(&sequence)
    }

    /// Whether this is the end of an attempt that was cut off.
    pub fn was_cut_off(&mut self, sequence: u64) -> bool {
        self.cut_off.remove(&sequence)
    }
}

fn lock(held: &Held) -> std::sync::MutexGuard<'_, HashMap<u64, (Lease, Instant)>> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Turns what the pool tells into ends.
async fn pass_on(
    mut events: UnboundedReceiver<Vec<PoolEvent>>,
    held: Held,
    clock: Arc<Clock>,
    result_max: usize,
    results: UnboundedSender<Finished>,
) {
    while let Some(events) = events.recv().await {
        for event in events {
            let ticket = match &event {
                PoolEvent::Ended(ended) => ended.job.ticket,
                PoolEvent::Unstarted(job) => job.ticket,
            };
            let Some((lease, since)) = lock(&held).remove(&ticket) else { continue };
            let finished = match event {
                PoolEvent::Unstarted(_) => Finished { lease, took: Duration::ZERO, end: End::Unstarted },
                PoolEvent::Ended(ended) => {
                    // With its wait inside the pool: how soon a place becomes free is what the dispatcher goes by.
                    let took = since.elapsed();
                    let attempt = attempt(&ended, &lease, &clock);
                    let (record, end) = (ended.job.record.clone(), ended.end);
                    Finished { took, end: conclude(&record, &attempt, end, result_max), lease }
                }
            };
            // Nobody listens any more where the worker has ended.
            let _ = results.send(finished);
        }
    }
}

/// The attempt by the server's clock.
fn attempt(ended: &Ended, lease: &Lease, clock: &Clock) -> Attempt {
    let ahead = clock.now() - Utc::now();
    let by_server = |at: DateTime<Utc>| at.checked_add_signed(ahead).unwrap_or(at);
    let granted = lease.started_at.as_ref().map(|stamp| stamp.at());
    let started_at = granted.map_or(by_server(ended.started_at), |granted| by_server(ended.started_at).max(granted));
    Attempt { worker: lease.worker.to_string(), started_at, finished_at: by_server(ended.finished_at).max(started_at) }
}

/// What Redis is told of the end of an attempt.
fn conclude(record: &TaskRecord, attempt: &Attempt, end: PythonEnd, limit: usize) -> End {
    let (error, retry) = match end {
        PythonEnd::Returned(value) => {
            let text = encode(&success(record, attempt, value));
            if text.len() <= limit {
                return End::Result(Outcome::Successful, text);
            }
            let message = format!("ValueError: the result has {} bytes and the limit is {limit}\n", text.len());
            (encode_error("builtins.ValueError", &message), None)
        }
        PythonEnd::Failed { error, retry } => (error, retry),
    };
    let (id, spec, number, line) = (&record.id, &record.spec, record.attempts() + 1, error.summary());
    match retry {
        Some(delay) => {
            tracing::info!(
                task_id = %id, queue = spec.queue_name, func = spec.func, attempt = number, ?delay, error = line,
                "failed; another attempt follows"
            );
            End::Again { record: Box::new(next_attempt(record, attempt, error)), delay }
        }
        None => {
            tracing::warn!(
                task_id = %id, queue = spec.queue_name, func = spec.func, attempt = number, error = line, "failed"
            );
            End::Result(Outcome::Failed, encode(&failure(record, attempt, error)))
        }
    }
}

/// The error of a lost lease.
fn lost() -> ErrorRecord {
    encode_error(LEASE_LOST_CLASS, &format!("{LEASE_LOST_CLASS}: {LEASE_LOST_TEXT}\n"))
}

/// The end of an attempt whose worker is gone, by the policy that Python knows.
pub(crate) async fn lease_lost(pool: &Pool, record: TaskRecord, attempt: &Attempt) -> End {
    let error = lost();
    let job = Job { ticket: 0, record: Arc::new(record), worker: attempt.worker.as_str().into() };
    let retry = pool.decide(&job, attempt.started_at, &error).await;
    conclude(&job.record, attempt, PythonEnd::Failed { error, retry }, usize::MAX)
}

/// Ends the children: those that are idle in good order, the others now.
pub(crate) async fn dismiss(pool: &Pool) {
    pool.stop();
    let _ = tokio::time::timeout(END_LIMIT, pool.ended()).await;
    pool.kill();
}
