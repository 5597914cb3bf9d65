//! `requeue` and `drop`.

use super::seed::id;
use super::{ID, Task, shop};
use crate::common::{Screen, keys};
use serde_json::json;

#[test]
fn a_failed_task_runs_again_with_its_errors_kept() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    let output = home.run(&["requeue", ID]).expect(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), (&*format!("requeued {ID} shop.tasks.add\n"), ""));
    let json = home.run(&["show", ID, "--json"]).expect(0).json();
    assert_eq!((&json["segment"], &json["errors"][0]["class"]), (&json!("ready"), &json!("builtins.ValueError")));
    let again = home.run(&["requeue", ID]).expect(4);
    assert_eq!(again.stderr, format!("refused: {ID}: it waits and will run by itself\n"));
}

#[test]
fn what_waits_or_runs_is_refused_and_what_succeeded_needs_a_word() {
    let (server, home) = shop();
    for (number, segment) in ["ready", "deferred", "running", "successful"].into_iter().enumerate() {
        Task::new(&id(number), "emails", segment).put(&server);
    }
    let before = server.snapshot();
    let refused = |number: usize, reason: &str| {
        let output = home.run(&["requeue", &id(number)]).expect(4);
        assert!(output.stderr.contains(reason), "{}", output.stderr);
    };
    refused(0, "it waits and will run by itself");
    refused(1, "it waits until 2036-11-27T19:39:30.881Z");
    refused(2, "it runs on web1.example:4242-fetch");
    refused(3, "--again runs it once more");
    before.assert_same(&server.snapshot());
    home.run(&["requeue", &id(3), "--again"]).expect(0);
    assert_eq!(home.run(&["show", &id(3), "--json"]).json()["segment"], json!("ready"));
}

#[test]
fn several_at_once_end_with_the_code_of_all_of_them() {
    let (server, home) = shop();
    Task::new(&id(1), "emails", "failed").put(&server);
    Task::new(&id(2), "emails", "ready").put(&server);
    let output = home.run(&["requeue", &id(1), &id(2), &id(3), "--json"]).expect(1).json();
    let outcomes: Vec<_> = output["tasks"].as_array().unwrap().iter().map(|task| task["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("requeued"), json!("refused"), json!("not_found")]);
    home.run(&["requeue", &id(3), &id(4)]).expect(3);
    home.run(&["requeue", &id(1), &id(2)]).expect(4);
    let lines = home.run(&["requeue", &id(1), &id(3), "--jsonl"]).expect(1).json_lines();
    assert_eq!((lines.len(), &lines[0]["schema"]), (2, &json!(1)));
}

#[test]
fn a_task_runs_again_in_a_while_or_at_a_moment_by_the_server_s_clock() {
    let (server, home) = shop();
    Task::new(&id(1), "emails", "failed").put(&server);
    Task::new(&id(2), "emails", "failed").put(&server);
    home.run(&["requeue", &id(1), "--in", "10m"]).expect(0);
    let due: f64 = server.cli(&["ZSCORE", "threadmill:{default}:emails:deferred", &id(1)]);
    let now: (f64, f64) = server.cli(&["TIME"]);
    let left = due / 1_000.0 - now.0;
    assert!((500.0..=601.0).contains(&left), "{left}");
    home.run(&["requeue", &id(2), "--at", "2036-12-24T18:00:00Z"]).expect(0);
    assert_eq!(home.run(&["show", &id(2), "--json"]).json()["due_at"], json!("2036-12-24T18:00:00.000Z"));
    home.run(&["requeue", &id(2), "--in", "-5m"]).expect(2);
}

#[test]
fn a_dry_run_changes_nothing() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    let before = server.snapshot();
    let output = home.run(&["requeue", ID, "--dry-run"]).expect(0);
    assert_eq!(output.stdout, format!("would requeue {ID} shop.tasks.add\n"));
    assert_eq!(home.run(&["drop", ID, "--dry-run", "--json"]).expect(0).json()["dry_run"], json!(true));
    home.run(&["--read-only", "requeue", ID, "--dry-run"]).expect(0);
    before.assert_same(&server.snapshot());
}

#[test]
fn a_result_that_has_expired_cannot_run_again() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    home.run(&["queues"]).expect(0);
    server.cli::<()>(&["DEL", &format!("threadmill:{{default}}:result:{ID}")]);
    let output = home.run(&["requeue", ID]).expect(3);
    assert!(output.stderr.contains("its result has expired"), "{}", output.stderr);
    Task::new(ID, "emails", "failed").stored("{}").put(&server);
    let output = home.run(&["requeue", ID]).expect(4);
    assert!(output.stderr.contains("its record cannot be read"), "{}", output.stderr);
}

#[test]
fn a_task_is_dropped_from_every_state_and_a_running_one_only_by_name() {
    let (server, home) = shop();
    for (number, segment) in ["ready", "deferred", "successful", "failed", "running"].into_iter().enumerate() {
        Task::new(&id(number), "emails", segment).put(&server);
    }
    for number in 0..4 {
        home.run(&["drop", &id(number)]).expect(0);
        home.run(&["drop", &id(number)]).expect(3);
    }
    let output = home.run(&["drop", &id(4)]).expect(4);
    assert!(output.stderr.contains("it runs on web1.example:4242-fetch; --running drops it"), "{}", output.stderr);
    home.run(&["drop", &id(4), "--running"]).expect(0);
    assert!(server.snapshot().is_empty());
}

#[test]
fn at_a_terminal_a_drop_asks() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    for (answer, code, left) in [("n", 4, 2), ("", 4, 2), ("y", 0, 0)] {
        let mut screen = Screen::threadmill(&home, &["drop", ID], 100, 24);
        screen.wait_for_text("Drop 1 task for good? [y/N]");
        screen.send(answer);
        screen.send(keys::ENTER);
        assert_eq!(screen.wait_exit(), code, "{answer}");
        assert_eq!(server.snapshot().len(), left);
    }
    Task::new(ID, "emails", "failed").put(&server);
    let mut screen = Screen::threadmill(&home, &["drop", ID, "--yes"], 100, 24);
    assert_eq!(screen.wait_exit(), 0);
}

#[test]
fn a_part_of_an_id_is_enough_to_act_on_where_every_task_was_looked_at() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    let output = home.run(&["requeue", "d320e7d4"]).expect(0);
    assert_eq!(output.stdout, format!("requeued {ID} shop.tasks.add\n"));
    home.run(&["drop", "e7d4"]).expect(0);
    home.run(&["drop", "e7d4"]).expect(3);
}
