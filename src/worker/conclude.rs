//! From the end of an attempt to what Redis is told of it.

use crate::backend::Outcome;
use crate::backend::codec::{Attempt, encode, failure, next_attempt, success};
use crate::native::{Decision, Ended, Entry, Failure, TaskError, decide};
use crate::task::{LEASE_LOST_CLASS, LEASE_LOST_TEXT, TaskRecord};
use crate::worker::lease::End;

/// The end of an attempt, by its task's retry policy. A result of more than `limit` bytes is a failure.
pub(crate) fn conclude(
    record: &TaskRecord,
    attempt: &Attempt,
    entry: Option<&Entry>,
    ended: Ended,
    limit: usize,
) -> End {
    let error = match ended {
        Ok(value) => {
            let text = encode(&success(record, attempt, value));
            if text.len() <= limit {
                tracing::debug!(task_id = %record.id, queue = record.spec.queue_name, func = record.spec.func, "done");
                return End::Result(Outcome::Successful, text);
            }
            let message = format!("the result has {} bytes and the limit is {limit}", text.len());
            TaskError::new(message).class("builtins.ValueError").never_retry()
        }
        Err(error) => error,
    };
    failed(record, attempt, entry, &error)
}

/// The end of an attempt whose lease was lost, or that was cut off.
pub(crate) fn lease_lost(record: &TaskRecord, attempt: &Attempt, entry: Option<&Entry>) -> End {
    failed(record, attempt, entry, &lease_lost_error())
}

/// What a lost lease leaves, as the Python package words it.
pub(crate) fn lease_lost_error() -> TaskError {
    TaskError::new(LEASE_LOST_TEXT).kind("threadmill lease").class(LEASE_LOST_CLASS).at(None, None)
}

fn failed(record: &TaskRecord, attempt: &Attempt, entry: Option<&Entry>, error: &TaskError) -> End {
    let number = record.attempts() + 1;
    let spec = &record.spec;
    let question =
        Failure { record, attempt: number, class: error.class_path(), message: error.message(), error: Some(error) };
    let decision = decide(entry, &question);
    let stored = error.record(&spec.func);
    let line = stored.summary();
    match decision {
        Decision::Snooze(delay) => {
            tracing::info!(task_id = %record.id, queue = spec.queue_name, func = spec.func, ?delay, "put off");
            return End::Again { record: Box::new(record.clone()), delay };
        }
        Decision::Retry(delay) => {
            tracing::info!(
                task_id = %record.id, queue = spec.queue_name, func = spec.func, attempt = number, ?delay, error = line,
                "failed; another attempt follows"
            );
            return End::Again { record: Box::new(next_attempt(record, attempt, stored)), delay };
        }
        Decision::Unknown(policy) => tracing::warn!(
            task_id = %record.id, queue = spec.queue_name, func = spec.func, policy,
            "only Python can evaluate the retry policy, so there is no further attempt"
        ),
        Decision::Fail => {}
    }
    tracing::warn!(
        task_id = %record.id, queue = spec.queue_name, func = spec.func, attempt = number, error = line, "failed"
    );
    End::Result(Outcome::Failed, encode(&failure(record, attempt, stored)))
}
