//! One Redis, both programs: a live 0.8.4 enqueues, runs, reads and reaps beside our transitions.

use crate::common::{Django, TestRedis};
use serde_json::json;
use threadmill::backend::doctor::Checkup;
use threadmill::backend::{
    AcknowledgeOutcome, Acknowledgement, AcquireAnswer, AcquireRequest, Backend, MoveOutcome, Outcome, RedisUrl,
    Registration, RequeueOutcome, RescheduleOutcome, Seen, Settings, Token, When, codec, new_id,
};
use threadmill::task::{NewTask, RawJson, Segment, TaskId};

fn backend(redis: &TestRedis) -> Backend {
    Backend::new(Settings::new(RedisUrl::parse(&redis.url()).unwrap())).unwrap()
}

/// Waits until 0.8.4 says that a task is finished, and returns what it says of it.
fn status(result: &serde_json::Value) -> &str {
    result["status"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn it_enqueues_we_run_and_it_reads_our_result() {
    let redis = TestRedis::spawn();
    let (site, backend) = (Django::on(&redis.url()), backend(&redis));
    let ids: Vec<String> = Django::QUEUES
        .iter()
        .map(|queue| site.enqueue(&format!("tasks.echo.using(queue_name={}).enqueue('é')", json!(queue))))
        .collect();
    let worker = "host:1-aaaa";
    let registration =
        Registration { worker: worker.into(), ttl: std::time::Duration::from_secs(60), ..Default::default() };
    backend.register(&registration).await.unwrap();
    let (token, queues) = (Token::new(), Django::QUEUES.map(str::to_owned));
    let request = AcquireRequest {
        worker,
        token: &token,
        number: 1,
        queues: &queues,
        count: 10,
        start_now: 10,
        sequence: 1,
        byte_budget: 1 << 20,
    };
    let AcquireAnswer::Granted(acquired) = backend.acquire(&request).await.unwrap() else { panic!() };
    assert_eq!(acquired.leases.len(), 5);
    // While we hold them, its inspector shows them as running, by us.
    for queue in &queues {
        let running = site.peek(queue, "RUNNING");
        assert_eq!(running.len(), 1, "{queue}");
        assert_eq!(running[0]["worker_ids"], json!([worker]));
    }
    let finished: Vec<_> = acquired
        .leases
        .iter()
        .map(|lease| {
            let record = codec::decode(&lease.data).unwrap();
            let now = chrono::Utc::now();
            let attempt = codec::Attempt { worker: worker.into(), started_at: now, finished_at: now };
            let result = codec::success(&record, &attempt, RawJson::new(r#"{"from":"Rust","é":[1.5,null]}"#));
            Acknowledgement {
                id: lease.id.clone(),
                queue: lease.queue.clone(),
                token: lease.token.clone(),
                outcome: Outcome::Successful,
                result: codec::encode(&result),
            }
        })
        .collect();
    let outcomes = backend.acknowledge(worker, None, &finished).await.unwrap();
    assert!(outcomes.iter().all(|outcome| *outcome == AcknowledgeOutcome::Stored));
    for id in ids {
        let result = site.result(&id);
        assert_eq!(status(&result), "SUCCESSFUL");
        assert_eq!(result["value"], json!({"from": "Rust", "é": [1.5, null]}));
        assert_eq!(result["worker_ids"], json!([worker]));
    }
}

#[tokio::test]
async fn we_enqueue_its_worker_runs_and_we_show_the_result() {
    let redis = TestRedis::spawn();
    let (site, backend) = (Django::on(&redis.url()), backend(&redis));
    let mut plain = NewTask::new(new_id(), "tasks.keywords");
    plain.kwargs = RawJson::new(r#"{"name": "größe", "greeting": "hi"}"#);
    plain.queue = "a:b".into();
    let mut soon = NewTask::new(new_id(), "tasks.who");
    soon.takes_context = true;
    soon.run_after = Some(chrono::Utc::now() + chrono::TimeDelta::milliseconds(50));
    let backoff = threadmill::task::ExponentialBackoff::new()
        .base_delay(std::time::Duration::from_millis(5))
        .expected_exceptions(["builtins.ValueError"]);
    let mut flaky = NewTask::new(new_id(), "tasks.flaky");
    (flaky.takes_context, flaky.args) = (true, RawJson::new("[2]"));
    flaky.retry = Some(threadmill::task::Retry::Backoff(backoff.clone(), codec::encode_backoff(&backoff)));
    let tasks = [plain.clone(), soon.clone(), flaky.clone()];
    backend.enqueue(&tasks).await.unwrap();
    let worker = site.worker(&["default", "a:b"], &[]);
    for task in &tasks {
        let result = site.finished(task.id.as_str());
        assert_eq!(status(&result), "SUCCESSFUL", "{result}\n{}", worker.log());
    }
    let shown = backend.find(&plain.id, None).await.unwrap().unwrap();
    assert_eq!(shown.segment(), Some(Segment::Successful));
    let value = threadmill::backend::codec::decode_string(shown.return_value().unwrap().as_str()).into_owned();
    assert!(value.contains("hi gr"), "{value}");
    let shown = backend.find(&flaky.id, None).await.unwrap().unwrap();
    assert_eq!((shown.attempts(), shown.record().unwrap().errors.len()), (2, 1));
    assert!(worker.stop().success());
}

#[tokio::test]
async fn it_fails_a_task_we_requeue_it_and_its_worker_runs_it_again() {
    let redis = TestRedis::spawn();
    let (site, backend) = (Django::on(&redis.url()), backend(&redis));
    let id = TaskId::from(site.enqueue("tasks.boom.enqueue('it broke — café')"));
    let worker = site.worker(&["default"], &[]);
    assert_eq!(status(&site.finished(id.as_str())), "FAILED");
    let detail = backend.find(&id, None).await.unwrap().unwrap();
    let (record, seen) = (detail.record().unwrap(), detail.score().unwrap());
    assert!(record.errors[0].traceback.ends_with("RuntimeError: it broke — café\n"));
    let outcome = backend.requeue(record, "default", Segment::Failed, seen, When::Now).await.unwrap();
    assert_eq!(outcome, RequeueOutcome::Requeued);
    let result = crate::common::eventually_some("its second failure", || {
        let result = site.result(id.as_str());
        (result["errors"].as_array().is_some_and(|errors| errors.len() == 2)).then_some(result)
    });
    assert_eq!(result["worker_ids"].as_array().unwrap().len(), 2);
    assert!(worker.stop().success());
}

#[tokio::test]
async fn what_we_moved_promoted_and_repaired_its_worker_runs_and_its_reader_reads() {
    let redis = TestRedis::spawn();
    let (site, backend) = (Django::on(&redis.url()), backend(&redis));
    let moved = TaskId::from(site.enqueue("tasks.echo.enqueue('moved é')"));
    let later = site.enqueue(
        "tasks.echo.using(run_after=datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)).enqueue('soon')",
    );
    let seen = |id: &TaskId, score| [Seen { id: id.clone(), score }];
    let score = async |id: &TaskId| backend.find(id, None).await.unwrap().unwrap().score().unwrap();
    let ready = seen(&moved, score(&moved).await);
    let outcomes = backend.move_many("default", "größe", Segment::Ready, &ready).await.unwrap();
    assert_eq!(outcomes, [Ok(MoveOutcome::Moved)]);
    let later = TaskId::from(later);
    let scheduled = seen(&later, score(&later).await);
    let outcomes = backend.reschedule_many("default", &scheduled, When::Now).await.unwrap();
    assert_eq!(outcomes, [RescheduleOutcome::Rescheduled]);
    let worker = site.worker(&["default", "größe"], &[]);
    for (id, queue) in [(&moved, "größe"), (&later, "default")] {
        let result = site.finished(id.as_str());
        assert_eq!((status(&result), result["queue"].as_str()), ("SUCCESSFUL", Some(queue)), "{}", worker.log());
    }
    assert!(worker.stop().success());
    // A history that lost its entry, as its purge of another queue can do.
    redis.cli::<()>(&["DEL", "threadmill:{default}:default:successful"]);
    let fix = Checkup { fix: true, ..Checkup::default() };
    backend.doctor(&fix, &mut |_| std::ops::ControlFlow::Continue(())).await.unwrap();
    let listed = site.peek("default", "SUCCESSFUL");
    assert_eq!((listed.len(), listed[0]["id"].as_str()), (1, Some(later.as_str())));
}

#[tokio::test]
async fn its_inspector_s_counts_equal_ours_in_every_state() {
    let redis = TestRedis::spawn();
    let (site, backend) = (Django::on(&redis.url()), backend(&redis));
    for queue in Django::QUEUES {
        site.enqueue(&format!("tasks.echo.using(queue_name={}).enqueue(1)", json!(queue)));
    }
    site.enqueue("tasks.boom.enqueue('x')");
    let mut worker = site.worker(&["default"], &["--exit-empty"]);
    worker.wait();
    site.enqueue(
        "tasks.add.using(run_after=datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=3)).enqueue(1, 2)",
    );
    let id = site.enqueue("tasks.hold.enqueue('h')");
    let worker = site.worker(&["default"], &[]);
    crate::common::eventually("it holds a task", || site.holds("h"));
    while !backend.search_queues(std::time::Duration::from_secs(1)).await.unwrap() {}
    let theirs = site.counts();
    let ours = backend.counts(&backend.known_queues().await.unwrap()).await.unwrap();
    assert_eq!(ours.len(), 5);
    for counts in ours {
        let their = theirs[&counts.queue];
        let [ready, scheduled, running, successful, failed] = Segment::ALL.map(|segment| counts.of(segment));
        let mine = crate::common::python::Counts { ready, scheduled, running, successful, failed };
        assert_eq!(mine, their, "{}", counts.queue);
    }
    let held = backend.find(&TaskId::from(id), None).await.unwrap().unwrap();
    assert_eq!((held.segment(), held.attempts()), (Some(Segment::Running), 1));
    site.release("h");
    assert!(worker.stop().success());
}
