//! Text from tasks reaches no terminal as anything but text.

use super::{ID, Task, shop};
use crate::common::{Home, Output, Screen};
use serde_json::json;

/// Erases the screen, sets the title, turns the text around, hides, breaks lines.
const NASTY: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\u{9b}2J\u{202e}gnp\u{200b}\u{2028}\r\u{8}\u{7f}y";

#[track_caller]
fn assert_tame(output: &Output) {
    for text in [&output.stdout, &output.stderr] {
        for c in text.chars() {
            let hidden = c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}');
            assert!(c == '\n' || !hidden, "{c:?} in:\n{text:?}");
        }
    }
}

fn hostile_shop() -> (crate::common::TestRedis, Home) {
    let (server, home) = shop();
    let task = |id: &str, segment| {
        Task::new(id, NASTY, segment).func(NASTY).traceback(&format!("Traceback\n{NASTY}\n{NASTY}")).worker(NASTY)
    };
    task(ID, "failed").args(&json!([NASTY]).to_string()).put(&server);
    task("01a22df8-0000-7000-8000-00000000000a", "running").put(&server);
    task(NASTY, "ready").put(&server);
    Task::new("01a22df8-0000-7000-8000-00000000000b", NASTY, "successful").stored(NASTY).put(&server);
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:workers", "1796067570881", NASTY]);
    server.cli::<()>(&["HSET", &format!("threadmill-rs:{{default}}:worker:{NASTY}"), "host", NASTY, "queues", NASTY]);
    (server, home)
}

#[test]
fn no_control_byte_comes_out_of_any_verb() {
    let (_server, home) = hostile_shop();
    let verbs: [&[&str]; 13] = [
        &["queues"],
        &["queues", NASTY],
        &["tasks", NASTY],
        &["show", ID],
        &["show", NASTY],
        &["show", "01a22df8-0000-7000-8000-00000000000a"],
        &["show", "01a22df8-0000-7000-8000-00000000000b"],
        &["workers"],
        &["requeue", NASTY, "01a22df8-0000-7000-8000-00000000000a", "01a22df8-0000-7000-8000-00000000000b"],
        &["drop", NASTY, "--dry-run"],
        &["purge", NASTY, "--dry-run"],
        &["tasks", "nosuch\u{1b}[2J"],
        &["show", "nosuch\u{1b}[2J"],
    ];
    for verb in verbs {
        let output = home.run(verb);
        assert!([0, 3, 4].contains(&output.code), "{verb:?}: {output:?}");
        assert_tame(&output);
        if matches!(verb[0], "queues" | "workers") || (verb[0] == "tasks" && output.code == 0) {
            assert_tame(&home.run(&[verb, &["--jsonl"]].concat()).expect(0));
        }
        if output.code == 0 {
            assert_tame(&home.run(&[verb, &["--json"]].concat()).expect(0));
        }
    }
}

#[test]
fn json_means_what_was_stored() {
    let (_server, home) = hostile_shop();
    let json = home.run(&["show", ID, "--json"]).expect(0).json();
    assert_eq!((&json["function"], &json["queue"], &json["args"]), (&json!(NASTY), &json!(NASTY), &json!([NASTY])));
    assert_eq!(json["errors"][0]["traceback"], json!(format!("Traceback\n{NASTY}\n{NASTY}")));
    let row = home.run(&["tasks", NASTY, "--segment", "failed", "--jsonl"]).expect(0).json_lines().remove(0);
    assert_eq!(row["function"], json!(NASTY));
}

#[test]
fn a_terminal_sees_it_written_out() {
    let (_server, home) = hostile_shop();
    for verb in [&["show", ID] as &[&str], &["show", ID, "--raw"], &["tasks", NASTY]] {
        let mut screen = Screen::threadmill(&home, verb, 200, 50);
        assert_eq!(screen.wait_exit(), 0);
        let raw = String::from_utf8_lossy(&screen.raw()).into_owned();
        assert!(!raw.contains("\x1b[2J") && !raw.contains("\x1b]0;") && !raw.contains('\u{202e}'), "{raw:?}");
    }
    let mut screen = Screen::threadmill(&home, &["purge", NASTY], 200, 50);
    screen.wait_for_text("Type the queue's name");
    screen.send("no\r");
    assert_eq!(screen.wait_exit(), 4);
    assert!(!String::from_utf8_lossy(&screen.raw()).contains("\x1b[2J"));
}
