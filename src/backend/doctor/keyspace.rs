//! Records and results that nothing lists: the other way round, from the keys to the segments.

use crate::backend::answer::Answer;
use crate::backend::codec::{HEADING, heading};
use crate::backend::connection::Resend;
use crate::backend::doctor::settle::Fault;
use crate::backend::doctor::{FindingKind, Run};
use crate::backend::scripts::RECORDS;
use crate::backend::{Backend, BackendError, QueueCounts};
use crate::task::{Segment, TaskId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Keys that the server looks at in one step.
const SCAN_COUNT: u64 = 250;
/// Segments that the first look compares with: the fullest ones, which list nearly everything.
const FIRST_KEYS: usize = 16;
/// A result that ends this soon is not missed by its history.
const NEARLY_OVER: Duration = Duration::from_secs(60);

/// Which keys are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Candidates {
    /// Records without an end.
    EndlessRecords,
    /// All records.
    Records,
    /// Results.
    Results,
}

/// Something that nothing lists.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Unlisted {
    pub id: TaskId,
    /// The queue that it names; none where it cannot be read.
    pub queue: Option<String>,
    /// How long it will live, where it has an end.
    pub ttl: Option<Duration>,
}

impl Backend {
    /// One step of a search: the cursor to go on with (`"0"` at the end), how many keys were looked at, and what nothing
    /// lists. `counts` are the known queues.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub(in crate::backend) async fn search_unlisted(
        &self,
        what: Candidates,
        cursor: &str,
        counts: &[QueueCounts],
    ) -> Result<(String, u64, Vec<Unlisted>), BackendError> {
        let keys = self.keys();
        let (pattern, prefix, kind) = match what {
            Candidates::Results => (keys.result_pattern(), keys.result_prefix(), "string"),
            _ => (keys.task_pattern(), keys.task_prefix(), "hash"),
        };
        let mut cmd = redis::cmd("SCAN");
        cmd.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg(kind);
        let [next, names] = Answer::new("search", self.link().command(cmd, Resend::Safe).await?).array()?;
        let mut ids = Vec::new();
        for name in names.list()? {
            ids.extend(name.text()?.strip_prefix(&prefix).map(TaskId::from));
        }
        let looked_at = ids.len() as u64;
        let first = self.unlisted(what, self.fullest(what, counts), &ids, HEADING).await?;
        let unlisted = self.look_again(what, first, counts).await?;
        Ok((next.text()?, looked_at, unlisted))
    }

    /// Looks in every place of the known queues, and of the one that each record names, for what the first look missed.
    async fn look_again(
        &self,
        what: Candidates,
        first: Vec<Unlisted>,
        counts: &[QueueCounts],
    ) -> Result<Vec<Unlisted>, BackendError> {
        if first.is_empty() {
            return Ok(first);
        }
        let queues = queues_of(counts, &first);
        let ids: Vec<TaskId> = first.iter().map(|next| next.id.clone()).collect();
        let left = self.unlisted(what, self.segment_keys(&queues), &ids, 0).await?;
        let left: BTreeSet<TaskId> = left.into_iter().map(|next| next.id).collect();
        Ok(first.into_iter().filter(|next| left.contains(&next.id)).collect())
    }

    async fn unlisted(
        &self,
        what: Candidates,
        segments: Vec<String>,
        ids: &[TaskId],
        head: usize,
    ) -> Result<Vec<Unlisted>, BackendError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let keys = self.keys();
        let prefix = if what == Candidates::Results { keys.result_prefix() } else { keys.task_prefix() };
        let mut cmd = RECORDS.call(&segments);
        cmd.arg(prefix).arg(if what == Candidates::EndlessRecords { "endless" } else { "all" }).arg(head);
        for id in ids {
            cmd.arg(id.as_str());
        }
        let read = |answer: Answer| -> Result<Unlisted, BackendError> {
            let [id, head, ttl] = answer.array()?;
            let ttl = u64::try_from(ttl.integer()?).ok().map(Duration::from_millis);
            Ok(Unlisted { id: TaskId::new(id.text()?), queue: heading(&head.bytes()?).map(|read| read.queue), ttl })
        };
        self.call("records", cmd).await?.list()?.into_iter().map(read).collect()
    }

    /// The keys of the fullest places, which spare the second look for nearly everything.
    fn fullest(&self, what: Candidates, counts: &[QueueCounts]) -> Vec<String> {
        let mut places: Vec<(u64, &str, Segment)> = counts
            .iter()
            .flat_map(|counts| Segment::ALL.map(|segment| (counts.of(segment), counts.queue.as_str(), segment)))
            .filter(|(count, _, segment)| *count > 0 && segment.is_finished() == (what == Candidates::Results))
            .collect();
        places.sort_by(|a, b| b.cmp(a));
        let keys = self.keys();
        places.into_iter().take(FIRST_KEYS).map(|(_, queue, segment)| keys.segment(queue, segment)).collect()
    }

    /// Gives orphans an end, as long as the Python package gives records. What cannot be read keeps what it has.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub(in crate::backend) async fn end_orphans(
        &self,
        orphans: &[Unlisted],
        counts: &[QueueCounts],
    ) -> Result<Vec<TaskId>, BackendError> {
        let ids: Vec<TaskId> = orphans.iter().filter(|next| next.queue.is_some()).map(|next| next.id.clone()).collect();
        let settings = self.settings();
        let ttl = settings.lease_ttl * 3 + settings.result_ttl;
        self.expire_unlisted(&queues_of(counts, orphans), &ids, ttl).await
    }
}

