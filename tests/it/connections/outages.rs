//! The server is gone, frozen, busy, full, or not what it was.

use super::table::{self, QUEUE, Transition, WORKER, acquire, backend, registration, success, tally, task};
use crate::common::{Lose, Proxy, TestRedis, eventually, eventually_async};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use threadmill::backend::{
    AcknowledgeOutcome, AcquireAnswer, BackendError, Beat, EnqueueOutcome, TelemetryEvent, Token,
};
use threadmill::task::Segment;

/// Longer than anything takes that is not lost.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(150);

fn code(error: &BackendError) -> &str {
    match error {
        BackendError::Refused { code, .. } => code,
        other => panic!("{other}"),
    }
}

/// Runs every transition on a server that refuses: each is refused whole, with this code, or is one that `may` pass; and
/// succeeds over the same connection when it is `better` again.
async fn every_transition_is_refused_whole(
    server: &TestRedis,
    expected: &str,
    worse: impl Fn(&TestRedis),
    better: impl Fn(&TestRedis),
    may: impl Fn(Transition) -> bool,
) {
    let backend = backend(&server.url(), LONG);
    for transition in table::ALL {
        server.cli::<()>(&["FLUSHALL"]);
        let seeded = transition.seed(server).await;
        let before = server.snapshot();
        worse(server);
        match transition.run(&backend, &seeded).await {
            Ok(good) => assert!(good && may(transition), "{transition:?} passes a server that answers {expected}"),
            Err(error) => {
                assert_eq!(code(&error), expected, "{transition:?}: {error}");
                assert!(error.is_passing() && !error.is_uncertain(), "{transition:?}: {error}");
                assert!(error.hint().is_some(), "{expected} has no hint");
                better(server);
                before.assert_same(&server.snapshot());
            }
        }
        better(server);
        assert!(transition.run(&backend, &seeded).await.unwrap(), "{transition:?}");
        transition.assert_done(&server.snapshot(), expected);
    }
}

#[tokio::test]
async fn oom() {
    let server = TestRedis::spawn();
    let set =
        |memory: &'static str| move |server: &TestRedis| server.cli::<()>(&["CONFIG", "SET", "maxmemory", memory]);
    every_transition_is_refused_whole(&server, "OOM", set("1"), set("0"), Transition::only_frees).await;
}

#[tokio::test]
async fn misconf() {
    let server = TestRedis::setup().set("enable-protected-configs", "yes").start();
    let broken = |server: &TestRedis| {
        let gone = server.dir().join("gone");
        std::fs::create_dir_all(&gone).unwrap();
        server.cli::<()>(&["CONFIG", "SET", "dir", &gone.display().to_string()]);
        server.cli::<()>(&["CONFIG", "SET", "save", "3600 1000000"]);
        std::fs::remove_dir_all(&gone).unwrap();
        // One that an earlier round has started may still be failing.
        let _ = server.try_cli::<()>(&["BGSAVE"]);
        eventually("the save fails", || {
            let info: String = server.cli(&["INFO", "persistence"]);
            info.contains("rdb_last_bgsave_status:err") && info.contains("rdb_bgsave_in_progress:0")
        });
    };
    let mended = |server: &TestRedis| {
        server.cli::<()>(&["CONFIG", "SET", "save", ""]);
        server.cli::<()>(&["CONFIG", "SET", "dir", &server.dir().display().to_string()]);
    };
    every_transition_is_refused_whole(&server, "MISCONF", broken, mended, |next| !next.writes()).await;
}

#[tokio::test]
async fn readonly() {
    let server = TestRedis::spawn();
    let master = TestRedis::spawn();
    let port = master.port().to_string();
    // Its master refuses it, so that it keeps its data.
    master.cli::<()>(&["CONFIG", "SET", "requirepass", "hush"]);
    let worse = |server: &TestRedis| server.cli::<()>(&["REPLICAOF", "127.0.0.1", &port]);
    let better = |server: &TestRedis| server.cli::<()>(&["REPLICAOF", "NO", "ONE"]);
    every_transition_is_refused_whole(&server, "READONLY", worse, better, |next| !next.writes()).await;
}

