//! Random operations of many clients, ours and 0.8.4's, against a real server; after each step every id is in exactly one
//! place, or its end was reported, and nothing changed that the answers do not account for.
//!
//! A short run is part of every test run, always the same one. `THREADMILL_MODEL_CASES=100000` runs as many, from a seed
//! of the moment, which a failure prints with its smallest sequence of operations. Such a sequence then becomes a test at
//! the end of this file.

mod foreign;
mod state;
mod steps;
mod world;

use crate::common::TestRedis;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};
use world::World;

/// What one of the clients does. Numbers pick among what there is, modulo how many there are.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Enqueue {
        queue: bool,
        count: u8,
        due: Due,
    },
    Acquire {
        worker: u8,
        queue: Option<bool>,
        count: u8,
        start: u8,
    },
    Acknowledge {
        lease: u16,
        good: bool,
    },
    Retry {
        lease: u16,
        later: bool,
    },
    GiveBack {
        lease: u16,
    },
    SetAside {
        lease: u16,
    },
    Requeue {
        pick: u16,
        later: bool,
        stale: bool,
    },
    Drop {
        pick: u16,
        running: bool,
        stale: bool,
    },
    Purge {
        queue: bool,
        place: u8,
    },
    Move {
        pick: u16,
        stale: bool,
    },
    Reschedule {
        pick: u16,
        now: bool,
        stale: bool,
    },
    Mover {
        queue: bool,
    },
    Reap {
        queue: bool,
    },
    TakeOver {
        worker: u8,
    },
    Persist {
        queue: bool,
    },
    Tidy,
    Replay {
        request: u16,
    },
    Overrun {
        pick: u16,
    },
    /// From here on: what only 0.8.4 does.
    ForeignRequeue {
        pick: u16,
    },
    ForeignAcquire {
        queue: bool,
    },
    ForeignAcknowledge {
        lease: u16,
        good: bool,
    },
    ForeignMover {
        queue: bool,
    },
    ForeignReaper {
        queue: bool,
    },
    ForeignDrop {
        pick: u16,
    },
    Expire {
        pick: u16,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum Due {
    Now,
    Past,
    Future,
}

fn due() -> impl Strategy<Value = Due> {
    prop_oneof![4 => Just(Due::Now), 2 => Just(Due::Past), 1 => Just(Due::Future)]
}

/// What programs of ours do.
fn ours() -> impl Strategy<Value = Op> {
    let n = any::<u16>;
    let b = any::<bool>;
    prop_oneof![
        5 => (b(), 1u8..4, due()).prop_map(|(queue, count, due)| Op::Enqueue { queue, count, due }),
        6 => (0u8..3, proptest::option::of(b()), 1u8..4, 0u8..4)
            .prop_map(|(worker, queue, count, start)| Op::Acquire { worker, queue, count, start }),
        6 => (n(), b()).prop_map(|(lease, good)| Op::Acknowledge { lease, good }),
        3 => (n(), b()).prop_map(|(lease, later)| Op::Retry { lease, later }),
        2 => n().prop_map(|lease| Op::GiveBack { lease }),
        1 => n().prop_map(|lease| Op::SetAside { lease }),
        3 => (n(), b(), b()).prop_map(|(pick, later, stale)| Op::Requeue { pick, later, stale }),
        1 => (n(), b(), b()).prop_map(|(pick, running, stale)| Op::Drop { pick, running, stale }),
        1 => (b(), 0u8..6).prop_map(|(queue, place)| Op::Purge { queue, place }),
        2 => (n(), b()).prop_map(|(pick, stale)| Op::Move { pick, stale }),
        2 => (n(), b(), b()).prop_map(|(pick, now, stale)| Op::Reschedule { pick, now, stale }),
        2 => b().prop_map(|queue| Op::Mover { queue }),
        2 => b().prop_map(|queue| Op::Reap { queue }),
        2 => (0u8..3).prop_map(|worker| Op::TakeOver { worker }),
        1 => b().prop_map(|queue| Op::Persist { queue }),
        1 => Just(Op::Tidy),
        5 => n().prop_map(|request| Op::Replay { request }),
        2 => n().prop_map(|pick| Op::Overrun { pick }),
    ]
}

/// What 0.8.4 does beside them.
fn theirs() -> impl Strategy<Value = Op> {
    let n = any::<u16>;
    let b = any::<bool>;
    prop_oneof![
        3 => n().prop_map(|pick| Op::ForeignRequeue { pick }),
        3 => b().prop_map(|queue| Op::ForeignAcquire { queue }),
        2 => (n(), b()).prop_map(|(lease, good)| Op::ForeignAcknowledge { lease, good }),
        1 => b().prop_map(|queue| Op::ForeignMover { queue }),
        1 => b().prop_map(|queue| Op::ForeignReaper { queue }),
        1 => n().prop_map(|pick| Op::ForeignDrop { pick }),
        1 => n().prop_map(|pick| Op::Expire { pick }),
    ]
}

fn run(redis: &TestRedis, ops: &[Op]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut world = World::new(redis);
        for (number, op) in ops.iter().enumerate() {
            let done = world.step(*op).await;
            done.map_err(|why| TestCaseError::fail(format!("step {number}, {op:?}: {why}")))?;
        }
        world.settle().await.map_err(|why| TestCaseError::fail(format!("in the end: {why}")))
    })
}

