//! Whether a failed attempt is followed by another.

use crate::native::registry::Entry;
use crate::native::{TaskError, error::Wish};
use crate::task::{TaskRecord, Verdict};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// A retry policy of this program, never stored: the delay before the next attempt, or `None` for none.
pub type RetryPolicy = Arc<dyn Fn(&Failure<'_>) -> Option<Duration> + Send + Sync>;

/// A failed attempt, as a retry policy sees it.
#[derive(Debug)]
pub struct Failure<'a> {
    /// The record as it was stored before the attempt.
    pub record: &'a TaskRecord,
    /// The number of the failed attempt; the first is 1.
    pub attempt: u32,
    /// The Python class of the error.
    pub class: &'a str,
    /// The error's message.
    pub message: &'a str,
    /// The error, where it happened in this program; a lost lease has none.
    pub error: Option<&'a TaskError>,
}

impl Failure<'_> {
    /// Whether the error was made from an `E`.
    pub fn is<E: Error + 'static>(&self) -> bool {
        self.error.is_some_and(|error| error.downcast_ref::<E>().is_some())
    }
}

/// What follows a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Another attempt after this long.
    Retry(Duration),
    /// The same attempt again after this long.
    Snooze(Duration),
    /// Nothing.
    Fail,
    /// Only Python can evaluate the stored policy, so nothing; this is its name.
    Unknown(String),
}

/// Decides by, in this order: the error's own wish, the program's policy, the stored policy, and where none is stored
/// the one that the task was defined with.
pub fn decide(entry: Option<&Entry>, failure: &Failure<'_>) -> Decision {
    match failure.error.map_or(Wish::Policy, TaskError::wish) {
        Wish::RetryIn(delay) => return Decision::Retry(delay),
        Wish::Snooze(delay) => return Decision::Snooze(delay),
        Wish::Never => return Decision::Fail,
        Wish::Policy => {}
    }
    if let Some(policy) = entry.and_then(|entry| entry.policy.as_ref()) {
        // A policy that panics grants nothing: the failure that it was asked about is what counts.
        let granted = crate::native::panics::guarded(|| policy(failure)).unwrap_or_default();
        return granted.map_or(Decision::Fail, Decision::Retry);
    }
    let defined = entry.and_then(|entry| entry.backoff.as_ref());
    let verdict = match (&failure.record.spec.retry, defined) {
        (Some(stored), _) => stored.verdict(failure.attempt, failure.class),
        (None, Some(backoff)) => backoff.verdict(failure.attempt, failure.class),
        (None, None) => Verdict::Fail,
    };
    match verdict {
        Verdict::RetryIn(delay) => Decision::Retry(delay),
        Verdict::Fail => Decision::Fail,
        Verdict::Unknown => {
            let name = failure.record.spec.retry.as_ref().map_or("", |retry| retry.raw().as_str());
            Decision::Unknown(name.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::{encode_backoff, queued};
    use crate::native::{Backoff, Registry, Task};
    use crate::task::{NewTask, RawJson, Retry, TaskId};
    use chrono::DateTime;

    const SECOND: Duration = Duration::from_secs(1);

    fn decision(task: Task<(), ()>, stored: Option<Retry>, error: &TaskError) -> Decision {
        let mut registry = Registry::new();
        registry.task(task, || async { Ok::<(), TaskError>(()) });
        let mut new = NewTask::new(TaskId::from("id"), task.name());
        new.retry = stored;
        let record = queued(&new, "default", DateTime::UNIX_EPOCH);
        let (class, message) = (error.class_path(), error.message());
        let failure = Failure { record: &record, attempt: 1, class, message, error: Some(error) };
        decide(registry.get(task.name()).map(|entry| &**entry), &failure)
    }

    #[test]
    fn wish_then_own_policy_then_stored_then_defined() {
        const PLAIN: Task<(), ()> = Task::new("f");
        const DEFINED: Task<(), ()> = PLAIN.retry(Backoff::new().base_delay(Duration::from_secs(5)));
        const OWN: Task<(), ()> = DEFINED.retry_by(|failure| failure.is::<std::fmt::Error>().then_some(SECOND));
        let error = || TaskError::from(std::fmt::Error);
        let stored = || {
            let backoff = Backoff::new().policy();
            Some(Retry::Backoff(backoff.clone(), encode_backoff(&backoff)))
        };
        let python = || Some(Retry::Callback("shop.retry".into(), RawJson::new("\"shop.retry\"")));
        assert_eq!(decision(PLAIN, None, &error()), Decision::Fail);
        assert_eq!(decision(DEFINED, None, &error()), Decision::Retry(10 * SECOND));
        assert_eq!(decision(DEFINED, stored(), &error()), Decision::Retry(2 * SECOND));
        assert_eq!(decision(OWN, stored(), &error()), Decision::Retry(SECOND));
        assert_eq!(decision(OWN, stored(), &TaskError::new("other")), Decision::Fail);
        assert_eq!(decision(DEFINED, python(), &error()), Decision::Unknown("\"shop.retry\"".into()));
        assert_eq!(decision(DEFINED, None, &error().never_retry()), Decision::Fail);
        assert_eq!(decision(PLAIN, python(), &error().retry_in(SECOND)), Decision::Retry(SECOND));
        assert_eq!(decision(PLAIN, None, &TaskError::snooze(SECOND)), Decision::Snooze(SECOND));
    }
}
