//! What our worker stores for a task is what the Python package's worker stores for it.

use super::{Ours, backend, options};
use crate::common::{Django, TestRedis, eventually_async};
use serde_json::Value;
use threadmill::native::Task;
use threadmill::worker::{Stopper, Worker};

/// Expressions that enqueue a task each.
const TASKS: &[&str] = &[
    "tasks.add.enqueue(1, 2)",
    "tasks.add.enqueue(1)",
    "tasks.add.using(queue_name='a:b').enqueue('x', 'y')",
    "tasks.echo.enqueue(None)",
    "tasks.echo.enqueue({'ö': ['\\ud800', '\\x00', 'Ω😀', '\"', '/']})",
    "tasks.echo.enqueue([2**80, -0.0, 1e300, float('nan'), float('inf'), True])",
    "tasks.echo.enqueue({'task': 1, 'func': {'task': []}})",
    "tasks.keywords.enqueue(name='größe', other=[1])",
    "tasks.keywords.enqueue()",
    "tasks.boom.enqueue('why — \\n')",
    "tasks.lost_order.enqueue(7)",
    "tasks.lost_for_good.enqueue(7)",
    "tasks.lost_otherwise.enqueue()",
    "tasks.once.enqueue()",
    "tasks.under_a_broken_policy.enqueue()",
    "tasks.flaky.enqueue(3)",
    "tasks.flaky.enqueue(99)",
    "tasks.flaky_by_function.enqueue(3)",
    "tasks.who.using(queue_name='größe', priority=5).enqueue()",
    "tasks.later.enqueue('later')",
    "tasks.later_boom.enqueue('later')",
    "tasks.grouped.enqueue()",
    "tasks.surrogates.enqueue()",
    "tasks.shaped.enqueue()",
    "tasks.nested.enqueue(100)",
    "tasks.mark.using(run_after=datetime.datetime.now(datetime.UTC) + datetime.timedelta(milliseconds=50)).enqueue('m')",
];

/// What is stored as the results of these tasks, in their order.
async fn results(site: &Django, redis: &TestRedis, ids: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for id in ids {
        let key = format!("threadmill:{{default}}:result:{id}");
        let mut stored = None;
        eventually_async(&format!("{id} is finished"), async || {
            stored = redis.cli::<Option<String>>(&["GET", &key]);
            stored.is_some()
        })
        .await;
        found.push(plain(&stored.unwrap(), id, &site.dir().display().to_string()));
    }
    found
}

/// A stored result without what differs from run to run: ids, times, names of workers, the folder of the site, and the
/// frames of the worker's own in tracebacks.
fn plain(stored: &str, id: &str, folder: &str) -> String {
    let mut text = stored.replace(id, "ID").replace(folder, "SITE");
    let times = ["run_after", "enqueued_at", "started_at", "finished_at", "last_attempted_at"];
    for name in times {
        let label = format!("\"{name}\": \"");
        if let Some((head, rest)) = text.split_once(&label) {
            let (_, tail) = rest.split_once('"').unwrap();
            text = format!("{head}\"{name}\": TIME{tail}");
        }
    }
    let (head, rest) = text.rsplit_once("\"worker_ids\": [").unwrap();
    let (workers, tail) = rest.split_once(']').unwrap();
    text = format!("{head}{} workers{tail}", workers.split(", ").count());
    without_frames_of(&text, &["threadmill/executor.py", "<threadmill child>", "asyncio/runners.py"])
}

/// Drops the lines of a stored traceback that belong to a frame in one of these files.
fn without_frames_of(text: &str, files: &[&str]) -> String {
    let mut out = Vec::new();
    let mut skips = false;
    for line in text.split("\\n") {
        let level = line.trim_start_matches([' ', '|']);
        if level.starts_with("File \\\"") {
            skips = files.iter().any(|file| line.contains(file));
        } else if !line.trim_start_matches('|').starts_with("    ") && !line.starts_with("  |     ") {
            skips = false;
        }
        if !skips {
            out.push(line);
        }
    }
    out.join("\\n")
}

