//! What breaks, found and repaired; and the sweep that keeps what waits.

use crate::common::{Home, Snapshot, TestRedis, eventually_async};
use crate::transitions::{Lab, Request, WORKER, members, result_key, task_key};
use chrono::Utc;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use threadmill::backend::codec::{Attempt, encode, encode_error, failure, queued, success};
use threadmill::backend::doctor::{Checkup, FindingKind, Report, Settled, Severity};
use threadmill::backend::{AcquireAnswer, Backend, PurgeScope, RedisUrl, SetAsideReason, Settings, Token};
use threadmill::task::{NewTask, RawJson, Segment, TaskId};

/// The key of a segment, as the layout names it.
fn key(queue: &str, suffix: &str) -> String {
    format!("threadmill:{{default}}:{queue}:{suffix}")
}

fn quarantine(queue: &str) -> String {
    format!("threadmill-rs:{{default}}:quarantine:{queue}")
}

fn list(redis: &TestRedis, queue: &str, suffix: &str, id: &str, score: &str) {
    redis.cli::<()>(&["ZADD", &key(queue, suffix), score, id]);
}

/// Stores the record of a waiting task, and lists it nowhere.
fn put_record(redis: &TestRedis, queue: &str, id: &str) {
    let mut task = NewTask::new(TaskId::from(id), "tasks.echo");
    task.queue = queue.to_owned();
    let data = encode(&queued(&task, "default", Utc::now()));
    redis.cli::<()>(&["HSET", &task_key(id), "data", &data, "score", "5"]);
}

/// Stores the result of a finished task, and lists it nowhere.
fn put_result(redis: &TestRedis, queue: &str, id: &str, good: bool) {
    let mut task = NewTask::new(TaskId::from(id), "tasks.echo");
    task.queue = queue.to_owned();
    let at = chrono::DateTime::from_timestamp_millis(1_796_067_570_881).unwrap();
    let attempt = Attempt { worker: "w".into(), started_at: at, finished_at: at };
    let record = queued(&task, "default", at);
    let result = match good {
        true => success(&record, &attempt, RawJson::null()),
        false => failure(&record, &attempt, encode_error("builtins.ValueError", "no\n")),
    };
    redis.cli::<()>(&["SET", &result_key(id), &encode(&result), "EX", "1000"]);
}

async fn examine(backend: &Backend, options: &Checkup) -> Report {
    backend.doctor(options, &mut |_| ControlFlow::Continue(())).await.unwrap()
}

/// What was found: how many of each kind, and how many of them were repaired; without the server's own.
fn found(report: &Report) -> BTreeMap<FindingKind, (u64, u64)> {
    use FindingKind as K;
    let mut found: BTreeMap<FindingKind, (u64, u64)> = BTreeMap::new();
    for finding in &report.findings {
        if matches!(finding.kind, K::NoReplica | K::Persistence | K::NobodyWorks) {
            continue;
        }
        let entry = found.entry(finding.kind).or_default();
        *entry = (entry.0 + finding.count, entry.1 + finding.fixed);
    }
    found
}

/// Every way in which ids of two queues break the rules; the ids say how.
fn break_everything(redis: &TestRedis) {
    for queue in ["default", "a:b"] {
        let id = |name: &str| format!("{name}-{queue}");
        let put = |suffix: &str, name: &str, score: &str| list(redis, queue, suffix, &id(name), score);
        put_record(redis, queue, &id("both"));
        put("ready", "both", "5");
        put("deferred", "both", "9e12");
        put_record(redis, queue, &id("copy"));
        put_result(redis, queue, &id("copy"), true);
        put("deferred", "copy", "9e12");
        put("successful", "copy", "1796067570881");
        put_record(redis, queue, &id("again"));
        put("deferred", "again", "9e12");
        put("failed", "again", "1796067570881");
        put("ready", "ghost", "1");
        put("deferred", "ghost-later", "9e12");
        redis.cli::<()>(&["SET", &task_key(id("bad")), "text"]);
        put("ready", "bad", "2");
        put_record(redis, queue, &id("orphan"));
        put_result(redis, queue, &id("lonely"), false);
        put_result(redis, queue, &id("finished-but-ready"), true);
        put("ready", "finished-but-ready", "3");
        put("successful", "expired", "1796067570881");
        put_record(redis, queue, &id("ending"));
        put("ready", "ending", "6");
        redis.cli::<()>(&["EXPIRE", &task_key(id("ending")), "1000"]);
        put_record(redis, queue, &id("fine"));
        put("ready", "fine", "7");
        put_result(redis, queue, &id("done"), false);
        put("failed", "done", "1796067570881");
    }
}

