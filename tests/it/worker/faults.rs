//! Redis that is gone, frozen, or loses answers.

use super::*;
use crate::common::{Lose, Proxy};
use threadmill::backend::scripts;

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_delays_results_and_loses_none() {
    let mut lab = Lab::on(TestRedis::setup().append_only().start());
    lab.enqueue(HOLD, 20).await;
    let worker = Hired::new(lab.worker());
    lab.until_begun(20).await;
    lab.redis.crash();
    // They end while there is nobody to tell.
    lab.gate.let_go(20);
    eventually_async("all have ended", async || lab.gate.0.available_permits() == 0).await;
    lab.redis.start();
    lab.until(Segment::Successful, 20).await;
    lab.enqueue(NOTE, 5).await;
    lab.until(Segment::Successful, 25).await;
    let summary = worker.stop().await;
    assert_eq!(summary, Summary { successful: 25, is_settled: true, ..Summary::default() });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_server_is_waited_for() {
    let lab = Lab::new();
    lab.enqueue(HOLD, 20).await;
    let worker = Hired::new(lab.worker());
    lab.until_begun(20).await;
    lab.redis.freeze();
    lab.gate.let_go(20);
    eventually_async("all have ended", async || lab.gate.0.available_permits() == 0).await;
    lab.redis.thaw();
    lab.until(Segment::Successful, 20).await;
    assert_eq!(worker.stop().await.successful, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_any_request_changes_nothing_twice() {
    for lose in [Lose::ByCut, Lose::InSilence] {
        for script in [&scripts::ACQUIRE, &scripts::ACKNOWLEDGE, &scripts::HEARTBEAT] {
            let lab = Lab::new();
            let proxy = Proxy::before(&lab.redis);
            lab.enqueue(NOTE, 300).await;
            let sha = script.sha().to_owned();
            proxy.lose_reply(1, lose, move |command| command.has(&sha));
            let worker = lab.worker_on(&backend(&proxy.url())).options(draining());
            let summary = worker.run().await.unwrap();
            assert_eq!(summary, Summary { successful: 300, is_settled: true, ..Summary::default() });
            assert_eq!(proxy.lost(), 1, "{}", script.name);
            assert!(lab.notes.is_each_once(300), "{}", script.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_refused_harms_no_neighbour() {
    let lab = Lab::new();
    // The history of one queue has become something else.
    let key = "threadmill:{default}:broken:successful";
    lab.redis.cli::<String>(&["SET", key, "text"]);
    lab.backend.enqueue_task(&NOTE.with((99,)).queue("broken")).await.unwrap();
    lab.enqueue(NOTE, 3).await;
    let options = WorkerOptions { queues: vec!["broken".into(), QUEUE.into()], ..quick() };
    let worker = Hired::new(lab.worker().options(options));
    lab.until(Segment::Successful, 3).await;
    let summary = worker.stop().await;
    assert_eq!((summary.successful, summary.lost), (3, 1));
}
