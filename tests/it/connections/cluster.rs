//! An alias lives on the node that owns its slot, and follows it.

use super::table::{self, QUEUE, Transition, WORKER, acquire, backend, registration, success, tally, task};
use crate::common::{Cluster, Snapshot, eventually_async};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use threadmill::backend::{
    AcknowledgeOutcome, AcquireAnswer, Backend, BackendError, EnqueueOutcome, RedisUrl, Settings, TelemetryEvent, Token,
};

const LONG: Duration = Duration::from_secs(5);

fn backend_of(cluster: &Cluster, alias: &str) -> Backend {
    let mut settings = Settings::new(RedisUrl::parse(&cluster.url()).unwrap());
    settings.alias = alias.to_owned();
    Backend::new(settings).unwrap()
}

#[tokio::test]
async fn several_aliases_lie_on_several_nodes() {
    let cluster = Cluster::spawn();
    let mut owners = BTreeSet::new();
    for alias in ["default", "a", "b", "c", "mail", "x}y"] {
        let backend = backend_of(&cluster, alias);
        let mut events = backend.telemetry().await.unwrap();
        let tasks: Vec<_> = (0..5).map(|_| task(QUEUE)).collect();
        backend.enqueue(&tasks).await.unwrap();
        assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
        let owner = Cluster::first_owner(cluster.slot(alias));
        let card =
            |node: usize| cluster.nodes[node].try_cli::<u64>(&["ZCARD", &format!("threadmill:{{{alias}}}:q:ready")]);
        assert_eq!(card(owner).unwrap(), 5);
        assert!(backend.search_queues(LONG).await.unwrap());
        assert_eq!(backend.known_queues().await.unwrap(), [QUEUE]);
        owners.insert(owner);
    }
    assert_eq!(owners.len(), 3, "these aliases are on all nodes");
}

#[tokio::test]
async fn a_slot_moves_and_nobody_loses_anything() {
    let cluster = Arc::new(Cluster::spawn());
    let slot = cluster.slot("default");
    let first = Cluster::first_owner(slot);
    let others: Vec<usize> = (0..3).filter(|node| *node != first).collect();
    let backend = backend(&cluster.url(), LONG);
    backend.register(&registration(WORKER)).await.unwrap();
    // With something in every key that an acquire names, only the records of tasks tell it that the slot is on its way.
    ghost(&cluster, first, "other-ghost");
    let mover = tokio::task::spawn_blocking({
        let cluster = Arc::clone(&cluster);
        move || {
            let mut at = first;
            for round in 0..6 {
                let to = if round == 5 { first } else { others[round % 2] };
                if to != at {
                    cluster.move_slot(slot, at, to);
                    at = to;
                }
            }
        }
    });
    let (mut enqueued, mut finished) = (BTreeSet::new(), BTreeSet::new());
    let mut number = 0;
    while !mover.is_finished() || finished.len() < 100 {
        let fresh: Vec<_> = (0..4).map(|_| task(QUEUE)).collect();
        eventually_async("they are stored", async || passing(backend.enqueue(&fresh).await).is_some()).await;
        enqueued.extend(fresh.iter().map(|task| task.id.clone()));
        number += 1;
        let token = Token::new();
        let granted = loop {
            match passing(acquire(&backend, &token, number, 3, 3).await) {
                Some(AcquireAnswer::Granted(granted)) => break granted,
                Some(other) => panic!("{other:?}"),
                None => {}
            }
        };
        assert!(granted.set_aside.is_empty(), "{:?}", granted.set_aside);
        let results: Vec<_> = granted.leases.iter().map(success).collect();
        let answers = loop {
            if let Some(answers) = passing(backend.acknowledge(WORKER, None, &results).await) {
                break answers;
            }
        };
        assert!(answers.iter().all(|answer| *answer != AcknowledgeOutcome::Lost), "{answers:?}");
        finished.extend(granted.leases.into_iter().map(|lease| lease.id));
    }
    mover.await.unwrap();
    let snapshot = whole(&cluster).only(|key| !key.contains("quarantine"));
    let counts = tally(&snapshot, "after the moves");
    assert_eq!(counts, [enqueued.len() - finished.len(), 0, 0, finished.len(), 0, 0]);
    assert!(finished.is_subset(&enqueued));
}

/// What may come while a slot moves; anything else ends the test.
fn passing<T>(answer: Result<T, BackendError>) -> Option<T> {
    answer.map_err(|error| assert!(error.is_passing(), "{error}")).ok()
}

fn ghost(cluster: &Cluster, node: usize, id: &str) {
    cluster.nodes[node].cli::<()>(&["ZADD", "threadmill-rs:{default}:quarantine:q", "1", id]);
}

/// The keys of all nodes.
fn whole(cluster: &Cluster) -> Snapshot {
    let mut whole = Snapshot::default();
    for node in &cluster.nodes {
        whole.0.extend(node.snapshot().0);
    }
    whole
}

