//! What the worker does next: a synchronous state machine without I/O.
//!
//! Events go in, commands come out. It knows which leases run, which wait, and up to which sequence number the server
//! has been told that work has started (the mark). What waits starts in the order of its sequence numbers, and only
//! after the mark covers it: what is above the mark can be given back uncharged by anybody.
//!
//! Async and blocking work have places of their own. What kind a task is shows only when it is leased, so each queue
//! counts as what it gave last: queues of blocking work are asked for as much as threads are free.

use crate::task::TaskId;
use crate::worker::lease::Lease;
use crate::worker::moves::{Command, Event, Limits, Plan};
use crate::worker::pool::Pool;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

/// What has waited this long for a place is given back: the guess that it would start soon was wrong.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// While the telemetry wakes the worker, it looks by itself this many times as rarely.
const LISTENING_FACTOR: u32 = 5;
/// A worker that has been busy this long stops listening to the telemetry.
const BUSY_BEFORE_DEAF: Duration = Duration::from_secs(1);
/// How long a forced end waits for Redis to take what was cut off.
const END_LIMIT: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Draining,
    Ending,
    Done,
}

#[derive(Debug)]
pub(crate) struct Dispatcher {
    /// What ages are counted from.
    born: Instant,
    limits: Limits,
    phase: Phase,
    registered: bool,
    /// By sequence number, with the second of its start.
    running: HashMap<u64, (Lease, f64)>,
    pools: [Pool; 2],
    /// Queues whose last lease took a thread.
    blocking_queues: HashSet<String>,
    /// Turns the queues, so that none is always the first.
    turn: usize,
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
    retries: HashSet<TaskId>,
    /// The last request found nothing.
    empty: bool,
    /// Leases were given back while the worker goes on, and may not have arrived yet.
    gave_back: bool,
    deadline: Option<Instant>,
}

impl Dispatcher {
    pub fn new(limits: Limits) -> Self {
        Self {
            born: Instant::now(),
            limits,
            phase: Phase::Running,
            registered: false,
            running: HashMap::new(),
            pools: [Pool::default(), Pool::default()],
            blocking_queues: HashSet::new(),
            turn: 0,
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
            retries: HashSet::new(),
            empty: false,
            gave_back: false,
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
        let patience = self.waiting.front().map(|lease| lease.since + WAIT_MAX);
        poll.into_iter().chain(self.deadline).chain(patience).min()
    }

    /// Takes an event and adds to `out` what is to be done.
    pub fn handle(&mut self, event: Event, now: Instant, out: &mut Vec<Command>) {
        match event {
            Event::Registered => self.registered = true,
            Event::Unregistered => self.unregistered(out),
            Event::Granted(leases) => self.granted(leases, now, out),
            Event::Finished { sequence, took } => self.finished(sequence, took),
            Event::Marked(mark) => self.marked(mark, now, out),
            Event::Settled(count) => self.settled(count),
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
                // Word of a listener that was told to stop comes late.
                self.listening = listening && self.wants_to_listen;
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

    /// Asks for tasks, where there is room for some.
    fn request(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.fetch.is_some() || self.idle_until.is_some() {
            return;
        }
        self.turn += 1;
        // Queues of blocking work take turns with the others, where both have room.
        let first = self.turn.is_multiple_of(2);
        let Some(plan) = self.plan(first, now).or_else(|| self.plan(!first, now)) else { return };
        self.next_sequence += plan.count as u64;
        self.fetch = Some(plan.clone());
        self.woken = false;
        let is_busy = self.busy_since.is_some_and(|since| now.duration_since(since) >= BUSY_BEFORE_DEAF);
        if is_busy && self.wants_to_listen {
            self.listen(false, out);
        }
        out.push(Command::Fetch(plan));
    }

    /// A request to the queues of one kind of work.
    fn plan(&self, blocking: bool, now: Instant) -> Option<Plan> {
        let is_of_kind = |queue: &&String| self.blocking_queues.contains(*queue) == blocking;
        let mut queues: Vec<String> = self.limits.queues.iter().filter(is_of_kind).cloned().collect();
        if queues.is_empty() {
            return None;
        }
        let turn = self.turn / 2 % queues.len();
        queues.rotate_left(turn);
        let left = self.limits.max_tasks.map_or(u64::MAX, |max| max.saturating_sub(self.taken));
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.limits.fetch_max);
        let (count, start_now) = if blocking {
            // What is taken ahead waits for its thread inside the executor, and counts as started.
            let count = if self.waiting.is_empty() { self.room(true, now).min(most) } else { 0 };
            (count, count)
        } else if self.waiting.is_empty() && self.free() > 0 {
            // Not ahead of free places: with places free, the next request follows at once.
            let count = self.free().min(most);
            (count, count)
        } else {
            (self.room(false, now).saturating_sub(self.waiting.len()).min(most), 0)
        };
        let sequence = self.next_sequence;
        (count > 0).then_some(Plan { queues, count, start_now, sequence })
    }

    /// Free places for async work.
    fn free(&self) -> usize {
        self.limits.concurrency.saturating_sub(self.pools[0].running)
    }

    /// How many more leases of this kind would start within the horizon.
    fn room(&self, blocking: bool, now: Instant) -> usize {
        let pool = &self.pools[usize::from(blocking)];
        let places = if blocking { self.limits.threads } else { self.limits.concurrency };
        let ahead = pool.ends_soon(self.seconds(now)).min(self.limits.prefetch);
        (places + ahead).saturating_sub(pool.running)
    }

    fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.born).as_secs_f64()
    }

