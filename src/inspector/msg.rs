//! What can happen to the inspector, and what it wants done.

use crate::filter::Filter;
use crate::inspector::source::{
    Acted, Cursor, Page, Pulse, PurgeScope, QueueCounts, ServerFacts, Sifted, Surveyed, TaskDetail, WorkerInfo,
};
use crate::task::{Segment, TaskId};
use crossterm::event::{KeyEvent, MouseEvent};
use std::sync::Arc;
use std::time::Duration;

/// The time, as far as anything here knows it.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Clock {
    /// Since the inspector started; never goes back.
    pub mono: Duration,
    /// Milliseconds since 1970 by this machine's clock.
    pub wall_ms: f64,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Msg {
    /// Time has passed.
    Tick(Clock),
    /// A key.
    Key(KeyEvent),
    /// A bracketed paste; it is text and never keys.
    Paste(String),
    /// The mouse.
    Mouse(MouseEvent),
    /// The terminal's size.
    Resized(u16, u16),
    /// A read was answered, or failed.
    Answer {
        /// Which kind of read.
        lane: Lane,
        /// Which request; an answer to one that is no longer awaited is dropped.
        id: u64,
        /// How long it took.
        took: Duration,
        /// The answer, or why there is none.
        result: Result<Answer, String>,
    },
    /// Tasks came in and went out: queue, in, out.
    Telemetry(Vec<(String, u32, u32)>),
    /// The telemetry channel was opened, or opened again.
    TelemetryBack,
    /// The telemetry channel is lost for now.
    TelemetryLost(String),
    /// How far an action is.
    Progress(u64, Tally),
    /// An action has ended.
    Acted(u64, Tally),
    /// The terminal is ours again after a suspension.
    Resumed,
    /// The terminal has come to the fore, or has left it.
    Focus(bool),
    /// The process is asked to end.
    Quit,
}

/// One kind of read; each has at most one request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The counts of every queue.
    Queues,
    /// A page of a segment.
    Page,
    /// One task.
    Detail,
    /// The workers.
    Workers,
    /// The server's facts.
    Facts,
    /// How the queues fare.
    Pulse,
    /// A filter that goes through a segment.
    Sift,
    /// What has failed, for the incidents.
    Survey,
}

impl Lane {
    /// Every lane, in the order of their numbers.
    pub const ALL: [Lane; 8] =
        [Lane::Queues, Lane::Page, Lane::Detail, Lane::Workers, Lane::Facts, Lane::Pulse, Lane::Sift, Lane::Survey];
}

/// A read.
#[derive(Clone, Debug, PartialEq)]
pub enum Query {
    /// The counts of every queue.
    Queues,
    /// A page of a segment.
    Page {
        /// The queue.
        queue: String,
        /// The segment, or the quarantine.
        scope: PurgeScope,
        /// Whether it begins at its other end.
        reversed: bool,
        /// The rank of the first row.
        offset: u64,
        /// Rows at most.
        limit: u64,
    },
    /// One task.
    Detail(TaskId),
    /// The workers.
    Workers,
    /// The server's facts.
    Facts,
    /// How these queues fare; failures are counted since this moment of the server.
    Pulse(Vec<String>, f64),
    /// The tasks of a slice of a segment that a filter means.
    Sift {
        /// The queue.
        queue: String,
        /// The segment.
        segment: Segment,
        /// Where to go on.
        after: Option<Cursor>,
        /// The filter.
        filter: Arc<Filter>,
        /// The time, in milliseconds since 1970.
        now_ms: f64,
    },
    /// The incidents of a slice of what failed in a queue, newest first.
    Survey {
        /// The queue.
        queue: String,
        /// Where to go on.
        after: Option<Cursor>,
        /// Only what failed after this moment.
        since_ms: f64,
    },
}

/// What a read found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To [`Query::Queues`].
    Queues(Vec<QueueCounts>),
    /// To [`Query::Page`].
    Page(Page),
    /// To [`Query::Detail`].
    Detail(Option<Box<TaskDetail>>),
    /// To [`Query::Workers`].
    Workers(Vec<WorkerInfo>),
    /// To [`Query::Facts`].
    Facts(ServerFacts),
    /// To [`Query::Pulse`].
    Pulse(Vec<(String, Pulse)>),
    /// To [`Query::Sift`].
    Sift(Sifted),
    /// To [`Query::Survey`].
    Survey(Box<Surveyed>),
}