/// With each of its keys in turn at another node, every transition is refused before it writes, and done when the slot
/// has arrived.
#[tokio::test]
async fn a_slot_that_is_partly_moved_refuses_every_transition_whole() {
    let cluster = Cluster::spawn();
    let slot = cluster.slot("default");
    let from = Cluster::first_owner(slot);
    let to = (from + 1) % 3;
    let mut settings = Settings::new(RedisUrl::parse(&cluster.url()).unwrap());
    settings.request_timeout = Duration::from_millis(100);
    let impatient = Backend::new(settings).unwrap();
    let patient = backend(&cluster.url(), LONG);
    for transition in table::ALL {
        // The first key, the second, and so on; at last none is left to move.
        for nth in 0.. {
            for node in &cluster.nodes {
                node.cli::<()>(&["FLUSHALL"]);
            }
            let seeded = transition.seed(&cluster.nodes[from]).await;
            if transition == Transition::Acquire {
                ghost(&cluster, from, "other-ghost");
                cluster.nodes[from].cli::<()>(&["ZADD", "threadmill:{default}:q:running", "9e15", "other"]);
            }
            patient.ping().await.unwrap();
            let Some(key) = cluster.nodes[from].snapshot().keys().nth(nth).cloned() else { break };
            cluster.open_slot(slot, from, to);
            cluster.move_key(&key, from, to);
            let before = whole(&cluster);
            match transition.run(&impatient, &seeded).await {
                Ok(good) => assert!(good, "{transition:?} with {key} elsewhere"),
                Err(error) => {
                    assert!(error.is_passing(), "{transition:?} with {key} elsewhere: {error}");
                    println!("{transition:?} with {key} elsewhere: {error}");
                    // On a machine that is very busy the time was over before the answer came.
                    if !error.is_uncertain() {
                        before.assert_same(&whole(&cluster));
                    }
                }
            }
            cluster.move_keys(slot, from, to, 100);
            cluster.close_slot(slot, to);
            assert!(transition.run(&patient, &seeded).await.unwrap(), "{transition:?} with {key} elsewhere, later");
            let mut after = cluster.nodes[to].snapshot();
            if transition == Transition::Acquire {
                after.0.remove("threadmill-rs:{default}:quarantine:q");
                cluster.nodes[to].cli::<()>(&["ZREM", "threadmill:{default}:q:running", "other"]);
                after = cluster.nodes[to].snapshot().only(|key| !key.contains("quarantine"));
            }
            transition.assert_done(&after, &format!("{key} was elsewhere"));
            cluster.move_slot(slot, to, from);
        }
    }
}

#[tokio::test]
async fn a_master_that_dies_is_followed_by_its_replica() {
    let mut cluster = Cluster::spawn();
    let owner = Cluster::first_owner(cluster.slot("default"));
    cluster.add_replica(owner);
    let backend = backend(&cluster.url(), LONG);
    let before = task(QUEUE);
    let safe = threadmill::backend::Durability { disk: false, replicas: 1, within: Duration::from_secs(30) };
    backend.enqueue_durable(std::slice::from_ref(&before), safe).await.unwrap();
    cluster.nodes[owner].crash();
    eventually_async("enqueues go on by themselves", async || passing(backend.enqueue(&[task(QUEUE)]).await).is_some())
        .await;
    assert_eq!(backend.enqueue(&[before]).await.unwrap()[0].outcome, EnqueueOutcome::Replayed);
    assert!(cluster.nodes[3].cli::<String>(&["INFO", "replication"]).contains("role:master"));
}

#[tokio::test]
async fn seeds_may_be_gone_and_what_is_no_cluster_says_so() {
    let mut cluster = Cluster::spawn();
    let url = cluster.url();
    let owner = Cluster::first_owner(cluster.slot("default"));
    // A node that does not own the slot; the others stay with a part of the slots.
    for node in &cluster.nodes {
        node.cli::<()>(&["CONFIG", "SET", "cluster-require-full-coverage", "no"]);
    }
    cluster.nodes[(owner + 1) % 3].crash();
    backend(&url, LONG).enqueue(&[task(QUEUE)]).await.unwrap();
    let plain = crate::common::TestRedis::spawn();
    let error = backend(&plain.url().replace("redis://", "redis+cluster://"), LONG).ping().await.unwrap_err();
    assert!(error.to_string().contains("cluster support disabled"), "{error}");
    // And a node that is taken for a plain server names its kind.
    let other = &cluster.nodes[(owner + 2) % 3];
    let error = backend(&other.url(), LONG).enqueue(&[task(QUEUE)]).await.unwrap_err();
    assert!(error.hint().is_some_and(|hint| hint.contains("redis+cluster://")), "{error}");
}