#[tokio::test]
async fn both_workers_store_the_same() {
    let (theirs, ours) = (TestRedis::spawn(), TestRedis::spawn());
    let (their_site, our_site) = (Django::on(&theirs.url()), Django::on(&ours.url()));
    let enqueue = |site: &Django| TASKS.iter().map(|task| site.enqueue(task)).collect::<Vec<_>>();
    let (their_ids, our_ids) = (enqueue(&their_site), enqueue(&our_site));
    let queues = ["default", "a:b", "größe"];
    let their_worker = their_site.worker(&queues, &[]);
    let our_worker = Ours::start(backend(&ours), &queues, options(&our_site));
    let theirs = results(&their_site, &theirs, &their_ids).await;
    let ours = results(&our_site, &ours, &our_ids).await;
    for ((their, our), task) in theirs.iter().zip(&ours).zip(TASKS) {
        assert_eq!(our, their, "{task}");
    }
    assert!(our_worker.stop().await.is_settled);
    assert!(their_worker.stop().success());
}

#[tokio::test]
async fn receivers_and_policies_see_the_same() {
    let heard = async |ours: bool| {
        let redis = TestRedis::spawn();
        let site = Django::on(&redis.url());
        // The module is imported by its first task; from then on its receivers hear all.
        let ids = site.run(
            "import heard\nout = [heard.works.enqueue('ö').id, heard.fails.enqueue(a=[1]).id, heard.sees.enqueue().id, \
             tasks.later.enqueue(1).id, tasks.boom.enqueue('x').id]",
        );
        let ids: Vec<String> = serde_json::from_value(ids).unwrap();
        if ours {
            let worker = Ours::start(backend(&redis), &["default"], options(&site));
            results(&site, &redis, &ids).await;
            worker.stop().await;
        } else {
            let worker = site.worker(&["default"], &["--prefetch-count", "1"]);
            results(&site, &redis, &ids).await;
            worker.stop();
        }
        let text = std::fs::read_to_string(site.dir().join("heard")).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        lines.iter().map(Value::to_string).collect::<Vec<_>>()
    };
    let (theirs, ours) = (heard(false).await, heard(true).await);
    assert_eq!(ours, theirs);
    assert_eq!(ours.len(), 12);
}

#[tokio::test]
async fn both_workers_drain_one_queue_together() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    site.run("out = [tasks.mark.enqueue(str(n)).id for n in range(400)] and None");
    let ids: Vec<String> =
        serde_json::from_value(site.run("out = [r['id'] for r in peek('default', 'READY')]")).unwrap();
    let theirs = site.worker(&["default"], &[]);
    let ours = Ours::start(backend(&redis), &["default"], options(&site));
    eventually_async("all are done", async || site.counts()["default"].successful == 400).await;
    let summary = ours.stop().await;
    assert!(summary.is_settled && summary.failed == 0, "{summary:?}");
    assert!(theirs.stop().success());
    let mut marks: Vec<u32> = site.marks().iter().map(|mark| mark.parse().unwrap()).collect();
    marks.sort_unstable();
    assert_eq!(marks, (0..400).collect::<Vec<_>>());
    assert_eq!(ids.len(), 400);
}

#[tokio::test]
async fn a_rust_task_goes_before_python_s_of_its_name() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let (add, echo) = (site.enqueue("tasks.add.enqueue(1, 2)"), site.enqueue("tasks.echo.enqueue('Python')"));
    const ADD: Task<(i64, i64), String> = Task::new("tasks.add");
    let add_here = |(a, b): (i64, i64)| async move { Ok::<_, std::convert::Infallible>(format!("Rust: {}", a + b)) };
    let worker = Worker::new(backend(&redis)).task(ADD, add_here).python(options(&site));
    let stopper = Stopper::new();
    let stop = stopper.clone();
    let run = tokio::spawn(async move { worker.run_with(stop).await.unwrap_or_else(|e| panic!("{e:?}")) });
    let mut values = (Value::Null, Value::Null);
    eventually_async("both have ended", async || {
        values = (site.result(&add)["value"].clone(), site.result(&echo)["value"].clone());
        values.0 != Value::Null && values.1 != Value::Null
    })
    .await;
    assert_eq!(values, (Value::from("Rust: 3"), Value::from("Python")));
    stopper.stop();
    run.await.unwrap();
}
