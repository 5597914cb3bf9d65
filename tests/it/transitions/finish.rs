//! acknowledge, retry, requeue.

use super::{Lab, WORKER, members, result_key, score, task_key};
use crate::common::Value;
use chrono::Utc;
use std::time::Duration;
use threadmill::backend::codec::{Attempt, decode, encode, encode_error, failure, next_attempt, success};
use threadmill::backend::{
    AcknowledgeOutcome, Acknowledgement, Leased, Outcome, RequeueOutcome, Retried, RetryRequest, Token, When,
};
use threadmill::task::{RawJson, Segment, TaskRecord};

fn attempt() -> Attempt {
    Attempt { worker: WORKER.into(), started_at: Utc::now(), finished_at: Utc::now() }
}

pub fn record(lease: &Leased) -> TaskRecord {
    decode(&lease.data).unwrap()
}

pub fn finished(lease: &Leased, outcome: Outcome) -> Acknowledgement {
    let result = match outcome {
        Outcome::Successful => success(&record(lease), &attempt(), RawJson::new("[NaN]")),
        Outcome::Failed => failure(&record(lease), &attempt(), encode_error("builtins.ValueError", "boom\n")),
    };
    Acknowledgement {
        id: lease.id.clone(),
        queue: lease.queue.clone(),
        token: lease.token.clone(),
        outcome,
        result: encode(&result),
    }
}

#[tokio::test]
async fn acknowledge_turns_leases_into_results() {
    let lab = Lab::new();
    lab.enqueue("default", 3).await;
    let leases = lab.acquire("default", 3, 1).await;
    let results = [finished(&leases[0], Outcome::Successful), finished(&leases[1], Outcome::Failed)];
    let fine = |answers: &Vec<AcknowledgeOutcome>| !answers.contains(&AcknowledgeOutcome::Lost);
    lab.replay(async || lab.backend.acknowledge(WORKER, Some(3), &results).await.unwrap(), fine).await;
    let snapshot = lab.redis.snapshot();
    assert_eq!(members(&snapshot, "default", Segment::Successful), [leases[0].id.as_str()]);
    assert_eq!(members(&snapshot, "default", Segment::Failed), [leases[1].id.as_str()]);
    assert_eq!(members(&snapshot, "default", Segment::Running), [leases[2].id.as_str()]);
    for (lease, result) in leases.iter().zip(&results) {
        let entry = &snapshot[&result_key(&lease.id)];
        assert_eq!(entry.value, Value::Text(result.result.clone()));
        assert!(entry.expires);
        assert!(!snapshot.contains_key(&task_key(&lease.id)));
    }
    assert_eq!(snapshot.field("threadmill-rs:{default}:worker:host:1-aaaa", "mark"), Some("3"));
}

#[tokio::test]
async fn a_late_result_is_discarded() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    let mut result = finished(&lease, Outcome::Successful);
    result.token = Token::new();
    let before = lab.redis.snapshot();
    let outcomes = lab.backend.acknowledge(WORKER, None, &[result]).await.unwrap();
    assert_eq!(outcomes, [AcknowledgeOutcome::Lost]);
    before.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn acknowledge_trims_history_that_outlived_its_results() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:failed", "1000", "ancient"]);
    lab.backend.acknowledge(WORKER, None, &[finished(&lease, Outcome::Failed)]).await.unwrap();
    assert_eq!(lab.members("default", Segment::Failed), [lease.id.as_str()]);
}

#[tokio::test]
async fn retry_waits_for_its_time_and_keeps_no_lease() {
    let lab = Lab::new();
    lab.enqueue("default", 2).await;
    let leases = lab.acquire("default", 2, 2).await;
    let request = |lease: &Leased, delay: u64| RetryRequest {
        id: lease.id.clone(),
        queue: lease.queue.clone(),
        token: lease.token.clone(),
        record: next_attempt(&record(lease), &attempt(), encode_error("builtins.ValueError", "boom\n")),
        delay: Duration::from_secs(delay),
    };
    lab.redis.cli::<()>(&["EXPIRE", &task_key(&leases[0].id), "1000"]);
    let requests = [request(&leases[0], 500), request(&leases[1], 0)];
    let send = async || -> Vec<Retried> {
        lab.backend.retry(&requests).await.unwrap().into_iter().map(|answer| answer.unwrap()).collect()
    };
    lab.replay(send, |answers| !answers.contains(&Retried::Lost)).await;
    let snapshot = lab.redis.snapshot();
    assert_eq!(members(&snapshot, "default", Segment::Scheduled), [leases[0].id.as_str()]);
    assert_eq!(members(&snapshot, "default", Segment::Ready), [leases[1].id.as_str()]);
    assert_eq!(members(&snapshot, "default", Segment::Running), Vec::<String>::new());
    let key = task_key(&leases[0].id);
    assert!(!snapshot[&key].expires, "pending work has no end");
    assert_eq!(snapshot.field(&key, "lease_worker"), Some(""));
    let stored = decode(snapshot.field(&key, "data").unwrap().as_bytes()).unwrap();
    assert_eq!((stored.errors.len(), stored.worker_ids.as_slice()), (1, &[WORKER.to_owned()][..]));
    let due = score(&snapshot, "default", "deferred", leases[0].id.as_str());
    assert!(due > Utc::now().timestamp_millis() as f64 + 400_000.0);
}

#[tokio::test]
async fn requeue_runs_a_finished_task_again_and_only_the_finish_that_was_seen() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    lab.backend.acknowledge(WORKER, None, &[finished(&lease, Outcome::Failed)]).await.unwrap();
    let detail = lab.backend.find(&lease.id, None).await.unwrap().unwrap();
    let (record, seen) = (detail.record().unwrap().clone(), detail.score().unwrap());
    let requeue = async |seen| lab.backend.requeue(&record, "default", Segment::Failed, seen, When::Now).await.unwrap();
    let before = lab.redis.snapshot();
    assert_eq!(requeue(seen - 1.0).await, RequeueOutcome::Moved);
    before.assert_same(&lab.redis.snapshot());
    let fine = |outcome: &RequeueOutcome| matches!(outcome, RequeueOutcome::Requeued | RequeueOutcome::Replayed);
    lab.replay(async || requeue(seen).await, fine).await;
    let snapshot = lab.redis.snapshot();
    assert_eq!(members(&snapshot, "default", Segment::Ready), [lease.id.as_str()]);
    assert_eq!(members(&snapshot, "default", Segment::Failed), Vec::<String>::new());
    assert!(!snapshot.contains_key(&result_key(&lease.id)));
    let stored = decode(snapshot.field(&task_key(&lease.id), "data").unwrap().as_bytes()).unwrap();
    assert_eq!((stored.errors.len(), stored.worker_ids.len(), stored.finished_at), (1, 1, None));
    lab.redis.cli::<()>(&["DEL", &task_key(&lease.id), "threadmill:{default}:default:ready"]);
    assert_eq!(requeue(seen).await, RequeueOutcome::Gone);
}
