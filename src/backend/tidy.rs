//! The slow sweep that maintenance makes in small turns: what waits gets no end, what nothing lists gets one, and ids that
//! break the rules are brought back into one place.
//!
//! One worker of an alias has a turn in each interval, and leaves in Redis how far it came. A turn costs the server a few
//! milliseconds however many tasks there are; a whole round over a million takes under an hour, far less than the day that
//! the Python package gives a record.

use crate::backend::connection::Resend;
use crate::backend::doctor::{Candidates, FindingKind, Place, Settled};
use crate::backend::scripts::TURN;
use crate::backend::{Backend, BackendError, Cursor, QueueCounts};
use crate::task::{Segment, TaskId};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Records of one call, each looked at for a TTL: about half a millisecond.
const SLICE: u64 = 500;
/// Records of one turn, at least and at most.
const PACE: (u64, u64) = (1_000, 20_000);
/// A round over all that waits is to be made this often in the lifetime of a record.
const ROUNDS: u32 = 8;
/// Turns that the sweep rests after a round that found nothing to do, at most.
const REST: u32 = 60;
/// Ids of one look for broken rules.
const LOOK: u64 = 400;

/// What one turn did.
#[derive(Clone, Debug, Default)]
pub struct Tidied {
    /// Whether it was this caller's turn; if not, nothing was done.
    pub turn: bool,
    /// Records of waiting tasks that had a TTL and have none now.
    pub persisted: u64,
    /// Ids that were brought back into one place.
    pub repairs: Vec<Repair>,
    /// Records that nothing lists, which have an end now.
    pub ended: Vec<TaskId>,
}

/// An id that broke the rules.
#[derive(Clone, Debug)]
pub struct Repair {
    /// Its queue.
    pub queue: String,
    /// The id.
    pub id: TaskId,
    /// What was wrong.
    pub kind: FindingKind,
    /// What became of it.
    pub outcome: Settled,
}

/// How far the sweep has come; kept in Redis between turns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    endless: Walk,
    rules: Walk,
    /// Where the search for orphans goes on, as SCAN says it.
    scan: String,
    /// Records of this round that had a TTL.
    found: u64,
    /// Turns to rest still.
    rest: u32,
}

/// A place in a walk over the places of all queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Walk {
    queue: String,
    place: usize,
    score: String,
    id: String,
}

impl Walk {
    fn cursor(&self) -> Cursor {
        Cursor { score: self.score.clone(), id: self.id.clone() }
    }

    /// Goes on behind this entry, or at the beginning of the next place: one of `places`, then those of the next queue.
    /// Answers whether that begins a new round.
    fn advance(&mut self, next: Option<Cursor>, queues: &[QueueCounts], places: &[usize]) -> bool {
        if let Some(cursor) = next {
            (self.score, self.id) = (cursor.score, cursor.id);
            return false;
        }
        (self.score, self.id) = Default::default();
        if let Some(place) = places.iter().find(|place| **place > self.place) {
            self.place = *place;
            return false;
        }
        let next = queues.iter().map(|counts| &counts.queue).find(|queue| **queue > self.queue);
        self.place = places[0];
        self.queue = next.or(queues.first().map(|counts| &counts.queue)).cloned().unwrap_or_default();
        next.is_none()
    }

    /// The queue where it stands, of those that there are now, sorted by name.
    fn settle_on<'a>(&mut self, queues: &'a [QueueCounts], places: &[usize]) -> Option<&'a QueueCounts> {
        let known = queues.iter().find(|counts| counts.queue == self.queue);
        if let Some(known) = known.filter(|_| places.contains(&self.place)) {
            return Some(known);
        }
        // A queue that is gone, or a state of another version: on with the next.
        let next = queues.iter().find(|counts| counts.queue > self.queue).or(queues.first())?;
        *self = Walk { queue: next.queue.clone(), place: places[0], ..Walk::default() };
        Some(next)
    }
}

/// Where records without an end belong, beside RUNNING, which each turn looks at: READY and SCHEDULED.
const WAITING: [usize; 2] = [0, 1];
const EVERYWHERE: [usize; 6] = [0, 1, 2, 3, 4, 5];

impl Backend {
    /// One turn of the sweep over these queues, unless another program had one in the last `every`. To be called by each
    /// maintenance pass.
    ///
    /// # Errors
    /// Why the server could not be asked. The next turn goes on where the last whole one ended.
    pub async fn tidy_slice(&self, queues: &[String], every: Duration) -> Result<Tidied, BackendError> {
        let mut cmd = TURN.call(&[self.keys().sweep()]);
        cmd.arg(every.as_millis() as u64);
        let [code, state] = self.call("turn", cmd).await?.array()?;
        if code.text()? != "go" {
            return Ok(Tidied::default());
        }
        let mut state: State = serde_json::from_str(&state.text()?).unwrap_or_default();
        let mut queues = queues.to_vec();
        queues.sort_unstable();
        queues.dedup();
        let counts = self.counts_at_once(&queues).await?;
        let mut tidied = Tidied { turn: true, ..Tidied::default() };
        self.keep_running(&counts, &mut tidied).await?;
        self.keep_waiting(&counts, every, &mut state, &mut tidied).await?;
        self.keep_rules(&counts, &mut state, &mut tidied).await?;
        self.end_unlisted(&counts, &mut state, &mut tidied).await?;
        let mut save = redis::cmd("HSET");
        // A struct of texts and numbers always becomes JSON.
        save.arg(self.keys().sweep()).arg("state").arg(serde_json::to_string(&state).unwrap_or_default());
        self.link().command(save, Resend::Safe).await?;
        Ok(tidied)
    }

