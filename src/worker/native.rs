//! The executor of Rust tasks: async ones on the runtime, blocking ones on threads.

use crate::backend::codec::Attempt;
use crate::native::{Circumstances, Ended, Entry, Input, Kind, Registry, States, TaskContext, TaskError};
use crate::task::TaskRecord;
use crate::worker::clock::Clock;
use crate::worker::conclude::{conclude, lease_lost, lease_lost_error};
use crate::worker::lease::{End, Finished, Lease};
use crate::worker::options::WorkerOptions;
use chrono::{DateTime, Utc};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// What all attempts share.
pub(crate) struct Shop {
    pub registry: Registry,
    pub states: Arc<States>,
    pub clock: Arc<Clock>,
    pub threads: Arc<Semaphore>,
    pub time_limit: Option<Duration>,
    pub lease_ttl: Duration,
    pub result_max: usize,
    /// Cancelled when what has not begun is to be given back.
    pub drain: CancellationToken,
}

/// Runs leases as tokio tasks.
pub(crate) struct Native {
    shop: Arc<Shop>,
    // Bounded by the concurrency: each lease sends one message.
    results: UnboundedSender<Finished>,
    running: HashMap<u64, (AbortHandle, CancellationToken)>,
    /// Those of them that take a thread.
    blocking: HashSet<u64>,
}

impl Native {
    pub fn new(shop: Arc<Shop>, results: UnboundedSender<Finished>) -> Self {
        Self { shop, results, running: HashMap::new(), blocking: HashSet::new() }
    }

    /// What all attempts share.
    pub fn shop(&self) -> &Arc<Shop> {
        &self.shop
    }

    /// Begins an attempt.
    pub fn start(&mut self, lease: Lease) {
        let sequence = lease.sequence;
        if lease.is_blocking {
            self.blocking.insert(sequence);
        }
        let cancellation = CancellationToken::new();
        let (shop, results, token) = (self.shop.clone(), self.results.clone(), cancellation.clone());
        let work = tokio::spawn(async move {
            let finished = run(&shop, lease, token).await;
            // Nobody listens any more where the worker has ended.
            let _ = results.send(finished);
        });
        self.running.insert(sequence, (work.abort_handle(), cancellation));
    }

    /// Whether it has a task of this name.
    pub fn has(&self, func: &str) -> bool {
        self.shop.registry.get(func).is_some()
    }

    /// How many attempts run that take no thread.
    pub fn running_async(&self) -> usize {
        self.running.len() - self.blocking.len()
    }

    /// An attempt has told its end.
    pub fn forget(&mut self, sequence: u64) {
        self.running.remove(&sequence);
        self.blocking.remove(&sequence);
    }

    /// Ends an attempt without an answer from it. A blocking one is only told, since its thread cannot be ended.
    pub fn cancel(&mut self, sequence: u64) {
        self.blocking.remove(&sequence);
        if let Some((abort, cancellation)) = self.running.remove(&sequence) {
            cancellation.cancel();
            abort.abort();
        }
    }

    /// Gives back what waits for a thread.
    pub fn drain(&self) {
        self.shop.drain.cancel();
    }

    /// What an attempt that was cut off leaves.
    pub fn cut_off(&self, lease: &Lease) -> End {
        match &lease.record {
            Ok(record) => {
                let entry = self.shop.registry.get(&record.spec.func).map(|entry| &**entry);
                lease_lost(record, &self.shop.attempt(lease, self.shop.granted_at(lease)), entry)
            }
            Err(error) => End::Unreadable(error.clone()),
        }
    }
}

impl Shop {
    /// Whether the function of this name takes a thread.
    pub fn is_blocking(&self, func: &str) -> bool {
        self.registry.get(func).is_some_and(|entry| matches!(entry.kind, Kind::Blocking(_)))
    }

    fn attempt(&self, lease: &Lease, started_at: DateTime<Utc>) -> Attempt {
        Attempt { worker: lease.worker.to_string(), started_at, finished_at: self.clock.now().max(started_at) }
    }

    fn granted_at(&self, lease: &Lease) -> DateTime<Utc> {
        lease.started_at.as_ref().map_or_else(|| self.clock.now(), |stamp| stamp.at())
    }
}

async fn run(shop: &Shop, lease: Lease, cancellation: CancellationToken) -> Finished {
    let began = Instant::now();
    let end = attempt(shop, &lease, cancellation, began).await;
    Finished { lease, took: began.elapsed(), end }
}

