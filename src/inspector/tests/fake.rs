//! A shop in memory, and a source that shows it: or hangs, or fails, or is late.

use crate::filter::{Candidate, Filter, Incidents};
use crate::inspector::msg::{Answer, Query};
use crate::inspector::source::{
    Acted, Body, Cursor, Deal, Page, Pulse, PurgeScope, QueueCounts, Readable, Seen, ServerFacts, Sifted, Source,
    Summary, Surveyed, TaskDetail, TaskRow, TelemetryEvent, WorkerInfo,
};
use crate::task::{
    ErrorRecord, ExponentialBackoff, Lease, Priority, RawJson, Retry, Segment, Stamp, Status, TaskId, TaskRecord,
    TaskSpec,
};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;

/// 2026-11-30 19:40:41 UTC.
pub const NOW: f64 = 1_796_067_641_000.0;

/// What is in the shop.
#[derive(Clone, Debug, Default)]
pub struct Shop {
    /// By queue: the tasks of each segment, and the quarantined.
    pub queues: BTreeMap<String, ([Vec<TaskDetail>; 5], u64)>,
    pub workers: Vec<WorkerInfo>,
    pub facts: ServerFacts,
    /// What was done.
    pub done: Vec<String>,
    /// Reads that were asked, by their kind.
    pub asked: Vec<Query>,
    pub mode: Mode,
    pub events: Vec<TelemetryEvent>,
    pub slice: u64,
}

/// How a source answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Mode {
    #[default]
    Answers,
    Hangs,
    Fails(String),
    Late(Duration),
}

/// A source on a shop that the test can change.
#[derive(Clone, Default)]
pub struct Fake {
    shop: Arc<Mutex<Shop>>,
    changed: Arc<Notify>,
}

pub fn stamp(ms: f64) -> Stamp {
    Stamp::new(chrono::DateTime::from_timestamp_millis(ms as i64).unwrap())
}

/// A task with everything that a task can have in this segment.
pub fn task(id: &str, func: &str, queue: &str, segment: Segment, age_s: f64) -> TaskDetail {
    let at = NOW - age_s * 1_000.0;
    let finished = segment.is_finished();
    let error = ErrorRecord {
        class_path: "smtplib.SMTPServerDisconnected".into(),
        traceback: "Traceback (most recent call last):\n  File \"/srv/shop/mail.py\", line 88, in send\n    \
                    client.send(message)\n  File \"/usr/lib/python3.14/smtplib.py\", line 760, in send\n    raise \
                    SMTPServerDisconnected\nsmtplib.SMTPServerDisconnected: SMTP refused user 8123\n"
            .into(),
        raw: RawJson::null(),
    };
    let attempts = if segment == Segment::Ready { 0 } else { 2 };
    let record = TaskRecord {
        spec: TaskSpec {
            priority: Priority::new(if segment == Segment::Ready { 5 } else { 0 }),
            backend: "default".into(),
            queue_name: queue.into(),
            run_after: None,
            takes_context: true,
            func: func.into(),
            retry: Some(Retry::Backoff(ExponentialBackoff::new(), RawJson::null())),
        },
        id: id.into(),
        status: if segment == Segment::Failed { Status::Failed } else { Status::Ready },
        enqueued_at: Some(stamp(at - 35_000.0)),
        started_at: finished.then(|| stamp(at - 2_100.0)),
        finished_at: finished.then(|| stamp(at)),
        last_attempted_at: finished.then(|| stamp(at - 2_100.0)),
        args: RawJson::new("[8123, \"welcome\"]"),
        kwargs: RawJson::new("{\"locale\": \"de\"}"),
        backend: "default".into(),
        errors: if segment == Segment::Failed { vec![error.clone(), error] } else { Vec::new() },
        worker_ids: vec!["web1-4711".into(); attempts],
        return_value: RawJson::new("{\"sent\": true}"),
    };
    let score = match segment {
        Segment::Ready => -5e13 + at,
        Segment::Scheduled => NOW + age_s * 1_000.0,
        Segment::Running => at + 3_600_000.0,
        _ => at,
    };
    let lease = (segment == Segment::Running).then(|| Lease {
        worker: "web1-4711".into(),
        started_at: Some(stamp(at)),
        token: "t".into(),
        sequence: Some(17),
    });
    TaskDetail {
        id: id.into(),
        queue: Some(queue.into()),
        places: vec![(segment, score)],
        quarantined: false,
        body: Body::Record(Box::new(record)),
        stored: vec![b'x'; 1_234],
        lease,
        expires_in: finished.then_some(Duration::from_secs(86_000)),
    }
}

