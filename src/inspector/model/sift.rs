//! A filter that goes through a whole segment, and what it has found.

use crate::filter::Filter;
use crate::inspector::msg::{Effect, Lane, Query, Target};
use crate::inspector::source::{Cursor, Page, Sifted};
use crate::task::Segment;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// Rows that are kept to be listed.
pub const ROWS_MAX: usize = 5_000;
/// Tasks that are remembered beyond those, so that all can be marked.
pub const FOUND_MAX: usize = 50_000;
/// A failed step is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Failures in a row after which it stops.
const FAILURES_MAX: u32 = 5;

/// A filter on one segment of one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Sifting {
    /// What is meant.
    pub filter: Arc<Filter>,
    /// The queue.
    pub queue: String,
    /// The segment.
    pub segment: Segment,
    /// How many were looked at.
    pub looked_at: u64,
    /// How many the segment lists.
    pub total: u64,
    /// How many are meant.
    pub matched: u64,
    /// Those that are meant, as they were seen.
    pub found: Vec<Target>,
    /// How it stands.
    pub state: SiftState,
    next: Option<Cursor>,
    asked: Option<u64>,
    due: Duration,
    failures: u32,
    /// Ids that were found, since one whose score changes may be met twice.
    seen: HashSet<crate::task::TaskId>,
}

/// How a filter stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiftState {
    /// It goes through the segment.
    UnderWay,
    /// It has seen all of it.
    Done,
    /// It was stopped by hand.
    Stopped,
    /// It cannot go on.
    Failed(String),
}

impl Sifting {
    /// A filter that is about to begin.
    pub fn new(filter: Filter, queue: String, segment: Segment) -> Self {
        Self {
            filter: Arc::new(filter),
            queue,
            segment,
            looked_at: 0,
            total: 0,
            matched: 0,
            found: Vec::new(),
            state: SiftState::UnderWay,
            next: None,
            asked: None,
            due: Duration::ZERO,
            failures: 0,
            seen: HashSet::new(),
        }
    }

    /// Asks for the next slice, where none is under way.
    pub fn want(&mut self, now: Duration, now_ms: f64, next_id: &mut u64) -> Option<Effect> {
        if self.state != SiftState::UnderWay || self.asked.is_some() || now < self.due {
            return None;
        }
        *next_id += 1;
        self.asked = Some(*next_id);
        let query = Query::Sift {
            queue: self.queue.clone(),
            segment: self.segment,
            after: self.next.clone(),
            filter: Arc::clone(&self.filter),
            now_ms,
        };
        Some(Effect::Read(Lane::Sift, *next_id, query))
    }

    /// Whether the answer numbered `id` is awaited; it no longer is afterwards.
    pub fn awaited(&mut self, id: u64) -> bool {
        self.asked.take_if(|asked| *asked == id).is_some()
    }

    /// Takes a slice in; its rows go to the end of the page.
    pub fn take(&mut self, sifted: Sifted, page: &mut Page) {
        self.failures = 0;
        self.looked_at += sifted.looked_at;
        self.total = sifted.total.max(self.looked_at);
        for row in sifted.rows {
            if self.found.len() < FOUND_MAX && !self.seen.insert(row.id.clone()) {
                continue;
            }
            self.matched += 1;
            if self.found.len() < FOUND_MAX {
                self.found.push(crate::inspector::model::tasks::aim(&row, false));
            }
            if page.rows.len() < ROWS_MAX {
                page.rows.push(row);
            }
        }
        page.total = self.matched;
        self.next = sifted.next;
        if self.next.is_none() && self.state == SiftState::UnderWay {
            self.state = SiftState::Done;
            self.seen = HashSet::new();
        }
    }

    /// Takes a failure in.
    pub fn failed(&mut self, why: String, now: Duration) {
        self.failures += 1;
        self.due = now + RETRY_AFTER * self.failures;
        if self.failures >= FAILURES_MAX {
            self.state = SiftState::Failed(why);
        }
    }

    /// Ends it where it is; whether it was under way.
    pub fn stop(&mut self) -> bool {
        let under_way = self.state == SiftState::UnderWay;
        if under_way {
            self.state = SiftState::Stopped;
            self.asked = None;
        }
        under_way
    }
}
