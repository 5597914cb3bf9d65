//! Acting on many tasks: ids are frozen with the scores that were seen, then each slice compares and acts in one step.

use crate::backend::answer::Answer;
use crate::backend::scripts::FETCH;
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment, TaskId};

/// Ids of one call. The slowest of the scripts takes about 15 µs a task: a slice holds the server up for 3 ms.
pub(super) const SLICE: usize = 200;
/// Bytes of records that one call carries, so that large ones hold up nobody either.
const BYTE_BUDGET: usize = 4 << 20;

/// A task as somebody saw it: its id, and its score in the segment where it was.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The task's id.
    pub id: TaskId,
    /// Its score there.
    pub score: f64,
}

impl Seen {
    /// The score as scripts compare it.
    pub(super) fn text(&self) -> String {
        Score(self.score).to_string()
    }
}

impl Backend {
    /// The records of the first of these ids, as many as fit one call, at least one; empty where there is no record.
    pub(super) async fn fetch(
        &self,
        queue: &str,
        segment: Segment,
        seen: &[Seen],
    ) -> Result<Vec<Vec<u8>>, BackendError> {
        let keys = self.keys();
        let (kind, prefix) = match segment.is_finished() {
            true => ("finished", keys.result_prefix()),
            false => ("pending", keys.task_prefix()),
        };
        let mut cmd = FETCH.call(&[keys.segment(queue, segment)]);
        cmd.arg(kind).arg(prefix).arg(BYTE_BUDGET);
        for next in seen.iter().take(SLICE) {
            cmd.arg(next.id.as_str());
        }
        let answers = self.call("fetch", cmd).await?.list()?;
        if answers.is_empty() && !seen.is_empty() {
            return Err(BackendError::Unexpected { what: "fetch" });
        }
        answers.into_iter().map(Answer::bytes).collect()
    }
}
