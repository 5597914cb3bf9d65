//! What the Python package 0.8.4 stored in every state of a task's life, byte for byte, is read and shown, and carried
//! back unchanged. `tests/it/states` holds what was observed on a live one.

use crate::common::TestRedis;
use serde_json::Value;
use std::path::Path;
use threadmill::backend::codec::{decode, encode};
use threadmill::backend::{Backend, Body, RedisUrl, Settings, Summary};
use threadmill::task::{Segment, TaskId};

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/states");

/// Every file that holds a keyspace.
fn states() -> Vec<(String, Value)> {
    let mut states: Vec<_> = std::fs::read_dir(Path::new(DIR))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path.file_stem().unwrap().to_string_lossy().into_owned(), serde_json::from_str(&text).unwrap())
        })
        .filter(|(_, state): &(String, Value)| state.get("keys").is_some())
        .collect();
    states.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(states.len() > 20, "the states are there");
    states
}

/// Puts a keyspace into a server.
fn seed(redis: &TestRedis, state: &Value) {
    redis.cli::<()>(&["FLUSHALL"]);
    for (key, entry) in state["keys"].as_object().unwrap() {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        match entry["type"].as_str().unwrap() {
            "zset" => {
                for member in entry["value"].as_array().unwrap() {
                    redis.cli::<()>(&["ZADD", key, &text(&member[2]), &text(&member[0])]);
                }
            }
            "hash" => {
                for (field, value) in entry["value"].as_object().unwrap() {
                    redis.cli::<()>(&["HSET", key, field, &text(value)]);
                }
            }
            "string" => redis.cli::<()>(&["SET", key, &text(&entry["value"])]),
            other => panic!("{other}"),
        }
    }
}

fn backend(redis: &TestRedis) -> Backend {
    Backend::new(Settings::new(RedisUrl::parse(&redis.url()).unwrap())).unwrap()
}

#[test]
fn every_stored_record_is_read_and_written_back_byte_for_byte() {
    let mut records = 0;
    for (name, state) in states() {
        for (key, entry) in state["keys"].as_object().unwrap() {
            let stored = entry["value"].get("data").unwrap_or(&entry["value"]);
            let Some(stored) = stored.as_str() else { continue };
            let record = decode(stored.as_bytes()).unwrap_or_else(|e| panic!("{name} {key}: {e}"));
            assert_eq!(encode(&record), stored, "{name} {key}");
            records += 1;
        }
    }
    assert!(records > 30, "{records}");
}

