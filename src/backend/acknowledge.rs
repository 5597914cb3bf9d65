//! Results: how a worker ends its tasks.

use crate::backend::scripts::ACKNOWLEDGE;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{Segment, TaskId};

/// How a finished task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// With a return value.
    Successful,
    /// With an error and no retry.
    Failed,
}

/// One finished task on its way to Redis.
#[derive(Clone, Debug)]
pub struct Acknowledgement {
    /// The task's id.
    pub id: TaskId,
    /// Its queue.
    pub queue: String,
    /// The lease that it was run under.
    pub token: Token,
    /// How it ended.
    pub outcome: Outcome,
    /// The record to store as its result.
    pub result: String,
}

/// What became of one acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcknowledgeOutcome {
    /// The result is stored.
    Stored,
    /// This very result had been stored before.
    Replayed,
    /// The lease was no longer the caller's; the result was discarded.
    Lost,
}

/// The answer to an acknowledgement with a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// What became of each, in order.
    pub outcomes: Vec<AcknowledgeOutcome>,
    /// Whether the worker is registered, so that a mark was taken; true where none was given.
    pub is_registered: bool,
}

impl Backend {
    /// Stores the results of finished tasks. `mark` raises the worker's watermark of started leases in the same step.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn acknowledge(
        &self,
        worker: &str,
        mark: Option<u64>,
        finished: &[Acknowledgement],
    ) -> Result<Vec<AcknowledgeOutcome>, BackendError> {
        self.acknowledge_and_mark(worker, mark, finished).await.map(|answer| answer.outcomes)
    }

    /// As [`Backend::acknowledge`], and tells whether the mark was taken: without it nothing above it may start.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn acknowledge_and_mark(
        &self,
        worker: &str,
        mark: Option<u64>,
        finished: &[Acknowledgement],
    ) -> Result<Acknowledged, BackendError> {
        let keys = self.keys();
        let mut queues: Vec<&str> = Vec::new();
        let numbers: Vec<usize> = finished
            .iter()
            .map(|next| match queues.iter().position(|queue| *queue == next.queue) {
                Some(index) => index + 1,
                None => {
                    queues.push(&next.queue);
                    queues.len()
                }
            })
            .collect();
        let mut names = Vec::with_capacity(2 + queues.len() * 3 + finished.len() * 2);
        names.push(keys.telemetry());
        names.push(keys.worker(worker));
        for queue in &queues {
            for segment in [Segment::Running, Segment::Successful, Segment::Failed] {
                names.push(keys.segment(queue, segment));
            }
        }
        for next in finished {
            names.push(keys.task(next.id.as_str()));
            names.push(keys.result(next.id.as_str()));
        }
        let mut cmd = ACKNOWLEDGE.call(&names);
        cmd.arg(mark.map_or_else(String::new, |mark| mark.to_string()));
        cmd.arg(self.settings().result_ttl.as_millis() as u64).arg(queues.len()).arg(&queues);
        for (next, number) in finished.iter().zip(numbers) {
            let outcome = match next.outcome {
                Outcome::Successful => "successful",
                Outcome::Failed => "failed",
            };
            cmd.arg(number).arg(next.id.as_str()).arg(next.token.as_str()).arg(outcome).arg(&next.result);
        }
        const CODES: [(&str, AcknowledgeOutcome); 3] = [
            ("stored", AcknowledgeOutcome::Stored),
            ("replayed", AcknowledgeOutcome::Replayed),
            ("lost", AcknowledgeOutcome::Lost),
        ];
        let mut answers = self.call("acknowledge", cmd).await?.list()?;
        let notes = answers.split_off(finished.len().min(answers.len()));
        let outcomes = answers.into_iter().map(|answer| answer.code(&CODES)).collect::<Result<Vec<_>, _>>()?;
        if outcomes.len() < finished.len() {
            return Err(BackendError::Unexpected { what: "acknowledge" });
        }
        Ok(Acknowledged { outcomes, is_registered: notes.is_empty() })
    }
}
