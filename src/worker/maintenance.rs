//! What every worker does for all queues of its alias: due tasks move on, lost leases are settled, dead workers' tasks
//! are taken over, queues are found.

use crate::backend::codec::{Attempt, decode};
use crate::backend::{Backend, BackendError, Claimed, Cursor, TakenOver};
use crate::worker::bridge;
use crate::worker::conclude::lease_lost;
use crate::worker::ear::Ear;
use crate::worker::lease::End;
use crate::worker::native::Shop;
use crate::worker::options::WorkerOptions;
use crate::worker::python::Pool;
use crate::worker::settle::{Round, Settlement, send};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often the list of queues is read again; an enqueue to one that is not on it is told by the telemetry.
const QUEUES_EVERY: Duration = Duration::from_secs(15);
/// While the telemetry tells what is scheduled, due tasks are looked for this many times as rarely.
const LISTENING_FACTOR: u32 = 5;
/// How long two looks at news are apart at least, where the interval is longer.
const NEWS_APART: Duration = Duration::from_secs(1);
/// How far the looks of many workers at the same news are spread, for each of them.
const SPREAD_PER_PEER: Duration = Duration::from_millis(10);
/// Looks for lost leases are this many times as rare as those for due tasks: leases last long.
const REAP_FACTOR: u32 = 5;
/// Looks at the workers in one interval of silence.
const LOOKS: u32 = 4;
/// How often a turn of the sweep is made; in every third, the keyspace is searched for queues for so long.
const SWEEP_EVERY: Duration = Duration::from_secs(10);
const SEARCH_TURNS: u32 = 3;
const SEARCH_BUDGET: Duration = Duration::from_millis(4);
/// With Redis away every call fails at once; and a clock that is a little ahead makes no spin.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_FAILING: Duration = Duration::from_millis(200);
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
    /// What the telemetry tells.
    pub ear: Arc<Ear>,
    /// Who knows the retry policies of a Django site.
    pub python: Option<Pool>,
}

/// What is done for each queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Duty {
    Move,
    Reap,
}

/// When what is to be done.
struct Plan {
    queues: Vec<String>,
    /// Queues with a key of another type, of which was told already.
    broken: BTreeSet<(Duty, String)>,
    moved_at: Instant,
    move_at: Instant,
    read_queues: Every,
    reap: Every,
    look: Every,
    sweep: Every,
    search_in: u32,
}

impl Plan {
    fn new(options: &WorkerOptions) -> Self {
        let now = Instant::now();
        Self {
            queues: options.queues.clone(),
            broken: BTreeSet::new(),
            moved_at: now,
            move_at: now,
            read_queues: Every::new(QUEUES_EVERY),
            reap: Every::new(options.broker_interval * REAP_FACTOR),
            look: Every::new(options.heartbeat / LOOKS),
            sweep: Every::new(SWEEP_EVERY),
            search_in: 0,
        }
    }

    /// When the next thing is to be done.
    fn next(&self) -> Instant {
        let every = [self.read_queues, self.reap, self.look, self.sweep];
        every.iter().map(|every| every.next).fold(self.move_at, Instant::min)
    }

    /// Whether a queue is broken for one of the duties, of which is told once.
    fn is_broken(&mut self, duty: Duty, queue: &str, is_broken: bool) -> bool {
        let known = (duty, queue.to_owned());
        if !is_broken {
            self.broken.remove(&known);
        } else if self.broken.insert(known) {
            tracing::warn!(queue, "a key of the queue holds another type; maintenance passes the queue over");
        }
        is_broken
    }
}

impl Maintenance {
    /// Goes on until it is dropped. No error ends it: the next round tries again.
    pub async fn run(self) {
        let mut plan = Plan::new(&self.options);
        let mut is_failing = false;
        loop {
            let errors = self.round(&mut plan).await;
            if let Some(error) = errors.first().filter(|_| !is_failing) {
                tracing::warn!(error = %error, "maintenance fails; it goes on trying");
            }
            is_failing = !errors.is_empty();
            let shortest = if is_failing { self.options.broker_interval.min(PAUSE_FAILING) } else { PAUSE_MIN };
            tokio::time::sleep(shortest).await;
            self.wait(&mut plan).await;
        }
    }

    /// Does what is due.
    async fn round(&self, plan: &mut Plan) -> Vec<BackendError> {
        let now = Instant::now();
        let mut errors = Vec::new();
        let mut note = |result: Result<(), BackendError>| errors.extend(result.err());
        if plan.read_queues.is_due(now) {
            note(self.read_queues(&mut plan.queues).await);
        }
        if now >= plan.move_at {
            note(self.learn_queues(&mut plan.queues).await);
            note(self.move_due(plan).await);
        }
        if plan.reap.is_due(now) {
            note(self.reap(plan).await);
        }
        if plan.look.is_due(now) {
            note(self.look(&plan.queues).await);
        }
        if plan.sweep.is_due(now) {
            note(self.sweep(plan).await);
        }
        errors
    }

