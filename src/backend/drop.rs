//! Tasks, removed.

use crate::backend::bulk::{SLICE, Seen};
use crate::backend::scripts::DROP;
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment, TaskId};

/// What became of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropOutcome {
    /// It is gone, from this segment; `None` where only its record or an entry in quarantine was left of it.
    Dropped(Option<Segment>),
    /// It runs, and the caller did not ask for a running one.
    Running,
    /// It is elsewhere than the caller saw it; nothing changed.
    Moved(Option<Segment>),
    /// There is nothing of that id.
    Gone,
}

impl Backend {
    /// Removes one task with its record and result. With `expected`, only where it is still in that segment, with that
    /// score where one is given. A running task goes only where RUNNING is expected; its worker then finds its lease lost.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again; it answers [`DropOutcome::Gone`] then.
    pub async fn drop_task(
        &self,
        id: &TaskId,
        queue: &str,
        expected: Option<(Segment, Option<f64>)>,
    ) -> Result<DropOutcome, BackendError> {
        let seen = expected.and_then(|(_, seen)| seen).map_or_else(String::new, |seen| Score(seen).to_string());
        let outcomes =
            self.drop_slice(queue, expected.map_or("", |(segment, _)| segment.word()), &[(id, seen)]).await?;
        outcomes.first().copied().ok_or(BackendError::Unexpected { what: "drop" })
    }

    /// Removes tasks that were seen in one segment, each only where it is still there with that score. The outcomes are in
    /// the order of `seen`.
    ///
    /// # Errors
    /// The slices before the failed one are gone. The same call can be sent again: it answers [`DropOutcome::Gone`] for
    /// those.
    pub async fn drop_many(
        &self,
        queue: &str,
        segment: Segment,
        seen: &[Seen],
    ) -> Result<Vec<DropOutcome>, BackendError> {
        let mut outcomes = Vec::with_capacity(seen.len());
        for slice in seen.chunks(SLICE) {
            let slice: Vec<_> = slice.iter().map(|next| (&next.id, next.text())).collect();
            outcomes.extend(self.drop_slice(queue, segment.word(), &slice).await?);
        }
        Ok(outcomes)
    }

    /// Removes tasks that were seen in quarantine, each only where it is still there with that score.
    ///
    /// # Errors
    /// As [`Backend::drop_many`].
    pub async fn drop_quarantined(&self, queue: &str, seen: &[Seen]) -> Result<Vec<DropOutcome>, BackendError> {
        let mut outcomes = Vec::with_capacity(seen.len());
        for slice in seen.chunks(SLICE) {
            let slice: Vec<_> = slice.iter().map(|next| (&next.id, next.text())).collect();
            outcomes.extend(self.drop_slice(queue, "quarantine", &slice).await?);
        }
        Ok(outcomes)
    }

    async fn drop_slice(
        &self,
        queue: &str,
        expected: &str,
        seen: &[(&TaskId, String)],
    ) -> Result<Vec<DropOutcome>, BackendError> {
        let keys = self.keys();
        let mut names = Segment::ALL.map(|segment| keys.segment(queue, segment)).to_vec();
        names.push(keys.quarantine(queue));
        let mut cmd = DROP.call(&names);
        cmd.arg(expected).arg(keys.task_prefix()).arg(keys.result_prefix());
        for (id, score) in seen {
            cmd.arg(id.as_str()).arg(score);
        }
        let answers = self.call("drop", cmd).await?.list()?;
        answers
            .into_iter()
            .map(|answer| {
                let [code, segment] = answer.array()?;
                let segment = segment.text()?.parse().ok();
                match code.text()?.as_str() {
                    "dropped" => Ok(DropOutcome::Dropped(segment)),
                    "running" => Ok(DropOutcome::Running),
                    "moved" => Ok(DropOutcome::Moved(segment)),
                    "gone" => Ok(DropOutcome::Gone),
                    _ => Err(BackendError::Unexpected { what: "drop" }),
                }
            })
            .collect()
    }
}
