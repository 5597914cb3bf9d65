//! Where a task is, and how it stands.

use std::fmt;
use std::str::FromStr;

/// The five places that a task of a queue can be in. An id is in exactly one of them at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Segment {
    /// Waits for a worker, lowest score first.
    Ready,
    /// Waits for its time: enqueued with `run_after`, or a retry. The Python package calls it deferred.
    Scheduled,
    /// Leased by a worker.
    Running,
    /// Finished with a return value.
    Successful,
    /// Finished with an error, and no retry left.
    Failed,
}

impl Segment {
    /// All five, in the order in which a task passes them.
    pub const ALL: [Segment; 5] =
        [Segment::Ready, Segment::Scheduled, Segment::Running, Segment::Successful, Segment::Failed];

    /// The name in upper case, as screens and documents write it.
    pub const fn name(self) -> &'static str {
        match self {
            Segment::Ready => "READY",
            Segment::Scheduled => "SCHEDULED",
            Segment::Running => "RUNNING",
            Segment::Successful => "SUCCESSFUL",
            Segment::Failed => "FAILED",
        }
    }

    /// The name in lower case, as flags and JSON output write it.
    pub const fn word(self) -> &'static str {
        match self {
            Segment::Ready => "ready",
            Segment::Scheduled => "scheduled",
            Segment::Running => "running",
            Segment::Successful => "successful",
            Segment::Failed => "failed",
        }
    }

    /// Whether the tasks in it are finished, and so are results instead of pending tasks.
    pub const fn is_finished(self) -> bool {
        matches!(self, Segment::Successful | Segment::Failed)
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Segment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if lower == "deferred" {
            return Ok(Segment::Scheduled);
        }
        Segment::ALL.into_iter().find(|segment| segment.word() == lower).ok_or_else(|| {
            format!("`{text}` is no segment; the segments are ready, scheduled, running, successful and failed")
        })
    }
}

/// What a task's record says of itself.
///
/// While a task is leased its stored record still says READY; [`crate::task::Lease`] tells the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not started, or waiting for its next attempt.
    Ready,
    /// Being worked on.
    Running,
    /// Finished with a return value.
    Successful,
    /// Finished with an error.
    Failed,
}

impl Status {
    /// The name as it is stored.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Ready => "READY",
            Status::Running => "RUNNING",
            Status::Successful => "SUCCESSFUL",
            Status::Failed => "FAILED",
        }
    }

    /// Reads a stored name; only the upper-case names exist.
    pub fn from_name(name: &str) -> Option<Self> {
        [Status::Ready, Status::Running, Status::Successful, Status::Failed].into_iter().find(|s| s.name() == name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
