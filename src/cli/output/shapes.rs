//! What the JSON documents hold, as `docs/json.md` describes them. These are promises: they are apart from the types
//! of the other rooms, which may change.

use super::json::UserData;
use crate::backend::{Body, QueueCounts, Summary, TaskDetail, TaskRow, WorkerInfo};
use crate::cli::time;
use crate::task::{ErrorRecord, Retry, Segment, Stamp};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

/// A queue with its counts. A count is null where the segment's key holds another type.
#[derive(Serialize)]
pub struct QueueShape {
    name: String,
    ready: Option<u64>,
    scheduled: Option<u64>,
    running: Option<u64>,
    successful: Option<u64>,
    failed: Option<u64>,
    quarantined: u64,
}

impl From<&QueueCounts> for QueueShape {
    fn from(counts: &QueueCounts) -> Self {
        let [ready, scheduled, running, successful, failed] = counts.segments;
        let quarantined = counts.quarantined;
        Self { name: counts.queue.clone(), ready, scheduled, running, successful, failed, quarantined }
    }
}

/// A task in a list.
#[derive(Serialize)]
pub struct TaskShape {
    id: String,
    queue: String,
    segment: &'static str,
    /// `readable`, `unreadable` or `missing`.
    record: &'static str,
    problem: Option<String>,
    function: Option<String>,
    priority: Option<f64>,
    attempts: Option<u32>,
    enqueued_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    due_at: Option<String>,
    lease_ends_at: Option<String>,
    worker: Option<String>,
    error: Option<Value>,
}

impl From<&TaskRow> for TaskShape {
    fn from(row: &TaskRow) -> Self {
        let at_score = |segment| (row.segment == segment).then(|| time::moment(row.score).map(time::rfc3339)).flatten();
        let readable = match &row.summary {
            Summary::Readable(readable) => Some(readable),
            _ => None,
        };
        let stamp = |stamp: Option<&Stamp>| stamp.map(|stamp| stamp.as_str().to_owned());
        let (record, problem) = match &row.summary {
            Summary::Readable(_) => ("readable", None),
            Summary::Unreadable { reason, .. } => ("unreadable", Some(reason.clone())),
            Summary::Missing => ("missing", None),
        };
        let lease_start = row.lease.as_ref().and_then(|lease| lease.started_at.as_ref());
        Self {
            id: row.id.to_string(),
            queue: row.queue.clone(),
            segment: row.segment.word(),
            record,
            problem,
            function: readable.map(|r| r.func.clone()),
            priority: readable.map(|r| r.priority),
            attempts: readable.and_then(|r| r.attempts),
            enqueued_at: stamp(readable.and_then(|r| r.enqueued_at.as_ref())),
            started_at: stamp(readable.and_then(|r| r.started_at.as_ref()).or(lease_start)),
            finished_at: stamp(readable.and_then(|r| r.finished_at.as_ref())),
            due_at: at_score(Segment::Scheduled),
            lease_ends_at: at_score(Segment::Running),
            worker: row.lease.as_ref().map(|lease| lease.worker.clone()),
            error: readable.and_then(|r| r.last_error.as_ref()).map(short_error),
        }
    }
}

fn short_error(error: &ErrorRecord) -> Value {
    json!({ "class": error.class_path, "message": error.summary() })
}

/// Everything about one task.
#[derive(Serialize)]
pub struct WholeTask {
    id: String,
    queue: Option<String>,
    segment: Option<&'static str>,
    segments: Vec<&'static str>,
    quarantined: bool,
    record: &'static str,
    problem: Option<String>,
    function: Option<String>,
    backend: Option<String>,
    priority: Option<f64>,
    takes_context: Option<bool>,
    run_after: Option<String>,
    retry: Option<Box<RawValue>>,
    attempts: u32,
    enqueued_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    last_attempted_at: Option<String>,
    due_at: Option<String>,
    lease_ends_at: Option<String>,
    expires_at: Option<String>,
    args: Option<Box<RawValue>>,
    args_text: Option<String>,
    kwargs: Option<Box<RawValue>>,
    kwargs_text: Option<String>,
    return_value: Option<Box<RawValue>>,
    return_value_text: Option<String>,
    errors: Vec<Value>,
    workers: Vec<String>,
    worker: Option<String>,
    bytes: usize,
}

