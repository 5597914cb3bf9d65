//! The tasks that a program can run, by their dotted names.

use crate::backend::codec::looks_like_a_task;
use crate::native::json::to_python;
use crate::native::panics::{Guarded, guarded, install_hook};
use crate::native::{BlockingHandler, Failure, Handler, RetryPolicy, States, Task, TaskContext, TaskError};
use crate::task::{ExponentialBackoff, RawJson};
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What an attempt starts with.
#[derive(Clone)]
pub struct Input {
    /// Positional arguments, a JSON list.
    pub args: RawJson,
    /// Keyword arguments, a JSON object.
    pub kwargs: RawJson,
    /// The circumstances.
    pub context: TaskContext,
}

/// How an attempt ended: with the JSON of its value, or with its failure.
pub type Ended = Result<RawJson, TaskError>;

/// How a task is run.
#[derive(Clone)]
pub enum Kind {
    /// On the runtime.
    Async(Arc<dyn Fn(Input) -> BoxFuture<'static, Ended> + Send + Sync>),
    /// On a thread of its own.
    Blocking(Arc<dyn Fn(Input) -> Ended + Send + Sync>),
}

/// One registered task.
pub struct Entry {
    /// Its dotted name.
    pub name: String,
    /// How it is run.
    pub kind: Kind,
    /// The policy that it was defined with; one that is stored with a task goes before it.
    pub backoff: Option<ExponentialBackoff>,
    /// The policy of this program; it goes before any other.
    pub policy: Option<RetryPolicy>,
    /// How long an attempt may take.
    pub time_limit: Option<Duration>,
    missing: fn(&States) -> Option<&'static str>,
}

/// The tasks that a program can run.
#[derive(Default)]
pub struct Registry {
    entries: HashMap<String, Arc<Entry>>,
}

impl Registry {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Registers an async function, in place of an earlier handler of the same name.
    pub fn task<A, O, M, H>(&mut self, task: Task<A, O>, handler: H)
    where
        O: Serialize,
        H: Handler<A, O, M>,
        A: 'static,
        O: 'static,
        M: 'static,
    {
        let run = move |input: Input| {
            // The function's own first lines run here, so they are guarded as well.
            match guarded(|| handler.call(input)) {
                Ok(future) => async move { Guarded(Box::pin(future)).await.and_then(value_of) }.boxed(),
                Err(error) => std::future::ready(Err(error)).boxed(),
            }
        };
        self.insert(task, Kind::Async(Arc::new(run)), H::missing);
    }

    /// Registers a blocking function, in place of an earlier handler of the same name.
    pub fn blocking_task<A, O, M, H>(&mut self, task: Task<A, O>, handler: H)
    where
        O: Serialize,
        H: BlockingHandler<A, O, M>,
    {
        let run = move |input: Input| guarded(|| handler.call(input)).and_then(|ended| ended).and_then(value_of);
        self.insert(task, Kind::Blocking(Arc::new(run)), H::missing);
    }

    /// Gives a registered task a retry policy of this program, which is never stored and goes before a stored one.
    /// Answers whether there is such a task.
    pub fn retry_by(
        &mut self,
        name: &str,
        policy: impl Fn(&Failure<'_>) -> Option<Duration> + Send + Sync + 'static,
    ) -> bool {
        // Entries are shared only once the worker has started, and then the registry is not changed any more.
        let Some(entry) = self.entries.get_mut(name).and_then(Arc::get_mut) else { return false };
        entry.policy = Some(Arc::new(policy));
        true
    }

    /// The task of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Entry>> {
        self.entries.get(name)
    }

    /// The names of all tasks, sorted.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.entries.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The first task, by name, whose handler asks for a state that there is not, and the type that it asks for.
    pub fn missing_state(&self, states: &States) -> Option<(String, &'static str)> {
        self.names().into_iter().find_map(|name| {
            let missing = (self.entries.get(name)?.missing)(states)?;
            Some((name.to_owned(), missing))
        })
    }

    fn insert<A, O>(&mut self, task: Task<A, O>, kind: Kind, missing: fn(&States) -> Option<&'static str>) {
        install_hook();
        let entry = Entry {
            name: task.name().to_owned(),
            kind,
            backoff: task.stored_policy().map(|backoff| backoff.policy()),
            policy: task.own_policy(),
            time_limit: task.limit(),
            missing,
        };
        self.entries.insert(entry.name.clone(), Arc::new(entry));
    }
}

/// The JSON of a returned value; refused where the Python package would act on it.
fn value_of<O: Serialize>(value: O) -> Ended {
    let text = to_python(&value).map_err(|e| TaskError::from(e).class("builtins.TypeError"))?;
    if looks_like_a_task(&text).unwrap_or(true) {
        return Err(TaskError::new(
            "the returned value holds an object with a key `task` whose value has a key `func`; the Python package would \
             act on it. Rename one of the keys",
        )
        .class("builtins.ValueError"));
    }
    Ok(RawJson::new(text))
}
