//! What every worker does for all queues of its alias: due tasks move on, lost leases are settled, dead workers' tasks
//! are taken over, queues are found.

use crate::backend::codec::{Attempt, decode};
use crate::backend::{Backend, BackendError, Claimed, Cursor, TakenOver};
use crate::worker::bridge;
use crate::worker::conclude::lease_lost;
use crate::worker::lease::End;
use crate::worker::native::Shop;
use crate::worker::options::WorkerOptions;
use crate::worker::python::Pool;
use crate::worker::settle::{Round, Settlement, send};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often the list of queues is read again.
const QUEUES_EVERY: Duration = Duration::from_secs(5);
/// Looks for lost leases are this many times as rare as those for due tasks: leases last long.
const REAP_FACTOR: u32 = 5;
/// Looks at the workers in one interval of silence.
const LOOKS: u32 = 6;
/// How often a turn of the sweep is made, and for how long the keyspace is searched for queues in it.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
const SEARCH_BUDGET: Duration = Duration::from_millis(5);
/// How long the claimer of a lease has to settle it; shorter than the claim lasts.
const SETTLE_LIMIT: Duration = Duration::from_secs(45);

/// How long a retry policy of a Django site may take over a lost lease.
const VERDICT_LIMIT: Duration = Duration::from_secs(20);

/// Something that is done again and again.
#[derive(Clone, Copy)]
struct Every {
    interval: Duration,
    next: Instant,
}

impl Every {
    fn new(interval: Duration) -> Self {
        Self { interval, next: Instant::now() }
    }

    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + self.interval;
        }
        due
    }
}

/// The maintenance of one worker process.
pub(crate) struct Maintenance {
    pub backend: Backend,
    pub shop: Arc<Shop>,
    pub options: WorkerOptions,
    /// How many workers there are, for others to know.
    pub peers: Arc<AtomicUsize>,
    /// Who knows the retry policies of a Django site.
    pub python: Option<Pool>,
}

impl Maintenance {
    /// Goes on until it is dropped. No error ends it: the next round tries again.
    pub async fn run(self) {
        let interval = self.options.broker_interval;
        let (mut queues_due, mut reap) = (Every::new(QUEUES_EVERY), Every::new(interval * REAP_FACTOR));
        let mut look = Every::new(self.options.heartbeat / LOOKS);
        let mut sweep = Every::new(SWEEP_EVERY);
        let mut queues = self.options.queues.clone();
        let mut is_failing = false;
        loop {
            let now = Instant::now();
            let mut errors = Vec::new();
            let mut note = |result: Result<(), BackendError>| errors.extend(result.err());
            if queues_due.is_due(now) {
                note(self.read_queues(&mut queues).await);
            }
            let mut wait = interval;
            for queue in &queues {
                note(self.move_due(queue, &mut wait).await);
            }
            if reap.is_due(now) {
                for queue in &queues {
                    note(self.reap(queue).await);
                }
            }
            if look.is_due(now) {
                note(self.look(&queues).await);
            }
            if sweep.is_due(now) {
                note(self.sweep(&queues).await);
            }
            if let Some(error) = errors.first().filter(|_| !is_failing) {
                tracing::warn!(error = %error, "maintenance fails; it goes on trying");
            }
            is_failing = !errors.is_empty();
            let until_look = look.next.saturating_duration_since(Instant::now());
            // With Redis away every call fails at once: do not spin.
            let shortest = if is_failing { interval.min(Duration::from_millis(200)) } else { Duration::from_millis(1) };
            tokio::time::sleep(wait.min(until_look).max(shortest)).await;
        }
    }

    /// Records the queues that this worker serves, and reads which others there are.
    async fn read_queues(&self, queues: &mut Vec<String>) -> Result<(), BackendError> {
        self.backend.record_queues(&self.options.queues).await?;
        let mut known = self.backend.known_queues().await?;
        known.extend(self.options.queues.iter().filter(|own| !known.contains(own)).cloned().collect::<Vec<_>>());
        *queues = known;
        Ok(())
    }

    /// Moves what is due, and shortens `wait` to when the next one is.
    async fn move_due(&self, queue: &str, wait: &mut Duration) -> Result<(), BackendError> {
        let moved = self.backend.move_due(queue, self.options.batch_size.max(1)).await?;
        for ghost in &moved.ghosts {
            tracing::warn!(task_id = %ghost, queue, "an id in SCHEDULED has no record; it is set aside");
        }
        if moved.more {
            *wait = Duration::ZERO;
        } else if let Some(due) = moved.next_due {
            let ms = due - self.shop.clock.now().timestamp_micros() as f64 / 1_000.0;
            *wait = (*wait).min(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or(Duration::ZERO));
        }
        Ok(())
    }

