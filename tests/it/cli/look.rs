//! The verbs that look: queues, tasks, show, workers, watch.

use super::seed::id;
use super::{ID, Task, shop};
use crate::common::{Home, Running, TestRedis, eventually};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

fn filled(server: &TestRedis) {
    for (number, segment) in ["ready", "deferred", "running", "successful", "failed"].into_iter().enumerate() {
        Task::new(&id(number + 1), "emails", segment).put(server);
    }
    Task::new(ID, "a:b", "failed").put(server);
}

#[test]
fn queues_are_found_without_being_named() {
    let (server, home) = shop();
    filled(&server);
    let output = home.run(&["queues"]).expect(0);
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "QUEUE   READY  SCHEDULED  RUNNING  SUCCESSFUL  FAILED",
            "a:b         0          0        0           0       1",
            "emails      1          1        1           1       1",
        ]
    );
    assert_eq!(output.stderr, "");
    let json = home.run(&["queues", "--json"]).expect(0).json();
    assert_eq!((&json["schema"], &json["backend"]), (&json!(1), &json!("default")));
    assert_eq!(json["queues"][1]["name"], json!("emails"));
    assert_eq!(json["queues"][1]["scheduled"], json!(1));
    let lines = home.run(&["queues", "emails", "--jsonl"]).expect(0).json_lines();
    assert_eq!((lines.len(), &lines[0]["failed"]), (1, &json!(1)));
}

#[test]
fn an_empty_redis_has_no_queues_and_says_so_on_stderr() {
    let (_server, home) = shop();
    let output = home.run(&["queues"]).expect(0);
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", "no queue is known on backend `default`\n"));
    assert_eq!(home.run(&["queues", "--json"]).expect(0).json()["queues"], json!([]));
}

#[test]
fn a_look_that_is_read_only_writes_nothing() {
    let (server, home) = shop();
    filled(&server);
    let before = server.snapshot();
    home.run(&["--read-only", "queues"]).expect(0);
    home.run(&["--read-only", "tasks", "emails"]).expect(0);
    home.run(&["--read-only", "show", ID]).expect(0);
    before.assert_same(&server.snapshot());
}

#[test]
fn tasks_are_listed_by_segment_and_page() {
    let (server, home) = shop();
    filled(&server);
    let output = home.run(&["tasks", "emails", "--segment", "failed"]).expect(0);
    let lines: Vec<_> = output.stdout.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        lines[1],
        format!("{}  FAILED   shop.tasks.add         1  2026-11-30T19:39:30.881Z  ValueError: no luck", id(5))
    );
    let json = home.run(&["tasks", "emails", "--json"]).expect(0).json();
    let tasks = json["tasks"].as_array().unwrap();
    let segments: Vec<_> = tasks.iter().map(|task| task["segment"].as_str().unwrap()).collect();
    assert_eq!(segments, ["ready", "scheduled", "running", "successful", "failed"]);
    assert_eq!(tasks[2]["worker"], json!("web1.example:4242-fetch"));
    assert_eq!(tasks[4]["error"], json!({ "class": "builtins.ValueError", "message": "ValueError: no luck" }));
    let page = home.run(&["tasks", "emails", "--offset", "1", "--limit", "2", "--jsonl"]).expect(0);
    let ids: Vec<_> = page.json_lines().iter().map(|task| task["id"].clone()).collect();
    assert_eq!(ids, [json!(id(2)), json!(id(3))]);
    assert_eq!(page.stderr, "2 of 5; go on with --offset 3\n");
    let beyond = home.run(&["tasks", "emails", "--offset", "9"]).expect(0);
    assert_eq!((beyond.stdout.as_str(), beyond.stderr.as_str()), ("", "there are 5 and --offset 9 is beyond them\n"));
}

#[test]
fn every_page_of_a_long_list_is_listed() {
    let (server, home) = shop();
    for number in 0..1203 {
        Task::new(&id(number), "emails", "ready").put(&server);
    }
    let lines = home.run(&["tasks", "emails", "--all", "--jsonl"]).expect(0).json_lines();
    assert_eq!(lines.len(), 1203);
    assert_eq!((&lines[0]["id"], &lines[1202]["id"]), (&json!(id(0)), &json!(id(1202))));
    let json = home.run(&["tasks", "emails", "--limit", "700", "--offset", "600", "--json"]).expect(0).json();
    assert_eq!((json["tasks"].as_array().unwrap().len(), &json["total"]), (603, &json!(1203)));
}

#[test]
fn an_empty_queue_is_no_error_and_an_unknown_one_is() {
    let (server, home) = shop();
    filled(&server);
    home.run(&["queues"]).expect(0);
    home.run(&["purge", "a:b"]).expect(0);
    let empty = home.run(&["tasks", "a:b"]).expect(0);
    assert_eq!((empty.stdout.as_str(), empty.stderr.as_str()), ("", "`a:b` holds no such task\n"));
    assert_eq!(home.run(&["tasks", "a:b", "--json"]).expect(0).json()["tasks"], json!([]));
    let unknown = home.run(&["tasks", "emial"]).expect(3);
    assert!(unknown.stderr.contains("there is no queue `emial`"), "{}", unknown.stderr);
    assert!(unknown.stderr.contains("did you mean `emails`?"), "{}", unknown.stderr);
    assert_eq!(unknown.stdout, "");
}

