//! `enqueue`.

use super::{ID, shop};
use crate::common::Output;
use serde_json::json;

/// The id that was printed, alone on its line.
#[track_caller]
fn id_of(output: Output) -> String {
    let output = output.expect(0);
    let id = output.stdout.trim_end().to_owned();
    assert_eq!(output.stdout, format!("{id}\n"));
    id
}

#[test]
fn a_task_is_stored_as_it_was_described_and_its_id_printed() {
    let (server, home) = shop();
    let args = ["--queue", "a:b", "--args", "[1, \"ü\"]", "--kwargs", "{\"user\": 7}", "--priority", "-5"];
    let id = id_of(home.run(&[&["enqueue", "shop.tasks.add"], &args[..], &["--takes-context"]].concat()));
    let json = home.run(&["show", &id, "--json"]).expect(0).json();
    assert_eq!((&json["function"], &json["queue"]), (&json!("shop.tasks.add"), &json!("a:b")));
    assert_eq!((&json["args"], &json["kwargs"]), (&json!([1, "ü"]), &json!({ "user": 7 })));
    assert_eq!((&json["priority"], &json["takes_context"]), (&json!(-5.0), &json!(true)));
    assert_eq!(server.cli::<i64>(&["ZCARD", "threadmill:{default}:a:b:ready"]), 1);
    let document = home.run(&["enqueue", "shop.tasks.add", "--json"]).expect(0).json();
    assert_eq!((&document["outcome"], &document["queue"]), (&json!("enqueued"), &json!("default")));
}

#[test]
fn a_task_waits_for_its_time() {
    let (server, home) = shop();
    let id = id_of(home.run(&["enqueue", "f.g", "--in", "2h30m"]));
    let due: f64 = server.cli(&["ZSCORE", "threadmill:{default}:default:deferred", &id]);
    let now: (f64, f64) = server.cli(&["TIME"]);
    assert!((8_900.0..=9_001.0).contains(&(due / 1_000.0 - now.0)));
    let id = id_of(home.run(&["enqueue", "f.g", "--at", "2036-12-24T19:00:00+01:00"]));
    assert_eq!(home.run(&["show", &id, "--json"]).json()["due_at"], json!("2036-12-24T18:00:00.000Z"));
    home.run(&["enqueue", "f.g", "--at", "tomorrow"]).expect(2);
    home.run(&["enqueue", "f.g", "--in", "5m", "--at", "2036-12-24T18:00:00Z"]).expect(2);
}

#[test]
fn a_retry_is_stored_as_the_python_package_stores_it() {
    let (_server, home) = shop();
    let retry = |policy: &str| {
        let id = id_of(home.run(&["enqueue", "f.g", "--retry", policy]));
        home.run(&["show", &id, "--json"]).expect(0).json()["retry"].clone()
    };
    let options = |max_retries: u32| {
        json!({
            "base_delay": 1.0, "max_delay": 3600.0, "factor": 2.0, "max_retries": max_retries,
            "expected_exceptions": ["builtins.Exception"],
        })
    };
    assert_eq!(retry("backoff"), json!(["threadmill.retry.ExponentialBackoff", [], options(5)]));
    assert_eq!(retry("{\"max_retries\": 3}"), json!(["threadmill.retry.ExponentialBackoff", [], options(3)]));
    assert_eq!(retry("shop.retry.policy"), json!("shop.retry.policy"));
    let wrong = home.run(&["enqueue", "f.g", "--retry", "{\"jitter\": 1}"]).expect(2);
    assert!(wrong.stderr.contains("jitter = 1"), "{}", wrong.stderr);
}

#[test]
fn a_mistake_in_json_is_pointed_at_and_nothing_is_sent() {
    let (server, home) = shop();
    let output = home.run(&["enqueue", "f.g", "--args", "[1, oops]"]).expect(2);
    assert!(output.stderr.contains("--args is no JSON"), "{}", output.stderr);
    let lines: Vec<_> = output.stderr.lines().collect();
    let at = lines.iter().position(|line| line.contains("[1, oops]")).expect("the text is shown");
    assert_eq!(lines[at].find("oops"), lines[at + 1].find('^'));
    home.run(&["enqueue", "f.g", "--args", "{}"]).expect(2);
    home.run(&["enqueue", "f.g", "--kwargs", "[]"]).expect(2);
    home.run(&["enqueue", "f.g", "--priority", "1000"]).expect(2);
    let task = home.run(&["enqueue", "f.g", "--kwargs", "{\"task\": {\"func\": \"os.system\"}}"]).expect(2);
    assert!(task.stderr.contains("the Python package would act on it"), "{}", task.stderr);
    home.run(&["--read-only", "enqueue", "f.g"]).expect(4);
    assert!(server.snapshot().is_empty());
}

#[test]
fn the_same_task_is_stored_once() {
    let (server, home) = shop();
    assert_eq!(id_of(home.run(&["enqueue", "f.g", "--id", ID])), ID);
    let again = home.run(&["enqueue", "f.g", "--id", ID]).expect(0);
    assert_eq!(again.stdout, format!("{ID}\n"));
    assert!(again.stderr.contains("nothing changed"), "{}", again.stderr);
    let first = id_of(home.run(&["enqueue", "f.g", "--idempotency-key", "k"]));
    let second = home.run(&["enqueue", "f.g", "--idempotency-key", "k", "--json"]).expect(0).json();
    assert_eq!((&second["id"], &second["outcome"]), (&json!(first), &json!("duplicate")));
    assert_eq!(server.cli::<i64>(&["ZCARD", "threadmill:{default}:default:ready"]), 2);
}

#[test]
fn another_alias_is_another_world() {
    let (server, home) = shop();
    let id = id_of(home.run(&["-b", "other", "enqueue", "f.g"]));
    home.run(&["show", &id]).expect(3);
    assert_eq!(home.run(&["-b", "other", "show", &id, "--json"]).expect(0).json()["backend"], json!("other"));
    assert_eq!(server.cli::<i64>(&["ZCARD", "threadmill:{other}:default:ready"]), 1);
}
