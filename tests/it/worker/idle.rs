//! What a worker costs that has nothing to do.

use super::*;
use crate::common::Proxy;
use std::sync::atomic::{AtomicBool, Ordering};
use threadmill::backend::scripts;

#[tokio::test(flavor = "multi_thread")]
async fn its_rounds_cost_the_same_however_many_queues_there_are() {
    const QUEUES: u64 = 60;
    const ROUNDS: u64 = 8;
    let lab = Lab::new();
    let proxy = Proxy::before(&lab.redis);
    let queues: Vec<_> = (0..QUEUES).map(|n| format!("queue-{n}")).collect();
    lab.backend.record_queues(&queues).await.unwrap();
    let worker = Hired::new(lab.worker_on(&backend(&proxy.url())));
    lab.until_listening().await;
    let after = async |round: u64| {
        let passed = Arc::new(AtomicBool::new(false));
        let (seen, sha) = (passed.clone(), scripts::MOVER.sha().to_owned());
        proxy.interpose(round, move |command| command.has(&sha), move || seen.store(true, Ordering::SeqCst));
        eventually_async("rounds pass", async || passed.load(Ordering::SeqCst)).await;
        proxy.commands()
    };
    let before = after(1).await;
    let sent = after(ROUNDS).await - before;
    assert!(sent < ROUNDS * QUEUES / 2, "{sent} commands in {ROUNDS} rounds over {QUEUES} queues");
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_telemetry_tells_it_what_is_scheduled_and_of_queues_that_it_did_not_know() {
    let lab = Lab::new();
    // It would not look again by itself while this test lasts.
    let broker_interval = Duration::from_secs(3600);
    let worker = Hired::new(lab.worker().options(WorkerOptions { broker_interval, ..WorkerOptions::default() }));
    lab.until_listening().await;
    let soon = Duration::from_millis(20);
    let own = lab.backend.enqueue_task(&NOTE.with((1,)).run_in(soon)).await.unwrap();
    assert_eq!(own.wait(crate::common::wait::LIMIT).await.unwrap(), 2);
    lab.backend.enqueue_task(&NOTE.with((2,)).queue("elsewhere").run_in(soon)).await.unwrap();
    eventually_async("it moves what is due elsewhere", async || {
        lab.backend.counts(&["elsewhere".to_owned()]).await.unwrap()[0].of(Segment::Ready) == 1
    })
    .await;
    assert!(lab.backend.known_queues().await.unwrap().contains(&"elsewhere".to_owned()));
    worker.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_queue_does_not_stop_the_others() {
    let lab = Lab::new();
    lab.redis.cli::<String>(&["SET", "threadmill:{default}:broken:deferred", "text"]);
    lab.redis.cli::<String>(&["SET", "threadmill:{default}:broken:running", "text"]);
    lab.backend.record_queues(&["broken".to_owned()]).await.unwrap();
    let moved = lab.backend.move_due(&["broken", QUEUE], 10).await.unwrap();
    assert_eq!(moved.iter().map(|moved| moved.is_broken).collect::<Vec<_>>(), [true, false]);
    let reaped = lab.backend.reap(&["broken", QUEUE]).await.unwrap();
    assert_eq!(reaped.iter().map(|reaped| reaped.is_broken).collect::<Vec<_>>(), [true, false]);
    let worker = Hired::new(lab.worker());
    let later = lab.backend.enqueue_task(&NOTE.with((1,)).run_in(Duration::from_millis(20))).await.unwrap();
    assert_eq!(later.wait(crate::common::wait::LIMIT).await.unwrap(), 2);
    worker.stop().await;
}
