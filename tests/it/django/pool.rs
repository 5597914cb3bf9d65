//! The pool of children by itself, without Redis: what each task ends with, whatever becomes of its child.

use super::options;
use crate::common::{Django, eventually_async, process};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use threadmill::backend::codec::queued;
use threadmill::backend::new_id;
use threadmill::task::{ExponentialBackoff, NewTask, RawJson, Retry, TaskRecord};
use threadmill::worker::python::{Ended, Job, Pool, PoolEvent, PythonEnd, PythonOptions, SiteSession};
use tokio::sync::mpsc::UnboundedReceiver;

/// Nobody serves it: no test here needs a server.
const NO_REDIS: &str = "redis://127.0.0.1:1/0";

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
            "kills_itself" | "exit_now" | "lost_for_good" | "waits_in_python" => Some(on_anything()),
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

/// A stored backoff for every error, three attempts.
fn on_anything() -> Retry {
    let backoff = ExponentialBackoff::new().base_delay(Duration::from_millis(1)).max_retries(9);
    let raw = threadmill::backend::codec::encode_backoff(&backoff);
    Retry::Backoff(backoff, raw)
}

fn retry_of(ended: &Ended) -> Option<Duration> {
    match &ended.end {
        PythonEnd::Failed { retry, .. } => *retry,
        PythonEnd::Returned(value) => panic!("it returned {value}"),
    }
}

