//! One task, removed.

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
        let keys = self.keys();
        let mut names = vec![keys.task(id.as_str()), keys.result(id.as_str())];
        names.extend(Segment::ALL.map(|segment| keys.segment(queue, segment)));
        names.push(keys.quarantine(queue));
        let mut cmd = DROP.call(&names);
        cmd.arg(id.as_str()).arg(expected.map_or("", |(segment, _)| segment.word()));
        cmd.arg(expected.and_then(|(_, seen)| seen).map_or_else(String::new, |seen| Score(seen).to_string()));
        let [code, segment] = self.call("drop", cmd).await?.array()?;
        let segment = segment.text()?.parse().ok();
        match code.text()?.as_str() {
            "dropped" => Ok(DropOutcome::Dropped(segment)),
            "running" => Ok(DropOutcome::Running),
            "moved" => Ok(DropOutcome::Moved(segment)),
            "gone" => Ok(DropOutcome::Gone),
            _ => Err(BackendError::Unexpected { what: "drop" }),
        }
    }
}
