//! Enqueues that wait until the tasks are safe.

use super::table::{QUEUE, backend, tally, task};
use crate::common::{Proxy, TestRedis, eventually};
use std::time::Duration;
use threadmill::backend::{BackendError, Durability, EnqueueOutcome};

const LONG: Duration = Duration::from_secs(20);

fn replicas(replicas: u32, within: Duration) -> Durability {
    Durability { disk: false, replicas, within }
}

const DISK: Durability = Durability { disk: true, replicas: 0, within: LONG };

fn replica_of(master: &TestRedis) -> TestRedis {
    let replica = TestRedis::setup().set("replicaof", &format!("127.0.0.1 {}", master.port())).start();
    eventually("the replica has the data", || {
        master.cli::<String>(&["INFO", "replication"]).contains("state=online")
            && replica.cli::<String>(&["INFO", "replication"]).contains("master_link_status:up")
    });
    replica
}

#[tokio::test]
async fn a_replica_has_it_when_the_answer_comes() {
    let server = TestRedis::spawn();
    let replica = replica_of(&server);
    let backend = backend(&server.url(), LONG);
    for _ in 0..20 {
        let next = task(QUEUE);
        let key = format!("threadmill:{{default}}:task:{}", next.id);
        backend.enqueue_durable(std::slice::from_ref(&next), replicas(1, LONG)).await.unwrap();
        assert_eq!(replica.cli::<u64>(&["EXISTS", &key]), 1);
    }
}

#[tokio::test]
async fn without_a_replica_it_is_stored_and_said_to_be_unsafe() {
    let server = TestRedis::spawn();
    let replica = replica_of(&server);
    let backend = backend(&server.url(), LONG);
    let next = task(QUEUE);
    replica.freeze();
    for _ in 0..2 {
        let short = replicas(1, Duration::from_millis(50));
        let error = backend.enqueue_durable(std::slice::from_ref(&next), short).await.unwrap_err();
        let expected = matches!(error, BackendError::NotDurable { replicas: 0, want_replicas: 1, .. });
        assert!(expected, "also where the task was stored by an earlier try: {error}");
        assert!(error.is_uncertain() && error.is_passing() && error.hint().is_some());
        assert_eq!(tally(&server.snapshot(), "unsafe")[0], 1);
    }
    replica.thaw();
    let answer = backend.enqueue_durable(std::slice::from_ref(&next), replicas(1, LONG)).await.unwrap();
    assert_eq!(answer[0].outcome, EnqueueOutcome::Replayed);
    assert_eq!(tally(&replica.snapshot().only(|key| !key.contains("durable")), "safe")[0], 1);
}

#[tokio::test]
async fn a_cut_between_the_enqueue_and_the_wait_is_made_good() {
    let server = TestRedis::spawn();
    let _replica = replica_of(&server);
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    proxy.lose_request(2, |command| command.name == "WAIT");
    backend.enqueue_durable(&[task(QUEUE)], replicas(1, LONG)).await.unwrap();
    assert_eq!(proxy.lost(), 1);
    assert_eq!(tally(&server.snapshot().only(|key| !key.contains("durable")), "made good")[0], 1);
}

/// Whether the server knows WAITAOF, which came with Redis 7.2.
fn knows_waitaof(server: &TestRedis) -> bool {
    !server
        .cli::<redis::Value>(&["COMMAND", "INFO", "waitaof"])
        .as_sequence()
        .is_some_and(|infos| infos.first().is_none_or(|info| matches!(info, redis::Value::Nil)))
}

#[tokio::test]
async fn the_disk_has_it_or_the_server_cannot_say() {
    let mut server = TestRedis::setup().append_only().start();
    let url = server.url();
    let next = task(QUEUE);
    let answer = backend(&url, LONG).enqueue_durable(std::slice::from_ref(&next), DISK).await;
    if !knows_waitaof(&server) {
        let error = answer.unwrap_err();
        assert!(matches!(&error, BackendError::Settings(text) if text.contains("7.2")), "{error}");
        assert!(server.snapshot().is_empty(), "it is told before anything is stored");
        return;
    }
    answer.unwrap();
    server.crash();
    server.start();
    assert_eq!(tally(&server.snapshot().only(|key| !key.contains("durable")), "after the crash")[0], 1);
    server.cli::<()>(&["CONFIG", "SET", "appendonly", "no"]);
    let error = backend(&url, LONG).enqueue_durable(&[task(QUEUE)], DISK).await.unwrap_err();
    assert!(matches!(&error, BackendError::Settings(text) if text.contains("appendonly")), "{error}");
}
