//! Finished tasks that are to run again.

use crate::backend::answer::Answer;
use crate::backend::bulk::Seen;
use crate::backend::codec::{DecodeError, decode, encode, requeued};
use crate::backend::retry::score_of;
use crate::backend::scripts::REQUEUE;
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment, TaskId, TaskRecord};
use chrono::{DateTime, Utc};

/// When a requeued task is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum When {
    /// As soon as its turn comes.
    #[default]
    Now,
    /// Not before this moment.
    At(DateTime<Utc>),
}

impl When {
    /// As scripts take it: milliseconds, '' for at once.
    pub(super) fn text(self) -> String {
        match self {
            When::Now => String::new(),
            When::At(at) => Score(at.timestamp_micros() as f64 / 1_000.0).to_string(),
        }
    }
}

/// What becomes of the tasks of one [`Backend::requeue_many`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Requeue {
    /// When they run.
    pub when: When,
    /// Whether their attempts begin at one again. The attempt number is the count of the workers that a record names, so
    /// the record then forgets them.
    pub reset_attempts: bool,
}

/// What became of a requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequeueOutcome {
    /// It waits again.
    Requeued,
    /// This request had been served before.
    Replayed,
    /// It is not, or no longer, finished as the caller saw it; nothing changed.
    Moved,
    /// Its result has expired or was removed.
    Gone,
}

/// A finished task with the record that it is to wait with.
struct Waiting<'a> {
    id: &'a TaskId,
    seen: String,
    /// Empty where there is no result: the script still tells whether this request was served before.
    data: String,
    score: String,
}

impl<'a> Waiting<'a> {
    fn new(id: &'a TaskId, seen: f64, record: Option<&TaskRecord>, reset_attempts: bool) -> Self {
        let record = record.map(|record| {
            let mut waiting = requeued(record);
            if reset_attempts {
                waiting.worker_ids.clear();
            }
            waiting
        });
        let data = record.as_ref().map(encode).unwrap_or_default();
        Self { id, seen: Score(seen).to_string(), data, score: record.as_ref().map(score_of).unwrap_or_default() }
    }
}

impl Backend {
    /// Runs a finished task again, with its errors and workers kept. `seen` is the finish score that the caller saw: it
    /// names exactly this finish, so that nothing happens to a task that has moved on since.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn requeue(
        &self,
        record: &TaskRecord,
        queue: &str,
        segment: Segment,
        seen: f64,
        when: When,
    ) -> Result<RequeueOutcome, BackendError> {
        let waiting = Waiting::new(&record.id, seen, Some(record), false);
        let outcomes = self.requeue_slice(queue, segment, when, &[waiting]).await?;
        outcomes.first().copied().ok_or(BackendError::Unexpected { what: "requeue" })
    }

    /// Runs finished tasks of one segment again: reads their results in slices and requeues each slice in one step. The
    /// outcomes are in the order of `seen`; a record that cannot be read stays where it is and answers why.
    ///
    /// # Errors
    /// The slices before the failed one are requeued. The same call can be sent again: it answers
    /// [`RequeueOutcome::Replayed`] for those.
    pub async fn requeue_many(
        &self,
        queue: &str,
        segment: Segment,
        seen: &[Seen],
        how: Requeue,
    ) -> Result<Vec<Result<RequeueOutcome, DecodeError>>, BackendError> {
        let mut outcomes = Vec::with_capacity(seen.len());
        let mut rest = seen;
        while !rest.is_empty() {
            let records = self.fetch(queue, segment, rest).await?;
            let (slice, others) = rest.split_at(records.len().min(rest.len()));
            let mut waiting = Vec::with_capacity(slice.len());
            let mut places = Vec::with_capacity(slice.len());
            for (next, data) in slice.iter().zip(&records) {
                let record = if data.is_empty() { Ok(None) } else { decode(data).map(Some) };
                if let Ok(record) = &record {
                    places.push(outcomes.len());
                    waiting.push(Waiting::new(&next.id, next.score, record.as_ref(), how.reset_attempts));
                }
                outcomes.push(record.map(|_| RequeueOutcome::Gone));
            }
            let answers = self.requeue_slice(queue, segment, how.when, &waiting).await?;
            for (place, answer) in places.into_iter().zip(answers) {
                outcomes[place] = Ok(answer);
            }
            rest = others;
        }
        Ok(outcomes)
    }

    async fn requeue_slice(
        &self,
        queue: &str,
        segment: Segment,
        when: When,
        waiting: &[Waiting<'_>],
    ) -> Result<Vec<RequeueOutcome>, BackendError> {
        const CODES: [(&str, RequeueOutcome); 4] = [
            ("requeued", RequeueOutcome::Requeued),
            ("replayed", RequeueOutcome::Replayed),
            ("moved", RequeueOutcome::Moved),
            ("gone", RequeueOutcome::Gone),
        ];
        let keys = self.keys();
        let mut cmd = REQUEUE.call(&[
            keys.telemetry(),
            keys.segment(queue, segment),
            keys.segment(queue, Segment::Ready),
            keys.segment(queue, Segment::Scheduled),
            keys.segment(queue, Segment::Running),
        ]);
        cmd.arg(queue).arg(when.text()).arg(keys.task_prefix()).arg(keys.result_prefix());
        for next in waiting {
            cmd.arg(next.id.as_str()).arg(&next.seen).arg(&next.data).arg(&next.score);
        }
        self.call("requeue", cmd).await?.list()?.into_iter().map(|answer: Answer| answer.code(&CODES)).collect()
    }
}