/// A task as its list shows it.
pub fn row(detail: &TaskDetail) -> TaskRow {
    let (segment, score) = detail.places[0];
    let summary = match &detail.body {
        Body::Record(record) => Summary::Readable(Box::new(Readable {
            func: record.spec.func.clone(),
            priority: record.spec.priority.value,
            enqueued_at: record.enqueued_at.clone(),
            started_at: record.started_at.clone(),
            finished_at: record.finished_at.clone(),
            attempts: Some(detail.attempts()),
            last_error: record.errors.last().cloned(),
            args_head: record.args.as_str().chars().take(200).collect(),
        })),
        Body::Unreadable(reason) => Summary::Unreadable {
            reason: reason.clone(),
            head: String::from_utf8_lossy(&detail.stored).chars().take(200).collect(),
        },
        Body::Missing => Summary::Missing,
    };
    TaskRow {
        id: detail.id.clone(),
        queue: detail.queue.clone().unwrap_or_default(),
        segment,
        score,
        length: Some(detail.stored.len() as u64),
        summary,
        lease: detail.lease.clone(),
    }
}

impl Shop {
    /// A shop on a bad evening.
    pub fn busy() -> Self {
        let mut shop = Self { slice: 100, ..Self::default() };
        let names = [("a:b", [0, 0, 0, 3, 0]), ("default", [12, 0, 4, 260, 3]), ("emails", [204, 37, 8, 20, 412])];
        for (queue, sizes) in names.into_iter().chain([("größe 表", [1, 0, 0, 0, 0]), ("two words", [0; 5])]) {
            let list = |segment: Segment| {
                (0..sizes[segment as usize]).map(|n| busy_task(queue, segment, n)).collect::<Vec<_>>()
            };
            shop.queues.insert(queue.into(), (Segment::ALL.map(list), u64::from(queue == "default") * 2));
        }
        shop.facts = ServerFacts {
            version: Some("7.0.15".into()),
            name: Some("redis".into()),
            used_memory: Some(1_181_116_006),
            max_memory: Some(4 << 30),
            eviction_policy: Some("noeviction".into()),
            append_only: Some(true),
            role: Some("master".into()),
            uptime: Some(86_400),
            round_trip: Duration::from_micros(300),
            ..ServerFacts::default()
        };
        let worker = |n: u32, silent: u64| WorkerInfo {
            id: format!("web{n}-4711-c0ffee{n:02}"),
            beat_ms: NOW - silent as f64 * 1_000.0,
            silent: Duration::from_secs(silent),
            dead: silent > 30,
            host: format!("web{n}"),
            pid: 4_711,
            version: "0.1.0".into(),
            queues: vec!["default".into(), "emails".into()],
            started_at: "2026-11-30T12:00:00Z".into(),
            running: 4,
        };
        shop.workers = vec![worker(1, 2), worker(2, 20), worker(3, 40)];
        shop
    }

    pub fn counts(&self) -> Vec<QueueCounts> {
        let counts = |(queue, (lists, quarantined)): (&String, &([Vec<TaskDetail>; 5], u64))| QueueCounts {
            queue: queue.clone(),
            segments: [0, 1, 2, 3, 4].map(|at: usize| Some(lists[at].len() as u64)),
            quarantined: *quarantined,
        };
        self.queues.iter().map(counts).collect()
    }

    fn pulse(&self, queue: &str) -> Pulse {
        let Some((lists, _)) = self.queues.get(queue) else { return Pulse::default() };
        let age = match queue {
            "emails" => 252_000.0,
            "default" => 400_000.0,
            _ => 80.0,
        };
        let waits = !lists[Segment::Ready as usize].is_empty();
        let failed = lists[Segment::Failed as usize].iter().filter(|task| task.places[0].1 > NOW - 1_000_000.0);
        let due = lists[Segment::Scheduled as usize]
            .iter()
            .map(|task| task.places[0].1)
            .fold(None, |max: Option<f64>, at| Some(max.map_or(at, |max| max.max(at))));
        Pulse { oldest_ms: waits.then_some(NOW - age), failed: failed.count() as u64, last_due_ms: due }
    }

    pub fn find(&self, id: &TaskId) -> Option<&TaskDetail> {
        self.queues.values().flat_map(|(lists, _)| lists.iter().flatten()).find(|task| task.id == *id)
    }

    pub fn list(&mut self, queue: &str, segment: Segment) -> &mut Vec<TaskDetail> {
        &mut self.queues.get_mut(queue).unwrap().0[segment as usize]
    }

