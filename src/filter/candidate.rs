//! A task as a filter looks at it.

use crate::backend::{Readable, Summary, TaskDetail, TaskRow};
use crate::task::{ErrorRecord, Segment, Stamp, TaskRecord};

/// A task that a filter may mean: how a list shows it, and its whole record where that was read.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    row: &'a TaskRow,
    record: Option<&'a TaskRecord>,
    now_ms: f64,
}

impl<'a> Candidate<'a> {
    /// A task of a list; `record` where the whole one was read, `now_ms` the time in milliseconds since 1970.
    pub fn new(row: &'a TaskRow, record: Option<&'a TaskRecord>, now_ms: f64) -> Self {
        Self { row, record, now_ms }
    }

    /// The same for a row and a task that was read whole.
    pub fn whole(row: &'a TaskRow, detail: &'a TaskDetail, now_ms: f64) -> Self {
        Self::new(row, detail.record(), now_ms)
    }

    pub(super) fn row(&self) -> &'a TaskRow {
        self.row
    }

    pub(super) fn record(&self) -> Option<&'a TaskRecord> {
        self.record
    }

    pub(super) fn now_ms(&self) -> f64 {
        self.now_ms
    }

    pub(super) fn readable(&self) -> Option<&'a Readable> {
        match &self.row.summary {
            Summary::Readable(readable) => Some(readable),
            _ => None,
        }
    }

    /// The last error; the inner `None` where there was none, the outer where that is not known.
    pub(super) fn last_error(&self) -> Option<Option<&'a ErrorRecord>> {
        if let Some(record) = self.record {
            return Some(record.errors.last());
        }
        let readable = self.readable()?;
        // Where the end of a long record was not understood, neither the attempts nor the errors are known.
        let known = readable.attempts.is_some() || readable.last_error.is_some();
        known.then_some(readable.last_error.as_ref())
    }

    /// The last error's traceback, only where all of it was read.
    pub(super) fn traceback(&self) -> Option<Option<&'a str>> {
        Some(self.record?.errors.last().map(|error| error.traceback.as_str()))
    }

    /// Since when it has been in its segment, in milliseconds since 1970.
    pub(super) fn since(&self) -> Option<f64> {
        let millis = |stamp: &Option<Stamp>| stamp.as_ref().map(Stamp::millis);
        match self.row.segment {
            Segment::Running => self.row.lease.as_ref().and_then(|lease| millis(&lease.started_at)),
            Segment::Successful | Segment::Failed => {
                self.readable().and_then(|readable| millis(&readable.finished_at)).or(Some(self.row.score))
            }
            Segment::Ready | Segment::Scheduled => self.readable().and_then(|readable| millis(&readable.enqueued_at)),
        }
    }

    /// When its last attempt began.
    pub(super) fn started(&self) -> Option<f64> {
        let lease = self.row.lease.as_ref().and_then(|lease| lease.started_at.as_ref());
        let stamp = lease.or_else(|| self.readable().and_then(|readable| readable.started_at.as_ref()));
        stamp.map(Stamp::millis)
    }
}
