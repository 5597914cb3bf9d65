//! Our own transitions, replayed.

use super::{BenchOptions, Sample, sample};
use crate::backend::codec::{Attempt, decode, encode, success};
use crate::backend::{
    Acknowledgement, AcquireAnswer, AcquireRequest, Backend, BackendError, Outcome, PurgeScope, Registration, Token,
    new_id,
};
use crate::task::{NewTask, RawJson, Segment};
use chrono::Utc;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::time::Duration;

/// Enqueues in calls of `batch`, some under way at the same time.
pub async fn enqueue(
    backend: &Backend,
    queue: &str,
    options: BenchOptions,
    batch: usize,
) -> Result<Sample, BackendError> {
    let tasks: Vec<NewTask> = (0..options.tasks).map(|n| task(queue, n)).collect();
    // As many tasks under way in both cases, so that the round trip weighs the same.
    let calls = if batch == 1 { options.in_flight * options.batch } else { options.in_flight };
    let work = stream::iter(tasks.chunks(batch).map(Ok))
        .try_for_each_concurrent(calls, async |tasks| backend.enqueue(tasks).await.map(|_| ()));
    sample(backend, work).await
}

pub(super) fn task(queue: &str, n: usize) -> NewTask {
    let mut task = NewTask::new(new_id(), "threadmill.bench.noop");
    task.queue = queue.to_owned();
    task.args = RawJson::new(format!("[{n}]"));
    task
}

/// Acquires and acknowledges until the queue is empty; nothing is executed.
pub async fn drain(backend: &Backend, queue: &str, options: BenchOptions) -> Result<Sample, BackendError> {
    let workers: Vec<Replay> = (0..options.in_flight).map(|_| Replay::new(queue, options.batch)).collect();
    for worker in &workers {
        backend.register(&worker.registration).await?;
    }
    let work = async {
        let all = stream::iter(workers).map(|worker| worker.drain(backend)).buffer_unordered(options.in_flight);
        all.try_for_each(async |worker| backend.deregister(&worker).await).await
    };
    sample(backend, work).await
}

/// Empties the queue of the benchmark.
pub async fn clear(backend: &Backend, queue: &str) -> Result<(), BackendError> {
    for segment in Segment::ALL {
        while backend.purge_slice(queue, PurgeScope::Segment(segment), None).await?.left > 0 {}
    }
    Ok(())
}

struct Replay {
    registration: Registration,
    queues: Vec<String>,
    batch: usize,
}

impl Replay {
    fn new(queue: &str, batch: usize) -> Self {
        let worker = format!("bench:{}-{}", std::process::id(), &Token::new().as_str()[..8]);
        let registration = Registration { worker, ttl: Duration::from_secs(600), ..Registration::default() };
        Self { registration, queues: vec![queue.to_owned()], batch }
    }

    async fn drain(self, backend: &Backend) -> Result<String, BackendError> {
        let worker = self.registration.worker;
        let mut sequence = 1;
        for number in 1.. {
            let token = Token::new();
            let request = AcquireRequest {
                worker: &worker,
                token: &token,
                number,
                queues: &self.queues,
                count: self.batch,
                start_now: self.batch,
                sequence,
                byte_budget: 8 << 20,
            };
            let AcquireAnswer::Granted(acquired) = backend.acquire(&request).await? else {
                return Err(BackendError::Unexpected { what: "acquire" });
            };
            if acquired.leases.is_empty() {
                break;
            }
            sequence += acquired.leases.len() as u64;
            let now = Utc::now();
            let attempt = Attempt { worker: worker.clone(), started_at: now, finished_at: now };
            let finished: Vec<Acknowledgement> = acquired
                .leases
                .into_iter()
                .filter_map(|lease| {
                    let record = decode(&lease.data).ok()?;
                    let result = encode(&success(&record, &attempt, RawJson::null()));
                    let outcome = Outcome::Successful;
                    Some(Acknowledgement { id: lease.id, queue: lease.queue, token: lease.token, outcome, result })
                })
                .collect();
            backend.acknowledge(&worker, None, &finished).await?;
        }
        Ok(worker)
    }
}
