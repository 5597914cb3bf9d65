//! A lease in the hands of this worker, and how its work ended.

use crate::backend::{DecodeError, Outcome, Token};
use crate::task::{Stamp, TaskId, TaskRecord};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lease; clones are the same one.
pub(crate) type Lease = Arc<Leasehold>;

/// What a worker holds of a task.
#[derive(Debug)]
pub(crate) struct Leasehold {
    pub id: TaskId,
    pub queue: String,
    pub sequence: u64,
    pub token: Token,
    /// When the lease began, by the server's clock.
    pub started_at: Option<Stamp>,
    /// The record, or why it cannot be read.
    pub record: Result<TaskRecord, DecodeError>,
    /// Bytes of the stored record.
    pub bytes: usize,
    /// Whether its work takes a thread.
    pub is_blocking: bool,
    /// The worker's id when it was granted.
    pub worker: Arc<str>,
    /// Before it was granted, by this process.
    pub since: Instant,
}

/// A piece of work that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub lease: Lease,
    /// How long it ran.
    pub took: Duration,
    pub end: End,
}

/// What Redis is to be told of it.
#[derive(Debug)]
pub(crate) enum End {
    /// A result, as it is stored.
    Result(Outcome, String),
    /// Another attempt (or the same one again) after this long.
    Again { record: Box<TaskRecord>, delay: Duration },
    /// The record cannot be read; it is set aside.
    Unreadable(DecodeError),
    /// It has not begun, and is given back.
    Unstarted,
}
