//! The incidents of all queues: a bounded look at what has failed, newest first, and then at what fails anew.

use crate::filter::Incidents;
use crate::inspector::msg::{Effect, Lane, Query};
use crate::inspector::source::{Cursor, QueueCounts, Surveyed};
use crate::task::Segment;
use std::time::Duration;

/// Failures that are looked at.
pub const SAMPLE_MAX: u64 = 10_000;
/// How often it is looked whether more have failed.
const NEWS_EVERY: Duration = Duration::from_secs(3);
/// How long a step that failed waits.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// The incidents and how they were come by.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The incidents.
    pub incidents: Incidents,
    /// Their order on the screen, by their short names.
    pub order: Vec<String>,
    /// Why the last step failed, where it did.
    pub error: Option<String>,
    /// Whether a first look at every queue has ended.
    pub complete: bool,
    queues: Vec<Surveying>,
    /// The question under way: its number, its queue, and where it goes on.
    asked: Option<(u64, usize, Option<Cursor>)>,
    /// Whether the next answer takes the place of what is known.
    anew: bool,
    due: Duration,
}

/// How far one queue is.
#[derive(Clone, Debug, PartialEq)]
struct Surveying {
    queue: String,
    total: u64,
    next: Option<Cursor>,
    /// Whether the walk that is under way has begun.
    begun: bool,
    /// What was seen before the walk that is under way: it ends there.
    since_ms: f64,
    newest: f64,
}

impl Default for Survey {
    fn default() -> Self {
        Self {
            incidents: Incidents::new(SAMPLE_MAX as usize),
            order: Vec::new(),
            error: None,
            complete: false,
            queues: Vec::new(),
            asked: None,
            anew: false,
            due: Duration::ZERO,
        }
    }
}

impl Survey {
    /// Asks for the next slice, where it is time.
    pub fn want(&mut self, counts: Option<&[QueueCounts]>, now: Duration, next_id: &mut u64) -> Option<Effect> {
        if self.asked.is_some() || now < self.due {
            return None;
        }
        // Before the queues are known, nothing is known to have failed or not.
        self.know(counts?);
        let open = |queue: &Surveying| !queue.begun || queue.next.is_some();
        let Some(at) = self.queues.iter().position(open).filter(|_| self.has_room()) else {
            self.rest(now);
            return None;
        };
        let queue = &mut self.queues[at];
        queue.begun = true;
        *next_id += 1;
        let (after, since_ms) = (queue.next.take(), queue.since_ms);
        self.asked = Some((*next_id, at, after.clone()));
        Some(Effect::Read(Lane::Survey, *next_id, Query::Survey { queue: queue.queue.clone(), after, since_ms }))
    }

    /// Whether the answer numbered `id` is awaited; then the queue that it is about.
    pub fn awaited(&mut self, id: u64) -> Option<usize> {
        self.asked.as_ref().filter(|(asked, ..)| *asked == id).map(|(_, at, _)| *at)
    }

    /// Looks at everything again; what is known stays until there is something in its place.
    pub fn restart(&mut self) {
        let (incidents, order) = (std::mem::take(&mut self.incidents), std::mem::take(&mut self.order));
        *self = Self { incidents, order, anew: true, ..Self::default() };
    }

    /// Takes a slice in. Whether anything changed.
    pub fn take(&mut self, at: usize, surveyed: Surveyed) -> bool {
        self.asked = None;
        let Some(queue) = self.queues.get_mut(at) else { return false };
        queue.total = surveyed.total;
        queue.next = surveyed.next;
        queue.newest = queue.newest.max(surveyed.newest);
        let news = surveyed.incidents.looked_at > 0 || self.error.is_some() || self.anew;
        if std::mem::take(&mut self.anew) {
            self.incidents = Incidents::new(SAMPLE_MAX as usize);
        }
        self.error = None;
        self.incidents.merge(surveyed.incidents);
        if news {
            self.order = self.incidents.sorted().into_iter().map(|incident| incident.fingerprint.id()).collect();
        }
        news
    }

    /// Takes a failure in; the same slice is asked for again.
    pub fn failed(&mut self, why: String, now: Duration) {
        self.error = Some(why);
        self.due = now + RETRY_AFTER;
        let Some((_, at, after)) = self.asked.take() else { return };
        if let Some(queue) = self.queues.get_mut(at) {
            queue.begun = after.is_some();
            queue.next = after;
        }
    }

    /// How many FAILED tasks there are in all.
    pub fn total(&self) -> u64 {
        self.queues.iter().map(|queue| queue.total).sum::<u64>().max(self.incidents.looked_at)
    }

    fn has_room(&self) -> bool {
        self.complete || self.anew || self.incidents.looked_at < SAMPLE_MAX
    }

    /// Takes in queues that are new.
    fn know(&mut self, counts: &[QueueCounts]) {
        for counts in counts {
            let total = counts.of(Segment::Failed);
            match self.queues.iter_mut().find(|queue| queue.queue == counts.queue) {
                Some(queue) => queue.total = total,
                None if total > 0 => self.queues.push(Surveying {
                    queue: counts.queue.clone(),
                    total,
                    next: None,
                    begun: false,
                    since_ms: f64::NEG_INFINITY,
                    newest: f64::NEG_INFINITY,
                }),
                None => {}
            }
        }
    }

    /// Waits, and then looks for what is newer than all that was seen.
    fn rest(&mut self, now: Duration) {
        self.complete = true;
        self.due = now + NEWS_EVERY;
        for queue in &mut self.queues {
            queue.begun = false;
            queue.next = None;
            queue.since_ms = queue.newest;
        }
    }
}
