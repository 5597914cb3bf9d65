//! What can happen to the inspector, and what it wants done.

use crate::inspector::source::{Acted, Page, QueueCounts, ServerFacts, TaskDetail, WorkerInfo};
use crate::task::{Segment, TaskId};
use crossterm::event::{KeyEvent, MouseEvent};
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
}

impl Lane {
    /// Every lane, in the order of their numbers.
    pub const ALL: [Lane; 5] = [Lane::Queues, Lane::Page, Lane::Detail, Lane::Workers, Lane::Facts];
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
        /// The segment.
        segment: Segment,
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
    /// Requeue these.
    Requeue(Vec<Target>),
    /// Drop these.
    Drop(Vec<Target>),
    /// Purge segments of a queue.
    Purge {
        /// The queue.
        queue: String,
        /// Each segment and how many it listed; a purge takes no more than about that many, so that it ends on a
        /// queue that is being filled.
        parts: Vec<(Segment, u64)>,
    },
}

impl Action {
    /// How many tasks are meant.
    pub fn size(&self) -> u64 {
        match self {
            Action::Requeue(targets) | Action::Drop(targets) => targets.len() as u64,
            Action::Purge { parts, .. } => parts.iter().map(|(_, count)| count).sum(),
        }
    }

    /// The verb, in the infinitive and as it reads when done.
    pub const fn verb(&self) -> (&'static str, &'static str) {
        match self {
            Action::Requeue(_) => ("requeue", "requeued"),
            Action::Drop(_) => ("drop", "dropped"),
            Action::Purge { .. } => ("purge", "purged"),
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
    /// Its score there.
    pub seen: f64,
}

/// How an action went, task by task.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Done.
    pub done: u64,
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
            Acted::Moved => self.moved += 1,
            Acted::Gone => self.gone += 1,
            Acted::Running => self.running += 1,
        }
    }

    /// Whether everything that was asked for was done.
    pub fn is_clean(&self) -> bool {
        let left_alone = self.moved + self.gone + self.running + self.failed + self.unknown + self.untried;
        left_alone == 0 && self.error.is_none() && !self.stopped
    }

    /// The report for a person: `398 requeued, 12 had moved, 3 gone`.
    pub fn report(&self, done: &str) -> String {
        use crate::inspector::format::exact;
        let mut text = format!("{} {done}", exact(self.done));
        let parts = [
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