#[tokio::test]
async fn noreplicas() {
    let server = TestRedis::spawn();
    let set = |count: &'static str| {
        move |server: &TestRedis| server.cli::<()>(&["CONFIG", "SET", "min-replicas-to-write", count])
    };
    every_transition_is_refused_whole(&server, "NOREPLICAS", set("1"), set("0"), |next| !next.writes()).await;
}

#[tokio::test]
async fn busy() {
    let server = TestRedis::setup().set("busy-reply-threshold", "1").start();
    let blocking = |server: &TestRedis| {
        let mut connection = server.connection();
        std::thread::spawn(move || {
            let script = redis::cmd("EVAL").arg("while true do end").arg(0).query::<()>(&mut connection);
            assert!(script.is_err(), "it is killed");
        });
        eventually("the script blocks the server", || {
            server.try_cli::<String>(&["PING"]).is_err_and(|error| error.code() == Some("BUSY"))
        });
    };
    let killed = |server: &TestRedis| {
        // NOTBUSY where it is killed already.
        let _ = server.try_cli::<()>(&["SCRIPT", "KILL"]);
        eventually("the server answers", || server.try_cli::<String>(&["PING"]).is_ok());
    };
    every_transition_is_refused_whole(&server, "BUSY", blocking, killed, |_| false).await;
}

#[tokio::test]
async fn loading() {
    let mut server = TestRedis::setup()
        .append_only()
        .set("key-load-delay", "2000")
        .set("loading-process-events-interval-bytes", "1024")
        .start();
    let backend = backend(&server.url(), LONG);
    let tasks: Vec<_> = (0..400).map(|_| task(QUEUE)).collect();
    backend.enqueue(&tasks).await.unwrap();
    // Read key by key at the next start, not command by command.
    server.cli::<()>(&["BGREWRITEAOF"]);
    eventually("the file is written anew", || {
        let info: String = server.cli(&["INFO", "persistence"]);
        info.contains("aof_rewrite_in_progress:0") && info.contains("aof_rewrite_scheduled:0")
    });
    server.stop();
    server.start_loading();
    // The old connection is gone; what was sent over it first could not be known to have failed.
    let _ = backend.ping().await;
    let next = task(QUEUE);
    let mut refused = 0;
    let outcome = loop {
        match backend.enqueue(std::slice::from_ref(&next)).await {
            Ok(enqueued) => break enqueued[0].outcome,
            Err(error) => {
                assert_eq!(code(&error), "LOADING");
                assert!(error.is_passing() && !error.is_uncertain());
                refused += 1;
            }
        }
    };
    assert_eq!(outcome, EnqueueOutcome::Stored);
    assert!(refused > 0, "the server was loading");
    let page = backend.page(QUEUE, Segment::Ready, 0, 1).await.unwrap();
    assert_eq!(page.total, 401, "what was confirmed is there again");
}

#[tokio::test]
async fn gone_and_back() {
    let mut server = TestRedis::setup().append_only().start();
    let backend = backend(&server.url(), LONG);
    let before = task(QUEUE);
    backend.enqueue(std::slice::from_ref(&before)).await.unwrap();
    backend.register(&registration(WORKER)).await.unwrap();
    let token = Token::new();
    let AcquireAnswer::Granted(granted) = acquire(&backend, &token, 1, 1, 1).await.unwrap() else { panic!() };
    server.crash();
    let next = task(QUEUE);
    let error = backend.enqueue(std::slice::from_ref(&next)).await.unwrap_err();
    if error.is_uncertain() {
        // The first request after the end cannot know that it never arrived; the one after it can.
        let error = backend.enqueue(std::slice::from_ref(&next)).await.unwrap_err();
        assert!(matches!(error, BackendError::Connect { .. }), "{error}");
        assert!(!error.is_uncertain() && error.is_passing());
    }
    server.start();
    assert_eq!(backend.enqueue(&[next]).await.unwrap()[0].outcome, EnqueueOutcome::Stored);
    // What a worker held through it is delivered.
    let results: Vec<_> = granted.leases.iter().map(success).collect();
    assert_eq!(backend.acknowledge(WORKER, None, &results).await.unwrap(), [AcknowledgeOutcome::Stored]);
    assert_eq!(tally(&server.snapshot(), "after the crash"), [1, 0, 0, 1, 0, 0]);
}

