//! The verbs that go on until they are ended: worker, inspector, demo.

use super::seed::id;
use super::{ID, Task, shop};
use crate::common::{Home, Screen, eventually, keys, process};
use rustix::process::Signal;
use serde_json::{Value, json};

#[test]
fn a_worker_without_functions_says_so_and_fails_what_it_takes() {
    let (_server, home) = shop();
    let task = home.run(&["enqueue", "shop.tasks.add", "--queue", "emails"]).expect(0).stdout.trim().to_owned();
    let output = home.run(&["worker", "--queues", "emails", "--exit-empty"]).expect(0);
    assert!(output.stderr.contains("warning: this worker knows no functions"), "{}", output.stderr);
    let log: Vec<Value> = output.stderr.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(log.iter().any(|line| line["level"] == json!("INFO")), "{}", output.stderr);
    let json = home.run(&["show", &task, "--json"]).expect(0).json();
    assert_eq!(json["segment"], json!("failed"));
    let message = json["errors"][0]["message"].as_str().unwrap();
    assert!(message.contains("shop.tasks.add"), "{message}");
}

#[test]
fn a_worker_runs_until_it_is_asked_to_end_and_is_seen_meanwhile() {
    let (_server, home) = shop();
    let worker = home.spawn(&["worker", "-q", "emails,a:b", "--log-format", "text", "--grace", "1"]);
    eventually("it is on record", || {
        let workers = home.run(&["workers", "--json"]).json();
        workers["workers"][0]["queues"] == json!(["emails", "a:b"])
    });
    let output = worker.stop().expect(0);
    assert!(output.stderr.lines().all(|line| serde_json::from_str::<Value>(line).is_err()), "{}", output.stderr);
    assert_eq!(output.stdout, "");
}

#[test]
fn what_keeps_a_worker_from_its_work() {
    let (_server, home) = shop();
    home.run(&["--read-only", "worker"]).expect(4);
    home.run(&["worker", "--concurrency", "many"]).expect(2);
    home.run(&["worker", "--log-level", "=!"]).expect(2);
    Home::on("redis://127.0.0.1:1").run(&["worker"]).expect(5);
}

#[test]
fn the_inspector_needs_a_terminal_and_shows_the_queue_there() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    Task::new(&id(1), "default", "ready").put(&server);
    let output = home.run(&["inspector"]).expect(2);
    assert!(output.stderr.contains("needs a terminal"), "{}", output.stderr);
    let mut screen = Screen::threadmill(&home, &["inspector", "--queue", "emails"], 120, 40);
    screen.wait_for_text("shop.tasks.add");
    assert!(screen.text().contains("emails"));
    screen.send("q");
    assert_eq!(screen.wait_exit(), 0);
    assert!(screen.is_cooked());
}

#[test]
fn a_demo_without_a_terminal_prints_its_queues_and_a_failed_task() {
    let home = Home::on("redis://u:nobody@127.0.0.1:1/0").env("REDIS_URL", "nonsense");
    let output = home.run(&["demo"]).expect(0);
    let first = output.stdout.lines().next().unwrap_or_default();
    assert!(first.starts_with("QUEUE") && first.ends_with("FAILED"), "{}", output.stdout);
    assert!(output.stdout.contains("Segment      FAILED"), "{}", output.stdout);
    assert!(output.stdout.contains("Error 1 of "), "{}", output.stdout);
}

#[test]
fn a_demo_leaves_nothing_behind_however_it_ends() {
    let home = Home::empty();
    let folder = home.path().join("tmp");
    std::fs::create_dir(&folder).unwrap();
    let home = home.env("TMPDIR", &folder.display().to_string());
    let left = || std::fs::read_dir(&folder).unwrap().count();
    for signal in [Signal::INT, Signal::TERM] {
        let demo = home.spawn(&["demo", "--headless"]);
        demo.wait_for_stderr("running for ten seconds");
        assert_eq!(left(), 1);
        let server = server_of(demo.pid());
        demo.signal(signal);
        demo.wait().expect(0);
        process::wait_until_gone(server);
        assert_eq!(left(), 0);
    }
    for key in ["q", keys::CTRL_C] {
        let mut screen = Screen::threadmill(&home, &["demo"], 120, 40);
        screen.wait_for_text("READY");
        let server = server_of(screen.pid());
        screen.send(key);
        assert_eq!(screen.wait_exit(), 0, "{}", screen.text());
        process::wait_until_gone(server);
        assert_eq!(left(), 0);
    }
}

/// The redis-server that this process started.
fn server_of(parent: u32) -> u32 {
    let children = std::fs::read_dir(format!("/proc/{parent}/task")).expect("the process runs").flatten();
    let children = children.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let all: String = children.collect::<Vec<_>>().join(" ");
    all.split_whitespace().next().and_then(|pid| pid.parse().ok()).expect("it has a server")
}
