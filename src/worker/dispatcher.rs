//! What the worker does next: a synchronous state machine without I/O.
//!
//! Events go in, commands come out. It knows which leases run, which wait, and up to which sequence number the server
//! has been told that work has started (the mark). What waits starts in the order of its sequence numbers, and only
//! after the mark covers it: what is above the mark can be given back uncharged by anybody.

use crate::task::TaskId;
use crate::worker::lease::Lease;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// What is taken ahead is to start within this time.
const PREFETCH_HORIZON: Duration = Duration::from_millis(50);
/// How much the last duration counts in the running mean.
const MEAN_WEIGHT: f64 = 0.1;
/// While the telemetry wakes the worker, it looks by itself this many times as rarely.
const LISTENING_FACTOR: u32 = 5;
/// A worker that has been busy this long stops listening to the telemetry.
const BUSY_BEFORE_DEAF: Duration = Duration::from_secs(1);
/// How long a forced end waits for Redis to take what was cut off.
const END_LIMIT: Duration = Duration::from_secs(5);

/// The bounds that a dispatcher keeps.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub concurrency: usize,
    pub fetch_max: usize,
    pub prefetch: usize,
    pub byte_budget: usize,
    pub max_tasks: Option<u64>,
    pub exit_empty: bool,
    pub poll: Duration,
    pub poll_max: Duration,
    pub grace: Option<Duration>,
}

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The worker is registered, under an id of which no lease exists yet.
    Registered,
    /// The server does not know this worker (any more): what it held is not its own.
    Unregistered,
    /// A request for tasks was answered.
    Granted(Vec<Lease>),
    /// An attempt ended after this long, or had not begun.
    Finished { sequence: u64, took: Duration },
    /// The server knows that everything up to this number has started.
    Marked(u64),
    /// Redis took this many ends.
    Settled(usize),
    /// A task of this worker will run again.
    Retried(TaskId),
    /// These are not waiting any more, or are in other hands.
    Elsewhere(Vec<TaskId>),
    /// There may be tasks.
    Woken,
    /// Whether the telemetry can be heard.
    Listening(bool),
    /// Stop taking tasks, finish what runs.
    Stop,
    /// End now.
    Force,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Command {
    /// Register under a fresh id.
    Register,
    /// Ask for tasks.
    Fetch(Plan),
    /// Begin.
    Start(Lease),
    /// Tell the server that everything up to this number has started.
    Mark(u64),
    /// Give back what has not started.
    GiveBack(Vec<Lease>),
    /// Give back what waits inside the executor.
    Drain,
    /// End these attempts; nobody is told.
    Cancel(Vec<Lease>),
    /// End these attempts and send them through retry as lost leases.
    CutOff(Vec<Lease>),
    /// Listen to the telemetry, or stop it.
    Listen(bool),
    /// Find out which of these still wait for this worker.
    CheckRetries(Vec<TaskId>),
    /// The end.
    Exit,
}

/// A request for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub count: usize,
    pub start_now: usize,
    pub sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
    Ending,
    Done,
}

#[derive(Debug)]
pub(crate) struct Dispatcher {
    limits: Limits,
    phase: Phase,
    registered: bool,
    running: HashMap<u64, Lease>,
    waiting: VecDeque<Lease>,
    next_sequence: u64,
    mark_asked: u64,
    fetch: Option<Plan>,
    /// When to look again; none while tasks flow.
    idle_until: Option<Instant>,
    idle_rounds: u32,
    /// A message came while a request was under way, whose answer may be older.
    woken: bool,
    wants_to_listen: bool,
    listening: bool,
    busy_since: Option<Instant>,
    unsettled: usize,
    taken: u64,
    mean_seconds: Option<f64>,
    retries: HashSet<TaskId>,
    /// The last request found nothing.
    empty: bool,
    deadline: Option<Instant>,
}

