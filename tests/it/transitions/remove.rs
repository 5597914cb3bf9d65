//! drop, purge.

use super::{Lab, task_key};
use crate::common::{Snapshot, TestRedis};
use threadmill::backend::{DropOutcome, PurgeScope};
use threadmill::task::{Segment, TaskId};

/// Fills a queue with one finished task and one whose result is gone.
fn seed_finished(redis: &TestRedis, queue: &str) {
    let failed = format!("threadmill:{{default}}:{queue}:failed");
    redis.cli::<()>(&["ZADD", &failed, "10", "a", "20", "b"]);
    redis.cli::<()>(&["SET", "threadmill:{default}:result:a", "{}", "EX", "1000"]);
}

#[tokio::test]
async fn drop_removes_the_task_with_all_that_is_its_own() {
    let lab = Lab::new();
    let others = lab.enqueue("default", 2).await;
    let before = lab.redis.snapshot();
    let task = lab.enqueue("default", 1).await.remove(0);
    let drop = async || lab.backend.drop_task(&task.id, "default", None).await.unwrap();
    let fine =
        |outcome: &DropOutcome| matches!(outcome, DropOutcome::Dropped(Some(Segment::Ready)) | DropOutcome::Gone);
    lab.replay(drop, fine).await;
    before.assert_same(&lab.redis.snapshot());
    seed_finished(&lab.redis, "default");
    let failed = Some((Segment::Failed, Some(10.0)));
    let a = TaskId::from("a");
    let outcome = lab.backend.drop_task(&a, "default", Some((Segment::Failed, Some(11.0)))).await.unwrap();
    assert_eq!(outcome, DropOutcome::Moved(Some(Segment::Failed)));
    assert_eq!(
        lab.backend.drop_task(&a, "default", failed).await.unwrap(),
        DropOutcome::Dropped(Some(Segment::Failed))
    );
    assert_eq!(lab.backend.drop_task(&a, "default", None).await.unwrap(), DropOutcome::Gone);
    let outcome = lab.backend.drop_task(&others[0].id, "default", failed).await.unwrap();
    assert_eq!(outcome, DropOutcome::Moved(Some(Segment::Ready)));
}

#[tokio::test]
async fn drop_leaves_a_running_task_alone_unless_it_is_asked_for() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    let before = lab.redis.snapshot();
    assert_eq!(lab.backend.drop_task(&lease.id, "default", None).await.unwrap(), DropOutcome::Running);
    before.assert_same(&lab.redis.snapshot());
    let outcome = lab.backend.drop_task(&lease.id, "default", Some((Segment::Running, None))).await.unwrap();
    assert_eq!(outcome, DropOutcome::Dropped(Some(Segment::Running)));
    assert!(!lab.redis.snapshot().contains_key(&task_key(&lease.id)));
}

/// Purges a segment to its end and counts.
async fn purge(lab: &Lab, queue: &str, scope: PurgeScope, max: Option<f64>) -> u64 {
    let mut removed = 0;
    loop {
        let slice = lab.backend.purge_slice(queue, scope, max).await.unwrap();
        removed += slice.removed;
        if slice.left == 0 {
            return removed;
        }
    }
}

#[tokio::test]
async fn purge_touches_one_segment_of_one_queue_and_leaves_nothing_of_it() {
    let lab = Lab::new();
    // Names that a pattern would confuse.
    for queue in ["a:b", "a", "a*", "task", "result"] {
        lab.enqueue(queue, 2).await;
    }
    let before = lab.redis.snapshot();
    lab.enqueue("*", 1200).await;
    assert_eq!(purge(&lab, "*", PurgeScope::Segment(Segment::Ready), None).await, 1200);
    before.assert_same(&lab.redis.snapshot());
    seed_finished(&lab.redis, "a");
    assert_eq!(purge(&lab, "a", PurgeScope::Segment(Segment::Failed), Some(15.0)).await, 1);
    assert_eq!(lab.members("a", Segment::Failed), ["b"]);
    assert_eq!(purge(&lab, "a", PurgeScope::Segment(Segment::Failed), None).await, 1);
    before.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn purge_leaves_the_record_of_what_waits_elsewhere_as_well() {
    let lab = Lab::new();
    let task = lab.enqueue("default", 1).await.remove(0);
    let before = lab.redis.snapshot();
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:deferred", "1", task.id.as_str()]);
    assert_eq!(purge(&lab, "default", PurgeScope::Segment(Segment::Scheduled), None).await, 1);
    before.assert_same(&lab.redis.snapshot());
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:running", "1", task.id.as_str()]);
    assert_eq!(purge(&lab, "default", PurgeScope::Segment(Segment::Running), None).await, 1);
    before.assert_same(&lab.redis.snapshot());
}

#[tokio::test]
async fn purge_leaves_the_record_of_a_task_that_runs() {
    let lab = Lab::new();
    lab.enqueue("default", 1).await;
    let lease = lab.acquire("default", 1, 1).await.remove(0);
    let before = lab.redis.snapshot();
    lab.redis.cli::<()>(&["ZADD", "threadmill:{default}:default:ready", "1", lease.id.as_str()]);
    assert_eq!(purge(&lab, "default", PurgeScope::Segment(Segment::Ready), None).await, 1);
    before.assert_same(&lab.redis.snapshot());
    assert_eq!(purge(&lab, "default", PurgeScope::Segment(Segment::Running), None).await, 1);
    let left: Snapshot = lab.redis.snapshot().only(|key| key.starts_with("threadmill:"));
    assert!(left.is_empty(), "{left:?}");
}
