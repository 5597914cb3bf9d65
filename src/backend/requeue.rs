//! Finished tasks that are to run again.

use crate::backend::codec::{encode, requeued};
use crate::backend::retry::score_of;
use crate::backend::scripts::REQUEUE;
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment, TaskRecord};
use chrono::{DateTime, Utc};

/// When a requeued task is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As soon as its turn comes.
    Now,
    /// Not before this moment.
    At(DateTime<Utc>),
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
        let keys = self.keys();
        let id = record.id.as_str();
        let mut cmd = REQUEUE.call(&[
            keys.telemetry(),
            keys.task(id),
            keys.result(id),
            keys.segment(queue, segment),
            keys.segment(queue, Segment::Ready),
            keys.segment(queue, Segment::Scheduled),
            keys.segment(queue, Segment::Running),
        ]);
        let waiting = requeued(record);
        cmd.arg(queue).arg(id).arg(Score(seen).to_string()).arg(encode(&waiting)).arg(score_of(&waiting));
        cmd.arg(match when {
            When::Now => String::new(),
            When::At(at) => Score(at.timestamp_micros() as f64 / 1_000.0).to_string(),
        });
        self.call("requeue", cmd).await?.code(&[
            ("requeued", RequeueOutcome::Requeued),
            ("replayed", RequeueOutcome::Replayed),
            ("moved", RequeueOutcome::Moved),
            ("gone", RequeueOutcome::Gone),
        ])
    }
}
