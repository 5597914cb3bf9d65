//! Waiting tasks that are to run elsewhere, or at another time.

use crate::backend::bulk::{SLICE, Seen};
use crate::backend::codec::{DecodeError, decode, encode};
use crate::backend::scripts::{MOVE, RESCHEDULE};
use crate::backend::{Backend, BackendError, When};
use crate::task::Segment;

/// What became of a task that was to go to another queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveOutcome {
    /// It waits in the other queue.
    Moved,
    /// This request had been served before.
    Replayed,
    /// It runs, and stays where it is.
    Running,
    /// It does not, or no longer, wait as the caller saw it; nothing changed.
    Changed,
    /// It has no record.
    Gone,
}

/// What became of a SCHEDULED task that was to run at another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RescheduleOutcome {
    /// It waits for the new time, or is READY.
    Rescheduled,
    /// It waited like that already.
    Replayed,
    /// It does not, or no longer, wait as the caller saw it; nothing changed.
    Changed,
    /// It has no record.
    Gone,
}

impl Backend {
    /// Puts READY or SCHEDULED tasks into the same segment of another queue of this alias, with the same score: a reader
    /// finds each in exactly one queue at any moment. The record then names the other queue. A record that cannot be read
    /// stays where it is and answers why. The outcomes are in the order of `seen`.
    ///
    /// The other queue must be one that the programs of the site know: the Python package cannot read a task of another.
    ///
    /// # Errors
    /// [`BackendError::Invalid`] for a segment whose tasks do not wait, and for a queue without a name. Later errors leave
    /// the slices before the failed one moved; the same call can be sent again.
    pub async fn move_many(
        &self,
        from: &str,
        to: &str,
        segment: Segment,
        seen: &[Seen],
    ) -> Result<Vec<Result<MoveOutcome, DecodeError>>, BackendError> {
        if !matches!(segment, Segment::Ready | Segment::Scheduled) {
            return Err(BackendError::Invalid(format!("only tasks that wait can move, and {segment} ones do not")));
        }
        if to.is_empty() || to == from {
            return Err(BackendError::Invalid("tasks move to another queue, which has a name".into()));
        }
        let mut outcomes = Vec::with_capacity(seen.len());
        let mut rest = seen;
        while !rest.is_empty() {
            let records = self.fetch(from, segment, rest).await?;
            let (slice, others) = rest.split_at(records.len().min(rest.len()));
            let mut texts = Vec::with_capacity(slice.len());
            let mut places = Vec::with_capacity(slice.len());
            for (next, old) in slice.iter().zip(records) {
                let new = if old.is_empty() { Ok(String::new()) } else { renamed(&old, to) };
                outcomes.push(new.map(|new| {
                    places.push(outcomes.len());
                    texts.push((next, old, new));
                    MoveOutcome::Gone
                }));
            }
            let answers = self.move_slice((from, to), segment, &texts).await?;
            for (place, answer) in places.into_iter().zip(answers) {
                outcomes[place] = Ok(answer);
            }
            rest = others;
        }
        Ok(outcomes)
    }

    async fn move_slice(
        &self,
        (from, to): (&str, &str),
        segment: Segment,
        texts: &[(&Seen, Vec<u8>, String)],
    ) -> Result<Vec<MoveOutcome>, BackendError> {
        const CODES: [(&str, MoveOutcome); 5] = [
            ("moved", MoveOutcome::Moved),
            ("replayed", MoveOutcome::Replayed),
            ("running", MoveOutcome::Running),
            ("changed", MoveOutcome::Changed),
            ("gone", MoveOutcome::Gone),
        ];
        let keys = self.keys();
        let mut cmd = MOVE.call(&[
            keys.wake(),
            keys.segment(from, segment),
            keys.segment(to, segment),
            keys.segment(from, Segment::Running),
            keys.segment(to, Segment::Running),
        ]);
        cmd.arg(to).arg(if segment == Segment::Ready { "1" } else { "" }).arg(keys.task_prefix());
        for (next, old, new) in texts {
            cmd.arg(next.id.as_str()).arg(next.text()).arg(old).arg(new);
        }
        self.call("move", cmd).await?.list()?.into_iter().map(|answer| answer.code(&CODES)).collect()
    }

    /// Lets SCHEDULED tasks of one queue run at once ([`When::Now`]) or at another time. `seen` is the due time that the
    /// caller saw. The outcomes are in the order of `seen`.
    ///
    /// # Errors
    /// The slices before the failed one are rescheduled. The same call can be sent again.
    pub async fn reschedule_many(
        &self,
        queue: &str,
        seen: &[Seen],
        when: When,
    ) -> Result<Vec<RescheduleOutcome>, BackendError> {
        const CODES: [(&str, RescheduleOutcome); 4] = [
            ("rescheduled", RescheduleOutcome::Rescheduled),
            ("replayed", RescheduleOutcome::Replayed),
            ("changed", RescheduleOutcome::Changed),
            ("gone", RescheduleOutcome::Gone),
        ];
        let keys = self.keys();
        let names = [
            keys.wake(),
            keys.segment(queue, Segment::Scheduled),
            keys.segment(queue, Segment::Ready),
            keys.segment(queue, Segment::Running),
        ];
        let mut outcomes = Vec::with_capacity(seen.len());
        for slice in seen.chunks(SLICE) {
            let mut cmd = RESCHEDULE.call(&names);
            cmd.arg(queue).arg(when.text()).arg(keys.task_prefix());
            for next in slice {
                cmd.arg(next.id.as_str()).arg(next.text());
            }
            for answer in self.call("reschedule", cmd).await?.list()? {
                outcomes.push(answer.code(&CODES)?);
            }
        }
        Ok(outcomes)
    }
}

/// The record with another queue's name in it.
fn renamed(stored: &[u8], queue: &str) -> Result<String, DecodeError> {
    let mut record = decode(stored)?;
    queue.clone_into(&mut record.spec.queue_name);
    Ok(encode(&record))
}