/// Something that the inspector wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Ask, in place of whatever this lane asked before.
    Read(Lane, u64, Query),
    /// Act, after the actions that were asked for before.
    Act(u64, Action),
    /// End the action that is under way, after its current step.
    Stop(u64),
    /// Put a text on the clipboard.
    Copy(String),
    /// Give the terminal back and stop this process until it is continued.
    Suspend,
    /// Draw every cell anew.
    Redraw,
    /// End.
    Quit,
}

/// A change, with everything fixed that was on the screen when it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Requeue these finished tasks, at once or after so long.
    Requeue(Vec<Target>, Option<Duration>),
    /// Run these SCHEDULED tasks now.
    Promote(Vec<Target>),
    /// Drop these.
    Drop(Vec<Target>),
    /// Purge parts of a queue.
    Purge {
        /// The queue.
        queue: String,
        /// What is purged of it.
        parts: Vec<Part>,
    },
}

/// A segment or a quarantine that is to be purged, as it was when that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What is meant.
    pub scope: PurgeScope,
    /// How many it listed: no more go, so that a purge ends on a queue that is being filled.
    pub count: u64,
    /// The highest score that is meant, where newcomers have a higher one.
    pub max_score: Option<f64>,
}

impl Part {
    /// The name for a person.
    pub const fn name(&self) -> &'static str {
        match self.scope {
            PurgeScope::Segment(segment) => segment.name(),
            PurgeScope::Quarantine => "QUARANTINE",
        }
    }
}

impl Action {
    /// How many tasks are meant.
    pub fn size(&self) -> u64 {
        match self {
            Action::Requeue(targets, _) | Action::Drop(targets) | Action::Promote(targets) => targets.len() as u64,
            Action::Purge { parts, .. } => parts.iter().map(|part| part.count).sum(),
        }
    }

    /// The verb, in the infinitive and as it reads when done.
    pub const fn verb(&self) -> (&'static str, &'static str) {
        match self {
            Action::Requeue(..) => ("requeue", "requeued"),
            Action::Promote(_) => ("run now", "made READY"),
            Action::Drop(_) => ("drop", "dropped"),
            Action::Purge { .. } => ("purge", "purged"),
        }
    }

    /// The tasks that are named.
    pub fn targets(&self) -> &[Target] {
        match self {
            Action::Requeue(targets, _) | Action::Drop(targets) | Action::Promote(targets) => targets,
            Action::Purge { .. } => &[],
        }
    }
}

/// A task as it was when it was aimed at.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The task.
    pub id: TaskId,
    /// The queue that listed it.
    pub queue: String,
    /// The segment that listed it.
    pub segment: Segment,
    /// Whether it was not in a segment but in quarantine.
    pub quarantined: bool,
    /// Its score there.
    pub seen: f64,
}

/// How an action went, task by task.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Done.
    pub done: u64,
    /// Done before.
    pub already: u64,
    /// Changed since they were seen, and left alone.
    pub moved: u64,
    /// Not there any more.
    pub gone: u64,
    /// Running, and left alone.
    pub running: u64,
    /// Refused or failed, for the reason that is told.
    pub failed: u64,
    /// Asked for with no answer: done or not, nobody knows.
    pub unknown: u64,
    /// Not tried.
    pub untried: u64,
    /// The first reason for a failure.
    pub error: Option<String>,
    /// Whether it was stopped by hand.
    pub stopped: bool,
}

impl Tally {
    /// Counts the end of one task.
    pub fn count(&mut self, acted: Acted) {
        match acted {
            Acted::Done => self.done += 1,
            Acted::Already => self.already += 1,
            Acted::Moved => self.moved += 1,
            Acted::Gone => self.gone += 1,
            Acted::Running => self.running += 1,
        }
    }

    /// Whether everything that was asked for was done.
    pub fn is_clean(&self) -> bool {
        let left_alone =
            self.already + self.moved + self.gone + self.running + self.failed + self.unknown + self.untried;
        left_alone == 0 && self.error.is_none() && !self.stopped
    }

    /// The report for a person: `398 requeued, 12 had moved, 3 gone`.
    pub fn report(&self, done: &str) -> String {
        use crate::inspector::format::exact;
        let mut text = format!("{} {done}", exact(self.done));
        let parts = [
            (self.already, "were already"),
            (self.moved, "had moved"),
            (self.gone, "gone"),
            (self.running, "running, left alone"),
            (self.failed, "failed"),
            (self.unknown, "unsure, look again"),
            (self.untried, "not tried"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            text.push_str(&format!(", {} {what}", exact(count)));
        }
        if self.stopped {
            text.push_str(", stopped");
        }
        if let Some(error) = &self.error {
            text.push_str(&format!(": {error}"));
        }
        text
    }
}