/// Enqueues against a server that does not answer, then again when it does: stored once.
async fn stored_once(url: &str, server: &TestRedis, broken: impl FnOnce(), mended: impl FnOnce()) {
    let (impatient, patient) = (backend(url, SHORT), backend(url, LONG));
    patient.enqueue(&[task(QUEUE)]).await.unwrap();
    eventually_async("it is connected", async || impatient.ping().await.is_ok()).await;
    broken();
    let mut next = task(QUEUE);
    next.idempotency = Some("once".into());
    let error = impatient.enqueue(std::slice::from_ref(&next)).await.unwrap_err();
    assert!(error.is_uncertain(), "no answer is no knowledge: {error}");
    assert!(error.is_passing());
    mended();
    eventually_async("it has recovered", async || impatient.ping().await.is_ok()).await;
    // The second try of a program that has forgotten the first one's id.
    let mut again = task(QUEUE);
    again.idempotency = Some("once".into());
    let stored = patient.enqueue(std::slice::from_ref(&again)).await.unwrap();
    assert!(stored[0].id == next.id || stored[0].id == again.id, "{stored:?}");
    // Late commands of the first try may still be on their way.
    patient.ping().await.unwrap();
    let enqueued = patient.enqueue(&[next.clone(), again]).await.unwrap();
    assert!(enqueued.iter().all(|next| next.outcome != EnqueueOutcome::Stored), "{enqueued:?}");
    assert_eq!(tally(&server.snapshot(), "stored once"), [2, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn frozen() {
    let server = TestRedis::spawn();
    stored_once(&server.url(), &server, || server.freeze(), || server.thaw()).await;
}

#[tokio::test]
async fn half_open() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    stored_once(&proxy.url(), &server, || proxy.half_open(), || proxy.heal()).await;
}

#[tokio::test]
async fn paused() {
    let server = TestRedis::spawn();
    let pause = || server.cli::<()>(&["CLIENT", "PAUSE", "1000000", "WRITE"]);
    let unpause = || server.cli::<()>(&["CLIENT", "UNPAUSE"]);
    stored_once(&server.url(), &server, pause, unpause).await;
}

#[tokio::test]
async fn a_pause_that_ends_in_time_is_only_a_delay() {
    let server = TestRedis::spawn();
    let backend = backend(&server.url(), LONG);
    backend.ping().await.unwrap();
    server.cli::<()>(&["CLIENT", "PAUSE", "100", "ALL"]);
    assert_eq!(backend.enqueue(&[task(QUEUE)]).await.unwrap()[0].outcome, EnqueueOutcome::Stored);
}

#[tokio::test]
async fn connections_are_killed_all_the_time() {
    let server = Arc::new(TestRedis::spawn());
    let backend = backend(&server.url(), LONG);
    let done = Arc::new(AtomicBool::new(false));
    let killer = std::thread::spawn({
        let (server, done) = (Arc::clone(&server), Arc::clone(&done));
        move || {
            let mut killed: u64 = 0;
            let mut connection = server.connection();
            while !done.load(Ordering::Relaxed) {
                let kill =
                    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").arg("SKIPME").arg("yes").to_owned();
                killed += kill.query::<u64>(&mut connection).unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
            killed
        }
    });
    let mut tasks = Vec::new();
    while tasks.len() < 300 {
        let next = task(QUEUE);
        // Several kills can meet one request; a second try of the same is safe.
        eventually_async("it is stored", async || backend.enqueue(std::slice::from_ref(&next)).await.is_ok()).await;
        tasks.push(next);
    }
    done.store(true, Ordering::Relaxed);
    assert!(killer.join().unwrap() > 0, "connections were killed");
    assert_eq!(tally(&server.snapshot(), "killed"), [300, 0, 0, 0, 0, 0]);
}

#[tokio::test]
async fn scripts_are_flushed_in_the_middle_of_a_pipeline() {
    let server = Arc::new(TestRedis::spawn());
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    let seeded = Transition::Retry.seed(&server).await;
    let other = Arc::clone(&server);
    let calls = proxy.count("EVALSHA");
    proxy.interpose(2, |command| command.name == "EVALSHA", move || other.cli::<()>(&["SCRIPT", "FLUSH"]));
    assert!(Transition::Retry.run(&backend, &seeded).await.unwrap());
    assert_eq!(proxy.count("EVALSHA") - calls, 3, "one of two is sent again");
    Transition::Retry.assert_done(&server.snapshot(), "flushed");
}

#[tokio::test]
async fn little_time_is_no_reason_to_leave_a_script_unloaded() {
    let server = TestRedis::spawn();
    eventually_async("a task is stored in the end", async || {
        backend(&server.url(), Duration::from_millis(5)).enqueue(&[task(QUEUE)]).await.is_ok()
    })
    .await;
}

#[tokio::test]
async fn many_wait_for_one_attempt_and_all_hear_how_it_went() {
    let mut server = TestRedis::spawn();
    let backend = backend(&server.url(), LONG);
    server.stop();
    let waiting = (0..200).map(|_| {
        let backend = backend.clone();
        tokio::spawn(async move { backend.ping().await })
    });
    for answer in waiting.collect::<Vec<_>>() {
        assert!(matches!(answer.await.unwrap(), Err(BackendError::Connect { .. })));
    }
}

#[tokio::test]
async fn an_answer_that_is_lost_stays_unknown_when_the_second_try_is_refused() {
    let server = Arc::new(TestRedis::spawn());
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    proxy.lose_reply(1, Lose::ByCut, |command| command.name == "EVALSHA");
    let other = Arc::clone(&server);
    proxy.interpose(
        2,
        |command| command.name == "EVALSHA",
        move || {
            // Not what a memory limit does to a replay, which writes nothing: what any refusal does to what is known.
            other.cli::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
            other.cli::<()>(&["FLUSHALL"]);
        },
    );
    let error = backend.enqueue(&[task(QUEUE)]).await.unwrap_err();
    assert!(error.is_uncertain(), "{error}");
}

#[tokio::test]
async fn a_large_enqueue_says_how_far_it_came() {
    let server = Arc::new(TestRedis::spawn());
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    backend.enqueue(&[task("warm")]).await.unwrap();
    server.cli::<()>(&["FLUSHDB"]);
    let other = Arc::clone(&server);
    let full = move || other.cli::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    proxy.interpose(2, |command| command.name == "EVALSHA", full);
    let tasks: Vec<_> = (0..700).map(|_| task(QUEUE)).collect();
    let error = backend.enqueue(&tasks).await.unwrap_err();
    let BackendError::Partly { stored, of: 700, .. } = error else { panic!("{error}") };
    assert!(!error.is_uncertain() && error.is_passing());
    assert_eq!(tally(&server.snapshot(), "in part")[0], stored);
    server.cli::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
    let again = backend.enqueue(&tasks).await.unwrap();
    assert_eq!(again.iter().filter(|next| next.outcome == EnqueueOutcome::Replayed).count(), stored);
    assert_eq!(tally(&server.snapshot(), "whole")[0], 700);
}

#[tokio::test]
async fn a_worker_goes_on_after_an_outage_where_it_was() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    backend.register(&registration(WORKER)).await.unwrap();
    backend.enqueue(&[task(QUEUE), task(QUEUE)]).await.unwrap();
    let token = Token::new();
    let AcquireAnswer::Granted(granted) = acquire(&backend, &token, 1, 2, 2).await.unwrap() else { panic!() };
    proxy.refuse();
    let results: Vec<_> = granted.leases.iter().map(success).collect();
    for _ in 0..3 {
        let error = backend.acknowledge(WORKER, None, &results).await.unwrap_err();
        assert!(error.is_passing(), "{error}");
        assert!(backend.beat(&registration(WORKER)).await.unwrap_err().is_passing());
    }
    proxy.heal();
    assert!(matches!(backend.beat(&registration(WORKER)).await.unwrap(), Beat::Alive(_)));
    // The first may have slipped through before the network was gone.
    let answers = backend.acknowledge(WORKER, None, &results).await.unwrap();
    assert!(answers.iter().all(|answer| *answer != AcknowledgeOutcome::Lost), "{answers:?}");
    assert_eq!(tally(&server.snapshot(), "after the outage"), [0, 0, 0, 2, 0, 0]);
}

#[tokio::test]
async fn a_subscription_ends_with_its_connection_and_another_can_be_had() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    let backend = backend(&proxy.url(), LONG);
    let mut events = backend.telemetry().await.unwrap();
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
    proxy.cut();
    assert_eq!(events.next().await, None);
    let mut events = backend.telemetry().await.unwrap();
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
}