    /// Waits until something is to be done. News brings the next look nearer, but looks stay apart.
    async fn wait(&self, plan: &mut Plan) {
        let mut next = plan.next();
        while next > Instant::now() {
            tokio::select! {
                () = tokio::time::sleep_until(next.into()) => return,
                () = self.ear.changed() => {
                    let others = u32::try_from(self.peers.load(Ordering::Relaxed).saturating_sub(1)).unwrap_or(u32::MAX);
                    let apart = self.options.broker_interval.min(NEWS_APART);
                    let spread = SPREAD_PER_PEER.saturating_mul(others).min(apart);
                    let soon = Instant::now() + spread.mul_f64(fastrand::f64());
                    // A worker that has become deaf does not look more often than it was told to.
                    let apart = if self.ear.is_listening() { apart } else { self.options.broker_interval };
                    plan.move_at = plan.move_at.min(soon.max(plan.moved_at + apart));
                    next = plan.next();
                }
            }
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

    /// Takes up the queues that only the telemetry has told of.
    async fn learn_queues(&self, queues: &mut Vec<String>) -> Result<(), BackendError> {
        let new: Vec<String> = self.ear.take().into_iter().filter(|queue| !queues.contains(queue)).collect();
        queues.extend(new.iter().cloned());
        self.backend.record_queues(&new).await
    }

    /// Moves what is due, and plans the next time.
    async fn move_due(&self, plan: &mut Plan) -> Result<(), BackendError> {
        let interval = self.options.broker_interval;
        plan.moved_at = Instant::now();
        plan.move_at = plan.moved_at + interval;
        // So that none is always the last.
        let turn = fastrand::usize(..plan.queues.len().max(1));
        plan.queues.rotate_left(turn);
        let moved = self.backend.move_due(&plan.queues, self.options.batch_size.max(1)).await?;
        let mut wait = if self.ear.is_listening() { interval * LISTENING_FACTOR } else { interval };
        for moved in moved.iter().filter(|moved| !plan.is_broken(Duty::Move, &moved.queue, moved.is_broken)) {
            let queue = &moved.queue;
            for ghost in &moved.ghosts {
                tracing::warn!(task_id = %ghost, queue, "an id in SCHEDULED has no record; it is set aside");
            }
            if moved.more {
                wait = Duration::ZERO;
            } else if let Some(due) = moved.next_due {
                let ms = due - self.shop.clock.now().timestamp_micros() as f64 / 1_000.0;
                wait = wait.min(Duration::try_from_secs_f64(ms / 1_000.0).unwrap_or(Duration::ZERO));
            }
        }
        plan.move_at = Instant::now() + wait;
        Ok(())
    }

    async fn reap(&self, plan: &mut Plan) -> Result<(), BackendError> {
        loop {
            let mut is_more = false;
            for reaped in self.backend.reap(&plan.queues).await? {
                let queue = &reaped.queue;
                if plan.is_broken(Duty::Reap, queue, reaped.is_broken) {
                    continue;
                }
                for ghost in &reaped.ghosts {
                    tracing::warn!(task_id = %ghost, queue, "an id in RUNNING has no record; it is set aside");
                }
                is_more |= reaped.more;
                self.settle(reaped.claimed).await;
            }
            if !is_more {
                return Ok(());
            }
        }
    }

    /// Looks at the workers, and takes over what silent ones held.
    async fn look(&self, queues: &[String]) -> Result<(), BackendError> {
        let silence = self.options.heartbeat;
        let watch = self.backend.watch_workers(silence, silence / 2).await?;
        self.peers.store(usize::try_from(watch.workers).unwrap_or(usize::MAX), Ordering::Relaxed);
        if watch.silent.is_empty() {
            return Ok(());
        }
        let workers = self.backend.workers().await?;
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
    async fn sweep(&self, plan: &mut Plan) -> Result<(), BackendError> {
        let tidied = self.backend.tidy_slice(&plan.queues, SWEEP_EVERY / 2).await?;
        for repair in &tidied.repairs {
            tracing::warn!(
                task_id = %repair.id, queue = %repair.queue, found = ?repair.kind, outcome = ?repair.outcome,
                "an id broke the rules and was brought back into one place"
            );
        }
        if !tidied.ended.is_empty() {
            tracing::warn!(count = tidied.ended.len(), "records that nothing lists were given an end");
        }
        // One worker of the alias is enough, as for the turn.
        if !tidied.turn || plan.search_in > 0 {
            plan.search_in = plan.search_in.saturating_sub(u32::from(tidied.turn));
            return Ok(());
        }
        plan.search_in = SEARCH_TURNS - 1;
        self.backend.search_queues(SEARCH_BUDGET).await.map(drop)
    }
}
