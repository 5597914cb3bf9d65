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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::{Circumstances, State};
    use crate::task::TaskId;
    use serde::Deserialize;
    use std::convert::Infallible;
    use tokio_util::sync::CancellationToken;

    #[derive(Serialize, Deserialize)]
    struct Resize {
        image: String,
        width: u32,
    }

    const RESIZE: Task<Resize, String> = Task::new("resize");
    const ADD: Task<(i64, i64), i64> = Task::new("add");
    const TICK: Task<(), u32> = Task::new("tick");
    const SHOUT: Task<String, String> = Task::new("shout");
    const TRAP: Task<(), serde_json::Value> = Task::new("trap");
    const BREAK: Task<(bool,), ()> = Task::new("break");

    fn input(args: &str, kwargs: &str, states: States) -> Input {
        let context = TaskContext::new(Circumstances {
            id: TaskId::from("id"),
            func: "f".into(),
            queue: "default".into(),
            attempt: 2,
            errors: Vec::new(),
            deadline: None,
            cancellation: CancellationToken::new(),
            states: Arc::new(states),
        });
        Input { args: RawJson::new(args), kwargs: RawJson::new(kwargs), context }
    }

    fn states() -> States {
        let mut states = States::default();
        states.insert(7_u8);
        states
    }

    async fn run(registry: &Registry, name: &str, args: &str, kwargs: &str) -> Result<String, TaskError> {
        let input = input(args, kwargs, states());
        let ended = match &registry.get(name).unwrap().kind {
            Kind::Async(handler) => handler(input).await,
            Kind::Blocking(handler) => handler(input),
        };
        ended.map(|value| value.to_string())
    }

    fn registry() -> Registry {
        let mut registry = Registry::new();
        registry.task(RESIZE, |resize: Resize, State(seven): State<u8>| async move {
            Ok::<_, Infallible>(format!("{} {} ä{seven}", resize.image, resize.width))
        });
        registry.blocking_task(ADD, |(a, b): (i64, i64)| a.checked_add(b).ok_or(std::fmt::Error));
        registry.task(TICK, |context: TaskContext| async move { Ok::<_, TaskError>(context.attempt()) });
        registry.blocking_task(SHOUT, |text: String, _: TaskContext, State(_): State<u8>| {
            Ok::<_, TaskError>(text.to_uppercase())
        });
        registry.task(TRAP, || async { Ok::<_, TaskError>(serde_json::json!([{"task": {"func": "os.system"}}])) });
        registry.task(BREAK, |(late,): (bool,)| {
            assert!(late, "early {late}");
            async {
                tokio::task::yield_now().await;
                if true {
                    panic!("late");
                }
                Ok::<_, TaskError>(())
            }
        });
        registry
    }

    #[tokio::test]
    async fn functions_of_all_shapes_take_what_they_ask_for() {
        let registry = registry();
        assert_eq!(run(&registry, "resize", "[]", r#"{"image": "a", "width": 3}"#).await.unwrap(), r#""a 3 \u00e47""#);
        assert_eq!(run(&registry, "add", "[1, 2]", "{}").await.unwrap(), "3");
        assert_eq!(run(&registry, "tick", "[]", "{}").await.unwrap(), "2");
        assert_eq!(run(&registry, "shout", r#"["hej"]"#, "{}").await.unwrap(), r#""HEJ""#);
    }

    #[tokio::test]
    async fn what_does_not_fit_fails_as_a_type_error_and_names_the_argument() {
        let error = run(&registry(), "resize", "[]", r#"{"image": 4, "width": 3}"#).await.unwrap_err();
        assert_eq!(error.class_path(), "builtins.TypeError");
        assert!(error.message().contains("`image`"), "{error}");
        assert!(run(&registry(), "tick", "[1]", "{}").await.is_err());
        let error = run(&registry(), "add", "[9223372036854775807, 1]", "{}").await.unwrap_err();
        assert!(error.downcast_ref::<std::fmt::Error>().is_some());
    }

    #[tokio::test]
    async fn a_panic_is_a_failure_with_its_message_and_place() {
        for (args, message) in [("[false]", "early false"), ("[true]", "late")] {
            let error = run(&registry(), "break", args, "{}").await.unwrap_err();
            assert!(error.message().starts_with("panicked at src/native/registry.rs:"), "{error}");
            assert!(error.message().ends_with(message), "{error}");
            assert!(error.traceback("break").starts_with("panic\nTraceback"), "{}", error.traceback("break"));
        }
    }

    #[tokio::test]
    async fn a_value_that_python_would_act_on_is_refused() {
        let error = run(&registry(), "trap", "[]", "{}").await.unwrap_err();
        assert!(error.message().contains("`func`"), "{error}");
    }

    #[test]
    fn a_missing_state_is_named_before_anything_runs() {
        let missing = registry().missing_state(&States::default());
        assert_eq!(missing, Some(("resize".to_owned(), "u8")));
        assert_eq!(registry().missing_state(&states()), None);
    }
}