    /// What runs must not expire under its holder: all of it in each turn, since it is little.
    async fn keep_running(&self, counts: &[QueueCounts], tidied: &mut Tidied) -> Result<(), BackendError> {
        for counts in counts.iter().filter(|counts| counts.of(Segment::Running) > 0) {
            let mut from = Some(Cursor::default());
            let mut left = PACE.1;
            while let Some(cursor) = from.filter(|_| left > 0) {
                let slice = self.persist(&counts.queue, Segment::Running, &cursor, SLICE).await?;
                tidied.persisted += slice.persisted;
                left = left.saturating_sub(SLICE);
                from = slice.next;
            }
        }
        Ok(())
    }

    /// What waits: the soonest first, as many as make a round in good time; more while some are about to end.
    async fn keep_waiting(
        &self,
        counts: &[QueueCounts],
        every: Duration,
        state: &mut State,
        tidied: &mut Tidied,
    ) -> Result<(), BackendError> {
        if state.rest > 0 {
            state.rest -= 1;
            return Ok(());
        }
        let ttl = self.settings().lease_ttl * 3 + self.settings().result_ttl;
        let waiting: u64 = counts.iter().map(|next| next.of(Segment::Ready) + next.of(Segment::Scheduled)).sum();
        let turns = (ttl / ROUNDS).as_millis() as u64 / every.as_millis().max(1) as u64;
        let mut left = (waiting / turns.max(1)).clamp(PACE.0, PACE.1);
        let mut spent = 0;
        // Empty places cost nothing; one round a turn is enough.
        while spent < left {
            let Some(queue) = state.endless.settle_on(counts, &WAITING) else { return Ok(()) };
            let Place::Segment(segment) = Place::ALL[state.endless.place] else { return Ok(()) };
            let mut next = None;
            if queue.segments[segment as usize].is_some_and(|count| count > 0) {
                let slice = self.persist(&queue.queue, segment, &state.endless.cursor(), SLICE).await?;
                spent += slice.seen;
                tidied.persisted += slice.persisted;
                state.found += slice.persisted;
                if slice.soonest.is_some_and(|soonest| soonest < ttl / ROUNDS) {
                    left = PACE.1;
                }
                next = slice.next;
            }
            if state.endless.advance(next, counts, &WAITING) {
                if std::mem::take(&mut state.found) == 0 {
                    let rest = (ttl / 20).as_millis() / every.as_millis().max(1);
                    state.rest = u32::try_from(rest).unwrap_or(REST).min(REST);
                }
                break;
            }
        }
        Ok(())
    }

    /// One look for ids that break the rules, and what repairs them.
    async fn keep_rules(
        &self,
        counts: &[QueueCounts],
        state: &mut State,
        tidied: &mut Tidied,
    ) -> Result<(), BackendError> {
        // Places that are empty or broken are passed over, once round at most.
        for _ in 0..counts.len() * EVERYWHERE.len() {
            let Some(queue) = state.rules.settle_on(counts, &EVERYWHERE) else { return Ok(()) };
            let place = state.rules.place;
            let count = match Place::ALL[place] {
                Place::Segment(segment) => queue.segments[segment as usize],
                Place::Quarantine => Some(queue.quarantined),
            };
            if count.is_none_or(|count| count == 0) {
                state.rules.advance(None, counts, &EVERYWHERE);
                continue;
            }
            let look = self.inspect(&queue.queue, place, &state.rules.cursor(), LOOK).await?;
            let settled = self.settle(&queue.queue, &look.faults).await?;
            for (fault, outcome) in look.faults.into_iter().zip(settled) {
                // One that a key of another type stops is found by the doctor.
                if let Some(outcome) = outcome.ok().filter(Settled::is_repair) {
                    let kind = fault.kind();
                    tidied.repairs.push(Repair { queue: queue.queue.clone(), id: fault.id, kind, outcome });
                }
            }
            state.rules.advance(look.next, counts, &EVERYWHERE);
            return Ok(());
        }
        Ok(())
    }

    /// One step of the search for records that nothing lists.
    async fn end_unlisted(
        &self,
        counts: &[QueueCounts],
        state: &mut State,
        tidied: &mut Tidied,
    ) -> Result<(), BackendError> {
        let cursor = if state.scan.bytes().all(|byte| byte.is_ascii_digit()) { state.scan.as_str() } else { "" };
        let cursor = if cursor.is_empty() { "0" } else { cursor };
        let (next, _, unlisted) = self.search_unlisted(Candidates::EndlessRecords, cursor, counts).await?;
        state.scan = next;
        match self.end_orphans(&unlisted, counts).await {
            Ok(ended) => tidied.ended = ended,
            // Where a key of another type stops it, nobody can say that nothing lists them.
            Err(BackendError::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
