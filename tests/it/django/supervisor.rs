//! The worker as a process: signals, its own death, its log.

use super::{Ours, backend, options};
use crate::common::{Django, Running, TestRedis, eventually, eventually_async, process};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use threadmill::worker::{Worker, WorkerOptions};

/// Set in a process of this program that is to be a worker.
const SITE: &str = "THREADMILL_TEST_SITE";
const REDIS: &str = "THREADMILL_TEST_REDIS";

/// Not a test by itself: the worker of the tests below, in a process of its own.
#[test]
fn as_a_process() {
    let (Ok(site), Ok(redis)) = (std::env::var(SITE), std::env::var(REDIS)) else { return };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    threadmill::worker::log::init_json(std::io::stderr, "info").unwrap();
    let url = threadmill::backend::RedisUrl::parse(&redis).unwrap();
    let backend = threadmill::backend::Backend::new(threadmill::backend::Settings::new(url)).unwrap();
    let mut python = threadmill::worker::python::PythonOptions::new(site);
    python.python = Some(crate::common::python::python());
    python.workers = 1;
    let heartbeat = std::time::Duration::from_millis(600);
    let options = WorkerOptions { heartbeat, ..WorkerOptions::default() };
    let worker = Worker::new(backend).options(options).python(python);
    runtime.block_on(worker.run()).unwrap();
}

fn spawn(site: &Django, redis: &TestRedis) -> Running {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "django::supervisor::as_a_process", "--nocapture"]);
    command.env(SITE, site.dir()).env(REDIS, redis.url()).current_dir(site.dir());
    Running::start(command, Stdio::null())
}

fn log_lines(running: &Running) -> Vec<Value> {
    running.stderr().lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[test]
fn a_killed_worker_takes_its_children_with_it_and_another_takes_over() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let who = site.enqueue("tasks.which_process.enqueue()");
    let worker = spawn(&site, &redis);
    let child = site.finished(&who)["value"][0].as_u64().unwrap() as u32;
    let held = site.enqueue("tasks.hold.enqueue('x')");
    eventually("it runs", || site.holds("x"));
    let waiting: Vec<String> = (0..5).map(|n| site.enqueue(&format!("tasks.mark.enqueue('{n}')"))).collect();
    worker.signal(Signal::KILL);
    worker.wait();
    process::wait_until_gone(child);
    let other = spawn(&site, &redis);
    let result = site.finished(&held);
    assert_eq!(result["errors"][0]["class"], json!("threadmill.exceptions.AcknowledgementTimeoutError"));
    for id in waiting {
        assert_eq!(site.finished(&id)["attempts"], json!(1), "what had not begun is not charged");
    }
    assert_eq!(other.stop().code, 0);
}

#[test]
fn sigterm_to_all_loses_nothing() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let who = site.enqueue("tasks.which_process.enqueue()");
    let worker = spawn(&site, &redis);
    let child = site.finished(&who)["value"][0].as_u64().unwrap() as u32;
    let held = site.enqueue("tasks.hold.enqueue('x')");
    eventually("it runs", || site.holds("x"));
    let waiting = site.enqueue("tasks.mark.enqueue('later')");
    // As a container that is stopped: every process is told.
    let child_pid = rustix::process::Pid::from_raw(child as i32).unwrap();
    rustix::process::kill_process(child_pid, Signal::TERM).unwrap();
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("told to end");
    site.release("x");
    assert_eq!(worker.wait().code, 0);
    assert_eq!(site.finished(&held)["value"], json!("x"));
    assert_eq!((site.counts()["default"].ready, site.result(&waiting)), (1, json!(null)));
    process::wait_until_gone(child);
}

#[test]
fn a_second_signal_cuts_off_what_runs_through_its_policy() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let worker = spawn(&site, &redis);
    let held = site.enqueue("tasks.hold.enqueue('x')");
    eventually("it runs", || site.holds("x"));
    worker.signal(Signal::TERM);
    worker.wait_for_stderr("told to end");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, 0);
    let result = site.finished(&held);
    assert_eq!(result["errors"][0]["class"], json!("threadmill.exceptions.AcknowledgementTimeoutError"));
}

#[test]
fn what_tasks_write_is_in_the_log_with_their_ids() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let worker = spawn(&site, &redis);
    let id = site.enqueue("tasks.talks.enqueue('größe')");
    site.finished(&id);
    for (message, logger) in [
        ("printed größe", "threadmill::task"),
        ("raw größe", "threadmill::task"),
        ("logged größe", "shop"),
        (&format!("Task id={id} path=tasks.talks state=SUCCESSFUL"), "django.tasks"),
    ] {
        eventually(&format!("the log has {message:?}"), || {
            log_lines(&worker).iter().any(|line| line["message"] == json!(message) && line["logger"] == json!(logger))
        });
        let lines = log_lines(&worker);
        let line = lines.iter().find(|line| line["message"] == json!(message)).unwrap();
        if !message.starts_with("raw") {
            assert_eq!((&line["task"], &line["queue"]), (&json!(id), &json!("default")), "{line}");
        }
    }
    assert_eq!(worker.stop().code, 0);
}

/// The children that work for this site.
fn children_of(site: &Django) -> Vec<rustix::process::Pid> {
    let directory = std::fs::canonicalize(site.dir()).unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let is_child = |path: std::path::PathBuf| {
        let pid = path.file_name()?.to_str()?.parse().ok()?;
        let command = std::fs::read(path.join("cmdline")).ok()?;
        let works_here = std::fs::read_link(path.join("cwd")).ok()? == directory;
        (works_here && command.ends_with(b"threadmill-child\0")).then(|| rustix::process::Pid::from_raw(pid))?
    };
    processes.filter_map(|entry| is_child(entry.path())).collect()
}

#[tokio::test]
async fn tasks_end_once_each_while_children_are_killed_at_random() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    site.run(
        "import random\nrandom.seed(7)\nfor n in range(800):\n    kind = random.random()\n    \
         (tasks.mark.enqueue(str(n)) if kind < .7 else tasks.later.enqueue(n) if kind < .85 else \
         tasks.slow.enqueue(0.002) if kind < .97 else tasks.boom.enqueue('x'))\nout = None",
    );
    let mut python = options(&site);
    python.workers = 2;
    let worker = Ours::start(backend(&redis), &["default"], python);
    let (mut killed, mut last) = (0, 0);
    eventually_async("all have ended", async || {
        let counts = site.counts()["default"];
        if killed < 6 && counts.successful >= last + 80 {
            last = counts.successful;
            if let Some(pid) = children_of(&site).first() {
                let _ = rustix::process::kill_process(*pid, Signal::KILL);
                killed += 1;
            }
        }
        counts.successful + counts.failed == 800
    })
    .await;
    let summary = worker.stop().await;
    assert!(summary.is_settled, "{summary:?}");
    assert_eq!(summary.successful + summary.failed, 800, "each is told once: {summary:?}");
    let marks = site.marks();
    let distinct: std::collections::BTreeSet<_> = marks.iter().collect();
    assert_eq!(marks.len(), distinct.len(), "nothing ran twice");
}
