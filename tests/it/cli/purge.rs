//! `purge`.

use super::seed::id;
use super::{Task, shop};
use crate::common::{Screen, TestRedis, keys};
use serde_json::json;

fn filled(server: &TestRedis) {
    for (number, segment) in ["ready", "deferred", "running", "successful", "failed"].into_iter().enumerate() {
        Task::new(&id(number), "emails", segment).put(server);
    }
    Task::new(&id(90), "emails:failed", "ready").put(server);
}

fn tasks(server: &TestRedis) -> Vec<String> {
    let keys: Vec<String> = server.snapshot().keys().cloned().collect();
    keys.into_iter().filter(|key| key.contains(":task:") || key.contains(":result:")).collect()
}

#[test]
fn a_queue_is_emptied_with_its_records_and_running_tasks_stay() {
    let (server, home) = shop();
    filled(&server);
    let output = home.run(&["purge", "emails"]).expect(0);
    assert_eq!(output.stdout, "purged 4 tasks of `emails`: 1 READY, 1 SCHEDULED, 1 SUCCESSFUL, 1 FAILED\n");
    assert_eq!(tasks(&server), [2, 90].map(|n| format!("threadmill:{{default}}:task:{}", id(n))));
    assert_eq!(home.run(&["purge", "emails"]).expect(0).stdout, "nothing to purge in `emails`\n");
    home.run(&["purge", "emails", "--segment", "running"]).expect(0);
    assert_eq!(tasks(&server).len(), 1, "a queue whose name begins alike is left alone");
    home.run(&["purge", "nosuch"]).expect(3);
}

#[test]
fn only_the_named_segments_go() {
    let (server, home) = shop();
    filled(&server);
    let json = home.run(&["purge", "emails", "--segment", "failed,deferred", "--json"]).expect(0).json();
    assert_eq!(json["removed"], json!({ "scheduled": 1, "failed": 1 }));
    assert_eq!((&json["total"], &json["dry_run"]), (&json!(2), &json!(false)));
    assert_eq!(tasks(&server).len(), 4);
    home.run(&["purge", "emails", "--segment", "lost"]).expect(2);
}

#[test]
fn guards_hold_before_anything_is_removed() {
    let (server, home) = shop();
    filled(&server);
    home.run(&["queues"]).expect(0);
    let before = server.snapshot();
    let dry = home.run(&["purge", "emails", "--dry-run"]).expect(0);
    assert_eq!(dry.stdout, "would purge 4 tasks of `emails`: 1 READY, 1 SCHEDULED, 1 SUCCESSFUL, 1 FAILED\n");
    home.run(&["--read-only", "purge", "emails", "--dry-run"]).expect(0);
    home.run(&["--read-only", "purge", "emails"]).expect(4);
    let expected = home.run(&["purge", "emails", "--expect", "5"]).expect(4);
    assert!(expected.stderr.contains("4 tasks would be removed, and --expect says 5"), "{}", expected.stderr);
    let max = home.run(&["purge", "emails", "--max", "3"]).expect(4);
    assert!(max.stderr.contains("4 tasks would be removed, and --max allows 3"), "{}", max.stderr);
    home.run(&["purge", "emails", "--dry-run", "--expect", "5"]).expect(4);
    before.assert_same(&server.snapshot());
    home.run(&["purge", "emails", "--expect", "4"]).expect(0);
    home.run(&["purge", "emails", "--max", "3"]).expect(0);
}

#[test]
fn many_go_in_slices() {
    let (server, home) = shop();
    for number in 0..1201 {
        Task::new(&id(number), "emails", if number % 2 == 0 { "ready" } else { "failed" }).put(&server);
    }
    let output = home.run(&["purge", "emails"]).expect(0);
    assert_eq!(output.stdout, "purged 1201 tasks of `emails`: 601 READY, 600 FAILED\n");
    assert_eq!(tasks(&server), Vec::<String>::new());
}

#[test]
fn at_a_terminal_the_name_has_to_be_typed() {
    let (server, home) = shop();
    filled(&server);
    let mut screen = Screen::threadmill(&home, &["purge", "emails"], 100, 24);
    let text = screen.wait_for_text("Type the queue's name to go on:");
    assert!(text.contains("This removes 4 tasks of `emails` for good: 1 READY, 1 SCHEDULED, 1 SUCCESSFUL, 1 FAILED."));
    screen.send("yes");
    screen.send(keys::ENTER);
    assert_eq!(screen.wait_exit(), 4);
    assert!(screen.text().contains("nothing was removed"), "{}", screen.text());
    assert_eq!(tasks(&server).len(), 6);
    let mut screen = Screen::threadmill(&home, &["purge", "emails", "--segment", "running,ready"], 100, 24);
    let text = screen.wait_for_text("Type the queue's name to go on:");
    assert!(text.contains("Workers go on with the running ones"), "{text}");
    screen.send("emails");
    screen.send(keys::ENTER);
    assert_eq!(screen.wait_exit(), 0);
    assert_eq!(tasks(&server).len(), 4);
    let mut screen = Screen::threadmill(&home, &["purge", "emails", "--yes"], 100, 24);
    assert_eq!(screen.wait_exit(), 0);
    let mut screen = Screen::threadmill(&home, &["purge", "emails:failed"], 100, 24);
    screen.wait_for_text("Type the queue's name");
    screen.send(keys::CTRL_C);
    eprintln!("{}", screen.text());
    drop(screen);
    assert_eq!(tasks(&server).len(), 1);
}

#[test]
fn a_key_of_the_wrong_type_stops_a_purge_before_it_begins() {
    let (server, home) = shop();
    filled(&server);
    server.cli::<()>(&["DEL", "threadmill:{default}:emails:failed"]);
    server.cli::<()>(&["SET", "threadmill:{default}:emails:failed", "x"]);
    home.run(&["queues"]).expect(0);
    let before = server.snapshot();
    let output = home.run(&["purge", "emails"]).expect(5);
    assert!(output.stderr.contains("nothing was removed"), "{}", output.stderr);
    before.assert_same(&server.snapshot());
    home.run(&["purge", "emails", "--segment", "ready"]).expect(0);
}

#[test]
fn what_was_set_aside_goes_where_it_is_named() {
    let (server, home) = shop();
    filled(&server);
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:quarantine:emails", "1", "ghost"]);
    home.run(&["purge", "emails"]).expect(0);
    assert!(home.run(&["queues", "emails"]).stdout.contains("QUARANTINED"));
    let output = home.run(&["purge", "emails", "--quarantine", "--expect", "1"]).expect(0);
    assert_eq!(output.stdout, "purged 1 task of `emails`: 1 QUARANTINED\n");
}
