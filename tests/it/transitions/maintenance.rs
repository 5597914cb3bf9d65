//! mover, reaper, takeover of silent workers, persist.

use super::{Lab, Request, WORKER, members, score, task_key};
use crate::common::eventually_async;
use chrono::{TimeDelta, Utc};
use std::time::Duration;
use threadmill::backend::{AcknowledgeOutcome, Acknowledgement, Beat, Cursor, Outcome, Registration, TakenOver};
use threadmill::task::Segment;

const DEFERRED: &str = "threadmill:{default}:default:deferred";

#[tokio::test]
async fn the_mover_moves_what_is_due_and_says_when_the_next_is() {
    let lab = Lab::new();
    let mut tasks: Vec<_> = (0..5).map(|_| lab.task("default")).collect();
    for (n, task) in tasks.iter_mut().enumerate() {
        task.priority = n as i32;
        task.run_after = Some(Utc::now() + TimeDelta::seconds(if n < 4 { -10 } else { 1000 }));
    }
    lab.backend.enqueue(&tasks).await.unwrap();
    lab.redis.cli::<()>(&["ZADD", DEFERRED, "1", "ghost"]);
    lab.redis.cli::<()>(&["EXPIRE", &task_key(&tasks[1].id), "1000"]);
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:running", "9999999999999", tasks[0].id.as_str()]);
    let moved = lab.backend.move_due(&["default"], 2).await.unwrap().remove(0);
    assert!(moved.more);
    lab.replay(async || lab.backend.move_due(&["default"], 100).await.unwrap().remove(0), |moved| !moved.more).await;
    let snapshot = lab.redis.snapshot();
    let expected: Vec<_> = [3, 2, 1].map(|n: usize| tasks[n].id.to_string()).to_vec();
    assert_eq!(members(&snapshot, "default", Segment::Ready), expected, "highest priority first, the running one not");
    assert_eq!(members(&snapshot, "default", Segment::Scheduled), [tasks[4].id.as_str()]);
    assert_eq!(snapshot.members("threadmill-rs:{default}:quarantine:default"), ["ghost"]);
    assert!(!snapshot[&task_key(&tasks[1].id)].expires);
    let next = lab.backend.move_due(&["default"], 100).await.unwrap().remove(0).next_due.unwrap();
    assert!((next - score(&snapshot, "default", "deferred", tasks[4].id.as_str())).abs() < 0.01);
    assert_eq!(lab.backend.move_due(&["nothing"], 100).await.unwrap().remove(0).next_due, None);
}

#[tokio::test]
async fn the_reaper_claims_what_is_over_and_the_late_holder_is_refused() {
    let lab = Lab::new();
    lab.enqueue("default", 2).await;
    let leases = lab.acquire("default", 2, 2).await;
    let running = "threadmill:{default}:default:running";
    lab.redis.cli::<()>(&["ZADD", running, "1000", leases[0].id.as_str()]);
    lab.redis.cli::<()>(&["ZADD", running, "500", "ghost", "600", "done"]);
    lab.redis.cli::<()>(&["SET", "threadmill:{default}:result:done", "{}"]);
    let reaped = lab.backend.reap(&["default"]).await.unwrap().remove(0);
    assert_eq!((reaped.claimed.len(), reaped.ghosts.len(), reaped.finished, reaped.more), (1, 1, 1, false));
    let claimed = &reaped.claimed[0];
    assert_eq!((claimed.id.clone(), claimed.worker.as_str()), (leases[0].id.clone(), WORKER));
    assert_eq!(claimed.data, leases[0].data);
    assert!(claimed.started_at.is_some());
    let late = Acknowledgement {
        id: leases[0].id.clone(),
        queue: "default".into(),
        token: leases[0].token.clone(),
        outcome: Outcome::Successful,
        result: "{}".into(),
    };
    let by_claim = Acknowledgement { token: claimed.token.clone(), ..late.clone() };
    let answers = lab.backend.acknowledge(WORKER, None, &[late]).await.unwrap();
    assert_eq!(answers, [AcknowledgeOutcome::Lost]);
    lab.replay(async || lab.backend.reap(&["default"]).await.unwrap().remove(0).claimed.len(), |count| *count == 0)
        .await;
    let answers = lab.backend.acknowledge(WORKER, None, &[by_claim]).await.unwrap();
    assert_eq!(answers, [AcknowledgeOutcome::Stored]);
    assert_eq!(lab.members("default", Segment::Running), [leases[1].id.as_str()]);
}

