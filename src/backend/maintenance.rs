//! What keeps the queues in order while nobody looks: due tasks move on, lost leases are settled.

use crate::backend::answer::Answer;
use crate::backend::scripts::{MOVER, PERSIST, REAP, TAKE_OVER, WATCH};
use crate::backend::{Backend, BackendError, Cursor, Token};
use crate::task::{Segment, Stamp, TaskId};
use std::time::Duration;

/// How long a claimer has to settle a lease that it claimed; as in the Python package.
const CLAIM_TTL: Duration = Duration::from_secs(60);
/// Leases of one claim, or running entries of one look.
const SLICE: u64 = 100;
/// Queues of one call, so that a script stays short however many there are.
const QUEUES: usize = 200;
/// Due tasks of one call: more would not fit the stack of a script.
const DUE_MAX: u64 = 2_000;

/// What the mover did in one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The queue.
    pub queue: String,
    /// Whether a key of the queue holds another type, so that it was left alone.
    pub is_broken: bool,
    /// Tasks that are READY now.
    pub moved: u64,
    /// Ids without a record, set aside in quarantine.
    pub ghosts: Vec<TaskId>,
    /// Whether more is due already.
    pub more: bool,
    /// When the next one is due, in milliseconds since 1970 by the server's clock.
    pub next_due: Option<f64>,
}

/// A lease that was taken from its holder, to be settled by the retry policy.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The task's id.
    pub id: TaskId,
    /// Its queue.
    pub queue: String,
    /// The stored record.
    pub data: Vec<u8>,
    /// Who held it.
    pub worker: String,
    /// Since when.
    pub started_at: Option<Stamp>,
    /// The claim, which is a lease of its own.
    pub token: Token,
}

/// What a reaper found in one queue.
#[derive(Clone, Debug)]
pub struct Reaped {
    /// The queue.
    pub queue: String,
    /// Whether a key of the queue holds another type, so that it was left alone.
    pub is_broken: bool,
    /// Leases whose time was over.
    pub claimed: Vec<Claimed>,
    /// Ids without a record, set aside in quarantine.
    pub ghosts: Vec<TaskId>,
    /// Running entries of tasks that were finished already, removed.
    pub finished: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// What became of a slice of a silent worker's leases.
#[derive(Clone, Debug)]
pub enum TakenOver {
    /// The worker has been heard of; nothing changed.
    Alive,
    /// Its started leases were claimed, the others are READY again.
    Taken {
        /// To be settled by the retry policy.
        claimed: Vec<Claimed>,
        /// How many had not started.
        given_back: u64,
        /// Where the next slice begins; none at the end.
        next: Option<Cursor>,
    },
}

/// What a look at the workers showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Watch {
    /// The server's clock, in milliseconds since 1970.
    pub now: f64,
    /// Since when somebody has looked without a gap.
    pub since: f64,
    /// Workers that were silent all that time.
    pub silent: Vec<String>,
    /// How many workers are on record.
    pub workers: u64,
}

/// What became of a slice of a segment whose records are to have no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    /// How many had a TTL, and have none now.
    pub persisted: u64,
    /// The shortest that one of them had left.
    pub soonest: Option<Duration>,
    /// How many were looked at.
    pub seen: u64,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
}