#[tokio::test]
async fn whatever_breaks_the_rules_is_found_counted_and_repaired() {
    use FindingKind as K;
    let lab = Lab::new();
    break_everything(&lab.redis);
    let before = lab.redis.snapshot().only(|key| key.starts_with("threadmill:"));
    let look = Checkup::default();
    let report = examine(&lab.backend, &look).await;
    let mut expected: BTreeMap<_, _> = [
        (K::TwoSegments, 2),
        (K::RequeuedCopy, 4),
        (K::Ghost, 4),
        (K::BadRecord, 2),
        (K::Orphan, 2),
        (K::ResultWithoutHistory, 4),
        (K::HistoryWithoutResult, 2),
        (K::Expiring, 2),
        (K::QueueName, 0),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .map(|(kind, count)| (kind, (count, 0)))
    .collect();
    assert_eq!(found(&report), expected);
    assert!(report.complete && !report.is_healthy());
    assert_eq!(report.findings[0].severity, Severity::Error, "the worst first");
    before.assert_same(&lab.redis.snapshot().only(|key| key.starts_with("threadmill:")));

    let report = examine(&lab.backend, &Checkup { fix: true, ..look.clone() }).await;
    expected.iter_mut().for_each(|(_, counts)| counts.1 = counts.0);
    expected.insert(K::Quarantined, (6, 0));
    assert_eq!(found(&report), expected);
    for queue in ["default", "a:b"] {
        check_repaired(&lab.redis.snapshot(), queue);
    }
    let again = examine(&lab.backend, &Checkup { fix: true, ..look.clone() }).await;
    let left = BTreeMap::from([(K::Quarantined, (6, 0)), (K::EndingOrphan, (2, 0))]);
    assert_eq!(found(&again), left);
}

fn check_repaired(snapshot: &Snapshot, queue: &str) {
    let id = |name: &str| format!("{name}-{queue}");
    let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect::<Vec<_>>();
    assert_eq!(members(snapshot, queue, Segment::Ready), ids(&["both", "ending", "fine"]));
    assert_eq!(members(snapshot, queue, Segment::Scheduled), ids(&["again"]));
    assert_eq!(members(snapshot, queue, Segment::Successful), ids(&["copy", "finished-but-ready"]));
    assert_eq!(members(snapshot, queue, Segment::Failed), ids(&["done", "lonely"]));
    let mut set_aside = snapshot.members(&quarantine(queue));
    set_aside.sort_unstable();
    assert_eq!(set_aside, ids(&["bad", "ghost", "ghost-later"]));
    assert!(!snapshot.contains_key(&task_key(id("copy"))), "the copy of what is finished has gone");
    assert!(snapshot[&task_key(id("orphan"))].expires && !snapshot[&task_key(id("ending"))].expires);
    assert!(snapshot.contains_key(&task_key(id("bad"))), "what nobody can read stays");
}

#[tokio::test]
async fn a_repair_judges_again_what_it_finds() {
    let lab = Lab::new();
    break_everything(&lab.redis);
    // Between the look and the repair the answer of each repair is lost: sent again it must answer the same.
    lab.proxy
        .lose_reply(3, crate::common::Lose::ByCut, |command| command.has(threadmill::backend::scripts::SETTLE.sha()));
    examine(&lab.backend, &Checkup { fix: true, ..Checkup::default() }).await;
    let once = lab.redis.snapshot();
    examine(&lab.backend, &Checkup { fix: true, ..Checkup::default() }).await;
    let beside = |key: &str| key.starts_with("threadmill:");
    once.only(beside).assert_same(&lab.redis.snapshot().only(beside));
}

#[tokio::test]
async fn what_runs_is_left_to_its_holder() {
    let lab = Lab::new();
    let tasks = lab.enqueue("default", 2).await;
    let leases = lab.acquire("default", 2, 2).await;
    let id = tasks[0].id.as_str();
    // A late retry by another worker, and a record that expired under its holder.
    list(&lab.redis, "default", "deferred", id, "9e12");
    lab.redis.cli::<()>(&["DEL", &task_key(&tasks[1].id)]);
    let report = examine(&lab.backend, &Checkup { fix: true, ..Checkup::default() }).await;
    let counts = found(&report);
    assert_eq!(counts[&FindingKind::TwoSegments], (1, 1));
    assert_eq!(counts[&FindingKind::Ghost], (1, 0), "a holder may still deliver its result");
    assert_eq!(lab.members("default", Segment::Running).len(), 2);
    assert!(lab.members("default", Segment::Scheduled).is_empty());
    assert_eq!(leases.len(), 2);
}

#[tokio::test]
async fn who_should_work_and_does_not_is_named() {
    use FindingKind as K;
    let lab = Lab::new();
    lab.enqueue("default", 3).await;
    let leases = lab.acquire("default", 2, 2).await;
    list(&lab.redis, "default", "running", leases[0].id.as_str(), "1000");
    put_record(&lab.redis, "default", "due");
    list(&lab.redis, "default", "deferred", "due", "1000");
    lab.redis.cli::<()>(&["ZADD", "threadmill-rs:{default}:workers", "1000", "silent", "1001", WORKER]);
    lab.redis.cli::<()>(&["HSET", "threadmill-rs:{default}:worker:dead", "id", "dead", "dead", "1"]);
    lab.redis.cli::<()>(&["ZADD", "threadmill-rs:{default}:workers", "1000", "dead"]);
    lab.redis.cli::<()>(&["SET", &key("broken", "failed"), "x"]);
    lab.redis.cli::<()>(&["ZADD", &key("broken", "ready"), "1", "x"]);
    // A worker of the Python package holds a task of this queue.
    put_record(&lab.redis, "site", "theirs");
    lab.redis.cli::<()>(&["HSET", &task_key("theirs"), "lease_worker", "django:1-0", "lease_token", "abc"]);
    list(&lab.redis, "site", "running", "theirs", "9999999999999");
    put_record(&lab.redis, "site", "ours");
    list(&lab.redis, "site", "ready", "ours", "1");
    let options = Checkup { native: vec!["tasks.echo".into()], ..Checkup::default() };
    let counts = found(&examine(&lab.backend, &options).await);
    for (kind, count) in [
        (K::HolderGone, 2),
        (K::LeaseOver, 1),
        (K::DueNotMoved, 1),
        (K::WorkerSilent, 2),
        (K::WorkerDead, 1),
        (K::BrokenKey, 1),
        (K::NativeOnPython, 1),
    ] {
        assert_eq!(counts.get(&kind), Some(&(count, 0)), "{kind:?} in {counts:?}");
    }
}

#[tokio::test]
async fn the_server_is_looked_at_and_a_checkup_can_be_stopped() {
    let redis = TestRedis::setup().set("maxmemory-policy", "allkeys-lru").set("maxmemory", "200mb").start();
    let backend = Backend::new(Settings::new(RedisUrl::parse(&redis.url()).unwrap())).unwrap();
    let report = examine(&backend, &Checkup::default()).await;
    let kinds: Vec<_> = report.findings.iter().map(|finding| (finding.kind, finding.severity)).collect();
    assert!(kinds.contains(&(FindingKind::Eviction, Severity::Error)), "{kinds:?}");
    assert!(kinds.contains(&(FindingKind::Persistence, Severity::Warning)), "{kinds:?}");
    for n in 0..2000 {
        list(&redis, "default", "ready", &format!("ghost-{n}"), "1");
    }
    let mut steps = 0;
    let report = backend
        .doctor(&Checkup { examples: 3, ..Checkup::default() }, &mut |progress| {
            steps += u64::from(progress.queue.is_some());
            if steps >= 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .await
        .unwrap();
    let ghosts = report.findings.iter().find(|finding| finding.kind == FindingKind::Ghost).unwrap();
    assert!(!report.complete && ghosts.count < 2000 && ghosts.examples.len() == 3, "{ghosts:?}");
}

#[tokio::test]
async fn the_sweep_keeps_what_waits_and_ends_what_nothing_lists() {
    let lab = Lab::new();
    break_everything(&lab.redis);
    // The records of 0.8.4 have the default end; ours have none.
    for n in 0..2500 {
        let id = format!("theirs-{n}");
        put_record(&lab.redis, "default", &id);
        lab.redis.cli::<()>(&["EXPIRE", &task_key(&id), "97200"]);
        list(&lab.redis, "default", "ready", &id, &format!("{}", 10 + n));
    }
    let queues = ["default".to_owned(), "a:b".to_owned()];
    let mut repairs = BTreeMap::new();
    let (mut persisted, mut ended) = (0, Vec::new());
    for _ in 0..60 {
        let tidied = lab.backend.tidy_slice(&queues, Duration::ZERO).await.unwrap();
        assert!(tidied.turn);
        persisted += tidied.persisted;
        ended.extend(tidied.ended);
        for repair in tidied.repairs {
            assert_ne!(repair.outcome, Settled::Fine);
            *repairs.entry(repair.kind).or_insert(0) += 1;
        }
    }
    assert_eq!(persisted, 2502);
    ended.sort();
    assert_eq!(ended, ["orphan-a:b", "orphan-default"].map(TaskId::from));
    let snapshot = lab.redis.snapshot();
    assert!((0..2500).all(|n| !snapshot[&task_key(format!("theirs-{n}"))].expires));
    assert_eq!(repairs[&FindingKind::Ghost], 4);
    assert_eq!(repairs[&FindingKind::RequeuedCopy], 4);
    assert_eq!(snapshot.members(&quarantine("default")).len(), 3);
    let other = lab.backend.tidy_slice(&queues, Duration::from_secs(600)).await.unwrap();
    assert!(!other.turn, "another program had its turn just now");
}

#[tokio::test]
async fn with_an_end_of_seconds_nothing_that_waits_is_lost() {
    let lab = Lab::new();
    let mut settings = Settings::new(RedisUrl::parse(&lab.redis.url()).unwrap());
    (settings.lease_ttl, settings.result_ttl) = (Duration::from_secs(1), Duration::from_secs(1));
    let backend = Backend::new(settings).unwrap();
    let mut ids = Vec::new();
    for n in 0..300 {
        let id = format!("theirs-{n}");
        put_record(&lab.redis, "default", &id);
        let suffix = ["ready", "deferred", "running"][n % 3];
        list(&lab.redis, "default", suffix, &id, "9e12");
        ids.push(id);
    }
    put_record(&lab.redis, "default", "orphan");
    for id in &ids {
        lab.redis.cli::<()>(&["PEXPIRE", &task_key(id), "4000"]);
    }
    let queues = ["default".to_owned()];
    let start = lab.redis.cli::<Vec<i64>>(&["TIME"])[0];
    backend.tidy_slice(&queues, Duration::ZERO).await.unwrap();
    // By the server's own clock, all their ends have passed.
    eventually_async("the time that they would have had", async || {
        backend.tidy_slice(&queues, Duration::ZERO).await.unwrap();
        lab.redis.cli::<Vec<i64>>(&["TIME"])[0] > start + 5
    })
    .await;
    let snapshot = lab.redis.snapshot();
    assert!(ids.iter().all(|id| snapshot.contains_key(&task_key(id)) && !snapshot[&task_key(id)].expires));
    assert!(!snapshot.contains_key(&task_key("orphan")), "what nothing lists has ended");
}

#[tokio::test]
async fn a_turn_of_the_sweep_is_cheap_however_much_waits() {
    let lab = Lab::new();
    seed(&lab.redis, 100_000, true);
    let queues = ["default".to_owned()];
    // The first round finds what there is; it makes no difference to a turn how much is left.
    for _ in 0..3 {
        lab.redis.reset_stats();
        lab.backend.tidy_slice(&queues, Duration::ZERO).await.unwrap();
        let stats = lab.redis.commandstats();
        let looked = stats["pttl"] + stats["hexists"];
        assert!(looked <= 2_500, "{stats:?}");
        assert!(stats.values().sum::<u64>() <= 6_000, "{stats:?}");
    }
}

/// Lists `count` ids in READY, with records or without.
fn seed(redis: &TestRedis, count: usize, records: bool) {
    let script = "for i = 1, tonumber(ARGV[1]) do \
        local id = 'seed-' .. i \
        redis.call('ZADD', KEYS[1], i, id) \
        if ARGV[2] == '1' then redis.call('HSET', KEYS[2] .. id, 'data', '{}', 'score', i) end \
        end";
    let (count, prefix) = (count.to_string(), task_key(""));
    let flag = if records { "1" } else { "0" };
    redis.cli::<()>(&["EVAL", script, "2", &key("default", "ready"), &prefix, &count, flag]);
}

#[tokio::test]
async fn a_hundred_thousand_ghosts_cost_the_next_live_task_a_few_calls_and_none_is_lost_from_sight() {
    const GHOSTS: usize = 100_000;
    let lab = Lab::new();
    seed(&lab.redis, GHOSTS, false);
    let task = lab.enqueue("default", 1).await.remove(0);
    lab.register(WORKER).await;
    lab.redis.reset_stats();
    let (mut noted, mut number) = (0, 0);
    let lease = loop {
        number += 1;
        let mut request = Request::new(&["default"], 10);
        (request.number, request.token) = (number, Token::new());
        let AcquireAnswer::Granted(acquired) = request.answer(&lab.backend).await else { panic!("refused") };
        assert!(acquired.set_aside.iter().all(|note| note.reason == SetAsideReason::Ghost));
        noted += acquired.set_aside.len();
        if let Some(lease) = acquired.leases.into_iter().next() {
            break lease;
        }
    };
    assert_eq!((lease.id, noted), (task.id, GHOSTS));
    let counts = lab.backend.counts(&["default".to_owned()]).await.unwrap();
    assert_eq!((counts[0].quarantined, counts[0].of(Segment::Ready)), (GHOSTS as u64, 0));
    let calls = lab.redis.commandstats()["evalsha"];
    assert!(calls <= 40, "{calls} calls");
}

#[tokio::test]
async fn purge_slices_are_short_at_many_tasks() {
    let count = if std::env::var_os("THREADMILL_LONG").is_some() { 1_000_000 } else { 50_000 };
    let lab = Lab::new();
    seed(&lab.redis, count, true);
    lab.redis.cli::<()>(&["CONFIG", "SET", "slowlog-log-slower-than", "0"]);
    lab.redis.cli::<()>(&["CONFIG", "SET", "slowlog-max-len", "20000"]);
    lab.redis.cli::<()>(&["SLOWLOG", "RESET"]);
    let mut removed = 0;
    loop {
        let slice = lab.backend.purge_slice("default", PurgeScope::Segment(Segment::Ready), None).await.unwrap();
        removed += slice.removed;
        if slice.left == 0 {
            break;
        }
    }
    assert_eq!(removed, count as u64);
    let slow: Vec<Vec<redis::Value>> = lab.redis.cli(&["SLOWLOG", "GET", "20000"]);
    assert!(lab.redis.snapshot().is_empty());
    // The log has the commands inside of a script, too.
    let mut times: Vec<i64> = slow
        .iter()
        .filter(|entry| {
            redis::from_redis_value_ref::<Vec<String>>(&entry[3]).is_ok_and(|words| words[0].starts_with("EVALSHA"))
        })
        .filter_map(|entry| redis::from_redis_value_ref(&entry[2]).ok())
        .collect();
    times.sort_unstable();
    // Other programs on the machine can hold the server up as well, so the longest says more of them than of the slice.
    let at = |share: usize| times.get((times.len() * share / 1000).min(times.len() - 1)).copied().unwrap_or(0);
    println!(
        "purge of {count} in {} calls; µs of the server: median {}, 99 % {}, 99.9 % {}, longest {}",
        times.len(),
        at(500),
        at(990),
        at(999),
        at(1000)
    );
}

#[test]
fn the_shell_tells_what_is_broken_repairs_it_and_ends_accordingly() {
    let redis = TestRedis::setup().append_only().start();
    let home = Home::on(&redis.url());
    let nothing = home.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!((nothing["healthy"].as_bool(), nothing["complete"].as_bool()), (Some(true), Some(true)));
    break_everything(&redis);
    let before = redis.snapshot().only(|key| key.starts_with("threadmill:"));
    let dry = home.run(&["doctor", "--fix", "--dry-run", "--json"]).expect(1).json();
    let kinds: Vec<_> = dry["findings"].as_array().unwrap().iter().filter_map(|found| found["kind"].as_str()).collect();
    assert!(kinds.contains(&"two-segments") && kinds.contains(&"requeued-copy"), "{kinds:?}");
    before.assert_same(&redis.snapshot().only(|key| key.starts_with("threadmill:")));
    let told = home.run(&["doctor", "default"]).expect(1);
    assert!(told.stdout.contains("ghost-default") && !told.stdout.contains("ghost-a:b"), "{}", told.stdout);
    home.run(&["doctor", "--fix"]).expect(1);
    redis.cli::<()>(&["DEL", &quarantine("default"), &quarantine("a:b")]);
    home.run(&["doctor", "--fix", "--read-only"]).expect(4);
    let after = home.run(&["doctor", "--json"]).expect(0).json();
    assert_eq!(after["healthy"].as_bool(), Some(true), "{after}");
    home.run(&["doctor", "nothing"]).expect(3);
}

#[test]
fn the_shell_moves_promotes_and_postpones() {
    let redis = TestRedis::spawn();
    let home = Home::on(&redis.url());
    for (id, suffix, score) in [("waits", "ready", "5"), ("later", "deferred", "9000000000000")] {
        put_record(&redis, "default", id);
        list(&redis, "default", suffix, id, score);
    }
    let moved = home.run(&["move", "--json", "--to", "emails", "waits"]).expect(0).json();
    assert_eq!(moved["tasks"][0]["outcome"], "moved");
    assert_eq!(members(&redis.snapshot(), "emails", Segment::Ready), ["waits"]);
    home.run(&["promote", "waits"]).expect(4);
    home.run(&["postpone", "later"]).expect(2);
    home.run(&["postpone", "--in", "2h", "later"]).expect(0);
    let due = crate::transitions::score(&redis.snapshot(), "default", "deferred", "later");
    assert!(due < 9e12 && due > Utc::now().timestamp_millis() as f64);
    home.run(&["promote", "--dry-run", "later"]).expect(0);
    home.run(&["promote", "later", "nothing"]).expect(1);
    assert_eq!(members(&redis.snapshot(), "default", Segment::Ready), ["later"]);
}