impl Dispatcher {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            phase: Phase::Running,
            registered: false,
            running: HashMap::new(),
            waiting: VecDeque::new(),
            next_sequence: 1,
            mark_asked: 0,
            fetch: None,
            idle_until: None,
            idle_rounds: 0,
            woken: false,
            wants_to_listen: false,
            listening: false,
            busy_since: None,
            unsettled: 0,
            taken: 0,
            mean_seconds: None,
            retries: HashSet::new(),
            empty: false,
            deadline: None,
        }
    }

    /// How many attempts run.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// How many attempts may run, from now on.
    pub fn set_concurrency(&mut self, concurrency: usize) {
        self.limits.concurrency = concurrency.max(1);
    }

    /// When [`Event::Tick`] is due, where anything waits for time to pass.
    pub fn next_tick(&self) -> Option<Instant> {
        let poll = self.idle_until.filter(|_| self.phase == Phase::Running && self.fetch.is_none());
        poll.into_iter().chain(self.deadline).min()
    }

    /// Takes an event and adds to `out` what is to be done.
    pub fn handle(&mut self, event: Event, now: Instant, out: &mut Vec<Command>) {
        match event {
            Event::Registered => self.registered = true,
            Event::Unregistered => self.unregistered(out),
            Event::Granted(leases) => self.granted(leases, now, out),
            Event::Finished { sequence, took } => self.finished(sequence, took),
            Event::Marked(mark) => self.marked(mark, out),
            Event::Settled(count) => self.unsettled = self.unsettled.saturating_sub(count),
            Event::Retried(id) => {
                if self.limits.exit_empty {
                    self.retries.insert(id);
                }
            }
            Event::Elsewhere(ids) => self.retries.retain(|id| !ids.contains(id)),
            Event::Woken => {
                self.woken = self.fetch.is_some();
                self.idle_until = None;
            }
            Event::Listening(listening) => {
                self.listening = listening;
                // What came between the last look and the subscription is found by one more look.
                self.woken |= listening && self.fetch.is_some();
                self.idle_until = self.idle_until.filter(|_| !listening);
            }
            Event::Stop => self.stop(now, out),
            Event::Force => self.force(now, out),
            Event::Tick => self.tick(now, out),
        }
    }

    /// What follows from the state that a batch of events has led to.
    pub fn proceed(&mut self, now: Instant, out: &mut Vec<Command>) {
        match self.phase {
            Phase::Running if self.registered => {
                self.raise_mark(out);
                self.request(now, out);
                self.end_if_done(out);
            }
            Phase::Draining | Phase::Ending if self.is_quiet() => self.exit(out),
            _ => {}
        }
    }

    fn is_quiet(&self) -> bool {
        self.fetch.is_none() && self.running.is_empty() && self.unsettled == 0
    }

    fn exit(&mut self, out: &mut Vec<Command>) {
        self.phase = Phase::Done;
        self.deadline = None;
        out.push(Command::Exit);
    }

    /// Ends a worker that was to end by itself.
    fn end_if_done(&mut self, out: &mut Vec<Command>) {
        if !self.is_quiet() || !self.waiting.is_empty() {
            return;
        }
        let used_up = self.limits.max_tasks.is_some_and(|max| self.taken >= max);
        if used_up || (self.limits.exit_empty && self.empty && self.retries.is_empty()) {
            self.exit(out);
        }
    }

    fn request(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.fetch.is_some() || self.idle_until.is_some() {
            return;
        }
        let allowed = self
            .limits
            .max_tasks
            .map_or(usize::MAX, |max| usize::try_from(max.saturating_sub(self.taken)).unwrap_or(usize::MAX));
        let free = self.limits.concurrency.saturating_sub(self.running.len());
        let start_now = if self.waiting.is_empty() { free.min(allowed).min(self.limits.fetch_max) } else { 0 };
        // Ahead of free places only where there are none: with places free, the next request follows at once.
        let ahead = if free == 0 || start_now == 0 { self.room_ahead() } else { 0 };
        let count = (start_now + ahead).min(allowed).min(self.limits.fetch_max);
        if count == 0 {
            return;
        }
        let plan = Plan { count, start_now, sequence: self.next_sequence };
        self.next_sequence += count as u64;
        self.fetch = Some(plan);
        self.woken = false;
        if let Some(since) = self.busy_since {
            if self.wants_to_listen && now.duration_since(since) >= BUSY_BEFORE_DEAF {
                self.listen(false, out);
            }
        }
        out.push(Command::Fetch(plan));
    }

    /// How many more leases would start within the horizon, as far as the last durations tell.
    fn room_ahead(&self) -> usize {
        let Some(mean) = self.mean_seconds else { return 0 };
        let ends = self.running.len() as f64 * PREFETCH_HORIZON.as_secs_f64() / mean.max(1e-6);
        (ends as usize).min(self.limits.prefetch).saturating_sub(self.waiting.len())
    }

    fn granted(&mut self, leases: Vec<Lease>, now: Instant, out: &mut Vec<Command>) {
        let Some(plan) = self.fetch.take() else { return };
        let (count, bytes) = (leases.len(), leases.iter().map(|lease| lease.leased.data.len()).sum::<usize>());
        self.taken += count as u64;
        for lease in &leases {
            self.retries.remove(&lease.leased.id);
        }
        if self.phase != Phase::Running {
            return self.give_back(leases, out);
        }
        for lease in leases {
            if lease.leased.sequence < plan.sequence + plan.start_now as u64 {
                self.start(lease, out);
            } else {
                self.waiting.push_back(lease);
            }
        }
        self.empty = count == 0;
        if count == 0 && !self.woken {
            return self.idle(now, out);
        }
        self.idle_rounds = 0;
        self.busy_since.get_or_insert(now);
        let has_all = count < plan.count && bytes < self.limits.byte_budget / 2;
        if has_all && self.listening && !self.woken {
            // The queues are empty for now, and whatever comes is told.
            self.idle(now, out);
        }
    }

    fn idle(&mut self, now: Instant, out: &mut Vec<Command>) {
        let doubled = self.limits.poll.saturating_mul(1 << self.idle_rounds.min(16)).min(self.limits.poll_max);
        self.idle_rounds += 1;
        let pause = if self.listening { self.limits.poll_max * LISTENING_FACTOR } else { doubled };
        self.idle_until = Some(now + pause);
        self.busy_since = None;
        if !self.wants_to_listen && !self.limits.exit_empty {
            self.listen(true, out);
        }
        if self.limits.exit_empty && !self.retries.is_empty() {
            // A retry that is due wakes nobody here: look as often as at first.
            self.idle_until = Some(now + doubled);
            out.push(Command::CheckRetries(self.retries.iter().cloned().collect()));
        }
    }

    fn listen(&mut self, listen: bool, out: &mut Vec<Command>) {
        self.wants_to_listen = listen;
        self.listening = false;
        out.push(Command::Listen(listen));
    }

    fn start(&mut self, lease: Lease, out: &mut Vec<Command>) {
        self.running.insert(lease.leased.sequence, lease.clone());
        out.push(Command::Start(lease));
    }

    fn finished(&mut self, sequence: u64, took: Duration) {
        self.unsettled += 1;
        if self.running.remove(&sequence).is_some() {
            let seconds = took.as_secs_f64();
            self.mean_seconds = Some(self.mean_seconds.map_or(seconds, |mean| mean + (seconds - mean) * MEAN_WEIGHT));
        }
    }

    /// Asks for the mark that the free places allow.
    fn raise_mark(&mut self, out: &mut Vec<Command>) {
        let free = self.limits.concurrency.saturating_sub(self.running.len()).min(self.waiting.len());
        let Some(last) = free.checked_sub(1).and_then(|last| self.waiting.get(last)) else { return };
        if last.leased.sequence > self.mark_asked {
            self.mark_asked = last.leased.sequence;
            out.push(Command::Mark(self.mark_asked));
        }
    }

    fn marked(&mut self, mark: u64, out: &mut Vec<Command>) {
        if self.phase != Phase::Running || !self.registered {
            return;
        }
        let covered = self.waiting.iter().take_while(|lease| lease.leased.sequence <= mark).count();
        let begin: Vec<Lease> = self.waiting.drain(..covered).collect();
        begin.into_iter().for_each(|lease| self.start(lease, out));
    }

    fn give_back(&mut self, leases: Vec<Lease>, out: &mut Vec<Command>) {
        if !leases.is_empty() {
            self.unsettled += leases.len();
            out.push(Command::GiveBack(leases));
        }
    }

    fn unregistered(&mut self, out: &mut Vec<Command>) {
        if !self.registered {
            return;
        }
        self.registered = false;
        self.fetch = None;
        self.mark_asked = 0;
        self.idle_until = None;
        self.waiting.clear();
        let held: Vec<Lease> = self.running.drain().map(|(_, lease)| lease).collect();
        if !held.is_empty() {
            out.push(Command::Cancel(held));
        }
        if self.phase == Phase::Running {
            out.push(Command::Register);
        }
    }

    fn stop(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.phase != Phase::Running {
            return;
        }
        self.phase = Phase::Draining;
        self.deadline = self.limits.grace.map(|grace| now + grace);
        let waiting: Vec<Lease> = self.waiting.drain(..).collect();
        self.give_back(waiting, out);
        out.push(Command::Drain);
        self.listen(false, out);
    }

    fn force(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.phase >= Phase::Ending {
            return;
        }
        self.stop(now, out);
        self.phase = Phase::Ending;
        self.deadline = Some(now + END_LIMIT);
        let cut_off: Vec<Lease> = self.running.drain().map(|(_, lease)| lease).collect();
        if !cut_off.is_empty() {
            self.unsettled += cut_off.len();
            out.push(Command::CutOff(cut_off));
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.idle_until.is_some_and(|at| now >= at) {
            self.idle_until = None;
        }
        if self.deadline.is_some_and(|at| now >= at) {
            match self.phase {
                Phase::Draining => self.force(now, out),
                Phase::Ending => self.exit(out),
                Phase::Running | Phase::Done => self.deadline = None,
            }
        }
    }
}

#[cfg(test)]
#[path = "dispatcher_tests.rs"]
mod tests;