    /// The answer to a question.
    pub fn answer(&self, query: &Query) -> Answer {
        match query {
            Query::Queues => Answer::Queues(self.counts()),
            Query::Page { queue, scope, reversed, offset, limit } => {
                let mut list = self.place(queue, *scope);
                if *reversed {
                    list.reverse();
                }
                let rows = list.iter().skip(*offset as usize).take(*limit as usize).map(row).collect();
                Answer::Page(Page { total: list.len() as u64, offset: *offset, rows })
            }
            Query::Pulse(queues, _) => {
                Answer::Pulse(queues.iter().map(|queue| (queue.clone(), self.pulse(queue))).collect())
            }
            Query::Sift { queue, segment, after, filter, now_ms } => {
                // The score of the cursor is the rank here.
                assert!(after.is_none(), "one slice is enough for this shop");
                let list = self.place(queue, PurgeScope::Segment(*segment));
                let meant = |task: &&TaskDetail| filter.matches(&Candidate::whole(&row(task), task, *now_ms));
                let rows = list.iter().filter(meant).map(row).collect();
                let total = list.len() as u64;
                Answer::Sift(Sifted { total, looked_at: total, rows, next: None, bytes: total * 1_000 })
            }
            Query::Survey { queue, since_ms, .. } => {
                let list = self.place(queue, PurgeScope::Segment(Segment::Failed));
                let mut incidents = Incidents::new(1_000);
                let new: Vec<_> = list.iter().map(row).filter(|row| row.score > *since_ms).collect();
                new.iter().for_each(|row| incidents.add(row));
                let newest = list.iter().map(|task| task.places[0].1).fold(f64::NEG_INFINITY, f64::max);
                let total = list.len() as u64;
                Answer::Survey(Box::new(Surveyed { incidents, total, newest, next: None, bytes: total * 1_000 }))
            }
            Query::Detail(id) => Answer::Detail(self.find(id).cloned().map(Box::new)),
            Query::Workers => Answer::Workers(self.workers.clone()),
            Query::Facts => Answer::Facts(self.facts.clone()),
        }
    }

    /// The tasks of one place.
    fn place(&self, queue: &str, scope: PurgeScope) -> Vec<TaskDetail> {
        let Some((lists, quarantined)) = self.queues.get(queue) else { return Vec::new() };
        match scope {
            PurgeScope::Segment(segment) => lists[segment as usize].clone(),
            PurgeScope::Quarantine => (0..*quarantined).map(|n| aside(queue, n)).collect(),
        }
    }

    fn act(&mut self, verb: &str, id: &TaskId, queue: &str, segment: Segment, seen: f64) -> Acted {
        let Some(place) = self.find(id).map(|task| task.places[0]) else { return Acted::Gone };
        if place != (segment, seen) {
            return Acted::Moved;
        }
        self.done.push(format!("{verb} {id}"));
        self.list(queue, segment).retain(|task| task.id != *id);
        Acted::Done
    }
}

fn aside(queue: &str, n: u64) -> TaskDetail {
    let mut task = task(&format!("aside{n}"), "shop.tasks.unknown", queue, Segment::Ready, 60.0);
    task.places[0].1 = NOW - 60_000.0 - n as f64;
    task
}

fn busy_task(queue: &str, segment: Segment, n: u64) -> TaskDetail {
    let id = format!("01a22df8-34ed-7724-a9cf-{:012x}", (n + 1) * 0x9e37_79b9 % 0xffff_ffff_ffff);
    let id = format!("{id}{}", if queue == "emails" { "" } else { "0" });
    let funcs = ["shop.tasks.welcome_email", "shop.tasks.invoice", "shop.reports.nightly.rebuild_everything"];
    task(&format!("{segment:.2}{id}"), funcs[n as usize % 3], queue, segment, 12.0 + n as f64 * 7.0)
}

impl Fake {
    pub fn new(shop: Shop) -> Self {
        Self { shop: Arc::new(Mutex::new(shop)), changed: Arc::default() }
    }

    pub fn shop(&self) -> MutexGuard<'_, Shop> {
        self.changed.notify_waiters();
        self.shop.lock().unwrap()
    }

    async fn ready(&self) -> Result<(), String> {
        loop {
            let changed = self.changed.notified();
            let mode = self.shop.lock().unwrap().mode.clone();
            match mode {
                Mode::Answers => return Ok(()),
                Mode::Fails(why) => return Err(why),
                Mode::Late(by) => {
                    tokio::time::sleep(by).await;
                    return Ok(());
                }
                Mode::Hangs => changed.await,
            }
        }
    }

    async fn read<T>(&self, query: Query, pick: impl FnOnce(Answer) -> Option<T>) -> Result<T, String> {
        self.shop.lock().unwrap().asked.push(query.clone());
        self.ready().await?;
        let answer = self.shop.lock().unwrap().answer(&query);
        pick(answer).ok_or_else(|| "another kind of answer".into())
    }
}

