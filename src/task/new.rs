//! A task on its way in.

use crate::task::{Priority, RawJson, Retry, Stamp, TaskId, TaskSpec};
use chrono::{DateTime, Utc};

/// What is to be enqueued. The backend fills in the alias and the times.
#[derive(Clone, Debug, PartialEq)]
pub struct NewTask {
    /// Made with the task, so that a second try of the same enqueue is seen to be the same.
    pub id: TaskId,
    /// The dotted name of the function.
    pub func: String,
    /// The queue's name.
    pub queue: String,
    /// Higher goes first.
    pub priority: i32,
    /// Positional arguments, a JSON list.
    pub args: RawJson,
    /// Keyword arguments, a JSON object.
    pub kwargs: RawJson,
    /// Not before this moment; null for at once.
    pub run_after: Option<DateTime<Utc>>,
    /// Whether the function takes the context first.
    pub takes_context: bool,
    /// The stored retry policy.
    pub retry: Option<Retry>,
    /// A second task with the same key is not stored; the first one stands for it.
    pub idempotency: Option<String>,
    /// The enqueuer's trace context, W3C `traceparent`.
    pub trace: Option<String>,
}

impl NewTask {
    /// A task for `func` with no arguments, on the queue `default`, at priority 0.
    pub fn new(id: TaskId, func: impl Into<String>) -> Self {
        Self {
            id,
            func: func.into(),
            queue: "default".into(),
            priority: 0,
            args: RawJson::empty_list(),
            kwargs: RawJson::empty_object(),
            run_after: None,
            takes_context: false,
            retry: None,
            idempotency: None,
            trace: None,
        }
    }

    /// The definition as it will be stored on the backend `alias`.
    pub fn spec(&self, alias: &str) -> TaskSpec {
        TaskSpec {
            priority: Priority::new(self.priority),
            backend: alias.to_owned(),
            queue_name: self.queue.clone(),
            run_after: self.run_after.map(Stamp::new),
            takes_context: self.takes_context,
            func: self.func.clone(),
            retry: self.retry.clone(),
        }
    }
}
