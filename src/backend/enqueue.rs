//! Tasks on their way in.

use crate::backend::codec::{check_json, encode, looks_like_a_task, queued};
use crate::backend::scripts::ENQUEUE;
use crate::backend::{Backend, BackendError};
use crate::task::{NewTask, RawJson, Score, TaskId, ready_score};
use chrono::Utc;
use std::time::Duration;

/// Tasks of one call: the script's lists stay far below what Lua can unpack.
const BATCH: usize = 500;
/// Bytes of one call, so that one large enqueue does not hold up the server.
const BATCH_BYTES: usize = 4 << 20;
/// How long an idempotency key is remembered.
const IDEMPOTENCY_TTL: Duration = Duration::from_secs(24 * 3600);

/// A fresh id: a UUID of version 7, whose head is the time.
pub fn new_id() -> TaskId {
    TaskId::new(uuid::Uuid::now_v7().to_string())
}

/// What became of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnqueueOutcome {
    /// It was stored.
    Stored,
    /// This id had been stored before; nothing changed.
    Replayed,
    /// The idempotency key names an earlier task, which stands for this one.
    Duplicate,
}

/// The answer for one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The task that is stored: the new one, or the earlier one of the same idempotency key.
    pub id: TaskId,
    /// Which of the two.
    pub outcome: EnqueueOutcome,
}

/// A task ready to be sent.
struct Prepared<'a> {
    task: &'a NewTask,
    data: String,
    score: Score,
}

impl Backend {
    /// Stores tasks, in as few round trips as their queues and sizes allow. The answers are in the order of `tasks`.
    ///
    /// # Errors
    /// [`BackendError::Invalid`] before anything is sent, where one of them cannot be stored. [`BackendError::Partly`]
    /// where earlier ones are stored when a later call fails. Of the tasks of a failed call nothing is stored, unless the
    /// error [is uncertain](BackendError::is_uncertain). The same tasks can always be sent again: an id is stored once.
    pub async fn enqueue(&self, tasks: &[NewTask]) -> Result<Vec<Enqueued>, BackendError> {
        let now = Utc::now();
        let mut prepared = Vec::with_capacity(tasks.len());
        for task in tasks {
            self.check(task)?;
            let record = queued(task, self.alias(), now);
            let data = encode(&record);
            if data.len() > self.settings().max_payload {
                return Err(BackendError::Invalid(format!(
                    "the task for {} has {} bytes and the limit is {}; store large data elsewhere and pass where it is",
                    task.func,
                    data.len(),
                    self.settings().max_payload
                )));
            }
            // The score has the fraction that the record's time is cut to milliseconds of, as in the Python package.
            let score = ready_score(record.spec.priority.value, now.timestamp_micros() as f64 / 1_000.0);
            prepared.push(Prepared { task, data, score });
        }
        let mut answers = Vec::with_capacity(tasks.len());
        let mut rest = &prepared[..];
        while let Some(first) = rest.first() {
            let mut bytes = 0;
            let size = rest
                .iter()
                .take(BATCH)
                .take_while(|next| {
                    bytes += next.data.len();
                    next.task.queue == first.task.queue && (bytes <= BATCH_BYTES || bytes == next.data.len())
                })
                .count();
            let (batch, others) = rest.split_at(size);
            match self.enqueue_batch(&first.task.queue, batch).await {
                Ok(stored) => answers.extend(stored),
                Err(error) if answers.is_empty() => return Err(error),
                Err(error) => {
                    let (stored, of) = (answers.len(), tasks.len());
                    return Err(BackendError::Partly { stored, of, source: Box::new(error) });
                }
            }
            rest = others;
        }
        Ok(answers)
    }

    async fn enqueue_batch(&self, queue: &str, batch: &[Prepared<'_>]) -> Result<Vec<Enqueued>, BackendError> {
        use crate::task::Segment::{Ready, Scheduled};
        let keys = self.keys();
        let mut names = vec![keys.telemetry(), keys.segment(queue, Ready), keys.segment(queue, Scheduled)];
        for next in batch {
            let id = next.task.id.as_str();
            names.push(keys.task(id));
            names.push(keys.result(id));
            names.push(next.task.idempotency.as_ref().map_or_else(|| keys.task(id), |key| keys.idempotency(key)));
        }
        let mut cmd = ENQUEUE.call(&names);
        cmd.arg(queue).arg(IDEMPOTENCY_TTL.as_millis() as u64);
        for next in batch {
            let due = next.task.run_after.map(|at| Score(at.timestamp_micros() as f64 / 1_000.0).to_string());
            cmd.arg(next.task.id.as_str()).arg(&next.data).arg(next.score.to_string()).arg(due.unwrap_or_default());
            cmd.arg(if next.task.idempotency.is_some() { "1" } else { "" });
            cmd.arg(next.task.trace.as_deref().unwrap_or_default());
        }
        const CODES: [(&str, EnqueueOutcome); 3] = [
            ("enqueued", EnqueueOutcome::Stored),
            ("replayed", EnqueueOutcome::Replayed),
            ("duplicate", EnqueueOutcome::Duplicate),
        ];
        let answers = self.call("enqueue", cmd).await?.list()?;
        answers
            .into_iter()
            .map(|answer| {
                let [code, id] = answer.array()?;
                Ok(Enqueued { outcome: code.code(&CODES)?, id: TaskId::new(id.text()?) })
            })
            .collect()
    }

    /// Refuses what would break a reader.
    fn check(&self, task: &NewTask) -> Result<(), BackendError> {
        let invalid = |what: String| Err(BackendError::Invalid(what));
        if task.func.is_empty() {
            return invalid("the task names no function".into());
        }
        if task.queue.is_empty() {
            return invalid(format!("the task for {} names no queue", task.func));
        }
        check_user_data("args", &task.args, '[')?;
        check_user_data("kwargs", &task.kwargs, '{')
    }
}

/// Checks that arguments are JSON of the right kind and hold nothing that the Python package would act on.
fn check_user_data(name: &str, data: &RawJson, opening: char) -> Result<(), BackendError> {
    let text = data.as_str();
    if let Err(e) = check_json(text) {
        return Err(BackendError::Invalid(format!("{name} is no JSON: {e}")));
    }
    if !text.trim_start().starts_with(opening) {
        let kind = if opening == '[' { "list" } else { "object" };
        return Err(BackendError::Invalid(format!("{name} must be a JSON {kind}")));
    }
    if looks_like_a_task(text).unwrap_or(true) {
        return Err(BackendError::Invalid(format!(
            "{name} holds an object with a key `task` whose value has a key `func`; the Python package would act on it. \
             Rename one of the keys"
        )));
    }
    Ok(())
}
