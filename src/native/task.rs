//! A task as one value: its name, where and how it runs, what it takes and returns.

use crate::backend::codec::encode_backoff;
use crate::backend::{BackendError, new_id};
use crate::native::arguments::{self, ArgumentError};
use crate::native::policy::{Failure, RetryPolicy};
use crate::task::{ExponentialBackoff, NewTask, Retry};
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// A task that takes `A` and returns `O`. It can be a constant.
///
/// The fields of a struct are passed as keyword arguments and the elements of a tuple as positional ones, as Python
/// passes them; `()` takes nothing.
///
/// ```
/// use threadmill::native::{Backoff, Task};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct Resize {
///     image: String,
///     width: u32,
/// }
/// const RESIZE: Task<Resize, String> = Task::new("shop.tasks.resize").queue("media").priority(5).retry(Backoff::new());
/// ```
pub struct Task<A, O> {
    name: &'static str,
    queue: &'static str,
    priority: i32,
    backoff: Option<Backoff>,
    policy: Option<fn(&Failure<'_>) -> Option<Duration>>,
    time_limit: Option<Duration>,
    types: PhantomData<fn(A) -> O>,
}

impl<A, O> Clone for Task<A, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A, O> Copy for Task<A, O> {}

impl<A, O> Task<A, O> {
    /// A task with this dotted name, on the queue `default`, at priority 0, without retries.
    pub const fn new(name: &'static str) -> Self {
        Self { name, queue: "default", priority: 0, backoff: None, policy: None, time_limit: None, types: PhantomData }
    }

    /// Sets the queue that it is enqueued on.
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// Sets the priority; higher goes first.
    pub const fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Retries by this policy, which is stored with each task so that workers of the Python package evaluate it too.
    pub const fn retry(mut self, backoff: Backoff) -> Self {
        self.backoff = Some(backoff);
        self
    }

    /// Retries after as long as this function says, or not at all. It lives in this program and is never stored; it goes
    /// before a stored policy.
    pub const fn retry_by(mut self, policy: fn(&Failure<'_>) -> Option<Duration>) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Asks the task to stop after this long (its context is cancelled then), and ends it a little later.
    pub const fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }

    /// Its dotted name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The queue that it is enqueued on.
    pub const fn queue_name(&self) -> &'static str {
        self.queue
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.time_limit
    }

    pub(crate) fn stored_policy(&self) -> Option<Backoff> {
        self.backoff
    }

    pub(crate) fn own_policy(&self) -> Option<RetryPolicy> {
        self.policy.map(|policy| Arc::new(policy) as RetryPolicy)
    }
}

impl<A: Serialize, O> Task<A, O> {
    /// A call of this task with these arguments, to be enqueued.
    pub fn with(&self, arguments: A) -> Call<O> {
        let mut task = NewTask::new(new_id(), self.name);
        task.queue = self.queue.to_owned();
        task.priority = self.priority;
        task.retry = self.backoff.map(|backoff| backoff.stored());
        let error = arguments::split(&arguments).map(|(args, kwargs)| (task.args, task.kwargs) = (args, kwargs)).err();
        Call { task, error, output: PhantomData }
    }
}

/// One call of a task, ready to be enqueued. `O` is what it returns.
pub struct Call<O> {
    pub(crate) task: NewTask,
    pub(crate) error: Option<ArgumentError>,
    output: PhantomData<fn() -> O>,
}

impl<O> Call<O> {
    /// Runs it not before this moment.
    pub fn run_after(mut self, at: DateTime<Utc>) -> Self {
        self.task.run_after = Some(at);
        self
    }

    /// Runs it not before this long from now.
    pub fn run_in(self, delay: Duration) -> Self {
        let at = chrono::TimeDelta::from_std(delay).ok().and_then(|delay| Utc::now().checked_add_signed(delay));
        // A delay beyond the calendar is as good as its end.
        self.run_after(at.unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// Puts it on another queue than its task says.
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.task.queue = queue.into();
        self
    }

    /// Gives it another priority than its task says.
    pub fn priority(mut self, priority: i32) -> Self {
        self.task.priority = priority;
        self
    }

    /// Stores it only once under this key: a later call with the same key stands for the first.
    pub fn idempotency_key(mut self, key: impl Into<String>) -> Self {
        self.task.idempotency = Some(key.into());
        self
    }
}

impl<O> Call<O> {
    /// The task to be enqueued, without its type: calls of different tasks travel together then.
    ///
    /// # Errors
    /// [`BackendError::Invalid`] where the arguments have no JSON.
    pub fn into_new_task(self) -> Result<NewTask, BackendError> {
        match self.error {
            None => Ok(self.task),
            Some(error) => Err(BackendError::Invalid(format!("the arguments of {}: {error}", self.task.func))),
        }
    }
}

/// Delays retries exponentially: after attempt `n` for `min(base_delay * factor ^ n, max_delay)`, while fewer than
/// `max_retries` attempts have been made. So 5 `max_retries` are five attempts in all, and the first retry waits
/// `base_delay * factor`. It is stored with the task, as the Python package's `ExponentialBackoff`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    base_delay: Duration,
    max_delay: Duration,
    factor: f64,
    max_retries: u32,
    expected: &'static [&'static str],
}

impl Backoff {
    /// The defaults: base 1 s, factor 2, at most an hour, five attempts, every exception.
    pub const fn new() -> Self {
        Self {
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(3600),
            factor: 2.0,
            max_retries: 5,
            expected: &["builtins.Exception"],
        }
    }

    /// Sets the delay that the others grow from.
    pub const fn base_delay(mut self, delay: Duration) -> Self {
        self.base_delay = delay;
        self
    }

    /// Bounds the delay.
    pub const fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets what each attempt multiplies the delay by.
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets how many attempts are made at most.
    pub const fn max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// Retries only these Python classes, which a task's error declares, and what derives from them.
    pub const fn expected(mut self, classes: &'static [&'static str]) -> Self {
        self.expected = classes;
        self
    }

    /// The policy as a value of the record.
    pub fn policy(&self) -> ExponentialBackoff {
        ExponentialBackoff::new()
            .base_delay(self.base_delay)
            .max_delay(self.max_delay)
            .factor(self.factor)
            .max_retries(self.max_retries)
            .expected_exceptions(self.expected.iter().copied())
    }

    fn stored(&self) -> Retry {
        let policy = self.policy();
        let raw = encode_backoff(&policy);
        Retry::Backoff(policy, raw)
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}
