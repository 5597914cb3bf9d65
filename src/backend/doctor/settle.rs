//! One id that breaks the rules: what is wrong with it, and how it is brought back into one place.

use crate::backend::answer::Answer;
use crate::backend::codec::{HEADING, Heading, heading};
use crate::backend::connection::Resend;
use crate::backend::doctor::FindingKind;
use crate::backend::scripts::{EXPIRE, SETTLE};
use crate::backend::{Backend, BackendError};
use crate::task::{Score, Segment, Status, TaskId};
use redis::Value;
use std::time::Duration;

/// Where an id can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a segment.
    Segment(Segment),
    /// Set aside.
    Quarantine,
}

impl Place {
    /// All, in the order of the keys that the scripts take.
    pub(in crate::backend) const ALL: [Place; 6] = [
        Place::Segment(Segment::Ready),
        Place::Segment(Segment::Scheduled),
        Place::Segment(Segment::Running),
        Place::Segment(Segment::Successful),
        Place::Segment(Segment::Failed),
        Place::Quarantine,
    ];

    fn named(name: &str) -> Option<Self> {
        if name == "quarantine" { Some(Place::Quarantine) } else { name.parse().ok().map(Place::Segment) }
    }
}

/// What became of an id that was settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// There was nothing to repair any more.
    Fine,
    /// It runs, and was left to its holder.
    Busy,
    /// It stays in this place only; it was listed in these as well, or had a record that it should not have.
    Kept(Place, Vec<Place>),
    /// It had no record and is in quarantine; it was listed in these.
    SetAside(Vec<Place>),
    /// Its history entries had no result, and are gone.
    Forgotten,
    /// Its result is in this history again.
    Restored(Place),
    /// Nothing lists its record, which stays.
    Unlisted,
    /// Its result is in no history and could not be read to see which.
    Unknown,
}

impl Settled {
    /// Whether something changed.
    pub fn is_repair(&self) -> bool {
        matches!(self, Settled::Kept(..) | Settled::SetAside(_) | Settled::Forgotten | Settled::Restored(_))
    }
}

/// An id that breaks the rules, as it was seen.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Fault {
    pub id: TaskId,
    /// By place, in the order of [`Place::ALL`].
    listed: [bool; 6],
    record: Stored,
    result: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stored {
    Fine,
    Missing,
    OtherType,
}

impl Fault {
    /// Reads what `inspect` answers of one id.
    pub(super) fn read(answer: Answer) -> Result<Self, BackendError> {
        let [id, _score, places, record, result] = answer.array()?;
        let places = places.text()?;
        let mut listed = [false; 6];
        for (place, flag) in listed.iter_mut().zip(places.bytes()) {
            *place = flag == b'1';
        }
        let record = record.code(&[("ok", Stored::Fine), ("none", Stored::Missing), ("bad", Stored::OtherType)])?;
        Ok(Self { id: TaskId::new(id.text()?), listed, record, result: result.integer()? == 1 })
    }

    /// A result that no history lists.
    pub(super) fn unlisted_result(id: TaskId) -> Self {
        Self { id, listed: [false; 6], record: Stored::Missing, result: true }
    }

    /// Whether this place is the first that lists it: each id is counted once.
    pub(super) fn is_first_in(&self, place: usize) -> bool {
        self.listed.iter().position(|listed| *listed) == Some(place)
    }

    /// What is wrong.
    pub(in crate::backend) fn kind(&self) -> FindingKind {
        let [ready, scheduled, running, successful, failed, _] = self.listed;
        let pending = ready || scheduled || running;
        let finished = successful || failed;
        if self.record == Stored::Fine && (self.result || finished) {
            FindingKind::RequeuedCopy
        } else if self.listed.iter().filter(|listed| **listed).count() > 1 {
            FindingKind::TwoSegments
        } else if self.result && !finished {
            FindingKind::ResultWithoutHistory
        } else if self.record == Stored::OtherType && pending {
            FindingKind::BadRecord
        } else if pending {
            FindingKind::Ghost
        } else {
            FindingKind::HistoryWithoutResult
        }
    }
}

