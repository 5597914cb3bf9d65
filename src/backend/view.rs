//! What a reader is shown: tasks where they are, queues with their counts, the server's own facts.

use crate::task::{ErrorRecord, Lease, RawJson, Segment, Stamp, TaskId, TaskRecord};
use std::time::Duration;

/// A task as it was found in a segment, for a list. It carries no payload that a list does not show.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRow {
    /// The task's id.
    pub id: TaskId,
    /// The queue that lists it.
    pub queue: String,
    /// The segment that lists it.
    pub segment: Segment,
    /// Its score there: order of taking, due time, lease deadline or finish time, by the segment.
    pub score: f64,
    /// Bytes of the stored record, where there is one.
    pub length: Option<u64>,
    /// What its record says, as far as a list needs it.
    pub summary: Summary,
    /// Who holds it.
    pub lease: Option<Lease>,
}

/// What a list says of one task's record.
#[derive(Clone, Debug, PartialEq)]
pub enum Summary {
    /// It could be read.
    Readable(Box<Readable>),
    /// There is a record and it cannot be read: why, and how it begins.
    Unreadable {
        /// What is wrong with it, for a person.
        reason: String,
        /// Its first bytes, invalid UTF-8 replaced; not yet safe for a terminal.
        head: String,
    },
    /// The segment lists the id and there is no record: a ghost, or a result that has expired.
    Missing,
}

/// The part of a record that lists show.
#[derive(Clone, Debug, PartialEq)]
pub struct Readable {
    /// The dotted name of the function.
    pub func: String,
    /// Higher goes first.
    pub priority: f64,
    /// When it was enqueued.
    pub enqueued_at: Option<Stamp>,
    /// When its finished attempt began.
    pub started_at: Option<Stamp>,
    /// When it finished.
    pub finished_at: Option<Stamp>,
    /// Attempts made so far, a running one included; none where the record is too long to have been read whole.
    pub attempts: Option<u32>,
    /// The last error, where the part that was read holds it.
    pub last_error: Option<ErrorRecord>,
    /// The first bytes of `args`, as stored.
    pub args_head: String,
}

/// A page of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// How many the segment lists in all.
    pub total: u64,
    /// The rank of the first row.
    pub offset: u64,
    /// In the order of the list: pending soonest first, finished newest first.
    pub rows: Vec<TaskRow>,
}

/// Everything about one task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskDetail {
    /// The task's id.
    pub id: TaskId,
    /// The queue that lists it, or that its record names.
    pub queue: Option<String>,
    /// The segments that list it, with its score in each: one, unless another program broke the rule.
    pub places: Vec<(Segment, f64)>,
    /// Whether it was set aside in quarantine.
    pub quarantined: bool,
    /// The record: decoded, or as raw text with the reason why it cannot be.
    pub body: Body,
    /// The stored text of the record, byte for byte.
    pub stored: Vec<u8>,
    /// Who holds it.
    pub lease: Option<Lease>,
    /// How long the record will live, where it has an end.
    pub expires_in: Option<Duration>,
}

/// The record of a task, or what stands in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// It could be read.
    Record(Box<TaskRecord>),
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// A segment lists the id and no record exists.
    Missing,
}

impl TaskDetail {
    /// The segment that lists it, the first where several do.
    pub fn segment(&self) -> Option<Segment> {
        self.places.first().map(|(segment, _)| *segment)
    }

    /// The score in [`TaskDetail::segment`].
    pub fn score(&self) -> Option<f64> {
        self.places.first().map(|(_, score)| *score)
    }

    /// The decoded record, where it can be read.
    pub fn record(&self) -> Option<&TaskRecord> {
        match &self.body {
            Body::Record(record) => Some(record),
            _ => None,
        }
    }

    /// The attempt number: attempts made, a running one included.
    pub fn attempts(&self) -> u32 {
        let made = self.record().map_or(0, TaskRecord::attempts);
        made + u32::from(self.lease.is_some())
    }

    /// The workers of all attempts, the current holder last.
    pub fn workers(&self) -> Vec<String> {
        let mut workers = self.record().map(|record| record.worker_ids.clone()).unwrap_or_default();
        workers.extend(self.lease.iter().map(|lease| lease.worker.clone()));
        workers
    }

    /// The return value of a SUCCESSFUL task.
    pub fn return_value(&self) -> Option<&RawJson> {
        let successful = self.segment() == Some(Segment::Successful);
        self.record().filter(|_| successful).map(|record| &record.return_value)
    }
}

/// How many tasks each segment of a queue lists.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct QueueCounts {
    /// The queue's name.
    pub queue: String,
    /// By segment, in the order of [`Segment::ALL`]; `None` where the key holds another type.
    pub segments: [Option<u64>; 5],
    /// Ids set aside: ghosts and unreadable tasks.
    pub quarantined: u64,
}

impl QueueCounts {
    /// The count of one segment; 0 where its key holds another type.
    pub fn of(&self, segment: Segment) -> u64 {
        self.segments[segment as usize].unwrap_or(0)
    }

    /// Segments whose key holds another type than a sorted set.
    pub fn broken(&self) -> impl Iterator<Item = Segment> + '_ {
        Segment::ALL.into_iter().filter(|segment| self.segments[*segment as usize].is_none())
    }

    /// Whether the queue lists nothing at all.
    pub fn is_empty(&self) -> bool {
        self.segments.iter().all(|count| *count == Some(0)) && self.quarantined == 0
    }
}

/// What the server says of itself. Each part is missing where it does not say (an ACL may forbid to ask).
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ServerFacts {
    /// The version, such as `7.0.15`.
    pub version: Option<String>,
    /// `redis`, `valkey` or another.
    pub name: Option<String>,
    /// Bytes in use.
    pub used_memory: Option<u64>,
    /// Bytes at most; 0 for no bound.
    pub max_memory: Option<u64>,
    /// What is evicted when memory is full.
    pub eviction_policy: Option<String>,
    /// Whether the append-only file is on.
    pub append_only: Option<bool>,
    /// `master` or `slave`.
    pub role: Option<String>,
    /// Seconds since the server started.
    pub uptime: Option<u64>,
    /// The round trip of the question itself.
    pub round_trip: Duration,
    /// The server's clock, in milliseconds since 1970.
    pub time_ms: Option<f64>,
}

/// An event of the telemetry channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TelemetryEvent {
    /// A task entered the queue: enqueued, requeued or retried.
    Ingress(String),
    /// A task of the queue was finished.
    Egress(String),
    /// Tasks became READY by other ways: due, or given back.
    Wake(String),
}

/// A worker of ours, as it recorded itself.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WorkerInfo {
    /// The worker's id, as leases name it.
    pub id: String,
    /// Milliseconds since 1970 of its last heartbeat, by the server's clock.
    pub beat_ms: f64,
    /// How long ago that was, by the server's clock.
    pub silent: Duration,
    /// Whether it was declared dead.
    pub dead: bool,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The version of this software that it runs.
    pub version: String,
    /// What it serves.
    pub queues: Vec<String>,
    /// Since when, RFC 3339.
    pub started_at: String,
    /// How many tasks run.
    pub running: u64,
}
