//! Tasks in Redis as the Python package 0.8.4 stores them, in every state.

use crate::common::TestRedis;

/// The id that the help's examples name.
pub const ID: &str = "01a22df8-34ed-7724-a9cf-37fad320e7d4";
/// When the tasks were enqueued: 2026-11-30T19:39:30.881Z.
const THEN: u64 = 1_796_067_570_881;

/// A task to be put into Redis.
#[derive(Clone)]
pub struct Task {
    id: String,
    queue: String,
    segment: &'static str,
    func: String,
    args: String,
    traceback: String,
    worker: String,
    stored: Option<String>,
}

impl Task {
    /// A task in this segment: ready, deferred, running, successful, failed.
    pub fn new(id: &str, queue: &str, segment: &'static str) -> Self {
        Self {
            id: id.into(),
            queue: queue.into(),
            segment,
            func: "shop.tasks.add".into(),
            args: "[1, 2]".into(),
            traceback: "Traceback (most recent call last):\n  File \"tasks.py\", line 5, in add\nValueError: no luck\n"
                .into(),
            worker: "web1.example:4242-fetch".into(),
            stored: None,
        }
    }

    pub fn func(mut self, func: &str) -> Self {
        self.func = func.into();
        self
    }

    /// The arguments, as stored JSON.
    pub fn args(mut self, args: &str) -> Self {
        self.args = args.into();
        self
    }

    pub fn traceback(mut self, traceback: &str) -> Self {
        self.traceback = traceback.into();
        self
    }

    pub fn worker(mut self, worker: &str) -> Self {
        self.worker = worker.into();
        self
    }

    /// Stores this instead of a record.
    pub fn stored(mut self, stored: &str) -> Self {
        self.stored = Some(stored.into());
        self
    }

    /// Puts it into Redis.
    pub fn put(&self, server: &TestRedis) {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let (status, errors, value, finished) = match self.segment {
            "failed" => (
                "FAILED",
                format!(r#"{{"exception_class_path": "builtins.ValueError", "traceback": {}}}"#, text(&self.traceback)),
                "null",
                true,
            ),
            "successful" => ("SUCCESSFUL", String::new(), "3", true),
            _ => ("READY", String::new(), "null", false),
        };
        let at = |finished| if finished { r#""2026-11-30T19:39:31.000Z""# } else { "null" };
        let workers = if finished { text(&self.worker) } else { String::new() };
        let record = format!(
            concat!(
                r#"{{"task": {{"priority": 0, "backend": "default", "queue_name": {queue}, "run_after": null, "#,
                r#""takes_context": false, "func": {func}, "retry": null}}, "id": {id}, "status": "{status}", "#,
                r#""enqueued_at": "2026-11-30T19:39:30.881Z", "started_at": {at}, "finished_at": {at}, "#,
                r#""last_attempted_at": {at}, "args": {args}, "kwargs": {{}}, "backend": "default", "#,
                r#""errors": [{errors}], "worker_ids": [{workers}], "_return_value": {value}}}"#
            ),
            queue = text(&self.queue),
            func = text(&self.func),
            id = text(&self.id),
            status = status,
            at = at(finished),
            args = self.args,
            errors = errors,
            workers = workers,
            value = value,
        );
        self.store(server, self.stored.as_deref().unwrap_or(&record), finished);
    }

    fn store(&self, server: &TestRedis, record: &str, finished: bool) {
        let set = format!("threadmill:{{default}}:{}:{}", self.queue, self.segment);
        let score = match self.segment {
            // Ten years on, so that nothing moves it.
            "deferred" | "running" => THEN + 315_360_000_000,
            _ => THEN,
        };
        server.cli::<()>(&["ZADD", &set, &score.to_string(), &self.id]);
        if finished {
            server.cli::<()>(&["SET", &format!("threadmill:{{default}}:result:{}", self.id), record, "EX", "86400"]);
            return;
        }
        let key = format!("threadmill:{{default}}:task:{}", self.id);
        server.cli::<()>(&["HSET", &key, "data", record, "score", &THEN.to_string()]);
        if self.segment == "running" {
            let lease = ["lease_worker", &self.worker, "lease_started_at", "2026-11-30T19:39:30.915247+00:00"];
            server.cli::<()>(&[&["HSET", &key], &lease[..], &["lease_token", "t0ken"]].concat());
        }
    }
}

/// An id that ends with this number.
pub fn id(number: usize) -> String {
    format!("01a22df8-34ed-7724-a9cf-{number:012x}")
}
