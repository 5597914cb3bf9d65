//! A record to stored JSON, in the order and spacing of the Python package.
//!
//! User data is spliced in byte for byte. Each function makes the text of one step of a task's life.

use crate::backend::codec::text::encode_string;
use crate::task::{ErrorRecord, NewTask, RawJson, Stamp, Status, TaskRecord, TaskSpec};
use chrono::{DateTime, Utc};

/// An attempt that has ended: who made it, from when to when.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// The worker's id.
    pub worker: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: DateTime<Utc>,
}

/// The record of a task that is enqueued at `now` on the backend `alias`.
pub fn queued(task: &NewTask, alias: &str, now: DateTime<Utc>) -> TaskRecord {
    TaskRecord {
        spec: task.spec(alias),
        id: task.id.clone(),
        status: Status::Ready,
        enqueued_at: Some(Stamp::new(now)),
        started_at: None,
        finished_at: None,
        last_attempted_at: None,
        args: task.args.clone(),
        kwargs: task.kwargs.clone(),
        backend: alias.to_owned(),
        errors: Vec::new(),
        worker_ids: Vec::new(),
        return_value: RawJson::null(),
    }
}

/// The result of a task that returned `value`.
pub fn success(record: &TaskRecord, attempt: &Attempt, value: RawJson) -> TaskRecord {
    TaskRecord { status: Status::Successful, return_value: value, ..ended(record, attempt) }
}

/// The result of a task that failed for good with `error`.
pub fn failure(record: &TaskRecord, attempt: &Attempt, error: ErrorRecord) -> TaskRecord {
    let mut result = TaskRecord { status: Status::Failed, ..ended(record, attempt) };
    result.errors.push(error);
    result
}

/// The record of a task whose attempt failed with `error` and that will run again.
pub fn next_attempt(record: &TaskRecord, attempt: &Attempt, error: ErrorRecord) -> TaskRecord {
    let mut next = TaskRecord { status: Status::Ready, started_at: None, finished_at: None, ..ended(record, attempt) };
    next.errors.push(error);
    next
}

/// The record of a finished task that is to run again: errors and workers are kept.
pub fn requeued(record: &TaskRecord) -> TaskRecord {
    TaskRecord {
        status: Status::Ready,
        started_at: None,
        finished_at: None,
        return_value: RawJson::null(),
        ..record.clone()
    }
}

fn ended(record: &TaskRecord, attempt: &Attempt) -> TaskRecord {
    let started = Stamp::new(attempt.started_at);
    let mut ended = TaskRecord {
        started_at: Some(started.clone()),
        finished_at: Some(Stamp::new(attempt.finished_at)),
        last_attempted_at: Some(started),
        return_value: RawJson::null(),
        ..record.clone()
    };
    ended.worker_ids.push(attempt.worker.clone());
    ended
}

/// An error object as it is stored.
pub fn encode_error(class_path: &str, traceback: &str) -> ErrorRecord {
    let mut raw = String::with_capacity(traceback.len() + 80);
    raw.push_str("{\"exception_class_path\": ");
    encode_string(&mut raw, class_path);
    raw.push_str(", \"traceback\": ");
    encode_string(&mut raw, traceback);
    raw.push('}');
    ErrorRecord { class_path: class_path.to_owned(), traceback: traceback.to_owned(), raw: RawJson::new(raw) }
}

/// The text of a record, every field always written.
pub fn encode(record: &TaskRecord) -> String {
    let user = record.args.as_str().len() + record.kwargs.as_str().len() + record.return_value.as_str().len();
    let errors: usize = record.errors.iter().map(|error| error.raw.as_str().len() + 2).sum();
    let mut out = String::with_capacity(user + errors + 640);
    out.push_str("{\"task\": ");
    encode_spec(&mut out, &record.spec);
    text(&mut out, ", \"id\": ", record.id.as_str());
    text(&mut out, ", \"status\": ", record.status.name());
    stamp(&mut out, ", \"enqueued_at\": ", record.enqueued_at.as_ref());
    stamp(&mut out, ", \"started_at\": ", record.started_at.as_ref());
    stamp(&mut out, ", \"finished_at\": ", record.finished_at.as_ref());
    stamp(&mut out, ", \"last_attempted_at\": ", record.last_attempted_at.as_ref());
    raw(&mut out, ", \"args\": ", &record.args);
    raw(&mut out, ", \"kwargs\": ", &record.kwargs);
    text(&mut out, ", \"backend\": ", &record.backend);
    out.push_str(", \"errors\": [");
    for (i, error) in record.errors.iter().enumerate() {
        raw(&mut out, if i == 0 { "" } else { ", " }, &error.raw);
    }
    out.push_str("], \"worker_ids\": [");
    for (i, worker) in record.worker_ids.iter().enumerate() {
        text(&mut out, if i == 0 { "" } else { ", " }, worker);
    }
    raw(&mut out, "], \"_return_value\": ", &record.return_value);
    out.push('}');
    out
}

