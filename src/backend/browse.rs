//! Reading a whole segment, slice by slice, while tasks come and go in it.

use crate::backend::answer::Answer;
use crate::backend::codec::{decode, excerpt, summary_of};
use crate::backend::read::lease_of;
use crate::backend::scripts::BROWSE;
use crate::backend::{Backend, BackendError, Cursor, Summary, TaskRow};
use crate::task::{Segment, TaskId, TaskRecord};

/// Entries of one slice at most.
const SLICE: u64 = 500;
/// Bytes that one slice sends.
const BYTE_BUDGET: usize = 2 << 20;
/// Bytes of a long record's beginning and end that an excerpt is made of, and those of one that is to be read whole.
const EXCERPT: (usize, usize) = (2_048, 4_096);
const WHOLE: (usize, usize) = (1 << 20, 4_096);

/// A task that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Browsed {
    /// As a list shows it.
    pub row: TaskRow,
    /// Its record, where whole records were asked for and it can be read. One of more than a megabyte is not read whole.
    pub record: Option<Box<TaskRecord>>,
}

/// A slice of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// How many the segment lists in all.
    pub total: u64,
    /// In the order of the list: pending soonest first, finished newest first.
    pub tasks: Vec<Browsed>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
    /// Bytes of records that were sent.
    pub bytes: u64,
}

impl Backend {
    /// A slice of at most `limit` tasks of a segment from its beginning, or behind `after`. Repeated until there is no
    /// next place, it shows each task that was there throughout; one whose score changes meanwhile may be shown twice.
    ///
    /// # Errors
    /// `WRONGTYPE` where the segment's key holds another type.
    pub async fn browse(
        &self,
        queue: &str,
        segment: Segment,
        after: Option<&Cursor>,
        limit: u64,
        whole: bool,
    ) -> Result<Slice, BackendError> {
        let keys = self.keys();
        let (kind, prefix) = match segment.is_finished() {
            true => ("finished", keys.result_prefix()),
            false => ("pending", keys.task_prefix()),
        };
        let (score, id) = after.map_or(("", ""), |cursor| (cursor.score.as_str(), cursor.id.as_str()));
        let (head, tail) = if whole { WHOLE } else { EXCERPT };
        let mut cmd = BROWSE.call(&[keys.segment(queue, segment)]);
        cmd.arg(kind).arg(if segment.is_finished() { "1" } else { "" }).arg(score).arg(id);
        cmd.arg(limit.clamp(1, SLICE)).arg(head).arg(tail).arg(BYTE_BUDGET).arg(prefix);
        let [total, entries, score, id] = self.call("browse", cmd).await?.array()?;
        let mut slice = Slice { total: total.count()?, tasks: Vec::new(), next: None, bytes: 0 };
        for entry in entries.list()? {
            let (task, bytes) = browsed(entry, queue, segment, whole)?;
            slice.tasks.push(task);
            slice.bytes += bytes;
        }
        slice.next = Cursor::read(score, id)?;
        Ok(slice)
    }
}

fn browsed(entry: Answer, queue: &str, segment: Segment, whole: bool) -> Result<(Browsed, u64), BackendError> {
    let [id, score, length, head, tail, worker, started_at, token, sequence] = entry.array()?;
    let lease = lease_of([worker, started_at, token, sequence].into_iter())?;
    let length = length.integer()?;
    let (head, tail) = (head.bytes()?, tail.bytes()?);
    let bytes = (head.len() + tail.len()) as u64;
    let record = (whole && length >= 0 && tail.is_empty()).then(|| decode(&head).ok()).flatten();
    let summary = match (&record, length) {
        (Some(record), _) => summary_of(record, lease.is_some()),
        (None, -1) => Summary::Missing,
        (None, -2) => Summary::Unreadable {
            reason: "its key holds another type than the layout says".into(),
            head: String::new(),
        },
        (None, _) => excerpt(&head, &tail, lease.is_some()),
    };
    let row = TaskRow {
        id: TaskId::new(id.text()?),
        queue: queue.to_owned(),
        segment,
        score: score.number()?,
        length: u64::try_from(length).ok(),
        summary,
        lease,
    };
    Ok((Browsed { row, record: record.map(Box::new) }, bytes))
}