impl Source for Fake {
    async fn queues(&self) -> Result<Vec<QueueCounts>, String> {
        self.read(Query::Queues, |answer| if let Answer::Queues(value) = answer { Some(value) } else { None }).await
    }

    async fn page(
        &self,
        queue: &str,
        scope: PurgeScope,
        reversed: bool,
        offset: u64,
        limit: u64,
    ) -> Result<Page, String> {
        let query = Query::Page { queue: queue.into(), scope, reversed, offset, limit };
        self.read(query, |answer| if let Answer::Page(value) = answer { Some(value) } else { None }).await
    }

    async fn pulse(&self, queues: &[String], since_ms: f64) -> Result<Vec<(String, Pulse)>, String> {
        let query = Query::Pulse(queues.to_vec(), since_ms);
        self.read(query, |answer| if let Answer::Pulse(value) = answer { Some(value) } else { None }).await
    }

    async fn sift(
        &self,
        queue: &str,
        segment: Segment,
        after: Option<&Cursor>,
        filter: &Filter,
        now_ms: f64,
    ) -> Result<Sifted, String> {
        let (queue, after, filter) = (queue.into(), after.cloned(), Arc::new(filter.clone()));
        let query = Query::Sift { queue, segment, after, filter, now_ms };
        self.read(query, |answer| if let Answer::Sift(value) = answer { Some(value) } else { None }).await
    }

    async fn survey(&self, queue: &str, after: Option<&Cursor>, since_ms: f64) -> Result<Surveyed, String> {
        let query = Query::Survey { queue: queue.into(), after: after.cloned(), since_ms };
        self.read(query, |answer| if let Answer::Survey(value) = answer { Some(*value) } else { None }).await
    }

    async fn detail(&self, id: &TaskId) -> Result<Option<TaskDetail>, String> {
        let pick = |answer| if let Answer::Detail(value) = answer { Some(value.map(|task| *task)) } else { None };
        self.read(Query::Detail(id.clone()), pick).await
    }

    async fn facts(&self) -> Result<ServerFacts, String> {
        self.read(Query::Facts, |answer| if let Answer::Facts(value) = answer { Some(value) } else { None }).await
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, String> {
        self.read(Query::Workers, |answer| if let Answer::Workers(value) = answer { Some(value) } else { None }).await
    }

    async fn deal(
        &self,
        deal: Deal,
        queue: &str,
        scope: PurgeScope,
        seen: &[Seen],
    ) -> Result<Vec<Result<Acted, String>>, String> {
        self.ready().await?;
        let PurgeScope::Segment(segment) = scope else { return Err("not in this shop".into()) };
        let verb = match deal {
            Deal::Requeue(None) => "requeue",
            Deal::Requeue(Some(_)) => "later",
            Deal::Promote => "promote",
            Deal::Drop => "drop",
        };
        let mut shop = self.shop();
        let one = |seen: &Seen| {
            let broken = |task: &TaskDetail| matches!(task.body, Body::Unreadable(_));
            if verb == "requeue" && shop.find(&seen.id).is_some_and(broken) {
                return Err("its record cannot be read".into());
            }
            Ok(shop.act(verb, &seen.id, queue, segment, seen.score))
        };
        Ok(seen.iter().map(one).collect())
    }

    async fn purge_slice(
        &self,
        queue: &str,
        scope: PurgeScope,
        max_score: Option<f64>,
        limit: u64,
    ) -> Result<(u64, u64), String> {
        self.ready().await?;
        let PurgeScope::Segment(segment) = scope else { return Err("not in this shop".into()) };
        let mut shop = self.shop();
        let slice = shop.slice.min(limit);
        let list = shop.list(queue, segment);
        let meant = |task: &TaskDetail| max_score.is_none_or(|max| task.places[0].1 <= max);
        let went = slice.min(list.iter().filter(|task| meant(task)).count() as u64);
        let mut left = went;
        list.retain(|task| {
            let goes = left > 0 && meant(task);
            left -= u64::from(goes);
            !goes
        });
        let left = list.iter().filter(|task| meant(task)).count() as u64;
        shop.done.push(format!("purge {went} of {queue} {segment}"));
        Ok((went, left))
    }

    async fn telemetry(&self) -> Result<Vec<TelemetryEvent>, String> {
        loop {
            let changed = self.changed.notified();
            let events = std::mem::take(&mut self.shop.lock().unwrap().events);
            if !events.is_empty() {
                return Ok(events);
            }
            changed.await;
        }
    }
}
