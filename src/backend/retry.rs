//! The next attempt of a failed task.

use crate::backend::codec::encode;
use crate::backend::scripts::RETRY;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{Segment, TaskId, TaskRecord, ready_score};
use redis::Cmd;
use std::time::Duration;

/// A failed task that is to run again.
#[derive(Clone, Debug)]
pub struct RetryRequest {
    /// The task's id.
    pub id: TaskId,
    /// Its queue.
    pub queue: String,
    /// The lease, or the claim, under which it ended.
    pub token: Token,
    /// The record of the next attempt.
    pub record: TaskRecord,
    /// How long from now, by the server's clock.
    pub delay: Duration,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Retried {
    /// It waits; due at this time in milliseconds since 1970.
    Scheduled(f64),
    /// This request had been served before.
    Replayed,
    /// The lease was no longer the caller's; nothing changed.
    Lost,
}

impl Backend {
    /// Sends failed tasks to their next attempts, in one round trip. Each has its own answer.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn retry(&self, requests: &[RetryRequest]) -> Result<Vec<Result<Retried, BackendError>>, BackendError> {
        let cmds = requests.iter().map(|request| self.retry_call(request)).collect();
        let answers = self.call_all("retry", cmds).await?;
        Ok(answers
            .into_iter()
            .map(|answer| {
                let [code, due] = answer?.array()?;
                match code.text()?.as_str() {
                    "retried" => Ok(Retried::Scheduled(due.number()?)),
                    "replayed" => Ok(Retried::Replayed),
                    "lost" => Ok(Retried::Lost),
                    _ => Err(BackendError::Unexpected { what: "retry" }),
                }
            })
            .collect())
    }

    fn retry_call(&self, request: &RetryRequest) -> Cmd {
        let keys = self.keys();
        let mut cmd = RETRY.call(&[
            keys.telemetry(),
            keys.task(request.id.as_str()),
            keys.segment(&request.queue, Segment::Running),
            keys.segment(&request.queue, Segment::Scheduled),
            keys.segment(&request.queue, Segment::Ready),
        ]);
        cmd.arg(&request.queue).arg(request.id.as_str()).arg(request.token.as_str()).arg(encode(&request.record));
        cmd.arg(score_of(&request.record)).arg(request.delay.as_millis() as u64);
        cmd
    }
}

/// The READY score of a record that goes back: from its priority and its (truncated) time of enqueueing.
pub(super) fn score_of(record: &TaskRecord) -> String {
    let enqueued = record.enqueued_at.as_ref().map_or(0.0, |stamp| stamp.millis());
    ready_score(record.spec.priority.value, enqueued).to_string()
}