#[test]
fn a_task_is_shown_in_every_state() {
    let (server, home) = shop();
    filled(&server);
    for (number, segment) in ["READY", "SCHEDULED", "RUNNING", "SUCCESSFUL", "FAILED"].into_iter().enumerate() {
        let output = home.run(&["show", &id(number + 1)]).expect(0).stdout;
        assert!(output.contains(&format!("Segment      {segment}\n")), "{output}");
        assert!(output.contains("Queue        emails\n"), "{output}");
    }
    let failed = home.run(&["show", &id(5)]).expect(0).stdout;
    assert!(failed.contains("Error 1 of 1  builtins.ValueError\n  Traceback (most recent call last):\n    File"));
    let json = home.run(&["show", &id(4), "--json"]).expect(0).json();
    assert_eq!((&json["return_value"], &json["args"], &json["attempts"]), (&json!(3), &json!([1, 2]), &json!(1)));
    let running = home.run(&["show", &id(3), "--json"]).expect(0).json();
    assert_eq!((&running["worker"], &running["attempts"]), (&json!("web1.example:4242-fetch"), &json!(1)));
    assert_eq!(running["started_at"], json!("2026-11-30T19:39:30.915247+00:00"));
}

#[test]
fn a_part_of_an_id_is_enough_where_it_names_one_task() {
    let (server, home) = shop();
    filled(&server);
    assert_eq!(home.run(&["show", "d320e7d4", "--json"]).expect(0).json()["id"], json!(ID));
    let several = home.run(&["show", "01a22df8"]).expect(2);
    assert!(several.stderr.contains("is a part of several ids") && several.stderr.contains(&id(1)), "{several:?}");
    home.run(&["show", "deadbeef"]).expect(3);
    let missing = home.run(&["show", &id(99)]).expect(3);
    assert!(missing.stderr.contains("there is no task"), "{}", missing.stderr);
}

#[test]
fn the_stored_bytes_are_printed_as_they_are() {
    let (server, home) = shop();
    let stored = r#"{"not": "a record", "n": NaN, "s": "\ud800"}"#;
    Task::new(ID, "emails", "failed").stored(stored).put(&server);
    assert_eq!(home.run(&["show", ID, "--raw"]).expect(0).stdout, stored);
    let output = home.run(&["show", ID]).expect(0).stdout;
    assert!(output.contains("cannot be read") && output.contains(stored), "{output}");
    let json = home.run(&["show", ID, "--json"]).expect(0).json();
    assert_eq!(json["record"], json!("unreadable"));
    let row = home.run(&["tasks", "emails", "--jsonl"]).expect(0).json_lines().remove(0);
    assert_eq!((&row["record"], &row["segment"]), (&json!("unreadable"), &json!("failed")));
}

