//! What a handler may ask for beside its arguments.

use crate::native::TaskError;
use crate::task::{ErrorRecord, TaskId};
use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The circumstances of the attempt that runs. Cloning is cheap.
#[derive(Clone)]
pub struct TaskContext {
    inner: Arc<Circumstances>,
}

/// What a [`TaskContext`] tells; the worker fills it in.
pub(crate) struct Circumstances {
    pub id: TaskId,
    pub func: String,
    pub queue: String,
    pub attempt: u32,
    pub errors: Vec<ErrorRecord>,
    pub deadline: Option<Instant>,
    pub cancellation: CancellationToken,
    pub states: Arc<States>,
}

impl TaskContext {
    pub(crate) fn new(inner: Circumstances) -> Self {
        Self { inner: Arc::new(inner) }
    }

    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.inner.id
    }

    /// The dotted name that it was enqueued under.
    pub fn func(&self) -> &str {
        &self.inner.func
    }

    /// The queue that it came from.
    pub fn queue(&self) -> &str {
        &self.inner.queue
    }

    /// The number of this attempt; the first is 1.
    pub fn attempt(&self) -> u32 {
        self.inner.attempt
    }

    /// The errors of the attempts before, oldest first.
    pub fn errors(&self) -> &[ErrorRecord] {
        &self.inner.errors
    }

    /// When its time is over, where it has a limit.
    pub fn deadline(&self) -> Option<Instant> {
        self.inner.deadline
    }

    /// How much of its time is left, where it has a limit.
    pub fn time_left(&self) -> Option<Duration> {
        self.inner.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Cancelled when the attempt is to stop: its time is over, its lease is lost, or the worker must end.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.inner.cancellation
    }

    /// Whether the attempt is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.inner.cancellation.is_cancelled()
    }

    pub(crate) fn states(&self) -> &States {
        &self.inner.states
    }
}

/// A value that all tasks of a worker share, such as a connection pool: `State(pool): State<Pool>`.
///
/// The worker holds one value of each type, given by `Worker::state`; every attempt gets a clone.
#[derive(Clone, Copy, Debug)]
pub struct State<T>(pub T);

/// The shared values of a worker, one of each type.
#[derive(Default)]
pub struct States {
    values: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
}

impl States {
    /// Keeps a value, in place of an earlier one of the same type.
    pub fn insert<T: Send + Sync + 'static>(&mut self, value: T) {
        self.values.insert(TypeId::of::<T>(), Box::new(value));
    }

    fn get<T: Clone + 'static>(&self) -> Option<T> {
        self.values.get(&TypeId::of::<T>())?.downcast_ref::<T>().cloned()
    }
}

/// What a handler can take as a further argument.
pub trait Extract: Sized + Send + 'static {
    /// Takes it from the circumstances of an attempt.
    ///
    /// # Errors
    /// The attempt fails with this error.
    fn extract(context: &TaskContext) -> Result<Self, TaskError>;

    /// What would be missing whenever it is asked for, said before the worker starts.
    fn missing(_states: &States) -> Option<&'static str> {
        None
    }
}

impl Extract for TaskContext {
    fn extract(context: &TaskContext) -> Result<Self, TaskError> {
        Ok(context.clone())
    }
}

impl<T: Clone + Send + Sync + 'static> Extract for State<T> {
    fn extract(context: &TaskContext) -> Result<Self, TaskError> {
        let state = context.states().get::<T>().map(State);
        state.ok_or_else(|| TaskError::new(format!("the worker has no state of type {}", type_name::<T>())))
    }

    fn missing(states: &States) -> Option<&'static str> {
        states.get::<T>().is_none().then(type_name::<T>)
    }
}