async fn attempt(shop: &Shop, lease: &Lease, cancellation: CancellationToken, began: Instant) -> End {
    let record = match &lease.record {
        Ok(record) => record,
        Err(error) => return End::Unreadable(error.clone()),
    };
    let started_at = shop.clock.now().max(shop.granted_at(lease));
    let Some(entry) = shop.registry.get(&record.spec.func) else {
        let attempt = shop.attempt(lease, started_at);
        return conclude(record, &attempt, None, Err(unknown(shop, record, lease)), shop.result_max);
    };
    let limits = Limits::new(shop, entry, lease, began);
    let context = TaskContext::new(Circumstances {
        id: record.id.clone(),
        func: record.spec.func.clone(),
        queue: lease.queue.clone(),
        attempt: record.attempts() + 1,
        errors: record.errors.clone(),
        deadline: limits.soft,
        cancellation: cancellation.clone(),
        states: shop.states.clone(),
    });
    let input = Input { args: record.args.clone(), kwargs: record.kwargs.clone(), context };
    let ended = match &entry.kind {
        Kind::Async(handler) => limits.keep(handler(input), &cancellation, record).await,
        Kind::Blocking(handler) => {
            let permit = tokio::select! {
                biased;
                () = shop.drain.cancelled() => None,
                permit = shop.threads.clone().acquire_owned() => permit.ok(),
            };
            let Some(_permit) = permit else { return End::Unstarted };
            let handler = handler.clone();
            let work = tokio::task::spawn_blocking(move || handler(input));
            // The handler catches its own panics; what is left is a runtime that shuts down.
            let ended = async { work.await.unwrap_or_else(|error| Err(TaskError::from(error))) };
            limits.keep(ended, &cancellation, record).await
        }
    };
    let attempt = shop.attempt(lease, started_at);
    conclude(record, &attempt, Some(entry), ended, shop.result_max)
}

/// A task that this program does not know: it fails at once, whatever its retry policy says, since another attempt here
/// would end the same way.
fn unknown(shop: &Shop, record: &TaskRecord, lease: &Lease) -> TaskError {
    let names = shop.registry.names();
    let known = match names.len() {
        0 => "it has no tasks at all".to_owned(),
        1..=10 => format!("it has {}", names.join(", ")),
        more => format!("it has {more} others"),
    };
    let message = format!(
        "no task named {:?} is registered with the worker {}: {known}. Register it, or let a worker that has it serve the \
         queue {:?}",
        record.spec.func, lease.worker, lease.queue
    );
    TaskError::new(message).kind("threadmill::UnknownTask").at(None, None).class("builtins.LookupError").never_retry()
}

/// Until when an attempt may run.
struct Limits {
    /// When the task's time is over.
    soft: Option<Instant>,
    /// When its lease is over.
    lease_end: Instant,
}

impl Limits {
    fn new(shop: &Shop, entry: &Entry, lease: &Lease, began: Instant) -> Self {
        let limit = entry.time_limit.or(shop.time_limit);
        Self { soft: limit.map(|limit| began + limit), lease_end: lease.since + shop.lease_ttl }
    }

    /// Runs the work; when its time is over it is told so, and a little later it is ended.
    async fn keep(
        &self,
        work: impl Future<Output = Ended>,
        cancellation: &CancellationToken,
        record: &TaskRecord,
    ) -> Ended {
        let mut work = std::pin::pin!(work);
        let soft = self.soft.map_or(self.lease_end, |soft| soft.min(self.lease_end));
        if let Ok(ended) = tokio::time::timeout_at(soft.into(), &mut work).await {
            return ended;
        }
        cancellation.cancel();
        tracing::warn!(task_id = %record.id, func = record.spec.func, "the task's time is over; it is told to stop");
        if let Ok(ended) = tokio::time::timeout_at((soft + WorkerOptions::HARD_AFTER).into(), &mut work).await {
            return ended;
        }
        tracing::error!(task_id = %record.id, func = record.spec.func, "the task did not stop; it is ended");
        if self.soft.is_none_or(|soft| soft > self.lease_end) {
            return Err(lease_lost_error());
        }
        Err(TaskError::new("the task's time limit is over")
            .class("builtins.TimeoutError")
            .kind("time limit")
            .at(None, None))
    }
}