impl Backend {
    /// Moves due tasks of these queues to READY, up to `limit` in all; the first queues have the first turn. Many queues
    /// are one call.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub async fn move_due<Q: AsRef<str>>(&self, queues: &[Q], limit: u64) -> Result<Vec<Moved>, BackendError> {
        let mut all = Vec::with_capacity(queues.len());
        for queues in queues.chunks(QUEUES) {
            let mut names = vec![self.keys().wake()];
            for queue in queues.iter().map(AsRef::as_ref) {
                let segments = [Segment::Scheduled, Segment::Ready, Segment::Running];
                names.extend(segments.map(|segment| self.keys().segment(queue, segment)));
                names.push(self.keys().quarantine(queue));
            }
            let mut cmd = MOVER.call(&names);
            cmd.arg(limit.min(DUE_MAX)).arg(self.keys().task_prefix());
            for queue in queues {
                cmd.arg(queue.as_ref());
            }
            let answers = self.call("mover", cmd).await?.groups()?;
            for (queue, [code, moved, ghosts, more, next_due]) in queues.iter().zip(answers) {
                all.push(Moved {
                    queue: queue.as_ref().to_owned(),
                    is_broken: code.code(&[("moved", false), ("wrong_type", true)])?,
                    moved: moved.count()?,
                    ghosts: ids(ghosts)?,
                    more: more.integer()? == 1,
                    next_due: next_due.text_or_none()?.and_then(|text| text.parse().ok()),
                });
            }
        }
        Ok(all)
    }

    /// Claims leases of these queues whose time is over by the server's clock, a slice in all. Many queues are one call.
    ///
    /// # Errors
    /// Where the answer was lost, what was claimed by it can be claimed again after a minute.
    pub async fn reap<Q: AsRef<str>>(&self, queues: &[Q]) -> Result<Vec<Reaped>, BackendError> {
        let mut all = Vec::with_capacity(queues.len());
        for queues in queues.chunks(QUEUES) {
            let token = Token::new();
            let keys_of = |queue: &Q| {
                [self.keys().segment(queue.as_ref(), Segment::Running), self.keys().quarantine(queue.as_ref())]
            };
            let mut cmd = REAP.call(&queues.iter().flat_map(keys_of).collect::<Vec<_>>());
            cmd.arg(SLICE).arg(token.as_str()).arg(CLAIM_TTL.as_millis() as u64);
            cmd.arg(self.keys().task_prefix()).arg(self.keys().result_prefix());
            let answers = self.call("reap", cmd).await?.groups()?;
            for (queue, [code, claimed, ghosts, finished, more]) in queues.iter().zip(answers) {
                all.push(Reaped {
                    queue: queue.as_ref().to_owned(),
                    is_broken: code.code(&[("reaped", false), ("wrong_type", true)])?,
                    claimed: claims(claimed, queue.as_ref(), &token)?,
                    ghosts: ids(ghosts)?,
                    finished: finished.count()?,
                    more: more.integer()? == 1,
                });
            }
        }
        Ok(all)
    }

    /// Notes that maintenance looks, and names workers that have been silent for `silence` while somebody looked all
    /// that time. After `gap` without a look the watch begins anew.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub async fn watch_workers(&self, silence: Duration, gap: Duration) -> Result<Watch, BackendError> {
        let keys = self.keys();
        let mut cmd = WATCH.call(&[keys.workers(), keys.watch()]);
        cmd.arg(silence.as_millis() as u64).arg(gap.as_millis() as u64);
        let [now, since, silent, workers] = self.call("watch", cmd).await?.array()?;
        let silent = silent.list()?.into_iter().map(Answer::text).collect::<Result<_, _>>()?;
        Ok(Watch { now: now.number()?, since: since.number()?, silent, workers: workers.count()? })
    }

    /// Settles a slice of the leases of one queue that a silent worker held.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub async fn take_over(
        &self,
        worker: &str,
        queue: &str,
        silence: Duration,
        from: &Cursor,
    ) -> Result<TakenOver, BackendError> {
        let keys = self.keys();
        let token = Token::new();
        let mut cmd = TAKE_OVER.call(&[
            keys.workers(),
            keys.worker(worker),
            keys.segment(queue, Segment::Running),
            keys.segment(queue, Segment::Ready),
            keys.wake(),
        ]);
        cmd.arg(worker).arg(queue).arg(silence.as_millis() as u64).arg(token.as_str());
        cmd.arg(CLAIM_TTL.as_millis() as u64).arg(&from.score).arg(&from.id).arg(SLICE).arg(keys.task_prefix());
        let [code, claimed, given_back, score, id] = self.call("take_over", cmd).await?.array()?;
        match code.text()?.as_str() {
            "alive" => Ok(TakenOver::Alive),
            "taken" => Ok(TakenOver::Taken {
                claimed: claims(claimed, queue, &token)?,
                given_back: given_back.count()?,
                next: Cursor::read(score, id)?,
            }),
            _ => Err(BackendError::Unexpected { what: "take_over" }),
        }
    }

    /// Takes the TTL off the records of up to `limit` tasks of a pending segment, from `from` on.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub async fn persist(
        &self,
        queue: &str,
        segment: Segment,
        from: &Cursor,
        limit: u64,
    ) -> Result<Persisted, BackendError> {
        let mut cmd = PERSIST.call(&[self.keys().segment(queue, segment)]);
        cmd.arg(&from.score).arg(&from.id).arg(limit).arg(self.keys().task_prefix());
        let [persisted, soonest, score, id, seen] = self.call("persist", cmd).await?.array()?;
        let soonest = soonest.text_or_none()?.and_then(|text| text.parse().ok()).map(Duration::from_millis);
        Ok(Persisted { persisted: persisted.count()?, soonest, seen: seen.count()?, next: Cursor::read(score, id)? })
    }
}

fn ids(answer: Answer) -> Result<Vec<TaskId>, BackendError> {
    answer.list()?.into_iter().map(|id| id.text().map(TaskId::from)).collect()
}

pub(super) fn claims(answer: Answer, queue: &str, token: &Token) -> Result<Vec<Claimed>, BackendError> {
    let claim = |answer: Answer| -> Result<Claimed, BackendError> {
        let [id, data, worker, started_at, _sequence] = answer.array()?;
        Ok(Claimed {
            id: TaskId::new(id.text()?),
            queue: queue.to_owned(),
            data: data.bytes()?,
            worker: worker.text()?,
            started_at: Stamp::parse(&started_at.text()?),
            token: token.clone(),
        })
    };
    answer.list()?.into_iter().map(claim).collect()
}
