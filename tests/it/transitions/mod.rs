//! Each transition: seed, run, compare the whole keyspace; then the same request again, its first answer lost on the way.

mod bulk;
mod finish;
mod lease;
mod maintenance;
mod remove;

use crate::common::{Lose, Proxy, Snapshot, TestRedis, Value};
use threadmill::backend::scripts::Script;
use threadmill::backend::{
    AcquireAnswer, AcquireRequest, Acquired, Backend, Leased, RedisUrl, Registration, Settings, Token, new_id,
};
use threadmill::task::{NewTask, RawJson, Segment};

/// A server with a backend on it, reached through a proxy that can lose answers.
pub struct Lab {
    pub redis: TestRedis,
    pub proxy: Proxy,
    pub backend: Backend,
}

pub const WORKER: &str = "host:1-aaaa";

impl Lab {
    pub fn new() -> Self {
        let redis = TestRedis::spawn();
        let proxy = Proxy::before(&redis);
        let backend = Backend::new(Settings::new(RedisUrl::parse(&proxy.url()).unwrap())).unwrap();
        Self { redis, proxy, backend }
    }

    /// A task with arguments that only Python's JSON knows.
    pub fn task(&self, queue: &str) -> NewTask {
        let mut task = NewTask::new(new_id(), "tasks.echo");
        task.queue = queue.to_owned();
        task.args = RawJson::new(r#"[NaN, "\ud800", 1208925819614629174706176]"#);
        task
    }

    pub async fn enqueue(&self, queue: &str, count: usize) -> Vec<NewTask> {
        let tasks: Vec<_> = (0..count).map(|_| self.task(queue)).collect();
        self.backend.enqueue(&tasks).await.unwrap();
        tasks
    }

    pub async fn register(&self, worker: &str) {
        let ttl = std::time::Duration::from_secs(600);
        let registration = Registration { worker: worker.to_owned(), ttl, ..Registration::default() };
        self.backend.register(&registration).await.unwrap();
    }

    /// Leases up to `count` tasks of a queue to [`WORKER`], of which `start_now` begin.
    pub async fn acquire(&self, queue: &str, count: usize, start_now: usize) -> Vec<Leased> {
        self.register(WORKER).await;
        let mut request = Request::new(&[queue], count);
        request.start_now = start_now;
        request.send(&self.backend).await.leases
    }

    pub fn members(&self, queue: &str, segment: Segment) -> Vec<String> {
        members(&self.redis.snapshot(), queue, segment)
    }

    /// Runs `op` with the answer of its script lost, and once more: both times it must answer as if it were the first,
    /// and the keyspace must be as after once.
    pub async fn replay<T>(&self, op: impl AsyncFn() -> T, good: impl Fn(&T) -> bool) {
        self.replay_nth(1, None, op, good).await;
    }

    /// As [`Lab::replay`], with the answer to the nth call of this script lost.
    pub async fn replay_of<T>(
        &self,
        (script, nth): (&'static Script, u64),
        op: impl AsyncFn() -> T,
        good: impl Fn(&T) -> bool,
    ) {
        self.replay_nth(nth, Some(script), op, good).await;
    }

    async fn replay_nth<T>(
        &self,
        nth: u64,
        script: Option<&'static Script>,
        op: impl AsyncFn() -> T,
        good: impl Fn(&T) -> bool,
    ) {
        self.proxy.lose_reply(nth, Lose::ByCut, move |command| {
            command.name.starts_with("EVALSHA") && script.is_none_or(|script| command.has(script.sha()))
        });
        let before = self.proxy.lost();
        assert!(good(&op().await), "the answer to the request that was sent again");
        assert_eq!(self.proxy.lost(), before + 1, "an answer was lost");
        let once = self.redis.snapshot();
        assert!(good(&op().await), "the answer to the same request, later");
        once.assert_same(&self.redis.snapshot());
    }
}

/// The ids of a segment in their order.
pub fn members(snapshot: &Snapshot, queue: &str, segment: Segment) -> Vec<String> {
    let suffix = if segment == Segment::Scheduled { "deferred" } else { segment.word() };
    snapshot.members(&format!("threadmill:{{default}}:{queue}:{suffix}")).into_iter().map(str::to_owned).collect()
}

/// The score of an id in a segment.
pub fn score(snapshot: &Snapshot, queue: &str, suffix: &str, id: &str) -> f64 {
    match snapshot.value(&format!("threadmill:{{default}}:{queue}:{suffix}")) {
        Some(Value::Sorted(members)) => {
            members.iter().find(|(member, _)| member == id).expect("the id is listed").1.parse().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

pub fn task_key(id: impl std::fmt::Display) -> String {
    format!("threadmill:{{default}}:task:{id}")
}

pub fn result_key(id: impl std::fmt::Display) -> String {
    format!("threadmill:{{default}}:result:{id}")
}

/// An acquire that can be sent again.
pub struct Request {
    pub token: Token,
    pub number: u64,
    pub queues: Vec<String>,
    pub count: usize,
    pub start_now: usize,
    pub sequence: u64,
    pub byte_budget: usize,
}

impl Request {
    pub fn new(queues: &[&str], count: usize) -> Self {
        let queues = queues.iter().map(|queue| (*queue).to_owned()).collect();
        Self { token: Token::new(), number: 1, queues, count, start_now: count, sequence: 1, byte_budget: 1 << 20 }
    }

    pub async fn answer(&self, backend: &Backend) -> AcquireAnswer {
        let request = AcquireRequest {
            worker: WORKER,
            token: &self.token,
            number: self.number,
            queues: &self.queues,
            count: self.count,
            start_now: self.start_now,
            sequence: self.sequence,
            byte_budget: self.byte_budget,
        };
        backend.acquire(&request).await.unwrap()
    }

    pub async fn send(&self, backend: &Backend) -> Acquired {
        match self.answer(backend).await {
            AcquireAnswer::Granted(acquired) => acquired,
            other => panic!("{other:?}"),
        }
    }
}
