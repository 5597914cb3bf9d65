//! Several workers on one Redis, and one that is gone.

use super::*;
use crate::common::Proxy;
use threadmill::native::Backoff;

/// Two signs of life a second would be enough for a test; a loaded machine needs air.
const HEARTBEAT: Duration = Duration::from_millis(1500);

fn lively() -> WorkerOptions {
    WorkerOptions { heartbeat: HEARTBEAT, ..quick() }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_a_queue() {
    let lab = Lab::new();
    let workers = [Hired::new(lab.worker()), Hired::new(lab.worker())];
    lab.enqueue(NOTE, 2000).await;
    lab.until(Segment::Successful, 2000).await;
    let mut total = 0;
    for worker in workers {
        total += worker.stop().await.successful;
    }
    assert_eq!(total, 2000);
    assert!(lab.notes.is_each_once(2000));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_worker_that_is_gone_go_on_and_it_starts_afresh_when_it_comes_back() {
    let lab = Lab::new();
    let proxy = Proxy::before(&lab.redis);
    let call = HOLD.retry(Backoff::new().base_delay(Duration::from_millis(10))).with((1,));
    let handle = lab.backend.enqueue_task(&call).await.unwrap();
    let lost = Hired::new(lab.worker_on(&backend(&proxy.url())).options(lively()));
    lab.until_begun(1).await;
    let first = lab.backend.workers().await.unwrap()[0].id.clone();
    proxy.refuse();

    let other = Hired::new(lab.worker().options(lively()));
    eventually_async("the other one runs it", async || lab.notes.of(1) == 2).await;
    // The first one's attempt ends by itself now or was cancelled; the second one's counts.
    lab.gate.let_go(2);
    assert_eq!(handle.wait(crate::common::wait::LIMIT).await.unwrap(), 1);
    let record = lab.record(handle.id()).await;
    assert_eq!((record.attempts(), record.errors.len()), (2, 1));
    assert_eq!(record.worker_ids[0], first);

    proxy.heal();
    eventually_async("the first one is back under another name", async || {
        let workers = lab.backend.workers().await.unwrap();
        workers.len() == 2 && workers.iter().all(|worker| worker.id != first && !worker.dead)
    })
    .await;
    other.stop().await;
    let again = lab.backend.enqueue_task(&NOTE.with((7,))).await.unwrap();
    assert_eq!(again.wait(crate::common::wait::LIMIT).await.unwrap(), 14);
    lost.stop().await;
}
