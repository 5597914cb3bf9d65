//! The record of a task: what the JSON beside its id says.

use crate::task::{ErrorRecord, RawJson, Retry, Stamp, Status, TaskId};

/// A priority as it is stored. Python lets `true` and `1.0` pass as numbers, so the text is kept beside the value.
#[derive(Clone, Debug, PartialEq)]
pub struct Priority {
    /// What it counts as; higher goes first.
    pub value: f64,
    /// The stored text.
    pub raw: RawJson,
}

impl Priority {
    /// An ordinary whole priority.
    pub fn new(value: i32) -> Self {
        Self { value: f64::from(value), raw: RawJson::new(value.to_string()) }
    }
}

/// The definition half of a record: which function, where and how.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Higher goes first.
    pub priority: Priority,
    /// The alias of the backend that it was enqueued on.
    pub backend: String,
    /// The queue's name, free text.
    pub queue_name: String,
    /// Not before this moment.
    pub run_after: Option<Stamp>,
    /// Whether the function takes the context as its first argument.
    pub takes_context: bool,
    /// The dotted name of the function.
    pub func: String,
    /// The stored retry policy.
    pub retry: Option<Retry>,
}

/// A task as its stored JSON describes it.
///
/// User data (`args`, `kwargs`, `return_value`, the errors) is carried as raw text.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskRecord {
    /// Function, queue, priority and the rest of the definition.
    pub spec: TaskSpec,
    /// The task's id.
    pub id: TaskId,
    /// As stored: READY while the task waits and also while it is leased.
    pub status: Status,
    /// When it was enqueued.
    pub enqueued_at: Option<Stamp>,
    /// When the finished attempt began; null while a task waits.
    pub started_at: Option<Stamp>,
    /// When it finished.
    pub finished_at: Option<Stamp>,
    /// When the last finished attempt began.
    pub last_attempted_at: Option<Stamp>,
    /// Positional arguments, a JSON list.
    pub args: RawJson,
    /// Keyword arguments, a JSON object.
    pub kwargs: RawJson,
    /// The alias of the backend, a second time.
    pub backend: String,
    /// One for each failed attempt, oldest first.
    pub errors: Vec<ErrorRecord>,
    /// One for each attempt, oldest first. The attempt number is its length.
    pub worker_ids: Vec<String>,
    /// The return value, `null` unless SUCCESSFUL.
    pub return_value: RawJson,
}

impl TaskRecord {
    /// How many attempts the record knows of. A running one is not among them.
    pub fn attempts(&self) -> u32 {
        u32::try_from(self.worker_ids.len()).unwrap_or(u32::MAX)
    }
}

/// Who holds a task, since when.
#[derive(Clone, Debug, PartialEq)]
pub struct Lease {
    /// The worker's id.
    pub worker: String,
    /// When the lease began.
    pub started_at: Option<Stamp>,
    /// What the holder must show to end or move the task.
    pub token: String,
    /// The place of this lease among those of its worker, where the worker is one of ours.
    pub sequence: Option<u64>,
}
