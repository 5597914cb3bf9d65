//! How ended work reaches Redis.
//!
//! While one round trip is under way the ends gather, and the next one takes them all, up to a bound. Whatever passes
//! (an outage, a full memory, a failover) is waited for; nothing is dropped before its lease is over.

use crate::backend::{
    AcknowledgeOutcome, Acknowledgement, Backend, BackendError, GiveBackOutcome, Outcome, QuarantineOutcome, Retried,
    RetryRequest, Token, Unstarted,
};
use crate::task::TaskId;
use crate::worker::lease::{End, Finished, Lease};
use crate::worker::pause::Pause;
use futures_util::future::join_all;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Ends of one round trip at most, and the bytes that they may have together.
const ROUND_MAX: usize = 500;
const ROUND_BYTES_MAX: usize = 4 << 20;

/// How long something is tried that the server refuses for a reason that does not pass by itself.
const REFUSED_LIMIT: Duration = Duration::from_secs(3);

/// What is on its way to Redis.
#[derive(Debug)]
pub(crate) struct Settlement {
    pub id: TaskId,
    pub queue: String,
    pub token: Token,
    pub end: End,
    /// When the lease is over, so that no answer matters any more.
    pub until: Instant,
}

impl Settlement {
    pub fn new(finished: Finished, until: Instant) -> Self {
        let leased = &finished.lease;
        Self {
            id: leased.id.clone(),
            queue: leased.queue.clone(),
            token: leased.token.clone(),
            end: finished.end,
            until,
        }
    }

    pub fn unstarted(lease: &Lease, until: Instant) -> Self {
        let (id, queue, token) = (lease.id.clone(), lease.queue.clone(), lease.token.clone());
        Self { id, queue, token, end: End::Unstarted, until }
    }

    fn bytes(&self) -> usize {
        match &self.end {
            End::Result(_, text) => text.len(),
            End::Again { record, .. } => record.args.as_str().len() + record.kwargs.as_str().len() + 1024,
            End::Unreadable(_) | End::Unstarted => 64,
        }
    }
}

/// What waits for the next round.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    ends: VecDeque<Settlement>,
    mark: Option<u64>,
}

impl Gathered {
    pub fn push(&mut self, settlement: Settlement) {
        self.ends.push_back(settlement);
    }

    pub fn mark(&mut self, mark: u64) {
        self.mark = self.mark.max(Some(mark));
    }

    /// The mark meant leases that are not this worker's any more.
    pub fn forget_mark(&mut self) {
        self.mark = None;
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.mark.is_none()
    }

    /// The next round for the worker of this id.
    pub fn take(&mut self, worker: Arc<str>) -> Round {
        let mut bytes = 0;
        let take_next = |next: &&Settlement| {
            bytes += next.bytes();
            bytes <= ROUND_BYTES_MAX || bytes == next.bytes()
        };
        let count = self.ends.iter().take(ROUND_MAX).take_while(take_next).count();
        Round { worker, mark: self.mark.take(), ends: self.ends.drain(..count).collect() }
    }
}

/// What one round trip tells Redis.
#[derive(Debug)]
pub(crate) struct Round {
    pub worker: Arc<str>,
    pub mark: Option<u64>,
    pub ends: Vec<Settlement>,
}

/// What Redis made of a round.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// How many ends are done with.
    pub settled: usize,
    /// The mark that was taken.
    pub marked: Option<u64>,
    /// The worker whose mark was refused, since it is not registered.
    pub unregistered: Option<Arc<str>>,
    /// Tasks that will run again.
    pub retried: Vec<TaskId>,
    pub tally: Tally,
}

/// How many of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub successful: u64,
    pub failed: u64,
    pub retried: u64,
    pub given_back: u64,
    pub set_aside: u64,
    pub lost: u64,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.successful += other.successful;
        self.failed += other.failed;
        self.retried += other.retried;
        self.given_back += other.given_back;
        self.set_aside += other.set_aside;
        self.lost += other.lost;
    }
}

/// Sends a round until Redis has answered all of it.
pub(crate) async fn send(backend: Backend, round: Round) -> Report {
    let mut report = Report { settled: round.ends.len(), ..Report::default() };
    let (mut results, mut retries, mut unstarted, mut unreadable) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for Settlement { id, queue, token, end, until } in round.ends {
        match end {
            End::Result(outcome, result) => {
                results.push((Acknowledgement { id, queue, token, outcome, result }, until));
            }
            End::Again { record, delay } => {
                retries.push((RetryRequest { id, queue, token, record: *record, delay }, until));
            }
            End::Unstarted => unstarted.push((Unstarted { id, queue, token }, until)),
            End::Unreadable(error) => unreadable.push((id, queue, token, error, until)),
        }
    }
    // One after the other: all but the first are rare, and the mark travels with the first.
    if !results.is_empty() || round.mark.is_some() {
        acknowledge(&backend, &round.worker, round.mark, results, &mut report).await;
    }
    if !retries.is_empty() {
        retry(&backend, retries, &mut report).await;
    }
    if !unstarted.is_empty() {
        give_back(&backend, unstarted, &mut report).await;
    }
    for (id, queue, token, error, until) in unreadable {
        tracing::error!(task_id = %id, queue, error = %error, "a task cannot be read and is set aside");
        let outcome = persist("quarantine", until, || backend.quarantine(&id, &queue, &token)).await;
        match outcome {
            Some(QuarantineOutcome::Lost) | None => lost(&id, &queue, &mut report),
            Some(QuarantineOutcome::SetAside | QuarantineOutcome::Replayed) => report.tally.set_aside += 1,
        }
    }
    report
}

