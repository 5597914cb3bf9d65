//! enqueue, acquire, give back, quarantine, heartbeat.

use super::{Lab, Request, WORKER, members, score, task_key};
use crate::common::Value;
use chrono::{TimeDelta, Utc};
use threadmill::backend::{
    AcquireAnswer, Beat, EnqueueOutcome, GiveBackOutcome, QuarantineOutcome, Registration, SetAsideReason, Unstarted,
};
use threadmill::task::{Segment, TaskId};

#[tokio::test]
async fn enqueue_stores_a_record_without_an_end_and_lists_it() {
    let lab = Lab::new();
    let mut later = lab.task("emails");
    later.run_after = Some(Utc::now() + TimeDelta::days(400));
    later.priority = 7;
    let task = lab.task("a:b");
    lab.backend.enqueue(&[task.clone(), later.clone()]).await.unwrap();
    let snapshot = lab.redis.snapshot();
    assert_eq!(snapshot.len(), 4, "{snapshot:?}");
    assert_eq!(members(&snapshot, "a:b", Segment::Ready), [task.id.as_str()]);
    assert_eq!(members(&snapshot, "emails", Segment::Scheduled), [later.id.as_str()]);
    for id in [&task.id, &later.id] {
        let entry = &snapshot[&task_key(id)];
        assert!(!entry.expires);
        let Value::Hash(fields) = &entry.value else { panic!() };
        assert_eq!(fields.keys().collect::<Vec<_>>(), ["data", "score"]);
        assert!(fields["data"].contains(task.args.as_str()), "user data is carried byte for byte");
    }
    let due = later.run_after.unwrap().timestamp_micros() as f64 / 1000.0;
    assert_eq!(score(&snapshot, "emails", "deferred", later.id.as_str()), due);
    assert!(snapshot.field(&task_key(&later.id), "score").unwrap().starts_with("-6820"), "priority 7 goes ahead");
}

#[tokio::test]
async fn enqueue_twice_stores_once_and_an_idempotency_key_names_the_first() {
    let lab = Lab::new();
    let (mut task, mut other) = (lab.task("default"), lab.task("default"));
    let tasks = [task.clone()];
    lab.replay(
        async || lab.backend.enqueue(&tasks).await.unwrap(),
        |answer| answer[0].outcome != EnqueueOutcome::Duplicate,
    )
    .await;
    assert_eq!(lab.members("default", Segment::Ready).len(), 1);
    (task.id, task.idempotency, other.idempotency) =
        (TaskId::from("first"), Some("order 7".into()), Some("order 7".into()));
    let both = [task.clone(), other.clone()];
    let answers = lab.backend.enqueue(&both).await.unwrap();
    assert_eq!(
        answers.iter().map(|a| a.outcome).collect::<Vec<_>>(),
        [EnqueueOutcome::Stored, EnqueueOutcome::Duplicate]
    );
    assert_eq!(answers[1].id, task.id);
    let tasks = [other];
    lab.replay(async || lab.backend.enqueue(&tasks).await.unwrap(), |answer| answer[0].id.as_str() == "first").await;
    assert_eq!(lab.members("default", Segment::Ready).len(), 2);
}