/// The known queues, and those that these name.
fn queues_of(counts: &[QueueCounts], unlisted: &[Unlisted]) -> Vec<String> {
    let known = counts.iter().map(|counts| counts.queue.clone());
    let named = unlisted.iter().filter_map(|next| next.queue.clone());
    known.chain(named).collect::<BTreeSet<_>>().into_iter().collect()
}

impl Run<'_> {
    /// Searches the keyspace for records and results that nothing lists.
    pub(super) async fn keyspace(&mut self) -> Result<(), BackendError> {
        for what in [Candidates::Records, Candidates::Results] {
            let mut cursor = "0".to_owned();
            loop {
                let (next, looked_at, unlisted) = self.backend.search_unlisted(what, &cursor, &self.counts).await?;
                let ours = |next: &Unlisted| match &next.queue {
                    // With a choice of queues, those of others are none of this checkup's business.
                    Some(queue) if !self.options.queues.is_empty() => self.options.queues.contains(queue),
                    _ => true,
                };
                let unlisted: Vec<Unlisted> = unlisted.into_iter().filter(ours).collect();
                match what {
                    Candidates::Results => self.results(unlisted).await?,
                    _ => self.orphans(unlisted).await?,
                }
                cursor = next;
                if !self.step("searching for what nothing lists", None, looked_at) {
                    return Ok(());
                }
                if cursor == "0" {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn orphans(&mut self, orphans: Vec<Unlisted>) -> Result<(), BackendError> {
        let mut endless = Vec::new();
        for orphan in orphans {
            let kind = match (&orphan.queue, orphan.ttl) {
                (_, Some(_)) => FindingKind::EndingOrphan,
                (None, None) => FindingKind::UnreadableOrphan,
                (Some(_), None) => FindingKind::Orphan,
            };
            self.tally.add(kind, orphan.queue.as_deref(), orphan.id.as_str());
            if kind == FindingKind::Orphan {
                endless.push(orphan);
            }
        }
        if self.options.fix && !endless.is_empty() {
            let ended: BTreeSet<TaskId> = self.backend.end_orphans(&endless, &self.counts).await?.into_iter().collect();
            for orphan in endless.iter().filter(|orphan| ended.contains(&orphan.id)) {
                self.tally.fixed(FindingKind::Orphan, orphan.queue.as_deref(), 1);
            }
        }
        Ok(())
    }

    async fn results(&mut self, results: Vec<Unlisted>) -> Result<(), BackendError> {
        let mut by_queue: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
        for result in results {
            if result.ttl.is_some_and(|ttl| ttl < NEARLY_OVER) {
                continue;
            }
            self.tally.add(FindingKind::ResultWithoutHistory, result.queue.as_deref(), result.id.as_str());
            if let Some(queue) = result.queue {
                by_queue.entry(queue).or_default().push(Fault::unlisted_result(result.id));
            }
        }
        if self.options.fix {
            for (queue, faults) in by_queue {
                self.repair(&queue, &faults).await?;
            }
        }
        Ok(())
    }
}