#[tokio::test]
async fn every_state_is_found_listed_and_counted() {
    let redis = TestRedis::spawn();
    let backend = backend(&redis);
    for (name, state) in states() {
        seed(&redis, &state);
        while !backend.search_queues(std::time::Duration::from_secs(1)).await.unwrap() {}
        let queues = backend.known_queues().await.unwrap();
        let counts = backend.counts(&queues).await.unwrap();
        for (key, entry) in state["keys"].as_object().unwrap().iter().filter(|(_, entry)| entry["type"] == "zset") {
            let rest = key.strip_prefix("threadmill:{default}:").unwrap();
            let (queue, suffix) = rest.rsplit_once(':').unwrap();
            let segment: Segment = suffix.parse().unwrap();
            let members = entry["value"].as_array().unwrap();
            let counted =
                counts.iter().find(|counts| counts.queue == queue).unwrap_or_else(|| panic!("{name} {queue}"));
            assert_eq!(counted.of(segment), members.len() as u64, "{name} {key}");
            let page = backend.page(queue, segment, 0, 100).await.unwrap();
            assert_eq!((page.total, page.rows.len()), (members.len() as u64, members.len()), "{name} {key}");
            for row in page.rows {
                let Summary::Readable(readable) = row.summary else { panic!("{name} {key}: {row:?}") };
                assert!(readable.func.starts_with("tasks."), "{name}");
                let detail = backend.find(&row.id, None).await.unwrap().unwrap();
                assert_eq!(detail.places, [(segment, row.score)], "{name}");
                assert_eq!(Some(detail.attempts()), readable.attempts, "{name}");
                assert!(matches!(detail.body, Body::Record(_)), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn what_cannot_be_read_is_shown_as_what_it_is_and_hides_no_neighbour() {
    let redis = TestRedis::spawn();
    let backend = backend(&redis);
    let failed = "threadmill:{default}:default:failed";
    redis.cli::<()>(&["ZADD", failed, "1", "broken", "2", "gone", "3", "odd", "4", "fine"]);
    redis.cli::<()>(&["SET", "threadmill:{default}:result:broken", "{\"task\": \u{1b}[2J"]);
    redis.cli::<()>(&["HSET", "threadmill:{default}:result:odd", "a", "b"]);
    let state = &states().into_iter().find(|(name, _)| name == "failed").unwrap().1;
    let stored = state["keys"].as_object().unwrap().values().find_map(|entry| entry["value"].as_str()).unwrap();
    redis.cli::<()>(&["SET", "threadmill:{default}:result:fine", stored]);
    let page = backend.page("default", Segment::Failed, 0, 10).await.unwrap();
    let summaries: Vec<_> = page.rows.iter().map(|row| (row.id.as_str(), &row.summary)).collect();
    assert!(
        matches!(summaries[0], ("fine", Summary::Readable(r)) if r.last_error.as_ref().unwrap().class_path == "builtins.RuntimeError")
    );
    assert!(matches!(summaries[1], ("odd", Summary::Unreadable { .. })));
    assert!(matches!(summaries[2], ("gone", Summary::Missing)));
    assert!(matches!(summaries[3], ("broken", Summary::Unreadable { .. })));
    let broken = backend.find(&TaskId::from("broken"), Some("default")).await.unwrap().unwrap();
    assert!(matches!(broken.body, Body::Unreadable(_)));
    assert_eq!(broken.stored, b"{\"task\": \x1b[2J");
    assert_eq!(broken.places, [(Segment::Failed, 1.0)]);
    redis.cli::<()>(&["DEL", "threadmill:{default}:result:fine"]);
    assert!(backend.find(&TaskId::from("nothing"), None).await.unwrap().is_none());
    redis.cli::<()>(&["SET", "threadmill:{default}:default:ready", "x"]);
    let counts = backend.counts(&["default".to_owned()]).await.unwrap();
    assert_eq!(counts[0].broken().collect::<Vec<_>>(), [Segment::Ready]);
    assert_eq!(counts[0].of(Segment::Failed), 4);
    let error = backend.page("default", Segment::Ready, 0, 10).await.unwrap_err();
    assert!(error.to_string().contains("WRONGTYPE"), "{error}");
}

#[tokio::test]
async fn a_page_of_long_records_is_small_on_the_wire() {
    let redis = TestRedis::spawn();
    let backend = backend(&redis);
    let state = &states().into_iter().find(|(name, _)| name == "failed").unwrap().1;
    let stored = state["keys"].as_object().unwrap().values().find_map(|entry| entry["value"].as_str()).unwrap();
    let long = stored.replace("\"args\": [", &format!("\"args\": [\"{}\", ", "x".repeat(5_000_000)));
    for n in 0..20 {
        redis.cli::<()>(&["ZADD", "threadmill:{default}:default:failed", &n.to_string(), &n.to_string()]);
        redis.cli::<()>(&["SET", &format!("threadmill:{{default}}:result:{n}"), &long]);
    }
    let sent = || -> u64 {
        let info: String = redis.cli(&["INFO", "stats"]);
        info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:")).unwrap().parse().unwrap()
    };
    let before = sent();
    let page = backend.page("default", Segment::Failed, 0, 50).await.unwrap();
    assert_eq!(page.rows.len(), 20);
    for row in &page.rows {
        let Summary::Readable(readable) = &row.summary else { panic!("{row:?}") };
        assert_eq!(readable.attempts, Some(1));
        assert_eq!(readable.last_error.as_ref().unwrap().class_path, "builtins.RuntimeError");
        assert!(row.length.unwrap() > 5_000_000);
    }
    assert!(sent() - before < 300_000);
}