/// Watches until the worker counts as silent.
async fn wait_until_silent(lab: &Lab, silence: Duration) {
    eventually_async("the worker is named as silent", async || {
        let watch = lab.backend.watch_workers(silence, Duration::from_secs(10)).await.unwrap();
        watch.silent.contains(&WORKER.to_owned())
    })
    .await;
}

#[tokio::test]
async fn a_silent_worker_s_unstarted_leases_go_back_and_its_started_ones_are_claimed() {
    let lab = Lab::new();
    let silence = Duration::from_millis(100);
    lab.enqueue("default", 4).await;
    lab.enqueue("other", 1).await;
    lab.register("host:2-bbbb").await;
    let leases = lab.acquire("default", 4, 1).await;
    let registration =
        Registration { worker: WORKER.into(), ttl: Duration::from_secs(600), mark: Some(2), ..Registration::default() };
    lab.backend.beat(&registration).await.unwrap();
    let before = lab.redis.snapshot();
    let alive = lab.backend.take_over(WORKER, "default", Duration::from_secs(600), &Cursor::default()).await.unwrap();
    assert!(matches!(alive, TakenOver::Alive));
    before.assert_same(&lab.redis.snapshot());
    wait_until_silent(&lab, silence).await;
    let taken = lab.backend.take_over(WORKER, "default", silence, &Cursor::default()).await.unwrap();
    let TakenOver::Taken { claimed, given_back, next: None } = taken else { panic!("{taken:?}") };
    let started: Vec<_> = claimed.iter().map(|claim| claim.id.clone()).collect();
    assert_eq!((started, given_back), (vec![leases[0].id.clone(), leases[1].id.clone()], 2));
    assert_eq!(lab.members("default", Segment::Ready).len(), 2);
    let again = lab.backend.take_over(WORKER, "default", silence, &Cursor::default()).await.unwrap();
    let TakenOver::Taken { claimed, given_back: 0, next: None } = again else { panic!("{again:?}") };
    assert!(claimed.is_empty(), "what is claimed is not claimed twice");
    assert_eq!(lab.backend.beat(&registration).await.unwrap(), Beat::Unregistered, "it cannot come back");
    let mut request = Request::new(&["other"], 1);
    request.number = 9;
    let answer = request.answer(&lab.backend).await;
    assert!(matches!(answer, threadmill::backend::AcquireAnswer::Unregistered), "{answer:?}");
}

#[tokio::test]
async fn after_a_gap_nobody_is_declared_gone_until_a_whole_interval_was_watched() {
    let lab = Lab::new();
    lab.register(WORKER).await;
    let (silence, no_gap) = (Duration::from_millis(50), Duration::from_millis(0));
    for _ in 0..20 {
        let watch = lab.backend.watch_workers(silence, no_gap).await.unwrap();
        assert_eq!(watch.silent, Vec::<String>::new(), "each look comes after a gap: nothing was watched");
        assert_eq!(watch.since, watch.now);
    }
    wait_until_silent(&lab, silence).await;
}

#[tokio::test]
async fn persist_takes_the_end_off_listed_records_only() {
    let lab = Lab::new();
    let tasks = lab.enqueue("default", 150).await;
    for task in &tasks {
        lab.redis.cli::<()>(&["EXPIRE", &task_key(&task.id), "1000"]);
    }
    lab.redis.cli::<()>(&["SET", &task_key("orphan"), "x", "EX", "1000"]);
    let first = lab.backend.persist("default", Segment::Ready, &Cursor::default(), 100).await.unwrap();
    assert!(first.soonest.is_some_and(|soonest| soonest <= Duration::from_secs(1000)));
    // What leaves meanwhile shifts every rank; the walk goes on behind the entry that it remembers.
    lab.redis.cli::<()>(&["ZPOPMIN", "threadmill:{default}:default:ready", "100"]);
    let cursor = first.next.unwrap();
    let persist = async || lab.backend.persist("default", Segment::Ready, &cursor, 100).await.unwrap();
    lab.replay(persist, |second| second.seen == 50 && second.next.is_none()).await;
    assert_eq!(first.persisted, 100);
    let snapshot = lab.redis.snapshot();
    assert!(tasks.iter().all(|task| !snapshot[&task_key(&task.id)].expires));
    assert!(snapshot[&task_key("orphan")].expires);
}
