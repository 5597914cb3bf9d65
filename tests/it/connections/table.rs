//! Every transition: the state that it starts from, one call of it, and what must be there afterwards, however often the
//! call was sent.

use crate::common::{Snapshot, TestRedis};
use std::time::Duration;
use threadmill::backend::{
    AcknowledgeOutcome, Acknowledgement, AcquireAnswer, AcquireRequest, Backend, BackendError, Beat, Body, Cursor,
    DropOutcome, GiveBackOutcome, Leased, Outcome, PurgeScope, QuarantineOutcome, RedisUrl, Registration,
    RequeueOutcome, Retried, RetryRequest, Settings, TakenOver, Token, Unstarted, When, new_id,
};
use threadmill::task::{NewTask, RawJson, Segment, TaskRecord};

pub const WORKER: &str = "host:1-aaaa";
pub const QUEUE: &str = "q";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    Enqueue,
    Acquire,
    Acknowledge,
    Retry,
    GiveBack,
    Requeue,
    Drop,
    Purge,
    Mover,
    Reap,
    TakeOver,
    Register,
    Beat,
    Leave,
    Watch,
    Quarantine,
    Persist,
    Peek,
}

use Transition::*;

pub const ALL: [Transition; 18] = [
    Enqueue,
    Acquire,
    Acknowledge,
    Retry,
    GiveBack,
    Requeue,
    Drop,
    Purge,
    Mover,
    Reap,
    TakeOver,
    Register,
    Beat,
    Leave,
    Watch,
    Quarantine,
    Persist,
    Peek,
];

/// What the call needs to know of the state.
pub struct Seeded {
    task: NewTask,
    token: Token,
    leases: Vec<Leased>,
    finished: Option<(TaskRecord, f64)>,
    first: NewTask,
}

/// A backend with this URL that gives up soon enough for a test with faults.
pub fn backend(url: &str, timeout: Duration) -> Backend {
    let mut settings = Settings::new(RedisUrl::parse(url).unwrap());
    settings.timeout = timeout;
    settings.connect_timeout = timeout;
    settings.request_timeout = timeout * 20;
    Backend::new(settings).unwrap()
}

pub fn task(queue: &str) -> NewTask {
    let mut task = NewTask::new(new_id(), "tasks.echo");
    task.queue = queue.to_owned();
    task.args = RawJson::new("[1]");
    task
}

pub fn registration(worker: &str) -> Registration {
    Registration { worker: worker.to_owned(), ttl: Duration::from_secs(600), ..Registration::default() }
}

pub async fn acquire(
    backend: &Backend,
    token: &Token,
    number: u64,
    count: usize,
    start_now: usize,
) -> Result<AcquireAnswer, BackendError> {
    let queues = [QUEUE.to_owned()];
    let request = AcquireRequest {
        worker: WORKER,
        token,
        number,
        queues: &queues,
        count,
        start_now,
        sequence: number * 1000,
        byte_budget: 1 << 20,
    };
    backend.acquire(&request).await
}

pub fn success(lease: &Leased) -> Acknowledgement {
    Acknowledgement {
        id: lease.id.clone(),
        queue: QUEUE.into(),
        token: lease.token.clone(),
        outcome: Outcome::Successful,
        result: String::from_utf8(lease.data.clone()).unwrap(),
    }
}