/// The document of one task. `now` is the server's time, from which its end is counted.
pub fn whole_task(detail: &TaskDetail, now: DateTime<Utc>) -> WholeTask {
    let record = detail.record();
    let stamp = |stamp: Option<&Stamp>| stamp.map(|stamp| stamp.as_str().to_owned());
    let at_score = |segment| {
        let (_, score) = detail.places.iter().find(|(place, _)| *place == segment)?;
        time::moment(*score).map(time::rfc3339)
    };
    let (state, problem) = match &detail.body {
        Body::Record(_) => ("readable", None),
        Body::Unreadable(reason) => ("unreadable", Some(reason.clone())),
        Body::Missing => ("missing", None),
    };
    let args = record.map(|r| UserData::new(&r.args));
    let kwargs = record.map(|r| UserData::new(&r.kwargs));
    let value = detail.return_value().map(UserData::new);
    let split = |data: Option<UserData>| data.map_or((None, None), |data| (data.value, data.text));
    let ((args, args_text), (kwargs, kwargs_text)) = (split(args), split(kwargs));
    let (return_value, return_value_text) = split(value);
    let lease = detail.lease.as_ref();
    let started = record.and_then(|r| r.started_at.as_ref()).or(lease.and_then(|lease| lease.started_at.as_ref()));
    WholeTask {
        id: detail.id.to_string(),
        queue: detail.queue.clone(),
        segment: detail.segment().map(Segment::word),
        segments: detail.places.iter().map(|(segment, _)| segment.word()).collect(),
        quarantined: detail.quarantined,
        record: state,
        problem,
        function: record.map(|r| r.spec.func.clone()),
        backend: record.map(|r| r.backend.clone()),
        priority: record.map(|r| r.spec.priority.value),
        takes_context: record.map(|r| r.spec.takes_context),
        run_after: stamp(record.and_then(|r| r.spec.run_after.as_ref())),
        retry: record.and_then(|r| r.spec.retry.as_ref()).and_then(retry_value),
        attempts: detail.attempts(),
        enqueued_at: stamp(record.and_then(|r| r.enqueued_at.as_ref())),
        started_at: stamp(started),
        finished_at: stamp(record.and_then(|r| r.finished_at.as_ref())),
        last_attempted_at: stamp(record.and_then(|r| r.last_attempted_at.as_ref())),
        due_at: at_score(Segment::Scheduled),
        lease_ends_at: at_score(Segment::Running),
        expires_at: detail.expires_in.and_then(|left| chrono::TimeDelta::from_std(left).ok()).map(|left| {
            // A time to live is bounded by what the server can count; the sum stays in range.
            time::rfc3339(now.checked_add_signed(left).unwrap_or(now))
        }),
        args,
        args_text,
        kwargs,
        kwargs_text,
        return_value,
        return_value_text,
        errors: record.map(|r| r.errors.iter().map(whole_error).collect()).unwrap_or_default(),
        workers: detail.workers(),
        worker: lease.map(|lease| lease.worker.clone()),
        bytes: detail.stored.len(),
    }
}

fn whole_error(error: &ErrorRecord) -> Value {
    json!({ "class": error.class_path, "message": error.summary(), "traceback": error.traceback })
}

fn retry_value(retry: &Retry) -> Option<Box<RawValue>> {
    UserData::new(retry.raw()).value
}

/// A worker of ours.
#[derive(Serialize)]
pub struct WorkerShape {
    id: String,
    alive: bool,
    host: String,
    pid: u32,
    version: String,
    queues: Vec<String>,
    started_at: Option<String>,
    last_heard_at: Option<String>,
    silent_seconds: f64,
    running: u64,
}

impl From<&WorkerInfo> for WorkerShape {
    fn from(worker: &WorkerInfo) -> Self {
        Self {
            id: worker.id.clone(),
            alive: !worker.dead,
            host: worker.host.clone(),
            pid: worker.pid,
            version: worker.version.clone(),
            queues: worker.queues.clone(),
            started_at: Some(worker.started_at.clone()).filter(|at| !at.is_empty()),
            last_heard_at: time::moment(worker.beat_ms).map(time::rfc3339),
            silent_seconds: worker.silent.as_millis() as f64 / 1_000.0,
            running: worker.running,
        }
    }
}

/// What became of one task that was acted on.
#[derive(Clone, Debug, Serialize)]
pub struct ActedShape {
    /// The id; as it was given where nothing was found.
    pub id: String,
    /// The queue, where it is known.
    pub queue: Option<String>,
    /// The function, where it is known.
    pub function: Option<String>,
    /// What was done, or `refused`, `not_found`.
    pub outcome: &'static str,
    /// Why not, where nothing was done.
    pub reason: Option<String>,
}