/// The value, or the class and the last line of the error.
fn value_of(ended: &Ended) -> Result<Value, String> {
    match &ended.end {
        PythonEnd::Returned(value) => {
            Ok(serde_json::from_str(value.as_str()).unwrap_or_else(|_| json!(value.as_str())))
        }
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
}

#[tokio::test]
async fn whatever_a_task_does_is_its_own_failure() {
    let mut bench = Bench::new(|options| options.largest_value = 1000).await;
    for (func, args, expected) in [
        ("not_json", "[]", "builtins.TypeError | TypeError: Unsupported type: <class 'object'>"),
        ("hostile", "[]", "builtins.ValueError | ValueError: the return value holds an object whose key 'task'"),
        ("leaves", "[]", "builtins.SystemExit | SystemExit: 3"),
        ("odd", "[]", "tasks.Odd | tasks.Odd: <exception str() failed>"),
        ("nested", "[100000]", "builtins.RecursionError | RecursionError"),
        ("echo", "[\"", "json.decoder.JSONDecodeError"),
        ("echo", &format!("[{}]", "1".repeat(5000)), "builtins.ValueError | ValueError: Exceeds the limit"),
        (
            "echo",
            &format!("[\"{}\"]", "x".repeat(999)),
            "builtins.ValueError | ValueError: the return value takes 1001",
        ),
        ("QUICK", "[]", "builtins.TypeError | TypeError: 'tasks.QUICK' is not a task"),
        ("echo.func", "[1]", "builtins.ModuleNotFoundError"),
        ("", "[]", "builtins.ImportError"),
        ("add", "[1]", "builtins.TypeError | TypeError: add() missing 1 required positional argument"),
    ] {
        let error = bench.run(func, args).await.unwrap_err();
        assert!(error.starts_with(expected), "{func}: {error}");
    }
    assert_eq!(bench.run("add", "[1, 2]").await, Ok(json!(3)), "and the child goes on");
}

#[tokio::test]
async fn each_task_begins_with_the_site_s_own_context() {
    let mut bench = Bench::new(|_| ()).await;
    for _ in 0..3 {
        assert_eq!(bench.run("remembers", "[]").await, Ok(json!([0, "en-us", "UTC"])));
    }
}

#[tokio::test]
async fn one_event_loop_is_kept_and_nothing_left_in_it() {
    let mut bench = Bench::new(|_| ()).await;
    assert_eq!(bench.run("which_loop", "[]").await, Ok(json!([false, 0])));
    assert_eq!(bench.run("which_loop", "[]").await, Ok(json!([true, 0])));
}

#[tokio::test]
async fn a_child_that_dies_costs_what_it_was_running() {
    let mut bench = Bench::new(|_| ()).await;
    for (func, args, how) in [
        ("exit_now", "[3]", "ended with exit code 3"),
        ("exit_now", "[0]", "ended with exit code 0"),
        ("kills_itself", "[\"SIGKILL\"]", "was ended by SIGKILL"),
        ("kills_itself", "[\"SIGABRT\"]", "was ended by SIGABRT"),
        ("kills_itself", "[\"segfault\"]", "was ended by SIGSEGV"),
    ] {
        // All in one batch: what ended before is kept, what had not begun runs on.
        let mut batch = vec![("echo", "[1]"); 40];
        batch.push((func, args));
        batch.extend(vec![("echo", "[2]"); 40]);
        let tickets = bench.submit(&batch);
        let mut seen = Vec::new();
        for _ in 0..batch.len() {
            let ended = bench.ended().await;
            seen.push(ended.job.ticket);
            let index = tickets.iter().position(|ticket| *ticket == ended.job.ticket).unwrap();
            let value = value_of(&ended);
            match index {
                0..40 => assert_eq!(value, Ok(json!(1)), "{how}"),
                40 => {
                    let class = "threadmill.exceptions.AcknowledgementTimeoutError";
                    let text = format!("{class} | {class}: The process that ran this task {how}.");
                    assert_eq!(value, Err(text));
                    assert_eq!(retry_of(&ended), Some(Duration::from_millis(2)));
                }
                _ => assert_eq!(value, Ok(json!(2)), "{how}"),
            }
        }
        seen.sort_unstable();
        assert_eq!(seen, tickets, "each is answered once");
    }
}

#[tokio::test]
async fn with_more_threads_each_thread_s_task_is_charged_and_no_other() {
    let mut bench = Bench::new(|options| options.threads = 3).await;
    let mut tasks = vec![("hold", "[\"a\"]"), ("hold", "[\"b\"]"), ("exit_now", "[1]")];
    bench.submit(&tasks[..2]);
    eventually_async("two tasks run", async || bench.site.holds("a") && bench.site.holds("b")).await;
    tasks.extend(vec![("echo", "[1]"); 20]);
    bench.submit(&tasks[2..]);
    let mut failed = 0;
    for _ in 0..23 {
        let ended = bench.ended().await;
        match value_of(&ended) {
            Ok(value) => assert_eq!(value, json!(1)),
            Err(_) => failed += 1,
        }
    }
    assert_eq!(failed, 3);
}

#[tokio::test]
async fn a_task_that_kills_its_child_again_and_again_is_failed_for_good() {
    let mut bench = Bench::new(|options| options.max_crashes = 3).await;
    let mut job = bench.job("exit_now", "[1]");
    for crash in 1..=3 {
        bench.pool.submit(vec![job.clone()]);
        let ended = bench.ended().await;
        let PythonEnd::Failed { error, retry } = ended.end else { panic!() };
        assert_eq!(retry.is_none(), crash == 3, "{crash}");
        let mut record = TaskRecord::clone(&job.record);
        record.errors.push(error);
        record.worker_ids.push("w".into());
        job.record = Arc::new(record);
    }
}

#[tokio::test]
async fn a_site_s_own_policy_decides_on_a_crash() {
    let mut bench = Bench::new(|_| ()).await;
    let mut job = bench.job("exit_now", "[1]");
    let mut record = TaskRecord::clone(&job.record);
    record.spec.retry = Some(Retry::Callback("tasks.soon".into(), RawJson::new("\"tasks.soon\"")));
    job.record = Arc::new(record);
    bench.pool.submit(vec![job.clone()]);
    assert_eq!(retry_of(&bench.ended().await), Some(Duration::from_millis(20)));
    let error = threadmill::backend::codec::encode_error("builtins.ValueError", "ValueError\n");
    let verdict = bench.pool.decide(&job, chrono::Utc::now(), &error).await;
    assert_eq!(verdict, Some(Duration::from_millis(20)), "also for a lease that ran out");
}

#[tokio::test]
async fn a_child_that_cannot_answer_is_replaced_and_its_last_answer_kept() {
    let mut bench = Bench::new(|_| ()).await;
    assert_eq!(bench.run("closes_everything", "[]").await, Ok(json!("closed")));
    assert_eq!(bench.run("add", "[1, 2]").await, Ok(json!(3)));
}

#[tokio::test]
async fn the_soft_limit_raises_in_the_task() {
    let mut bench = Bench::new(|options| options.soft_limit = Some(Duration::from_millis(100))).await;
    let error = bench.run("waits_in_python", "[60]").await.unwrap_err();
    assert_eq!(error, "builtins.TimeoutError | TimeoutError: the task ran longer than its soft limit of 100ms");
    assert_eq!(bench.run("add", "[1, 2]").await, Ok(json!(3)));
}

#[tokio::test]
async fn the_hard_limit_kills_the_child_and_charges_that_task_only() {
    let limit = Duration::from_secs(3);
    let mut bench = Bench::new(|options| {
        options.hard_limit = Some(limit);
        options.threads = 2;
    })
    .await;
    let overruns = bench.submit(&[("hold", "[\"a\"]")]);
    eventually_async("it runs", async || bench.site.holds("a")).await;
    // Half of the limit later its neighbour begins, which is not done when the child is killed.
    tokio::time::sleep(limit / 2).await;
    let neighbour = bench.submit(&[("hold", "[\"b\"]")]);
    eventually_async("the neighbour runs", async || bench.site.holds("b")).await;
    let ended = bench.ended().await;
    assert_eq!(ended.job.ticket, overruns[0]);
    let error = value_of(&ended).unwrap_err();
    assert!(error.starts_with("builtins.TimeoutError | TimeoutError: the task ran longer than its hard"), "{error}");
    bench.site.release("b");
    let ended = bench.ended().await;
    assert_eq!((ended.job.ticket, value_of(&ended)), (neighbour[0], Ok(json!("b"))));
}

#[tokio::test]
async fn a_child_is_replaced_after_its_share() {
    let mut bench = Bench::new(|options| options.max_tasks = Some(10)).await;
    let mut processes = BTreeSet::new();
    for _ in 0..4 {
        bench.submit(&vec![("which_process", "[]"); 30]);
        for _ in 0..30 {
            let value = value_of(&bench.ended().await).unwrap();
            processes.insert(value[0].as_u64().unwrap() as u32);
        }
        let newest = processes.len();
        // The next child is ready before the last one goes.
        eventually_async("another process answers", async || {
            bench.submit(&[("which_process", "[]")]);
            let value = value_of(&bench.ended().await).unwrap();
            processes.insert(value[0].as_u64().unwrap() as u32);
            processes.len() > newest
        })
        .await;
    }
    bench.pool.stop();
    bench.pool.ended().await;
    processes.into_iter().for_each(process::wait_until_gone);
}

#[tokio::test]
async fn a_child_is_replaced_when_it_is_too_big() {
    let mut bench = Bench::new(|options| options.max_memory = Some(1)).await;
    let first = bench.run("which_process", "[]").await.unwrap();
    eventually_async("another process answers", async || bench.run("which_process", "[]").await.unwrap() != first)
        .await;
}

#[tokio::test]
async fn what_has_not_begun_comes_back_when_it_is_recalled() {
    let mut bench = Bench::new(|_| ()).await;
    // It is quick, and so gets many at a time.
    bench.submit(&vec![("echo", "[1]"); 500]);
    for _ in 0..500 {
        bench.ended().await;
    }
    let held = bench.submit(&[("hold", "[\"x\"]")]);
    eventually_async("it runs", async || bench.site.holds("x")).await;
    let waiting = bench.submit(&vec![("echo", "[1]"); 10]);
    bench.pool.recall();
    let mut back = Vec::new();
    for _ in &waiting {
        match bench.event().await {
            PoolEvent::Unstarted(job) => back.push(job.ticket),
            PoolEvent::Ended(ended) => panic!("{ended:?}"),
        }
    }
    back.sort_unstable();
    assert_eq!(back, waiting);
    bench.site.release("x");
    assert_eq!(bench.ended().await.job.ticket, held[0]);
}

#[tokio::test]
async fn what_runs_is_cut_off_by_its_policy() {
    let mut bench = Bench::new(|_| ()).await;
    let mut job = bench.job("hold", "[\"x\"]");
    let mut record = TaskRecord::clone(&job.record);
    record.spec.retry = Some(Retry::Callback("tasks.soon".into(), RawJson::new("\"tasks.soon\"")));
    job.record = Arc::new(record);
    bench.pool.submit(vec![job]);
    eventually_async("it runs", async || bench.site.holds("x")).await;
    let waiting = bench.submit(&[("echo", "[1]")]);
    let error = threadmill::backend::codec::encode_error("builtins.ValueError", "ValueError\n");
    bench.pool.cut_off(error);
    match bench.event().await {
        PoolEvent::Unstarted(job) => assert_eq!(job.ticket, waiting[0]),
        PoolEvent::Ended(ended) => panic!("{ended:?}"),
    }
    assert_eq!(retry_of(&bench.ended().await), Some(Duration::from_millis(20)));
    bench.pool.ended().await;
}

#[tokio::test]
async fn a_quick_task_s_answer_does_not_wait_for_a_slow_one() {
    let mut bench = Bench::new(|_| ()).await;
    bench.submit(&vec![("echo", "[1]"); 500]);
    for _ in 0..500 {
        bench.ended().await;
    }
    bench.submit(&[("echo", "[1]"), ("echo", "[2]"), ("hold", "[\"x\"]")]);
    assert_eq!(value_of(&bench.ended().await), Ok(json!(1)));
    assert_eq!(value_of(&bench.ended().await), Ok(json!(2)));
    bench.site.release("x");
    assert_eq!(value_of(&bench.ended().await), Ok(json!("x")));
}

#[tokio::test]
async fn what_cannot_be_loaded_is_told_with_python_s_traceback() {
    let fails = async |change: &dyn Fn(&Django, &mut PythonOptions)| {
        let site = Django::on(NO_REDIS);
        let mut options = options(&site);
        change(&site, &mut options);
        Pool::start(options).await.map(drop).unwrap_err().to_string()
    };
    let error = fails(&|site, _| std::fs::write(site.dir().join("settings.py"), "1 / 0\n").unwrap()).await;
    assert!(error.contains("settings.py\", line 1") && error.contains("ZeroDivisionError"), "{error}");
    let error = fails(&|_, options| options.settings = Some("nowhere.settings".into())).await;
    assert!(error.contains("No module named 'nowhere'"), "{error}");
    let error = fails(&|site, _| {
        let path = site.dir().join("settings.py");
        let text = std::fs::read_to_string(&path).unwrap().replace("RedisTaskBackend", "NoSuchBackend");
        std::fs::write(path, text).unwrap();
    })
    .await;
    assert!(error.contains("InvalidTaskBackend"), "{error}");
    let error =
        fails(&|site, _| std::fs::write(site.dir().join("settings.py"), "import os; os._exit(7)").unwrap()).await;
    assert!(error.contains("ended with exit code 7 before it had loaded the site"), "{error}");
    let error = fails(&|_, options| options.python = Some("/nowhere/python".into())).await;
    assert!(error.contains("there is no Python at /nowhere/python"), "{error}");
}

#[tokio::test]
async fn a_site_says_what_its_settings_and_its_decorators_say() {
    let site = Django::site().queue("more").option("lease_ttl", "datetime.timedelta(seconds=90)").on(NO_REDIS);
    let mut options = options(&site);
    options.settings = None;
    // The settings module is named by manage.py alone.
    let mut session = SiteSession::open(&options).await.unwrap();
    assert_eq!(session.hello.settings.as_deref(), Some("settings"));
    let alias = &session.hello.aliases["default"];
    assert_eq!(alias.redis_url.as_deref(), Some(NO_REDIS));
    assert_eq!(alias.queues.last().map(String::as_str), Some("more"));
    assert_eq!(alias.options["lease_ttl"], json!(90.0));
    let described = session.describe("tasks.flaky").await.unwrap();
    assert_eq!((described.queue.as_str(), described.priority, described.takes_context), ("default", 0, true));
    assert_eq!(described.retry[0], json!("threadmill.retry.ExponentialBackoff"));
    assert_eq!(session.describe("tasks.flaky_by_function").await.unwrap().retry, json!("tasks.soon"));
    let error = session.describe("tasks.nothing").await.unwrap_err().to_string();
    assert!(error.contains("has no attribute 'nothing'"), "{error}");
}