fn encode_spec(out: &mut String, spec: &TaskSpec) {
    raw(out, "{\"priority\": ", &spec.priority.raw);
    text(out, ", \"backend\": ", &spec.backend);
    text(out, ", \"queue_name\": ", &spec.queue_name);
    stamp(out, ", \"run_after\": ", spec.run_after.as_ref());
    out.push_str(if spec.takes_context { ", \"takes_context\": true" } else { ", \"takes_context\": false" });
    text(out, ", \"func\": ", &spec.func);
    out.push_str(", \"retry\": ");
    out.push_str(spec.retry.as_ref().map_or("null", |retry| retry.raw().as_str()));
    out.push('}');
}

fn text(out: &mut String, label: &str, value: &str) {
    out.push_str(label);
    encode_string(out, value);
}

fn raw(out: &mut String, label: &str, value: &RawJson) {
    out.push_str(label);
    out.push_str(value.as_str());
}

fn stamp(out: &mut String, label: &str, value: Option<&Stamp>) {
    match value {
        Some(stamp) => text(out, label, stamp.as_str()),
        None => {
            out.push_str(label);
            out.push_str("null");
        }
    }
}

/// The stored form of the built-in backoff, so that workers of the Python package evaluate it too.
pub fn encode_backoff(backoff: &crate::task::ExponentialBackoff) -> RawJson {
    let mut out = String::from("[");
    encode_string(&mut out, crate::task::Retry::backoff_path());
    for (label, value) in [
        (", [], {\"base_delay\": ", backoff.base_delay),
        (", \"max_delay\": ", backoff.max_delay),
        (", \"factor\": ", backoff.factor),
    ] {
        out.push_str(label);
        out.push_str(&python_float(value));
    }
    out.push_str(&format!(", \"max_retries\": {}, \"expected_exceptions\": [", backoff.max_retries));
    for (i, class) in backoff.expected_exceptions.iter().enumerate() {
        text(&mut out, if i == 0 { "" } else { ", " }, class);
    }
    out.push_str("]}]");
    RawJson::new(out)
}

/// A float as Python's JSON spells it.
fn python_float(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity".into() } else { "-Infinity".into() }
    } else {
        format!("{value:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::decode;
    use crate::task::{ExponentialBackoff, TaskId};

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(millis).unwrap()
    }

    #[test]
    fn a_new_record_is_what_the_python_package_writes() {
        let mut task = NewTask::new(TaskId::from("01a22df8-34c1-75b3-9f47-8c0c3115e82f"), "tasks.add");
        task.args = RawJson::new("[1, 2]");
        assert_eq!(
            encode(&queued(&task, "default", at(1_796_067_570_881))),
            r#"{"task": {"priority": 0, "backend": "default", "queue_name": "default", "run_after": null, "takes_context": false, "func": "tasks.add", "retry": null}, "id": "01a22df8-34c1-75b3-9f47-8c0c3115e82f", "status": "READY", "enqueued_at": "2026-11-30T19:39:30.881Z", "started_at": null, "finished_at": null, "last_attempted_at": null, "args": [1, 2], "kwargs": {}, "backend": "default", "errors": [], "worker_ids": [], "_return_value": null}"#
        );
    }

    #[test]
    fn attempts_add_workers_and_errors_and_keep_what_was_there() {
        let record = queued(&NewTask::new(TaskId::from("x"), "f"), "default", at(0));
        let attempt = |n: i64| Attempt { worker: format!("w{n}"), started_at: at(n), finished_at: at(n + 1) };
        let first = next_attempt(&record, &attempt(10), encode_error("builtins.ValueError", "boom\n"));
        assert_eq!((first.status, first.started_at.clone(), first.attempts()), (Status::Ready, None, 1));
        assert_eq!(first.last_attempted_at, Some(Stamp::new(at(10))));
        let last = failure(&first, &attempt(20), encode_error("builtins.KeyError", "'k'\n"));
        assert_eq!((last.errors.len(), &last.worker_ids[..]), (2, &["w10".to_owned(), "w20".to_owned()][..]));
        let again = requeued(&last);
        assert_eq!((again.status, again.finished_at.clone(), again.errors.len()), (Status::Ready, None, 2));
        let done = success(&again, &attempt(30), RawJson::new("NaN"));
        assert_eq!(decode(encode(&done).as_bytes()).unwrap(), done);
    }

    #[test]
    fn a_backoff_is_stored_as_the_python_package_stores_it() {
        let backoff = ExponentialBackoff { max_delay: 300.0, ..ExponentialBackoff::new() }
            .expected_exceptions(["builtins.ValueError", "threadmill.exceptions.AcknowledgementTimeoutError"]);
        assert_eq!(
            encode_backoff(&backoff).as_str(),
            r#"["threadmill.retry.ExponentialBackoff", [], {"base_delay": 1.0, "max_delay": 300.0, "factor": 2.0, "max_retries": 5, "expected_exceptions": ["builtins.ValueError", "threadmill.exceptions.AcknowledgementTimeoutError"]}]"#
        );
    }
}
