//! `docs/json.md` and the documents are the same.

use super::seed::id;
use super::{ID, Task, shop};
use crate::common::{Home, TestRedis};
use serde_json::Value;
use std::collections::BTreeMap;

/// Values of the user: they have any shape.
const USER_DATA: [&str; 4] = ["args", "kwargs", "return_value", "retry"];
/// Objects with a key for each segment that was asked for.
const BY_SEGMENT: [&str; 2] = ["matched", "removed"];

/// The documented example of each heading.
fn documented() -> BTreeMap<String, Value> {
    let text = include_str!("../../../docs/json.md");
    let mut examples = BTreeMap::new();
    let mut heading = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.to_owned();
        } else if line == "```json" {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            let value = serde_json::from_str(&block.join("\n")).unwrap_or_else(|e| panic!("{heading}: {e}"));
            examples.insert(heading.clone(), value);
        }
    }
    examples
}

/// Fails where the two have different fields, or values of different types; null stands for any.
#[track_caller]
fn same_shape(path: &str, documented: &Value, found: &Value) {
    let name = path.rsplit('.').next().unwrap_or_default();
    if USER_DATA.contains(&name) || found.is_null() {
        return;
    }
    match (documented, found) {
        (Value::Object(documented), Value::Object(found)) => {
            let names = |map: &serde_json::Map<String, Value>| map.keys().cloned().collect::<Vec<_>>();
            if !BY_SEGMENT.contains(&name) {
                assert_eq!(names(documented), names(found), "{path}");
            }
            for (key, value) in found {
                let of = documented.get(key).unwrap_or_else(|| panic!("{path}.{key} is not documented"));
                same_shape(&format!("{path}.{key}"), of, value);
            }
        }
        (Value::Array(documented), Value::Array(found)) => {
            for value in found {
                let of = documented.first().unwrap_or_else(|| panic!("{path} has no documented element"));
                same_shape(path, of, value);
            }
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => {}
        _ => {
            assert!(path.ends_with("settings.value"), "{path}: documented {documented}, found {found}");
        }
    }
}

fn filled() -> (TestRedis, Home) {
    let (server, home) = shop();
    for (number, segment) in ["ready", "deferred", "running", "successful", "failed"].into_iter().enumerate() {
        Task::new(&id(number), "emails", segment).put(&server);
    }
    Task::new(ID, "emails", "failed").args("[NaN]").put(&server);
    Task::new(&id(8), "emails", "failed").stored("{}").put(&server);
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:quarantine:emails", "1", "ghost"]);
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:workers", "1796067570881", "w1"]);
    let queues = ["queues", "[\"a\"]", "since", "2026-11-30T19:39:30.881Z"];
    server.cli::<()>(&[&["HSET", "threadmill-rs:{default}:worker:w1"], &queues[..]].concat());
    (server, home)
}

#[test]
fn every_document_is_as_it_is_documented() {
    let (server, home) = filled();
    let examples = documented();
    let check = |heading: &str, args: &[&str]| {
        let output = home.run(args);
        let of = examples.get(heading).unwrap_or_else(|| panic!("{heading} is not documented"));
        for document in if args.contains(&"--jsonl") { output.json_lines() } else { vec![output.json()] } {
            assert_eq!(document["schema"], of["schema"], "{heading}");
            same_shape(heading, of, &document);
        }
    };
    check("queues --json", &["queues", "--json"]);
    check("queues --jsonl", &["queues", "--jsonl"]);
    check("tasks --json", &["tasks", "emails", "--json"]);
    check("tasks --jsonl", &["tasks", "emails", "--jsonl"]);
    for number in 0..5 {
        check("show --json", &["show", &id(number), "--json"]);
    }
    check("show --json", &["show", ID, "--json"]);
    check("show --json", &["show", &id(8), "--json"]);
    check("workers --json", &["workers", "--json"]);
    check("workers --jsonl", &["workers", "--jsonl"]);
    check("enqueue --json", &["enqueue", "f.g", "--in", "1h", "--json"]);
    check("requeue --json, drop --json", &["requeue", &id(4), &id(0), &id(99), "--json"]);
    check("requeue --jsonl, drop --jsonl", &["requeue", &id(4), &id(0), &id(99), "--jsonl"]);
    check("requeue --json, drop --json", &["drop", &id(4), &id(99), "--json"]);
    check("purge --json", &["purge", "emails", "--quarantine", "--dry-run", "--json"]);
    check("config --json", &["config", "--json"]);
    let watch = home.spawn(&["watch", "--count", "1", "--jsonl"]);
    watch.wait_for_stderr("watching");
    server.cli::<()>(&["PUBLISH", "threadmill:{default}:telemetry", "ingress:emails"]);
    let event = watch.wait().expect(0).json_lines().remove(0);
    same_shape("watch --jsonl", &examples["watch --jsonl"], &event);
}