    fn granted(&mut self, leases: Vec<Lease>, now: Instant, out: &mut Vec<Command>) {
        let Some(plan) = self.fetch.take() else { return };
        let (count, bytes) = (leases.len(), leases.iter().map(|lease| lease.bytes).sum::<usize>());
        self.taken += count as u64;
        for lease in &leases {
            self.retries.remove(&lease.id);
            if self.blocking_queues.contains(&lease.queue) != lease.is_blocking {
                // The queue counts as what it gave last.
                match lease.is_blocking {
                    true => self.blocking_queues.insert(lease.queue.clone()),
                    false => self.blocking_queues.remove(&lease.queue),
                };
            }
        }
        if self.phase != Phase::Running {
            return self.give_back(leases, out);
        }
        let covered = plan.sequence + plan.start_now as u64;
        let (begin, wait): (Vec<Lease>, Vec<Lease>) = leases.into_iter().partition(|lease| lease.sequence < covered);
        self.waiting.extend(wait);
        self.start_all(begin, now, out);
        self.empty = count == 0 && !self.woken;
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

    /// Begins these; blocking ones for which no thread will be free soon are given back.
    fn start_all(&mut self, leases: Vec<Lease>, now: Instant, out: &mut Vec<Command>) {
        let mut too_many = Vec::new();
        let at = self.seconds(now);
        for lease in leases {
            if lease.is_blocking && self.room(true, now) == 0 {
                too_many.push(lease);
                continue;
            }
            self.pools[usize::from(lease.is_blocking)].begin(at);
            self.running.insert(lease.sequence, (lease.clone(), at));
            out.push(Command::Start(lease));
        }
        self.return_unused(too_many, out);
    }

    /// Gives back what was taken for nothing.
    fn return_unused(&mut self, leases: Vec<Lease>, out: &mut Vec<Command>) {
        self.taken = self.taken.saturating_sub(leases.len() as u64);
        self.gave_back |= !leases.is_empty();
        self.give_back(leases, out);
    }

    fn settled(&mut self, count: usize) {
        self.unsettled = self.unsettled.saturating_sub(count);
        if self.gave_back && self.unsettled == 0 {
            // They are READY again, whatever the last answer said, or one that is on its way says.
            (self.gave_back, self.empty, self.idle_until) = (false, false, None);
            self.woken |= self.fetch.is_some();
        }
    }

    fn finished(&mut self, sequence: u64, took: Duration) {
        self.unsettled += 1;
        if let Some((lease, at)) = self.running.remove(&sequence) {
            self.pools[usize::from(lease.is_blocking)].end(at, took);
        }
    }

    /// Forgets what runs, and answers it.
    fn clear_running(&mut self) -> Vec<Lease> {
        self.pools.iter_mut().for_each(Pool::clear);
        self.running.drain().map(|(_, (lease, _))| lease).collect()
    }

    /// Asks for the mark that the free places allow.
    fn raise_mark(&mut self, out: &mut Vec<Command>) {
        let free = self.free().min(self.waiting.len());
        let Some(last) = free.checked_sub(1).and_then(|last| self.waiting.get(last)) else { return };
        if last.sequence > self.mark_asked {
            self.mark_asked = last.sequence;
            out.push(Command::Mark(self.mark_asked));
        }
    }

    fn marked(&mut self, mark: u64, now: Instant, out: &mut Vec<Command>) {
        if self.phase != Phase::Running || !self.registered {
            return;
        }
        let covered = self.waiting.iter().take_while(|lease| lease.sequence <= mark).count();
        let begin = self.waiting.drain(..covered).collect();
        self.start_all(begin, now, out);
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
        let held = self.clear_running();
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
        let cut_off = self.clear_running();
        if !cut_off.is_empty() {
            self.unsettled += cut_off.len();
            out.push(Command::CutOff(cut_off));
        }
    }

    fn tick(&mut self, now: Instant, out: &mut Vec<Command>) {
        if self.idle_until.is_some_and(|at| now >= at) {
            self.idle_until = None;
        }
        if self.waiting.front().is_some_and(|lease| now >= lease.since + WAIT_MAX) {
            // All of them: they start in order, so none behind the first is nearer to a place.
            let late = self.waiting.drain(..).collect();
            self.return_unused(late, out);
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
