//! Calls on their way in, and the wait for what becomes of them.

use crate::backend::{Backend, BackendError, EnqueueOutcome, TaskDetail, TelemetryEvent};
use crate::native::task::Call;
use crate::task::{ErrorRecord, NewTask, RawJson, Segment, TaskId};
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;
use tokio::time::Instant;

/// How long a wait trusts the telemetry before it looks by itself: a message can be lost with its connection.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// An enqueued call of a task that returns `O`.
#[derive(Clone, Debug)]
pub struct Handle<O> {
    backend: Backend,
    id: TaskId,
    queue: String,
    outcome: EnqueueOutcome,
    output: PhantomData<fn() -> O>,
}

/// Why a wait ended without a value.
#[derive(Debug, thiserror::Error)]
pub enum WaitError {
    /// It has not finished in the time that was given.
    #[error("the task has not finished in time")]
    TimedOut,
    /// It failed for good.
    #[error("the task failed: {}", .0.as_ref().map_or("no error was kept", |error| error.summary()))]
    Failed(Option<ErrorRecord>),
    /// There is nothing of it any more: dropped, purged, or its result has expired.
    #[error("the task is gone: dropped, purged, or its result has expired")]
    Gone,
    /// Its record or its value cannot be read as what was asked for.
    #[error("the result cannot be read: {0}")]
    Unreadable(String),
    /// The server could not be asked.
    #[error("the result could not be asked for")]
    Backend(#[source] BackendError),
}

impl Backend {
    /// Enqueues one call.
    ///
    /// # Errors
    /// [`BackendError::Invalid`] where its arguments cannot be stored. After any other error the same call can be sent
    /// again: its id is stored once.
    pub async fn enqueue_task<O>(&self, call: &Call<O>) -> Result<Handle<O>, BackendError> {
        let mut handles = self.enqueue_tasks(std::slice::from_ref(call)).await?;
        // One answer for one call, or the line above has failed.
        handles.pop().ok_or(BackendError::Unexpected { what: "enqueue" })
    }

    /// Enqueues many calls in as few round trips as their queues and sizes allow. The handles are in the same order.
    ///
    /// # Errors
    /// As [`Backend::enqueue_task`]; an invalid call means that none is sent.
    pub async fn enqueue_tasks<O>(&self, calls: &[Call<O>]) -> Result<Vec<Handle<O>>, BackendError> {
        if let Some((error, call)) = calls.iter().find_map(|call| call.error.as_ref().map(|error| (error, call))) {
            return Err(BackendError::Invalid(format!("the arguments of {}: {error}", call.task.func)));
        }
        let tasks: Vec<NewTask> = calls.iter().map(|call| call.task.clone()).collect();
        let answers = self.enqueue(&tasks).await?;
        let handle = |(answer, task): (crate::backend::Enqueued, NewTask)| Handle {
            backend: self.clone(),
            id: answer.id,
            queue: task.queue,
            outcome: answer.outcome,
            output: PhantomData,
        };
        Ok(answers.into_iter().zip(tasks).map(handle).collect())
    }

    /// A handle on a task that somebody else enqueued.
    pub fn handle<O>(&self, id: TaskId, queue: impl Into<String>) -> Handle<O> {
        Handle {
            backend: self.clone(),
            id,
            queue: queue.into(),
            outcome: EnqueueOutcome::Replayed,
            output: PhantomData,
        }
    }
}

impl<O> Handle<O> {
    /// The id of the stored task; an earlier one's where the idempotency key named it.
    pub fn id(&self) -> &TaskId {
        &self.id
    }

    /// Whether this call was stored, or another stands for it.
    pub fn outcome(&self) -> EnqueueOutcome {
        self.outcome
    }
}

impl<O: DeserializeOwned> Handle<O> {
    /// What it returned, where it has finished; `None` while it has not.
    ///
    /// # Errors
    /// [`WaitError`] where it failed, is gone, or cannot be read.
    pub async fn result(&self) -> Result<Option<O>, WaitError> {
        let mut detail = self.find().await?;
        let is_finished = |detail: &TaskDetail| detail.segment().is_some_and(Segment::is_finished);
        if is_finished(&detail) && detail.record().is_some_and(|record| record.finished_at.is_none()) {
            // It finished between the look at its record and that at its place: the record of now tells.
            detail = self.find().await?;
        }
        match detail.segment() {
            Some(Segment::Successful) => {}
            Some(Segment::Failed) => {
                return Err(WaitError::Failed(detail.record().and_then(|record| record.errors.last().cloned())));
            }
            _ => return Ok(None),
        }
        let value = match detail.return_value() {
            Some(value) => value.clone(),
            None if detail.record().is_none() => return Err(WaitError::Gone),
            None => RawJson::null(),
        };
        serde_json::from_str(value.as_str()).map(Some).map_err(|e| WaitError::Unreadable(e.to_string()))
    }

    async fn find(&self) -> Result<TaskDetail, WaitError> {
        let detail = self.backend.find(&self.id, Some(&self.queue)).await.map_err(WaitError::Backend)?;
        detail.ok_or(WaitError::Gone)
    }

    /// Waits for what it returns, woken by the telemetry of its queue, for at most `limit`.
    ///
    /// # Errors
    /// As [`Handle::result`], and [`WaitError::TimedOut`]; the task goes on then.
    pub async fn wait(&self, limit: Duration) -> Result<O, WaitError> {
        tokio::time::timeout(limit, self.finished()).await.unwrap_or(Err(WaitError::TimedOut))
    }

    async fn finished(&self) -> Result<O, WaitError> {
        if let Some(value) = self.look().await? {
            return Ok(value);
        }
        let mut events = self.backend.telemetry().await.ok();
        loop {
            // After the subscription: what finished before it is found here, what finishes after it is told.
            if let Some(value) = self.look().await? {
                return Ok(value);
            }
            let until = Instant::now() + LOOK_INTERVAL;
            let Some(stream) = &mut events else {
                tokio::time::sleep_until(until).await;
                continue;
            };
            loop {
                match tokio::time::timeout_at(until, stream.next()).await {
                    Ok(Some(TelemetryEvent::Egress(queue))) if queue == self.queue => break,
                    Ok(Some(_)) => {}
                    Ok(None) => {
                        events = None;
                        break;
                    }
                    Err(_) => break,
                }
            }
        }
    }

    /// As [`Handle::result`], with a passing error of the server taken as "not yet".
    async fn look(&self) -> Result<Option<O>, WaitError> {
        match self.result().await {
            Err(WaitError::Backend(error)) if error.is_passing() => Ok(None),
            other => other,
        }
    }
}
