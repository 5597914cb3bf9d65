//! The pool of children by itself, without Redis: what each task ends with, whatever becomes of its child.

use crate::common::{Django, process};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use threadmill::backend::codec::queued;
use threadmill::backend::new_id;
use threadmill::task::{NewTask, RawJson, Retry};
use threadmill::worker::python::{Ended, Job, Pool, PoolEvent, PythonEnd, PythonOptions};
use tokio::sync::mpsc::UnboundedReceiver;

/// Nobody serves it: no test here needs a server.
const NO_REDIS: &str = "redis://127.0.0.1:1/0";

pub fn options(site: &Django) -> PythonOptions {
    let mut options = PythonOptions::new(site.dir());
    options.python = Some(crate::common::python::python());
    options.settings = Some("settings".into());
    options.workers = 1;
    options
}

struct Bench {
    pool: Pool,
    events: UnboundedReceiver<Vec<PoolEvent>>,
    ready: Vec<PoolEvent>,
    next: u64,
    site: Django,
}

impl Bench {
    async fn new(change: impl FnOnce(&mut PythonOptions)) -> Self {
        let site = Django::on(NO_REDIS);
        let mut options = options(&site);
        change(&mut options);
        let (pool, hello, events) = Pool::start(options).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(hello.threadmill.as_deref(), Some("0.8.4"));
        Bench { pool, events, ready: Vec::new(), next: 0, site }
    }

    fn job(&mut self, func: &str, args: &str) -> Job {
        self.next += 1;
        let mut task = NewTask::new(new_id(), format!("tasks.{func}"));
        task.args = RawJson::new(args);
        task.takes_context = matches!(func, "who" | "flaky" | "flaky_by_function");
        task.retry = match func {
            "flaky_by_function" => Some(Retry::Callback("tasks.soon".into(), RawJson::new("\"tasks.soon\""))),
            _ => None,
        };
        let record = Arc::new(queued(&task, "default", chrono::Utc::now()));
        Job { ticket: self.next, record, worker: "w".into() }
    }

    /// Submits these, and returns their tickets.
    fn submit(&mut self, tasks: &[(&str, &str)]) -> Vec<u64> {
        let jobs: Vec<Job> = tasks.iter().map(|(func, args)| self.job(func, args)).collect();
        let tickets = jobs.iter().map(|job| job.ticket).collect();
        self.pool.submit(jobs);
        tickets
    }

    async fn event(&mut self) -> PoolEvent {
        loop {
            let next = if self.ready.is_empty() { None } else { Some(self.ready.remove(0)) };
            match next {
                Some(PoolEvent::Places) => {}
                Some(event) => return event,
                None => {
                    let events = tokio::time::timeout(Duration::from_secs(30), self.events.recv()).await;
                    self.ready = events.expect("the pool tells in time").expect("the pool lives");
                }
            }
        }
    }

    async fn ended(&mut self) -> Ended {
        match self.event().await {
            PoolEvent::Ended(ended) => ended,
            other => panic!("{other:?}"),
        }
    }

    /// Runs one task to its end.
    async fn run(&mut self, func: &str, args: &str) -> Result<Value, String> {
        let ticket = self.submit(&[(func, args)])[0];
        let ended = self.ended().await;
        assert_eq!(ended.job.ticket, ticket);
        value_of(&ended)
    }
}

/// The value, or the class and the last line of the error.
fn value_of(ended: &Ended) -> Result<Value, String> {
    match &ended.end {
        PythonEnd::Returned(value) => Ok(serde_json::from_str(value.as_str()).unwrap_or_else(|_| json!(value.as_str()))),
        PythonEnd::Failed { error, .. } => Err(format!("{} | {}", error.class_path, error.summary())),
    }
}

#[tokio::test]
async fn tasks_return_and_fail() {
    let mut bench = Bench::new(|_| ()).await;
    assert_eq!(bench.run("add", "[1, 2]").await, Ok(json!(3)));
    assert_eq!(bench.run("later", "[\"ö\"]").await, Ok(json!("ö")));
    let error = bench.run("boom", "[\"why\"]").await.unwrap_err();
    assert_eq!(error, "builtins.RuntimeError | RuntimeError: why");
    let error = bench.run("no_such", "[]").await.unwrap_err();
    assert!(error.starts_with("builtins.ImportError"), "{error}");
    let many: Vec<_> = (0..2000).map(|_| ("echo", "[1]")).collect();
    bench.submit(&many);
    for _ in 0..2000 {
        assert_eq!(value_of(&bench.ended().await), Ok(json!(1)));
    }
    let _ = process::is_alive(1);
    let _ = &bench.site;
}