    async fn reap(&self, queue: &str) -> Result<(), BackendError> {
        loop {
            let reaped = self.backend.reap(queue).await?;
            for ghost in &reaped.ghosts {
                tracing::warn!(task_id = %ghost, queue, "an id in RUNNING has no record; it is set aside");
            }
            self.settle(reaped.claimed).await;
            if !reaped.more {
                return Ok(());
            }
        }
    }

    /// Looks at the workers, and takes over what silent ones held.
    async fn look(&self, queues: &[String]) -> Result<(), BackendError> {
        let silence = self.options.heartbeat;
        let watch = self.backend.watch_workers(silence, silence / 2).await?;
        let workers = self.backend.workers().await?;
        self.peers.store(workers.len(), Ordering::Relaxed);
        for worker in &watch.silent {
            let served = workers.iter().find(|known| known.id == *worker).map(|known| known.queues.as_slice());
            let served = served.unwrap_or_default().iter().filter(|queue| !queues.contains(queue));
            if self.bury(worker, queues.iter().chain(served), silence).await? {
                self.backend.deregister(worker).await?;
            }
        }
        Ok(())
    }

    /// Takes over what a silent worker held, queue by queue; false where it has been heard of.
    async fn bury(
        &self,
        worker: &str,
        queues: impl Iterator<Item = &String>,
        silence: Duration,
    ) -> Result<bool, BackendError> {
        for queue in queues {
            let mut from = Some(Cursor::default());
            while let Some(cursor) = from {
                match self.backend.take_over(worker, queue, silence, &cursor).await? {
                    TakenOver::Alive => return Ok(false),
                    TakenOver::Taken { claimed, given_back, next } => {
                        if !claimed.is_empty() || given_back > 0 {
                            let started = claimed.len();
                            tracing::warn!(worker, queue, started, given_back, "a worker is silent; its tasks go on");
                        }
                        self.settle(claimed).await;
                        from = next;
                    }
                }
            }
        }
        Ok(true)
    }

    /// Sends claimed tasks through their retry policies.
    async fn settle(&self, claimed: Vec<Claimed>) {
        if claimed.is_empty() {
            return;
        }
        let until = Instant::now() + SETTLE_LIMIT;
        let settlements = claimed.into_iter().map(|claim| self.end_of(claim, until));
        let ends = join_all(settlements).await.into_iter().flatten().collect();
        send(self.backend.clone(), Round { worker: "".into(), mark: None, ends }).await;
    }

    /// What becomes of a claimed task; nothing where its policy gives no verdict in time, and the claim runs out.
    async fn end_of(&self, claim: Claimed, until: Instant) -> Option<Settlement> {
        let end = match decode(&claim.data) {
            Ok(record) => {
                let finished_at = self.shop.clock.now();
                let started_at = claim.started_at.as_ref().map_or(finished_at, |stamp| stamp.at());
                let attempt = Attempt { worker: claim.worker, started_at, finished_at };
                let entry = self.shop.registry.get(&record.spec.func).map(|entry| &**entry);
                match (&self.python, entry) {
                    (Some(pool), None) => {
                        let asked = tokio::time::timeout(VERDICT_LIMIT, bridge::lease_lost(pool, record, &attempt));
                        asked.await.ok()?
                    }
                    _ => lease_lost(&record, &attempt, entry),
                }
            }
            Err(error) => End::Unreadable(error),
        };
        Some(Settlement { id: claim.id, queue: claim.queue, token: claim.token, end, until })
    }

    /// One turn of what can wait: waiting records lose a time to live, what nothing lists gets one, ids that break the
    /// rules are brought back into one place, and the keyspace is searched for queues that nobody has told of.
    async fn sweep(&self, queues: &[String]) -> Result<(), BackendError> {
        let tidied = self.backend.tidy_slice(queues, SWEEP_EVERY / 2).await?;
        for repair in &tidied.repairs {
            tracing::warn!(
                task_id = %repair.id, queue = %repair.queue, found = ?repair.kind, outcome = ?repair.outcome,
                "an id broke the rules and was brought back into one place"
            );
        }
        if !tidied.ended.is_empty() {
            tracing::warn!(count = tidied.ended.len(), "records that nothing lists were given an end");
        }
        self.backend.search_queues(SEARCH_BUDGET).await.map(drop)
    }
}