impl Transition {
    /// Fills an empty server (or the node of a cluster that owns the slot) with the state before.
    pub async fn seed(self, server: &TestRedis) -> Seeded {
        let mut settings = Settings::new(RedisUrl::parse(&server.unix_url()).unwrap());
        if self == Reap {
            settings.lease_ttl = Duration::from_millis(1);
        }
        let direct = Backend::new(settings).unwrap();
        let mut tasks: Vec<_> = (0..3).map(|_| task(QUEUE)).collect();
        if self == Mover {
            for next in &mut tasks {
                next.run_after = Some("2020-01-01T00:00:00Z".parse().unwrap());
            }
        }
        direct.enqueue(&tasks).await.unwrap();
        direct.register(&registration(WORKER)).await.unwrap();
        let mut fresh = task(QUEUE);
        fresh.idempotency = Some("key".into());
        let mut seeded =
            Seeded { task: fresh, token: Token::new(), leases: Vec::new(), finished: None, first: tasks[0].clone() };
        match self {
            Acknowledge | Retry | GiveBack | Requeue | Reap | TakeOver | Quarantine => {
                let start_now = if self == TakeOver { 1 } else { 3 };
                let answer = acquire(&direct, &seeded.token, 1, 3, start_now).await.unwrap();
                let AcquireAnswer::Granted(granted) = answer else { panic!("{answer:?}") };
                seeded.leases = granted.leases;
            }
            Persist => tasks.iter().for_each(|task| {
                server.cli::<()>(&["EXPIRE", &format!("threadmill:{{default}}:task:{}", task.id), "1000"]);
            }),
            _ => {}
        }
        if self == Requeue {
            let results: Vec<_> = seeded.leases.iter().map(success).collect();
            direct.acknowledge(WORKER, None, &results).await.unwrap();
            let detail = direct.find(&seeded.leases[0].id, Some(QUEUE)).await.unwrap().unwrap();
            let Body::Record(record) = &detail.body else { panic!("{detail:?}") };
            seeded.finished = Some(((**record).clone(), detail.places[0].1));
        }
        seeded
    }

    /// The call. Whether its answer is right for a request that may have been sent before.
    pub async fn run(self, backend: &Backend, seeded: &Seeded) -> Result<bool, BackendError> {
        let queue = QUEUE;
        let leases = &seeded.leases;
        Ok(match self {
            Enqueue => backend.enqueue(std::slice::from_ref(&seeded.task)).await?[0].id == seeded.task.id,
            Acquire => match acquire(backend, &seeded.token, 1, 3, 3).await? {
                AcquireAnswer::Granted(granted) => granted.leases.len() == 3,
                _ => false,
            },
            Acknowledge => {
                let results: Vec<_> = leases[..2].iter().map(success).collect();
                let answers = backend.acknowledge(WORKER, Some(9), &results).await?;
                answers.iter().all(|answer| *answer != AcknowledgeOutcome::Lost)
            }
            Retry => {
                let mut good = true;
                for answer in backend.retry(&leases[..2].iter().map(retry).collect::<Vec<_>>()).await? {
                    good &= answer? != Retried::Lost;
                }
                good
            }
            GiveBack => {
                let unstarted: Vec<_> = leases[..2].iter().map(unstarted).collect();
                backend.give_back(&unstarted).await?.iter().all(|answer| *answer != GiveBackOutcome::Lost)
            }
            Requeue => {
                let (record, seen) = seeded.finished.as_ref().unwrap();
                let answer = backend.requeue(record, queue, Segment::Successful, *seen, When::Now).await?;
                matches!(answer, RequeueOutcome::Requeued | RequeueOutcome::Replayed)
            }
            Drop => !matches!(backend.drop_task(&seeded.first.id, queue, None).await?, DropOutcome::Running),
            Purge => backend.purge_slice(queue, PurgeScope::Segment(Segment::Ready), None).await?.left == 0,
            Mover => !backend.move_due(&[queue], 100).await?[0].more,
            Reap => !backend.reap(&[queue]).await?[0].more,
            TakeOver => {
                matches!(
                    backend.take_over(WORKER, queue, Duration::ZERO, &Cursor::default()).await?,
                    TakenOver::Taken { next: None, .. }
                )
            }
            Register => matches!(backend.register(&registration("host:2-bbbb")).await?, Beat::Alive(_)),
            Beat => matches!(backend.beat(&registration(WORKER)).await?, Beat::Alive(_)),
            Leave => backend.deregister(WORKER).await.map(|()| true)?,
            Watch => backend.watch_workers(Duration::from_secs(60), Duration::from_secs(60)).await?.silent.is_empty(),
            Quarantine => {
                let lease = &leases[0];
                backend.quarantine(&lease.id, queue, &lease.token).await? != QuarantineOutcome::Lost
            }
            Persist => backend.persist(queue, Segment::Ready, &Cursor::default(), 100).await?.next.is_none(),
            Peek => backend.page(queue, Segment::Ready, 0, 10).await?.total == 3,
        })
    }

