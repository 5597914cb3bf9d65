//! Many tasks in one call: requeue, drop, move, promote and postpone.

use super::finish::{finished, record};
use super::{Lab, Request, WORKER, members, result_key, score, task_key};
use crate::common::Value;
use chrono::{TimeDelta, Utc};
use threadmill::backend::codec::{decode, encode, queued};
use threadmill::backend::scripts::{DROP, MOVE, REQUEUE};
use threadmill::backend::{DropOutcome, MoveOutcome, Outcome, Requeue, RequeueOutcome, RescheduleOutcome, Seen, When};
use threadmill::task::{Segment, TaskId};

/// Runs tasks of a queue to their failure, and answers them as a reader sees them.
async fn failed(lab: &Lab, queue: &str, count: usize) -> Vec<Seen> {
    lab.enqueue(queue, count).await;
    lab.register(WORKER).await;
    let mut number = 1;
    let mut left = count;
    while left > 0 {
        let mut request = Request::new(&[queue], left.min(500));
        (request.number, request.sequence) = (number, number * 1000);
        let leases = request.send(&lab.backend).await.leases;
        let results: Vec<_> = leases.iter().map(|lease| finished(lease, Outcome::Failed)).collect();
        lab.backend.acknowledge(WORKER, None, &results).await.unwrap();
        left -= leases.len();
        number += 1;
    }
    seen(lab, queue, Segment::Failed)
}

/// What a segment lists.
fn seen(lab: &Lab, queue: &str, segment: Segment) -> Vec<Seen> {
    let snapshot = lab.redis.snapshot();
    let suffix = if segment == Segment::Scheduled { "deferred" } else { segment.word() };
    let ids = members(&snapshot, queue, segment);
    ids.into_iter().map(|id| Seen { score: score(&snapshot, queue, suffix, &id), id: id.into() }).collect()
}