#[test]
fn user_data_that_is_no_json_is_its_text() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").args(r#"[NaN, "\ud800"]"#).put(&server);
    let json = home.run(&["show", ID, "--json"]).expect(0).json();
    assert_eq!((&json["args"], &json["args_text"]), (&Value::Null, &json!(r#"[NaN, "\ud800"]"#)));
}

#[test]
fn a_record_that_has_expired_is_shown_as_missing() {
    let (server, home) = shop();
    filled(&server);
    server.cli::<()>(&["DEL", &format!("threadmill:{{default}}:result:{}", id(5))]);
    home.run(&["queues"]).expect(0);
    let output = home.run(&["tasks", "emails", "--segment", "failed"]).expect(0).stdout;
    assert!(output.contains("(no record)") && output.contains("its result has expired"), "{output}");
    assert_eq!(home.run(&["show", &id(5), "--json"]).expect(0).json()["record"], json!("missing"));
    home.run(&["show", &id(5), "--raw"]).expect(3);
}

#[test]
fn a_key_of_the_wrong_type_hides_no_other() {
    let (server, home) = shop();
    filled(&server);
    server.cli::<()>(&["DEL", "threadmill:{default}:emails:ready"]);
    server.cli::<()>(&["SET", "threadmill:{default}:emails:ready", "what"]);
    let queues = home.run(&["queues"]).expect(0);
    assert!(queues.stdout.contains("emails      ?          1"), "{}", queues.stdout);
    assert!(queues.stderr.contains("the key of its segment READY holds another type"), "{}", queues.stderr);
    assert_eq!(home.run(&["queues", "emails", "--json"]).expect(0).json()["queues"][0]["ready"], Value::Null);
    assert_eq!(home.run(&["tasks", "emails", "--json"]).expect(0).json()["total"], json!(4));
    let named = home.run(&["tasks", "emails", "--segment", "ready"]).expect(5);
    assert!(named.stderr.contains("WRONGTYPE"), "{}", named.stderr);
}

#[test]
fn workers_are_listed() {
    let (server, home) = shop();
    let none = home.run(&["workers"]).expect(0);
    assert_eq!((none.stdout.as_str(), none.stderr.as_str()), ("", "no worker is on record on backend `default`\n"));
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:workers", "1796067570881", "w1"]);
    let fields = ["host", "web1", "pid", "7", "version", "0.1.0", "queues", "[\"default\", \"a:b\"]", "running", "3"];
    let key = "threadmill-rs:{default}:worker:w1";
    server.cli::<()>(&[&["HSET", key, "since", "2026-11-30T19:39:30.881Z"], &fields[..]].concat());
    let json = home.run(&["workers", "--json"]).expect(0).json();
    assert_eq!(json["workers"][0]["queues"], json!(["default", "a:b"]));
    assert_eq!(json["workers"][0]["last_heard_at"], json!("2026-11-30T19:39:30.881Z"));
    let table = home.run(&["workers"]).expect(0).stdout;
    assert!(table.contains("w1  web1    7  0.1.0    default, a:b        3  2026-11-30T19:39:30.881Z"), "{table}");
}

#[test]
fn what_happens_is_printed_as_it_happens() {
    let (server, home) = shop();
    let watch = home.spawn(&["watch", "a:b", "--count", "2", "--jsonl"]);
    watch.wait_for_stderr("watching redis://");
    for message in ["ingress:other", "ingress:a:b", "egress:a:b"] {
        server.cli::<()>(&["PUBLISH", "threadmill:{default}:telemetry", message]);
    }
    let lines = watch.wait().expect(0).json_lines();
    let events: Vec<_> = lines.iter().map(|line| (line["event"].clone(), line["queue"].clone())).collect();
    assert_eq!(events, [(json!("ingress"), json!("a:b")), (json!("egress"), json!("a:b"))]);
}

#[test]
fn a_watch_outlives_the_server_and_ends_in_its_time_or_on_ctrl_c() {
    let (mut server, home) = shop();
    let watch = home.spawn(&["watch"]);
    watch.wait_for_stderr("watching redis://");
    server.stop();
    watch.wait_for_stderr("the connection was lost");
    server.start();
    watch.wait_for_stderr("watching again");
    server.cli::<()>(&["PUBLISH", "threadmill:{default}:telemetry", "ingress:x"]);
    watch.wait_for_stdout("ingress  x");
    watch.signal(rustix::process::Signal::INT);
    watch.wait().expect(0);
    home.run(&["watch", "--for", "10ms"]).expect(0);
}

#[test]
fn a_reader_that_goes_early_is_no_error() {
    let (server, home) = shop();
    for number in 0..600 {
        Task::new(&id(number), "emails", "ready").args(&format!("[\"{}\"]", "x".repeat(500))).put(&server);
    }
    for verb in ["tasks emails --all --jsonl", "tasks emails --all --json", "tasks emails --all"] {
        let script = format!("{} {verb} | head -n 1; exit ${{PIPESTATUS[0]}}", crate::common::binary::BINARY);
        let mut command = Command::new("bash");
        command.args(["-c", &script]).env_clear().envs(home.environment()).current_dir(home.path());
        let output = Running::start(command, Stdio::null()).wait().expect(0);
        assert_eq!((output.stdout.lines().count(), output.stderr.as_str()), (1, ""), "{verb}");
    }
}

#[test]
fn colour_is_for_those_who_want_it() {
    let (server, home) = shop();
    filled(&server);
    assert!(!home.run(&["queues"]).stdout.contains('\x1b'));
    assert!(home.run(&["queues", "--color", "always"]).stdout.contains("\x1b["));
    assert!(!home.run(&["show", ID, "--color=never"]).stdout.contains('\x1b'));
    let wanted = Home::on(&server.url()).env("THREADMILL_COLOR", "always");
    assert!(wanted.run(&["show", ID]).stdout.contains("\x1b["));
    assert!(wanted.run(&["--color", "always", "--help"]).stdout.contains("\x1b["));
    eventually("the server answers", || server.try_cli::<String>(&["PING"]).is_ok());
}

#[test]
fn a_table_fits_the_terminal_and_says_when_in_words() {
    let (server, home) = shop();
    filled(&server);
    let mut screen = crate::common::Screen::threadmill(&home, &["tasks", "emails", "--segment", "failed"], 90, 24);
    assert_eq!(screen.wait_exit(), 0);
    let text = screen.text();
    assert!(text.contains(&id(5)) && text.contains(" ago") && text.contains('…'), "{text}");
    let ascii = Home::on(&server.url()).env("LC_ALL", "C");
    let mut screen = crate::common::Screen::threadmill(&ascii, &["tasks", "emails", "--segment", "failed"], 90, 24);
    assert_eq!(screen.wait_exit(), 0);
    let text = screen.text();
    assert!(text.is_ascii() && text.contains("..."), "{text}");
}