#[tokio::test]
async fn enqueue_refuses_what_would_break_a_reader() {
    let lab = Lab::new();
    for (args, part) in [("[1,]", "JSON"), ("{}", "list"), (r#"[{"task": {"func": "os.system"}}]"#, "task")] {
        let mut task = lab.task("default");
        task.args = threadmill::task::RawJson::new(args);
        let error = lab.backend.enqueue(&[task]).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    assert!(lab.redis.snapshot().is_empty());
}

#[tokio::test]
async fn acquire_takes_from_queues_in_rotation_by_score() {
    let lab = Lab::new();
    let a = lab.enqueue("a", 3).await;
    let b = lab.enqueue("b b", 1).await;
    lab.register(WORKER).await;
    let mut request = Request::new(&["a", "b b", "empty"], 3);
    request.sequence = 40;
    let granted = request.send(&lab.backend).await.leases;
    let got: Vec<_> = granted.iter().map(|lease| (lease.id.clone(), lease.queue.as_str(), lease.sequence)).collect();
    assert_eq!(got, [(a[0].id.clone(), "a", 40), (b[0].id.clone(), "b b", 41), (a[1].id.clone(), "a", 42)]);
    let snapshot = lab.redis.snapshot();
    assert_eq!(members(&snapshot, "a", Segment::Ready), [a[2].id.as_str()]);
    assert_eq!(members(&snapshot, "a", Segment::Running), [a[0].id.as_str(), a[1].id.as_str()]);
    let key = task_key(&a[1].id);
    assert_eq!(snapshot.field(&key, "lease_worker"), Some(WORKER));
    assert_eq!(snapshot.field(&key, "lease_token"), Some(request.token.as_str()));
    assert_eq!(snapshot.field(&key, "rs_sequence"), Some("42"));
    let started = snapshot.field(&key, "lease_started_at").unwrap();
    let at = chrono::DateTime::parse_from_str(started, "%Y-%m-%dT%H:%M:%S%.6f+00:00").map(|_| ()).is_ok()
        || chrono::DateTime::parse_from_rfc3339(started).is_ok();
    assert!(at && started.len() == 32 && started.ends_with("+00:00"), "{started}");
    let deadline = score(&snapshot, "a", "running", a[1].id.as_str());
    let begun = chrono::DateTime::parse_from_rfc3339(started).unwrap().timestamp_micros() as f64 / 1000.0;
    assert!((deadline - begun - 3_600_000.0).abs() <= 0.51, "{deadline} {begun}");
    assert_eq!(snapshot.field("threadmill-rs:{default}:worker:host:1-aaaa", "mark"), Some("42"));
}

#[tokio::test]
async fn acquire_sent_again_answers_the_same_leases() {
    let lab = Lab::new();
    lab.enqueue("default", 5).await;
    lab.register(WORKER).await;
    let request = Request::new(&["default"], 3);
    let ids = |acquired: &threadmill::backend::Acquired| -> Vec<_> {
        acquired.leases.iter().map(|lease| (lease.id.clone(), lease.sequence, lease.data.clone())).collect()
    };
    let first = request.send(&lab.backend).await;
    assert_eq!(first.leases.len(), 3);
    lab.replay(async || request.send(&lab.backend).await, |again| ids(again) == ids(&first)).await;
    let mut next = Request::new(&["default"], 9);
    (next.number, next.sequence) = (2, 4);
    lab.replay(async || next.send(&lab.backend).await.leases.len(), |count| *count == 2).await;
    assert!(matches!(request.answer(&lab.backend).await, AcquireAnswer::Superseded));
}

#[tokio::test]
async fn acquire_needs_a_registered_worker() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let before = lab.redis.snapshot();
    assert!(matches!(Request::new(&["default"], 1).answer(&lab.backend).await, AcquireAnswer::Unregistered));
    before.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn acquire_stops_at_the_byte_budget_and_grants_one_always() {
    let lab = Lab::new();
    lab.enqueue("default", 3).await;
    lab.register(WORKER).await;
    let mut request = Request::new(&["default"], 3);
    request.byte_budget = 10;
    assert_eq!(request.send(&lab.backend).await.leases.len(), 1);
    assert_eq!(lab.members("default", Segment::Ready).len(), 2);
}

#[tokio::test]
async fn what_cannot_be_granted_harms_no_neighbour() {
    let lab = Lab::new();
    let ready = "threadmill:{default}:default:ready";
    for n in 0..150 {
        lab.redis.cli::<()>(&["ZADD", ready, &(n - 150).to_string(), &format!("ghost-{n}")]);
    }
    lab.redis.cli::<()>(&["ZADD", ready, "-500", "odd"]);
    lab.redis.cli::<()>(&["SET", &task_key("odd"), "x"]);
    let tasks = lab.enqueue("default", 2).await;
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:running", "9999999999999", tasks[0].id.as_str()]);
    lab.redis.cli::<()>(&["SET", "threadmill:{default}:broken:ready", "x"]);
    lab.register(WORKER).await;
    let acquired = Request::new(&["broken", "default"], 1).send(&lab.backend).await;
    assert_eq!(acquired.leases.iter().map(|l| l.id.clone()).collect::<Vec<_>>(), [tasks[1].id.clone()]);
    let count = |reason| acquired.set_aside.iter().filter(|aside| aside.reason == reason).count();
    assert_eq!(count(SetAsideReason::Ghost), 150);
    assert_eq!(count(SetAsideReason::NotAHash), 1);
    assert_eq!(count(SetAsideReason::Duplicate), 1);
    assert_eq!(count(SetAsideReason::WrongType), 1);
    let snapshot = lab.redis.snapshot();
    assert_eq!(snapshot.members("threadmill-rs:{default}:quarantine:default").len(), 151);
    assert_eq!(members(&snapshot, "default", Segment::Ready), Vec::<String>::new());
    assert_eq!(members(&snapshot, "default", Segment::Running).len(), 2);
}

#[tokio::test]
async fn give_back_charges_nothing() {
    let lab = Lab::new();
    let tasks = lab.enqueue("default", 2).await;
    let before = lab.redis.snapshot();
    let leases = lab.acquire("default", 2, 0).await;
    let unstarted: Vec<_> = leases
        .iter()
        .map(|lease| Unstarted { id: lease.id.clone(), queue: lease.queue.clone(), token: lease.token.clone() })
        .collect();
    let fine = |answers: &Vec<GiveBackOutcome>| !answers.contains(&GiveBackOutcome::Lost);
    lab.replay(async || lab.backend.give_back(&unstarted).await.unwrap(), fine).await;
    let after = lab.redis.snapshot();
    let ready = "threadmill:{default}:default:ready";
    assert_eq!(after.value(ready), before.value(ready), "the same ids with the same scores");
    assert_eq!(members(&after, "default", Segment::Running), Vec::<String>::new());
    for task in &tasks {
        let key = task_key(&task.id);
        assert_eq!(after.field(&key, "data"), before.field(&key, "data"));
        assert_eq!(after.field(&key, "lease_token"), Some(""), "emptied, never removed");
    }
}

#[tokio::test]
async fn an_unreadable_task_is_set_aside_byte_for_byte() {
    let lab = Lab::new();
    let key = task_key("broken");
    lab.redis.cli::<()>(&["HSET", &key, "data", "{\"task\": oops", "score", "5"]);
    lab.redis.cli::<()>(&["EXPIRE", &key, "1000"]);
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:ready", "5", "broken"]);
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    let fine = |outcome: &QuarantineOutcome| *outcome != QuarantineOutcome::Lost;
    lab.replay(async || lab.backend.quarantine(&lease.id, "default", &lease.token).await.unwrap(), fine).await;
    let snapshot = lab.redis.snapshot();
    assert_eq!(snapshot.field(&key, "data"), Some("{\"task\": oops"));
    assert!(!snapshot[&key].expires);
    assert_eq!(snapshot.members("threadmill-rs:{default}:quarantine:default"), ["broken"]);
    assert_eq!(members(&snapshot, "default", Segment::Running), Vec::<String>::new());
}

#[tokio::test]
async fn heartbeats_keep_a_registration_and_cannot_make_one() {
    let lab = Lab::new();
    let ttl = std::time::Duration::from_secs(100);
    let mut worker = Registration { worker: WORKER.into(), ttl, pid: 7, mark: Some(5), ..Registration::default() };
    assert_eq!(lab.backend.beat(&worker).await.unwrap(), Beat::Unregistered);
    assert!(lab.redis.snapshot().is_empty());
    assert!(matches!(lab.backend.register(&worker).await.unwrap(), Beat::Alive(_)));
    worker.mark = Some(3);
    assert!(matches!(lab.backend.beat(&worker).await.unwrap(), Beat::Alive(_)));
    let key = "threadmill-rs:{default}:worker:host:1-aaaa";
    let snapshot = lab.redis.snapshot();
    assert_eq!(snapshot.field(key, "mark"), Some("5"), "the mark only rises");
    assert!(snapshot[key].expires);
    let known = lab.backend.workers().await.unwrap();
    assert_eq!((known.len(), known[0].pid, known[0].dead), (1, 7, false));
    lab.replay(async || lab.backend.deregister(WORKER).await.unwrap(), |()| true).await;
    assert!(lab.redis.snapshot().is_empty());
}
