//! A segment, emptied slice by slice.

use crate::backend::scripts::PURGE;
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment};

/// Members of one call: a slice stalls the server for a few milliseconds at most.
const SLICE: u64 = 500;

/// What a purge empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PurgeScope {
    /// One segment.
    Segment(Segment),
    /// What was set aside.
    Quarantine,
}

/// How far a purge has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purged {
    /// How many went in this slice.
    pub removed: u64,
    /// How many of the named ones are left.
    pub left: u64,
}

impl Backend {
    /// Removes a slice of a segment, with the records or results that belong to it; those with a score of at most
    /// `max_score` where one is given. To be repeated until nothing is left.
    ///
    /// Purged running tasks go on running; their workers find their leases lost and their results are discarded.
    ///
    /// # Errors
    /// Where the answer was lost, the slice may have gone uncounted.
    pub async fn purge_slice(
        &self,
        queue: &str,
        scope: PurgeScope,
        max_score: Option<f64>,
    ) -> Result<Purged, BackendError> {
        self.purge_at_most(queue, scope, max_score, u64::MAX).await
    }

    /// As [`Backend::purge_slice`], and removes no more than `limit`: for a caller that has said how many will go, while
    /// others come.
    ///
    /// # Errors
    /// Where the answer was lost, the slice may have gone uncounted.
    pub async fn purge_at_most(
        &self,
        queue: &str,
        scope: PurgeScope,
        max_score: Option<f64>,
        limit: u64,
    ) -> Result<Purged, BackendError> {
        let keys = self.keys();
        let (key, own) = match scope {
            PurgeScope::Segment(segment) => (keys.segment(queue, segment), Some(segment)),
            PurgeScope::Quarantine => (keys.quarantine(queue), None),
        };
        let kind = if own.is_some_and(Segment::is_finished) { "finished" } else { "pending" };
        let mut names = vec![key];
        if kind == "pending" {
            let others = [Segment::Ready, Segment::Scheduled, Segment::Running].into_iter();
            names.extend(others.filter(|other| own != Some(*other)).map(|other| keys.segment(queue, other)));
        }
        let mut cmd = PURGE.call(&names);
        cmd.arg(kind)
            .arg(limit.clamp(1, SLICE))
            .arg(Score(max_score.unwrap_or(f64::INFINITY)).to_string().replace("inf", "+inf"));
        cmd.arg(keys.task_prefix()).arg(keys.result_prefix());
        let [removed, left] = self.call("purge", cmd).await?.array()?;
        Ok(Purged { removed: removed.count()?, left: left.count()? })
    }
}
