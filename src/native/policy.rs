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