impl Backend {
    /// Brings ids of one queue back into exactly one place each, by what is there at that moment. Each has its own answer:
    /// one that a key of another type stops holds up no other.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub(in crate::backend) async fn settle(
        &self,
        queue: &str,
        faults: &[Fault],
    ) -> Result<Vec<Result<Settled, BackendError>>, BackendError> {
        let keys = self.keys();
        let results = faults.iter().map(|fault| fault.result.then(|| keys.result(fault.id.as_str()))).collect();
        let headings = self.headings(results).await?;
        let mut cmds = Vec::with_capacity(faults.len());
        for (fault, heading) in faults.iter().zip(headings) {
            let id = fault.id.as_str();
            let mut names = vec![keys.task(id), keys.result(id)];
            names.extend(Segment::ALL.map(|segment| keys.segment(queue, segment)));
            names.push(keys.quarantine(queue));
            let (history, finished) = history_of(heading, queue);
            let mut cmd = SETTLE.call(&names);
            cmd.arg(id).arg(history).arg(finished);
            cmds.push(cmd);
        }
        Ok(self.call_all("settle", cmds).await?.into_iter().map(|answer| settled(answer?)).collect())
    }

    /// The beginnings of these results, read.
    async fn headings(&self, keys: Vec<Option<String>>) -> Result<Vec<Option<Heading>>, BackendError> {
        let ranges = keys.iter().flatten().map(|key| {
            let mut cmd = redis::cmd("GETRANGE");
            cmd.arg(key).arg(0).arg(HEADING - 1);
            cmd
        });
        let mut answers = self.link().commands(ranges.collect(), Resend::Safe).await?.into_iter();
        let mut read = |key: Option<String>| match key.and_then(|_| answers.next()) {
            // A key of another type is no result that can be read.
            Some(Ok(Value::BulkString(head))) => heading(&head),
            _ => None,
        };
        Ok(keys.into_iter().map(&mut read).collect())
    }

    /// Gives these records an end, unless one of the segments of `queues` lists them: which ones have one now.
    ///
    /// # Errors
    /// The same call can be sent again.
    pub(in crate::backend) async fn expire_unlisted(
        &self,
        queues: &[String],
        ids: &[TaskId],
        ttl: Duration,
    ) -> Result<Vec<TaskId>, BackendError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut cmd = EXPIRE.call(&self.segment_keys(queues));
        cmd.arg(self.keys().task_prefix()).arg(ttl.as_millis() as u64);
        for id in ids {
            cmd.arg(id.as_str());
        }
        self.call("expire", cmd).await?.list()?.into_iter().map(|id| id.text().map(TaskId::from)).collect()
    }

    /// The keys of every place of these queues.
    pub(in crate::backend) fn segment_keys(&self, queues: &[String]) -> Vec<String> {
        let keys = self.keys();
        let mut names = Vec::with_capacity(queues.len() * 6);
        for queue in queues {
            names.extend(Segment::ALL.map(|segment| keys.segment(queue, segment)));
            names.push(keys.quarantine(queue));
        }
        names
    }
}

/// The history that a result of this queue belongs to, and its score there.
fn history_of(heading: Option<Heading>, queue: &str) -> (&'static str, String) {
    let Some(heading) = heading.filter(|heading| heading.queue == queue) else { return ("", String::new()) };
    let history = match heading.status {
        Some(Status::Successful) => "successful",
        Some(Status::Failed) => "failed",
        _ => return ("", String::new()),
    };
    (history, heading.finished_at.map_or_else(String::new, |at| Score(at.millis()).to_string()))
}

fn settled(answer: Answer) -> Result<Settled, BackendError> {
    let unexpected = || BackendError::Unexpected { what: "settle" };
    let [code, place, removed] = answer.array()?;
    let place = Place::named(&place.text()?);
    let mut places = Vec::new();
    for name in removed.list()? {
        places.push(Place::named(&name.text()?).ok_or_else(unexpected)?);
    }
    Ok(match (code.text()?.as_str(), place) {
        ("fine", _) => Settled::Fine,
        ("busy", _) => Settled::Busy,
        ("kept", Some(place)) => Settled::Kept(place, places),
        ("set_aside", _) => Settled::SetAside(places),
        ("forgotten", _) => Settled::Forgotten,
        ("restored", Some(place)) => Settled::Restored(place),
        ("unlisted", _) => Settled::Unlisted,
        ("unknown", _) => Settled::Unknown,
        _ => return Err(unexpected()),
    })
}