#[tokio::test]
async fn many_are_requeued_as_they_were_seen_and_each_has_its_own_answer() {
    let lab = Lab::new();
    let mut seen = failed(&lab, "a:b", 6).await;
    lab.redis.cli::<()>(&["DEL", &result_key(&seen[0].id)]);
    lab.redis.cli::<()>(&["SET", &result_key(&seen[1].id), "{\"task\": 7"]);
    seen[2].score += 1.0;
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:a:b:ready", "1", seen[3].id.as_str()]);
    let before = lab.redis.snapshot();
    let now = Requeue::default();
    let requeue = async || lab.backend.requeue_many("a:b", Segment::Failed, &seen, now).await.unwrap();
    let known = |outcomes: &Vec<Result<RequeueOutcome, _>>| {
        let done = |at: usize| matches!(outcomes[at], Ok(RequeueOutcome::Requeued | RequeueOutcome::Replayed));
        outcomes[0] == Ok(RequeueOutcome::Gone)
            && outcomes[1].is_err()
            && outcomes[2] == Ok(RequeueOutcome::Moved)
            && outcomes[3] == Ok(RequeueOutcome::Moved)
            && done(4)
            && done(5)
    };
    requeue().await;
    let after = lab.redis.snapshot();
    for (at, next) in seen.iter().enumerate().skip(4) {
        let id = &next.id;
        let fields = match &after[&task_key(id)].value {
            Value::Hash(fields) => fields,
            other => panic!("{at}: {other:?}"),
        };
        let stored = decode(fields["data"].as_bytes()).unwrap();
        assert_eq!((stored.errors.len(), stored.worker_ids.len(), stored.finished_at), (1, 1, None));
        assert!(stored.args.as_str().contains("\\ud800"), "user data is carried byte for byte");
        assert!(!after.contains_key(&result_key(id)) && !after[&task_key(id)].expires);
    }
    assert_eq!(members(&after, "a:b", Segment::Ready).len(), 3);
    assert_eq!(members(&after, "a:b", Segment::Failed).len(), 4);
    let touched = |key: &str| seen[4..].iter().any(|next| key.ends_with(next.id.as_str())) || key.ends_with("b:failed");
    before
        .only(|key| !touched(key) && !key.ends_with("b:ready"))
        .assert_same(&after.clone().only(|key| !touched(key) && !key.ends_with("b:ready")));
    assert!(known(&requeue().await), "sent again, it answers for what it did");
    after.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn a_lost_answer_to_a_requeue_of_many_changes_nothing_twice() {
    let lab = Lab::new();
    let seen = failed(&lab, "default", 450).await;
    let later = Requeue { when: When::At(Utc::now() + TimeDelta::days(1)), reset_attempts: true };
    let requeue = async || lab.backend.requeue_many("default", Segment::Failed, &seen, later).await.unwrap();
    lab.replay_of((&REQUEUE, 2), requeue, |outcomes| {
        outcomes.iter().all(|outcome| matches!(outcome, Ok(RequeueOutcome::Requeued | RequeueOutcome::Replayed)))
    })
    .await;
    let snapshot = lab.redis.snapshot();
    assert_eq!(members(&snapshot, "default", Segment::Scheduled).len(), 450);
    assert!(members(&snapshot, "default", Segment::Failed).is_empty());
    let stored = decode(snapshot.field(&task_key(&seen[7].id), "data").unwrap().as_bytes()).unwrap();
    assert_eq!((stored.attempts(), stored.errors.len()), (0, 1), "the attempts begin at one again");
}

#[tokio::test]
async fn many_are_dropped_as_they_were_seen() {
    let lab = Lab::new();
    let before = lab.redis.snapshot();
    lab.enqueue("default", 450).await;
    let mut waiting = seen(&lab, "default", Segment::Ready);
    waiting[449].score -= 5.0;
    let drop = async || lab.backend.drop_many("default", Segment::Ready, &waiting).await.unwrap();
    lab.replay_of((&DROP, 2), drop, |outcomes| {
        let gone = outcomes[..449]
            .iter()
            .all(|outcome| matches!(outcome, DropOutcome::Dropped(Some(Segment::Ready)) | DropOutcome::Gone));
        gone && outcomes[449] == DropOutcome::Moved(Some(Segment::Ready))
    })
    .await;
    assert_eq!(lab.members("default", Segment::Ready), [waiting[449].id.as_str()]);
    waiting[449].score += 5.0;
    lab.backend.drop_many("default", Segment::Ready, &waiting).await.unwrap();
    before.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn waiting_tasks_move_to_another_queue_with_their_score_and_name_it() {
    let lab = Lab::new();
    let mut tasks: Vec<_> = (0..4).map(|_| lab.task("slow")).collect();
    tasks[3].run_after = Some(Utc::now() + TimeDelta::days(1));
    lab.backend.enqueue(&tasks).await.unwrap();
    let mut ready = seen(&lab, "slow", Segment::Ready);
    let scheduled = seen(&lab, "slow", Segment::Scheduled);
    lab.redis.cli::<()>(&["EXPIRE", &task_key(&ready[0].id), "1000"]);
    ready[1].score += 1.0;
    ready.push(Seen { id: TaskId::from("nothing"), score: 1.0 });
    let before = lab.redis.snapshot();
    let go = async || lab.backend.move_many("slow", "größe", Segment::Ready, &ready).await.unwrap();
    lab.replay_of((&MOVE, 1), go, |outcomes| {
        matches!(outcomes[0], Ok(MoveOutcome::Moved | MoveOutcome::Replayed))
            && outcomes[1] == Ok(MoveOutcome::Changed)
            && matches!(outcomes[2], Ok(MoveOutcome::Moved | MoveOutcome::Replayed))
            && outcomes[3] == Ok(MoveOutcome::Gone)
    })
    .await;
    let moved = lab.backend.move_many("slow", "größe", Segment::Scheduled, &scheduled).await.unwrap();
    assert_eq!(moved, [Ok(MoveOutcome::Moved)]);
    let after = lab.redis.snapshot();
    assert_eq!(members(&after, "größe", Segment::Ready), [ready[0].id.as_str(), ready[2].id.as_str()]);
    assert_eq!(members(&after, "größe", Segment::Scheduled), [scheduled[0].id.as_str()]);
    assert_eq!(members(&after, "slow", Segment::Ready), [ready[1].id.as_str()]);
    assert_eq!(score(&after, "größe", "ready", ready[0].id.as_str()), ready[0].score);
    let key = task_key(&ready[0].id);
    let mut expected = decode(before.field(&key, "data").unwrap().as_bytes()).unwrap();
    expected.spec.queue_name = "größe".into();
    assert_eq!(after.field(&key, "data"), Some(encode(&expected).as_str()));
    assert!(!after[&key].expires, "pending work has no end");
    assert_eq!(before.len() + 1, after.len(), "two sorted sets came, one went");
}

#[tokio::test]
async fn a_task_that_runs_or_changed_meanwhile_stays_in_its_queue() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let waiting = seen(&lab, "default", Segment::Ready);
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    let before = lab.redis.snapshot();
    let outcomes = lab.backend.move_many("default", "other", Segment::Ready, &waiting).await.unwrap();
    assert_eq!(outcomes, [Ok(MoveOutcome::Running)]);
    before.assert_same(&lab.redis.snapshot());
    let refused = lab.backend.move_many("default", "other", Segment::Running, &waiting).await;
    assert!(refused.unwrap_err().to_string().contains("RUNNING"));
    assert!(lab.backend.move_many("default", "default", Segment::Ready, &waiting).await.is_err());
    assert_eq!(record(&lease).spec.queue_name, "default");
}

#[tokio::test]
async fn scheduled_tasks_are_promoted_and_postponed_as_they_were_seen() {
    let lab = Lab::new();
    let mut tasks: Vec<_> = (0..3).map(|_| lab.task("default")).collect();
    for task in &mut tasks {
        task.run_after = Some(Utc::now() + TimeDelta::days(1));
    }
    lab.backend.enqueue(&tasks).await.unwrap();
    let mut scheduled = seen(&lab, "default", Segment::Scheduled);
    let later = Utc::now() + TimeDelta::days(9);
    let one = [scheduled[0].clone()];
    lab.replay(
        async || lab.backend.reschedule_many("default", &one, When::At(later)).await.unwrap(),
        |outcomes| matches!(outcomes[0], RescheduleOutcome::Rescheduled | RescheduleOutcome::Replayed),
    )
    .await;
    let due = later.timestamp_micros() as f64 / 1_000.0;
    assert_eq!(score(&lab.redis.snapshot(), "default", "deferred", one[0].id.as_str()), due);
    lab.redis.cli::<()>(&["EXPIRE", &task_key(&scheduled[1].id), "1000"]);
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:deferred", "5", "ghost"]);
    scheduled.push(Seen { id: TaskId::from("ghost"), score: 5.0 });
    scheduled[2].score += 1.0;
    let promote = async || lab.backend.reschedule_many("default", &scheduled, When::Now).await.unwrap();
    lab.replay(promote, |outcomes| {
        outcomes[0] == RescheduleOutcome::Changed
            && matches!(outcomes[1], RescheduleOutcome::Rescheduled | RescheduleOutcome::Replayed)
            && outcomes[2] == RescheduleOutcome::Changed
            && outcomes[3] == RescheduleOutcome::Gone
    })
    .await;
    let snapshot = lab.redis.snapshot();
    let key = task_key(&scheduled[1].id);
    assert_eq!(members(&snapshot, "default", Segment::Ready), [scheduled[1].id.as_str()]);
    let expected: f64 = snapshot.field(&key, "score").unwrap().parse().unwrap();
    assert_eq!(score(&snapshot, "default", "ready", scheduled[1].id.as_str()), expected);
    assert!(!snapshot[&key].expires);
    assert_eq!(members(&snapshot, "default", Segment::Scheduled).len(), 3);
}

#[tokio::test]
async fn a_requeue_of_many_says_how_fast_it_is() {
    let count = if std::env::var_os("THREADMILL_LONG").is_some() { 344_000 } else { 5_000 };
    let lab = Lab::new();
    let redis_url = threadmill::backend::RedisUrl::parse(&lab.redis.url()).unwrap();
    let backend = threadmill::backend::Backend::new(threadmill::backend::Settings::new(redis_url)).unwrap();
    let task = lab.task("default");
    let text = encode(&queued(&task, "default", Utc::now()));
    let script = "for i = 1, tonumber(ARGV[1]) do \
        redis.call('SET', KEYS[2] .. i, ARGV[2], 'EX', 10000) redis.call('ZADD', KEYS[1], i, i) end";
    let (failed, result, many) = ("threadmill:{default}:default:failed", result_key(""), count.to_string());
    lab.redis.cli::<()>(&["EVAL", script, "2", failed, &result, &many, &text]);
    let seen: Vec<_> =
        (1..=count).map(|n: u32| Seen { id: TaskId::from(n.to_string()), score: f64::from(n) }).collect();
    let start = std::time::Instant::now();
    let mut requeued = 0;
    for slice in seen.chunks(10_000) {
        let outcomes = backend.requeue_many("default", Segment::Failed, slice, Requeue::default()).await.unwrap();
        requeued += outcomes.iter().filter(|outcome| **outcome == Ok(RequeueOutcome::Requeued)).count();
    }
    println!("requeued {requeued} at {:.0} a second", requeued as f64 / start.elapsed().as_secs_f64());
    assert_eq!(requeued, seen.len());
}

#[tokio::test]
async fn large_records_are_read_in_slices_of_bytes() {
    let lab = Lab::new();
    let failed_key = "threadmill:{default}:default:failed";
    let mut seen = Vec::new();
    for n in 0..5 {
        let mut task = lab.task("default");
        task.args = threadmill::task::RawJson::new(format!("[\"{}\"]", "x".repeat(3 << 20)));
        let text = encode(&queued(&task, "default", Utc::now()));
        let score = format!("{}", 1000 + n);
        lab.redis.cli::<()>(&["SET", &result_key(&task.id), &text]);
        lab.redis.cli::<()>(&["ZADD", failed_key, &score, task.id.as_str()]);
        seen.push(Seen { id: task.id, score: f64::from(1000 + n) });
    }
    lab.redis.reset_stats();
    let outcomes = lab.backend.requeue_many("default", Segment::Failed, &seen, Requeue::default()).await.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == Ok(RequeueOutcome::Requeued)), "{outcomes:?}");
    let stats = lab.redis.commandstats();
    assert!(stats["evalsha"] + stats["evalsha_ro"] >= 6, "two records fit one call");
}