async fn acknowledge(
    backend: &Backend,
    worker: &Arc<str>,
    mark: Option<u64>,
    results: Vec<(Acknowledgement, Instant)>,
    report: &mut Report,
) {
    let (results, untils): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let until = latest(&untils);
    let answer = persist_batch(until, || backend.acknowledge_and_mark(worker, mark, &results)).await;
    if let Ok(answer) = answer {
        (report.marked, report.unregistered) =
            if answer.is_registered { (mark, None) } else { (None, Some(worker.clone())) };
        for (result, outcome) in results.iter().zip(answer.outcomes) {
            acknowledged(result, outcome, report);
        }
        return;
    }
    // The server refuses the batch for the sake of one: each for itself, so that its neighbours are stored.
    if mark.is_some() {
        let marked = persist("acknowledge", until, || backend.acknowledge_and_mark(worker, mark, &[])).await;
        (report.marked, report.unregistered) = match marked {
            Some(answer) if answer.is_registered => (mark, None),
            _ => (None, Some(worker.clone())),
        };
    }
    let each = results.iter().zip(untils).map(|(result, until)| async move {
        let one = std::slice::from_ref(result);
        persist("acknowledge", until, || backend.acknowledge(worker, None, one)).await
    });
    for (result, outcomes) in results.iter().zip(join_all(each).await) {
        let outcome = outcomes.and_then(|outcomes| outcomes.first().copied()).unwrap_or(AcknowledgeOutcome::Lost);
        acknowledged(result, outcome, report);
    }
}

fn acknowledged(result: &Acknowledgement, outcome: AcknowledgeOutcome, report: &mut Report) {
    match (outcome, result.outcome) {
        (AcknowledgeOutcome::Lost, _) => lost(&result.id, &result.queue, report),
        (_, Outcome::Successful) => report.tally.successful += 1,
        (_, Outcome::Failed) => report.tally.failed += 1,
    }
}

async fn retry(backend: &Backend, retries: Vec<(RetryRequest, Instant)>, report: &mut Report) {
    let (mut requests, untils): (Vec<_>, Vec<_>) = retries.into_iter().unzip();
    let until = latest(&untils);
    let mut pause = Pause::default();
    loop {
        let answers = match backend.retry(&requests).await {
            Ok(answers) => answers,
            Err(error) if Instant::now() >= until => {
                tracing::error!(error = %error, "retries could not be stored while their leases lasted");
                requests.iter().for_each(|request| lost(&request.id, &request.queue, report));
                return;
            }
            Err(error) => {
                told(&error, &pause, "retry");
                pause.wait().await;
                continue;
            }
        };
        let mut again = Vec::new();
        for (request, answer) in requests.into_iter().zip(answers) {
            match answer {
                Ok(Retried::Scheduled(_) | Retried::Replayed) => {
                    report.tally.retried += 1;
                    report.retried.push(request.id);
                }
                Ok(Retried::Lost) => lost(&request.id, &request.queue, report),
                Err(error) if error.is_passing() && Instant::now() < until => again.push(request),
                Err(error) => {
                    tracing::error!(task_id = %request.id, queue = request.queue, error = %error, "a retry is refused");
                    lost(&request.id, &request.queue, report);
                }
            }
        }
        if again.is_empty() {
            return;
        }
        requests = again;
        pause.wait().await;
    }
}

async fn give_back(backend: &Backend, unstarted: Vec<(Unstarted, Instant)>, report: &mut Report) {
    let (leases, untils): (Vec<_>, Vec<_>) = unstarted.into_iter().unzip();
    let answers = persist("give_back", latest(&untils), || backend.give_back(&leases)).await;
    for (at, lease) in leases.iter().enumerate() {
        match answers.as_ref().and_then(|answers| answers.get(at)) {
            Some(GiveBackOutcome::GivenBack | GiveBackOutcome::Replayed) => report.tally.given_back += 1,
            Some(GiveBackOutcome::Lost) | None => lost(&lease.id, &lease.queue, report),
        }
    }
}

/// The end of an attempt that nobody wants any more: its lease went to somebody else.
fn lost(id: &TaskId, queue: &str, report: &mut Report) {
    tracing::warn!(task_id = %id, queue, "the lease of a task was lost; its result is discarded");
    report.tally.lost += 1;
}

fn latest(untils: &[Instant]) -> Instant {
    untils.iter().copied().max().unwrap_or_else(|| Instant::now() + REFUSED_LIMIT)
}

/// Tries until it is answered or `until` has come, and not for long where it is refused; `None` then.
async fn persist<T, F>(what: &str, until: Instant, call: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, BackendError>>,
{
    let mut pause = Pause::default();
    let refused_until = until.min(Instant::now() + REFUSED_LIMIT);
    loop {
        let until = match call().await {
            Ok(answer) => return Some(answer),
            Err(error) => {
                told(&error, &pause, what);
                if error.is_passing() { until } else { refused_until }
            }
        };
        if Instant::now() >= until {
            tracing::error!(what, "Redis does not take the end of a task; its lease will run out");
            return None;
        }
        pause.wait().await;
    }
}

/// Tries until it is answered, or refused for a reason that does not pass.
async fn persist_batch<T, F>(until: Instant, call: impl Fn() -> F) -> Result<T, BackendError>
where
    F: Future<Output = Result<T, BackendError>>,
{
    let mut pause = Pause::default();
    loop {
        match call().await {
            Err(error) if error.is_passing() && Instant::now() < until => {
                told(&error, &pause, "acknowledge");
                pause.wait().await;
            }
            other => return other,
        }
    }
}

/// Says once, at the first failure, that results are held.
fn told(error: &BackendError, pause: &Pause, what: &str) {
    if pause.is_first() {
        let source = std::error::Error::source(error).map(ToString::to_string);
        tracing::warn!(what, error = %error, source, "Redis does not take what ended; it is held and sent again");
    }
}
