//! Every id of every segment, looked at in slices.

use crate::backend::answer::Answer;
use crate::backend::doctor::settle::{Fault, Place, Settled};
use crate::backend::doctor::{FindingKind, Run};
use crate::backend::scripts::INSPECT;
use crate::backend::{Backend, BackendError, Cursor};
use crate::task::{Segment, TaskId};

/// Ids of one look: about a millisecond of the server's time.
pub(super) const SLICE: u64 = 400;
/// Examples of what was set aside, at most.
const RUNNING: usize = 2;

/// A lease as it was seen in RUNNING.
#[derive(Clone, Debug)]
pub(in crate::backend) struct LeaseSeen {
    pub id: TaskId,
    pub queue: String,
    pub worker: String,
    /// Whether the holder is one of ours.
    pub ours: bool,
    /// Whether maintenance took it from its holder, and settles it.
    pub claimed: bool,
}

/// What a look at a slice of a segment showed.
pub(in crate::backend) struct Look {
    pub seen: u64,
    pub faults: Vec<Fault>,
    pub leases: Vec<LeaseSeen>,
    pub next: Option<Cursor>,
}

impl Backend {
    /// Looks at up to `limit` ids of one place of a queue, by its number in [`Place::ALL`].
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub(in crate::backend) async fn inspect(
        &self,
        queue: &str,
        place: usize,
        from: &Cursor,
        limit: u64,
    ) -> Result<Look, BackendError> {
        let keys = self.keys();
        let mut names = Segment::ALL.map(|segment| keys.segment(queue, segment)).to_vec();
        names.push(keys.quarantine(queue));
        let mut cmd = INSPECT.call(&names);
        cmd.arg(place + 1).arg(&from.score).arg(&from.id).arg(limit);
        cmd.arg(keys.task_prefix()).arg(keys.result_prefix());
        let [seen, faults, leases, score, id] = self.call("inspect", cmd).await?.array()?;
        let lease = |answer: Answer| -> Result<LeaseSeen, BackendError> {
            let [id, _deadline, worker, sequence, claimed] = answer.array()?;
            Ok(LeaseSeen {
                id: TaskId::new(id.text()?),
                queue: queue.to_owned(),
                worker: worker.text()?,
                ours: sequence.text_or_none()?.is_some(),
                claimed: claimed.integer()? == 1,
            })
        };
        Ok(Look {
            seen: seen.count()?,
            faults: faults.list()?.into_iter().map(Fault::read).collect::<Result<_, _>>()?,
            leases: leases.list()?.into_iter().map(lease).collect::<Result<_, _>>()?,
            next: Cursor::read(score, id)?,
        })
    }
}

impl Run<'_> {
    /// Walks through every place of every queue. Answers the leases that it saw.
    pub(super) async fn segments(&mut self) -> Result<Vec<LeaseSeen>, BackendError> {
        let mut leases = Vec::new();
        for counts in self.counts.clone() {
            let broken: Vec<Segment> = counts.broken().collect();
            for segment in &broken {
                self.tally.add(FindingKind::BrokenKey, Some(&counts.queue), segment.word());
            }
            for (number, place) in Place::ALL.into_iter().enumerate() {
                if matches!(place, Place::Segment(segment) if broken.contains(&segment)) {
                    continue;
                }
                self.walk(&counts.queue, number, place, &mut leases).await?;
                if self.stopped {
                    return Ok(leases);
                }
            }
            if counts.quarantined > 0 || self.options.fix {
                self.quarantined(&counts.queue).await?;
            }
        }
        Ok(leases)
    }

    async fn walk(
        &mut self,
        queue: &str,
        number: usize,
        place: Place,
        leases: &mut Vec<LeaseSeen>,
    ) -> Result<(), BackendError> {
        let mut from = Some(Cursor::default());
        while let Some(cursor) = from {
            let look = self.backend.inspect(queue, number, &cursor, SLICE).await?;
            if number <= RUNNING {
                self.endings(queue, place, &cursor).await?;
            }
            leases.extend(look.leases);
            let faults: Vec<Fault> = look.faults.into_iter().filter(|fault| fault.is_first_in(number)).collect();
            for fault in &faults {
                self.tally.add(fault.kind(), Some(queue), fault.id.as_str());
            }
            if self.options.fix {
                self.repair(queue, &faults).await?;
            }
            from = look.next;
            if !self.step("looking at every id", Some(queue), look.seen) {
                break;
            }
        }
        Ok(())
    }

    /// Counts the records of a slice that have an end; takes it off where it may.
    async fn endings(&mut self, queue: &str, place: Place, from: &Cursor) -> Result<(), BackendError> {
        let Place::Segment(segment) = place else { return Ok(()) };
        let (count, examples) = if self.options.fix {
            (self.backend.persist(queue, segment, from, SLICE).await?.persisted, Vec::new())
        } else {
            let ids = self.backend.ending(queue, segment, from, SLICE, self.options.examples).await?;
            (ids.0, ids.1)
        };
        if count > 0 {
            self.tally.add_many(FindingKind::Expiring, Some(queue), count, examples);
            if self.options.fix {
                self.tally.fixed(FindingKind::Expiring, Some(queue), count);
            }
        }
        Ok(())
    }

    /// Settles what was found, and counts what that repaired.
    pub(super) async fn repair(&mut self, queue: &str, faults: &[Fault]) -> Result<(), BackendError> {
        if faults.is_empty() {
            return Ok(());
        }
        let settled = self.backend.settle(queue, faults).await?;
        for (fault, settled) in faults.iter().zip(settled) {
            // What is fine by now has been repaired by somebody else, or by its own next step.
            if settled.is_ok_and(|settled| settled.is_repair() || settled == Settled::Fine) {
                self.tally.fixed(fault.kind(), Some(queue), 1);
            }
        }
        Ok(())
    }

    async fn quarantined(&mut self, queue: &str) -> Result<(), BackendError> {
        // Asked again: a repair may just have set something aside, or settled it.
        let counts = self.backend.counts(&[queue.to_owned()]).await?;
        let count = counts.first().map_or(0, |counts| counts.quarantined);
        if count > 0 {
            let ids = self.backend.quarantined(queue, self.options.examples).await?;
            self.tally.add_many(FindingKind::Quarantined, Some(queue), count, ids);
        }
        Ok(())
    }
}
