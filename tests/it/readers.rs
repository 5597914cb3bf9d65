//! Garbage of every kind among good tasks: no reader falls over it, and none of the good ones is lost from sight.

use crate::common::TestRedis;
use crate::transitions::{Lab, Request, WORKER, task_key};
use fastrand::Rng;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use threadmill::backend::Summary;
use threadmill::backend::codec::decode;
use threadmill::backend::doctor::Checkup;
use threadmill::task::{Segment, TaskId};

const READY: &str = "threadmill:{default}:default:ready";
const RUNNING: &str = "threadmill:{default}:default:running";

/// Bytes that no program would write.
fn garbage(rng: &mut Rng) -> Vec<u8> {
    let words: [&[u8]; 9] =
        [b"{\"task\": ", b"\xff\xfe", b"null", b"NaN", b"\"\\ud800", b"[[[[", b"-inf", b"\0", b"{\"id\": 1}"];
    (0..rng.usize(..6)).flat_map(|_| words[rng.usize(..words.len())].to_vec()).collect()
}

/// Puts ids into a segment whose records, lease fields and scores are nonsense.
fn spoil(redis: &TestRedis, rng: &mut Rng, segment: &str, count: usize) {
    let mut connection = redis.connection();
    let fields = ["data", "score", "lease_worker", "lease_started_at", "lease_token", "rs_sequence", "rs_claimed"];
    for n in 0..count {
        let id = format!("spoilt-{segment}-{n}");
        let score = ["-inf", "inf", "0", "-1e300", "1e17", "5"][rng.usize(..6)];
        redis::cmd("ZADD").arg(segment).arg(score).arg(&id).query::<()>(&mut connection).unwrap();
        let key = task_key(&id);
        match rng.u8(..5) {
            0 => {}
            1 => redis::cmd("SET").arg(&key).arg(garbage(rng)).query(&mut connection).unwrap(),
            2 => redis::cmd("RPUSH").arg(&key).arg("x").query(&mut connection).unwrap(),
            _ => {
                for field in fields {
                    if rng.bool() {
                        redis::cmd("HSET").arg(&key).arg(field).arg(garbage(rng)).query::<()>(&mut connection).unwrap();
                    }
                }
            }
        }
        if rng.u8(..4) == 0 {
            let result = format!("threadmill:{{default}}:result:{id}");
            redis::cmd("SET").arg(result).arg(garbage(rng)).query::<()>(&mut connection).unwrap();
        }
    }
}

fn spoil_workers(redis: &TestRedis, rng: &mut Rng) {
    let mut connection = redis.connection();
    for n in 0..20 {
        let key = format!("threadmill-rs:{{default}}:worker:spoilt-{n}");
        let id = format!("spoilt-{n}");
        redis::cmd("ZADD")
            .arg("threadmill-rs:{default}:workers")
            .arg(["-inf", "inf", "1"][n % 3])
            .arg(id)
            .query::<()>(&mut connection)
            .unwrap();
        if n % 4 == 0 {
            redis::cmd("SET").arg(&key).arg("x").query::<()>(&mut connection).unwrap();
        } else {
            for field in ["pid", "queues", "running", "mark", "dead", "since"] {
                if rng.bool() {
                    redis::cmd("HSET").arg(&key).arg(field).arg(garbage(rng)).query::<()>(&mut connection).unwrap();
                }
            }
        }
    }
}

#[tokio::test]
async fn no_garbage_hides_a_good_task_from_a_reader_or_a_worker() {
    for seed in 0..4 {
        let mut rng = Rng::with_seed(seed);
        let lab = Lab::new();
        let good: BTreeSet<TaskId> = lab.enqueue("default", 40).await.into_iter().map(|task| task.id).collect();
        spoil(&lab.redis, &mut rng, READY, 60);
        spoil(&lab.redis, &mut rng, RUNNING, 60);
        spoil_workers(&lab.redis, &mut rng);
        let page = lab.backend.page("default", Segment::Ready, 0, 500).await.unwrap();
        let readable = page.rows.iter().filter(|row| matches!(row.summary, Summary::Readable(_)));
        assert_eq!(readable.map(|row| row.id.clone()).collect::<BTreeSet<_>>(), good, "seed {seed}");
        lab.backend.page("default", Segment::Running, 0, 500).await.unwrap();
        for row in &page.rows {
            lab.backend.find(&row.id, Some("default")).await.unwrap();
        }
        lab.register(WORKER).await;
        assert_eq!(lab.backend.workers().await.unwrap().len(), 21, "seed {seed}");
        lab.backend.doctor(&Checkup::default(), &mut |_| ControlFlow::Continue(())).await.unwrap();
        lab.backend.reap(&["default"]).await.unwrap();
        let mut leased = BTreeSet::new();
        for number in 1..=20 {
            let mut request = Request::new(&["default"], 20);
            (request.number, request.sequence) = (number, number * 100);
            let leases = request.send(&lab.backend).await.leases;
            leased.extend(leases.into_iter().filter(|lease| decode(&lease.data).is_ok()).map(|lease| lease.id));
        }
        assert_eq!(leased, good, "seed {seed}: each good one is leased");
        let fix = Checkup { fix: true, ..Checkup::default() };
        lab.backend.doctor(&fix, &mut |_| ControlFlow::Continue(())).await.unwrap();
        let snapshot = lab.redis.snapshot();
        assert!(good.iter().all(|id| snapshot.contains_key(&task_key(id))), "seed {seed}: no repair takes a good one");
    }
}