    /// READY, SCHEDULED, RUNNING, SUCCESSFUL, FAILED and set aside, afterwards.
    pub fn after(self) -> [usize; 6] {
        match self {
            Enqueue => [4, 0, 0, 0, 0, 0],
            Acquire | Reap => [0, 0, 3, 0, 0, 0],
            Acknowledge => [0, 0, 1, 2, 0, 0],
            Retry => [0, 2, 1, 0, 0, 0],
            GiveBack | TakeOver => [2, 0, 1, 0, 0, 0],
            Requeue => [1, 0, 0, 2, 0, 0],
            Drop => [2, 0, 0, 0, 0, 0],
            Purge => [0; 6],
            Mover | Register | Beat | Leave | Watch | Persist | Peek => [3, 0, 0, 0, 0, 0],
            Quarantine => [0, 0, 2, 0, 0, 1],
        }
    }

    /// Whether it writes in every case: then a server that refuses writes refuses it.
    pub fn writes(self) -> bool {
        self != Peek
    }

    /// Whether it can do without memory that it does not have.
    pub fn only_frees(self) -> bool {
        matches!(self, Drop | Purge | Leave | Peek | Persist)
    }

    #[track_caller]
    pub fn assert_done(self, snapshot: &Snapshot, context: &str) {
        assert_eq!(tally(snapshot, context), self.after(), "{self:?}, {context}: what is where\n{snapshot:?}");
        if self == Persist {
            let ends = snapshot.iter().any(|(key, entry)| key.contains(":task:") && entry.expires);
            assert!(!ends, "{context}: a record still has an end");
        }
    }
}

/// How many ids each segment has, once it is sure that each is in one only and has its record, and that no record is
/// without its id.
#[track_caller]
pub fn tally(snapshot: &Snapshot, context: &str) -> [usize; 6] {
    let key = |suffix: &str| format!("threadmill:{{default}}:{QUEUE}:{suffix}");
    let quarantine = format!("threadmill-rs:{{default}}:quarantine:{QUEUE}");
    let keys = ["ready", "deferred", "running", "successful", "failed"].map(key);
    let mut seen = std::collections::BTreeSet::new();
    let mut counts = [0; 6];
    for (i, key) in keys.iter().chain([&quarantine]).enumerate() {
        let record = if matches!(i, 3 | 4) { "result" } else { "task" };
        for id in snapshot.members(key) {
            assert!(seen.insert(id.to_owned()), "{context}: {id} is in two segments\n{snapshot:?}");
            let record = format!("threadmill:{{default}}:{record}:{id}");
            assert!(snapshot.contains_key(&record), "{context}: {record} is missing\n{snapshot:?}");
            counts[i] += 1;
        }
    }
    let records = snapshot.keys().filter(|key| key.contains(":task:") || key.contains(":result:")).count();
    assert_eq!(records, seen.len(), "{context}: a record without its id\n{snapshot:?}");
    counts
}

fn retry(lease: &Leased) -> RetryRequest {
    RetryRequest {
        id: lease.id.clone(),
        queue: QUEUE.into(),
        token: lease.token.clone(),
        record: threadmill::backend::codec::decode(&lease.data).unwrap(),
        delay: Duration::from_secs(3600),
    }
}

fn unstarted(lease: &Leased) -> Unstarted {
    Unstarted { id: lease.id.clone(), queue: QUEUE.into(), token: lease.token.clone() }
}
