//! A failover by sentinels is followed without anybody's help.

use super::table::{QUEUE, WORKER, acquire, backend, registration, success, tally, task};
use crate::common::{Sentinels, TestRedis, eventually, eventually_async};
use std::time::Duration;
use threadmill::backend::{
    AcknowledgeOutcome, AcquireAnswer, Backend, BackendError, Durability, EnqueueOutcome, RedisUrl, Settings,
    TelemetryEvent, Token,
};

/// Long enough for a failover within one request.
const LONG: Duration = Duration::from_secs(5);

/// What a server says of its role. In a failover its connections are closed under it.
fn replication(server: &TestRedis) -> String {
    server.try_cli(&["INFO", "replication"]).unwrap_or_default()
}

/// Enqueues one task after the other until one is stored on this server. What is stored there is returned.
async fn enqueue_until_on(backend: &Backend, server: &TestRedis) -> threadmill::task::NewTask {
    let next = std::cell::RefCell::new(task(QUEUE));
    eventually_async("enqueues go on by themselves, on the new master", async || {
        let fresh = task(QUEUE);
        if let Err(error) = backend.enqueue(std::slice::from_ref(&fresh)).await {
            assert!(error.is_passing(), "{error}");
            return false;
        }
        let key = format!("threadmill:{{default}}:task:{}", fresh.id);
        *next.borrow_mut() = fresh;
        server.try_cli::<u64>(&["EXISTS", &key]).is_ok_and(|count| count == 1)
            && replication(server).contains("role:master")
    })
    .await;
    next.into_inner()
}

#[tokio::test]
async fn enqueues_go_on_by_themselves_after_the_master_is_killed() {
    let mut group = Sentinels::spawn();
    let backend = backend(&group.url(), LONG);
    backend.register(&registration(WORKER)).await.unwrap();
    // Safe on the replica, so that the failover cannot take it.
    let durability = Durability { disk: false, replicas: 1, within: Duration::from_secs(30) };
    let safe: Vec<_> = (0..3).map(|_| task(QUEUE)).collect();
    backend.enqueue_durable(&safe, durability).await.unwrap();
    let token = Token::new();
    let AcquireAnswer::Granted(granted) = acquire(&backend, &token, 1, 3, 3).await.unwrap() else { panic!() };
    assert_eq!(granted.leases.len(), 3);
    eventually("the leases are on the replica", || {
        group.servers[1].cli::<u64>(&["ZCARD", "threadmill:{default}:q:running"]) == 3
    });
    let mut events = backend.telemetry().await.unwrap();
    group.servers[0].crash();
    let stored = enqueue_until_on(&backend, &group.servers[1]).await;
    // A result that was held through the failover is delivered to the new master.
    let results: Vec<_> = granted.leases.iter().map(success).collect();
    assert_eq!(backend.acknowledge(WORKER, None, &results).await.unwrap(), [AcknowledgeOutcome::Stored; 3]);
    assert_eq!(tally(&group.servers[1].snapshot(), "after the failover")[2..], [0, 3, 0, 0]);
    assert_eq!(backend.enqueue(&[stored]).await.unwrap()[0].outcome, EnqueueOutcome::Replayed);
    while events.next().await.is_some() {}
    let mut events = backend.telemetry().await.unwrap();
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
}

#[tokio::test]
async fn an_ordered_failover_leaves_the_old_master_at_once_and_with_it_its_subscribers() {
    let group = Sentinels::spawn();
    let backend = backend(&group.url(), LONG);
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    let mut events = backend.telemetry().await.unwrap();
    group.failover();
    enqueue_until_on(&backend, &group.servers[1]).await;
    while events.next().await.is_some() {}
    eventually("the old master becomes a replica of the new one", || {
        replication(&group.servers[0]).contains("role:slave")
    });
    // And back, over the same backend.
    eventually("the new master has its replica", || replication(&group.servers[1]).contains("state=online"));
    eventually_async("a failover back", async || {
        group.failover();
        group.master_port(0) == Some(group.servers[0].port())
    })
    .await;
    enqueue_until_on(&backend, &group.servers[0]).await;
}

#[tokio::test]
async fn a_frozen_master_is_left_when_the_sentinels_give_it_up() {
    let group = Sentinels::spawn();
    let backend = backend(&group.url(), Duration::from_secs(1));
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    group.servers[0].freeze();
    enqueue_until_on(&backend, &group.servers[1]).await;
    group.servers[0].thaw();
}

#[tokio::test]
async fn one_sentinel_may_be_gone_and_an_unknown_name_is_told() {
    let mut group = Sentinels::spawn();
    let url = group.url();
    group.kill_sentinel();
    backend(&url, LONG).ping().await.unwrap();
    let error = backend(&url.replace("my-master", "other"), LONG).ping().await.unwrap_err();
    assert!(matches!(&error, BackendError::Settings(text) if text.contains("`other`")), "{error}");
    assert!(!error.is_passing());
    let settings = Settings::new(RedisUrl::parse("redis+sentinel://127.0.0.1:1,127.0.0.1:2/m").unwrap());
    let error = Backend::new(settings).unwrap().ping().await.unwrap_err();
    assert!(matches!(error, BackendError::Connect { .. }), "no sentinel answers: {error}");
}