fn explore(operations: impl Strategy<Value = Op>) {
    let redis = TestRedis::spawn();
    let many = std::env::var("THREADMILL_MODEL_CASES").ok().and_then(|cases| cases.parse().ok());
    let config =
        Config { cases: many.unwrap_or(40), failure_persistence: None, max_shrink_iters: 4000, ..Config::default() };
    let mut runner = match many {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32])),
    };
    let sequences = proptest::collection::vec(operations, 1..60);
    match runner.run(&sequences, |ops| run(&redis, &ops)) {
        Ok(()) => {}
        Err(TestError::Fail(why, ops)) => panic!("{why}\nthe smallest sequence: {ops:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

#[test]
fn whatever_our_clients_do_each_id_is_in_one_place() {
    explore(ours());
}

#[test]
fn whatever_they_and_0_8_4_do_nothing_is_lost_without_a_word() {
    explore(prop_oneof![4 => ours(), 1 => theirs()]);
}

/// A sequence that once broke something.
fn again(ops: &[Op]) {
    if let Err(why) = run(&TestRedis::spawn(), ops) {
        panic!("{why}");
    }
}

const ENQUEUE: Op = Op::Enqueue { queue: false, count: 1, due: Due::Now };
const ACQUIRE: Op = Op::Acquire { worker: 0, queue: None, count: 1, start: 0 };

#[test]
fn a_history_entry_stays_behind_in_the_queue_that_a_requeued_task_left() {
    again(&[
        ENQUEUE,
        ACQUIRE,
        Op::Acknowledge { lease: 0, good: true },
        Op::ForeignRequeue { pick: 0 },
        Op::Move { pick: 0, stale: false },
    ]);
}

#[test]
fn a_running_task_that_was_requeued_loses_its_record() {
    again(&[
        Op::Enqueue { queue: true, count: 1, due: Due::Now },
        ACQUIRE,
        Op::GiveBack { lease: 0 },
        Op::ForeignRequeue { pick: 0 },
        ACQUIRE,
        Op::Expire { pick: 0 },
    ]);
}

#[test]
fn an_enqueue_arrives_late_after_the_record_expired_under_its_holder() {
    again(&[
        ENQUEUE,
        ACQUIRE,
        Op::Expire { pick: 0 },
        Op::Replay { request: 1 },
        Op::Acknowledge { lease: 0, good: false },
    ]);
}

#[test]
fn an_acquire_that_found_nothing_arrives_late() {
    again(&[ACQUIRE, ENQUEUE, Op::Replay { request: 1 }, Op::Acknowledge { lease: 0, good: true }]);
}
