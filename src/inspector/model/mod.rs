//! Everything that the inspector knows. Values only: no handle, no channel, no clock of its own.

pub mod attention;
pub mod budget;
pub mod confirm;
pub mod detail;
pub mod doc;
pub mod flow;
pub mod prompt;
pub mod remote;
pub mod sift;
pub mod survey;
pub mod tasks;
mod timeline;
pub mod tree;

use crate::filter::{Incident, Known};
use crate::inspector::format::Times;
use crate::inspector::layout::Areas;
use crate::inspector::msg::{Clock, Lane, Tally};
use crate::inspector::options::Options;
use crate::inspector::source::{Page, Pulse, QueueCounts, ServerFacts, TaskDetail, WorkerInfo};
use crate::inspector::theme::{Role, Theme};
use crate::task::{Segment, TaskId};
use budget::Budget;
use confirm::Confirm;
use doc::{Doc, Place};
use flow::Flows;
use prompt::Prompt;
use remote::Remote;
use sift::Sifting;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use survey::Survey;
use tasks::TaskList;
use tree::Folds;
use tui_input::Input;

/// Lines of the session's log that are kept.
const LOG_MAX: usize = 1_000;
/// A question that is older than this is a silence.
const SILENT_AFTER: Duration = Duration::from_secs(2);
/// Acting needs what is on the screen to be younger than this.
const FRESH: Duration = Duration::from_secs(5);
/// How long a report stays above the keys.
const NOTICE_FOR: Duration = Duration::from_secs(20);

/// The model.
#[derive(Clone, Debug)]
pub struct Model {
    /// How it was started.
    pub options: Options,
    /// The time of the last message.
    pub clock: Clock,
    /// The terminal's size.
    pub size: (u16, u16),
    /// The queues and their counts.
    pub queues: Remote<Vec<QueueCounts>>,
    /// The loaded page of the listed segment.
    pub page: Remote<Page>,
    /// The selected task.
    pub detail: Remote<Option<Box<TaskDetail>>>,
    /// The workers.
    pub workers: Remote<Vec<WorkerInfo>>,
    /// The server's facts.
    pub facts: Remote<ServerFacts>,
    /// How the queues fare.
    pub pulse: Remote<HashMap<String, Pulse>>,
    /// The filter that is on the listed segment.
    pub sift: Option<Sifting>,
    /// The incidents.
    pub survey: Survey,
    /// What the background may spend.
    pub budget: Budget,
    /// Names that were seen.
    pub known: Known,
    /// What came in and went out.
    pub flows: Flows,
    /// The connection.
    pub conn: Conn,
    /// What is on the screen and where the keys go.
    pub ui: Ui,
    /// The actions that were asked for and have not ended; the first is under way.
    pub actions: VecDeque<Running>,
    /// What this session did and met.
    pub log: VecDeque<Logged>,
    /// The line above the keys.
    pub notice: Option<Notice>,
    /// How many each queue had FAILED when it was first seen.
    pub failed_before: HashMap<String, u64>,
    /// When this session began, in milliseconds since 1970.
    pub began_ms: f64,
    /// By how much the server's clock is ahead of this machine's, in milliseconds.
    pub skew_ms: f64,
    /// Whether the terminal is in the fore, as far as it tells.
    pub focused: bool,
    /// The number of the last request.
    pub next_id: u64,
    /// Whether the screen must be drawn again.
    pub changed: bool,
}

/// What is on the screen.
#[derive(Clone, Debug)]
pub struct Ui {
    /// Which screen.
    pub screen: Screen,
    /// Which pane the keys go to.
    pub focus: Focus,
    /// Whether the pane with the keys takes the whole screen.
    pub zoom: bool,
    /// How times are shown.
    pub times: Times,
    /// The selected queue.
    pub queue: Option<String>,
    /// The first queue on the screen.
    pub queue_top: usize,
    /// The list of tasks.
    pub tasks: TaskList,
    /// The document of the selected task.
    pub doc: Doc,
    /// The task that the document is of.
    pub doc_of: Option<TaskId>,
    /// The place at the top of the detail pane.
    pub place: Place,
    /// The line of the detail that the keys mean.
    pub cursor: Place,
    /// What is open in the detail, and how user data is shown.
    pub folds: Folds,
    /// What was searched for in the detail.
    pub needle: String,
    /// The selected incident, by its short name.
    pub incident: Option<String>,
    /// The first incident on the screen.
    pub incident_top: usize,
    /// The selected worker.
    pub worker: Option<String>,
    /// The first worker on the screen.
    pub worker_top: usize,
    /// Lines that the log is scrolled back by.
    pub log_back: usize,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
}

/// A screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// Queues, tasks, detail.
    Main,
    /// The workers.
    Workers,
    /// What this session did.
    Log,
    /// Failures that belong together.
    Incidents,
}

/// A pane of the main screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The queues.
    Queues,
    /// The tasks.
    Tasks,
    /// The one task.
    Detail,
}

/// What lies over the screen.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// The keys.
    Help(Help),
    /// A question.
    Confirm(Box<Confirm>),
    /// A line that is typed.
    Prompt(Box<Prompt>),
}

/// The help page.
#[derive(Clone, Debug, Default)]
pub struct Help {
    /// Lines that it is scrolled by.
    pub top: usize,
    /// What its lines must hold.
    pub query: Input,
    /// Whether that is being typed.
    pub typing: bool,
}

/// The connection as far as answers tell.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Conn {
    /// When the last good answer came.
    pub last_good: Option<Duration>,
    /// Since when answers are awaited without one having come.
    pub waiting_since: Option<Duration>,
    /// Why the last question failed, where none has succeeded since.
    pub error: Option<String>,
    /// The round trip, smoothed.
    pub round_trip: Option<Duration>,
    /// Whether the log already says that it is lost.
    pub told: bool,
}

/// How the connection stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// Nothing was heard yet.
    Connecting,
    /// Answers come.
    Live,
    /// No answer for so long, and why, where that is known.
    Silent(Duration, Option<String>),
}

/// Why acting keys are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The inspector may not change anything.
    ReadOnly,
    /// What is shown is not known to be so.
    Stale,
}

/// An action that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Running {
    /// Its number.
    pub id: u64,
    /// What it is, for a person: `purge FAILED of emails`.
    pub title: String,
    /// The participle of its report.
    pub done: &'static str,
    /// How many it aims at.
    pub size: u64,
    /// How far it is.
    pub tally: Tally,
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// When, in milliseconds since 1970.
    pub at_ms: f64,
    /// What it means.
    pub role: Role,
    /// What happened.
    pub text: String,
}

/// The line above the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// When it appeared.
    pub since: Duration,
    /// What it means.
    pub role: Role,
    /// What it says.
    pub text: String,
}

impl Model {
    /// A model that has seen nothing, at this size.
    pub fn new(options: Options, size: (u16, u16), clock: Clock) -> Self {
        let ui = Ui {
            screen: Screen::Main,
            focus: Focus::Queues,
            zoom: false,
            times: Times::Ages,
            queue: options.queue.clone(),
            queue_top: 0,
            tasks: TaskList::new(Segment::Failed),
            doc: Doc::default(),
            doc_of: None,
            place: Place::default(),
            cursor: Place::default(),
            folds: Folds::default(),
            needle: String::new(),
            incident: None,
            incident_top: 0,
            worker: None,
            worker_top: 0,
            log_back: 0,
            overlay: None,
        };
        let budget = Budget::new(options.records_per_second, options.bytes_per_second);
        Self {
            options,
            clock,
            size,
            queues: Remote::new(Lane::Queues),
            page: Remote::new(Lane::Page),
            detail: Remote::new(Lane::Detail),
            workers: Remote::new(Lane::Workers),
            facts: Remote::new(Lane::Facts),
            pulse: Remote::new(Lane::Pulse),
            sift: None,
            survey: Survey::default(),
            budget,
            known: Known::default(),
            flows: Flows::default(),
            conn: Conn::default(),
            ui,
            actions: VecDeque::new(),
            log: VecDeque::new(),
            notice: None,
            failed_before: HashMap::new(),
            began_ms: clock.wall_ms,
            skew_ms: 0.0,
            focused: true,
            next_id: 0,
            changed: true,
        }
    }

    /// Where everything is on the screen.
    pub fn areas(&self) -> Areas {
        Areas::new(self.size, &self.ui, self.queue_list().len(), self.sift.is_some())
    }

    /// Styles and signs.
    pub fn theme(&self) -> Theme {
        Theme::new(self.options.theme, self.options.color, self.options.ascii)
    }

    /// The queues that are known.
    pub fn queue_list(&self) -> &[QueueCounts] {
        self.queues.value.as_deref().unwrap_or_default()
    }

    /// The counts of the selected queue.
    pub fn counts(&self) -> Option<&QueueCounts> {
        let selected = self.ui.queue.as_ref()?;
        self.queue_list().iter().find(|counts| counts.queue == *selected)
    }

    /// The selected task, read whole, where that has happened.
    pub fn task(&self) -> Option<&TaskDetail> {
        let detail = self.detail.value.as_ref()?.as_deref()?;
        (self.ui.tasks.selected.as_ref() == Some(&detail.id)).then_some(detail)
    }

    /// The selected incident.
    pub fn incident(&self) -> Option<&Incident> {
        self.survey.incidents.get(self.ui.incident.as_ref()?)
    }

    /// Whether an incident began in this session.
    pub fn is_new(&self, incident: &Incident) -> bool {
        incident.first_ms >= self.began_ms + self.skew_ms
    }

    /// The time by the server's clock, in milliseconds since 1970.
    pub fn server_ms(&self) -> f64 {
        self.clock.wall_ms + self.skew_ms
    }

    /// How the connection stands.
    pub fn standing(&self) -> Standing {
        let waited = self.conn.waiting_since.map_or(Duration::ZERO, |since| self.clock.mono.saturating_sub(since));
        if self.conn.error.is_some() || waited > SILENT_AFTER {
            return Standing::Silent(waited, self.conn.error.clone());
        }
        if self.conn.last_good.is_none() { Standing::Connecting } else { Standing::Live }
    }

    /// How old the oldest part of what is shown is, in seconds, to the nearest and at least one. A part that fails for
    /// its own reason says so in its place, and is not counted.
    pub fn age(&self) -> Option<u64> {
        let failing = self.conn.error.is_some();
        // What a filter found is as it was when it was found; acting on it compares each task anyway.
        let listed = self.ui.screen == Screen::Main && self.sift.is_none();
        let page = self.page.at.filter(|_| listed && (failing || self.page.error.is_none()));
        let workers =
            self.workers.at.filter(|_| self.ui.screen == Screen::Workers && (failing || self.workers.error.is_none()));
        let oldest = [self.queues.at, page, workers].into_iter().flatten().min()?;
        // Between two answers lie the refresh and a tick, which must not be seen as a second more.
        let millis = self.clock.mono.saturating_sub(oldest).as_millis() as u64;
        Some(((millis + 500) / 1_000).max(1))
    }

    /// Why acting keys are locked, where they are.
    pub fn lock(&self) -> Option<Lock> {
        if self.options.read_only {
            return Some(Lock::ReadOnly);
        }
        let aims_at_tasks = self.ui.screen == Screen::Main && self.ui.focus != Focus::Queues && self.sift.is_none();
        let stale = self.standing() != Standing::Live
            || self.age().is_none_or(|age| age > FRESH.as_secs())
            || (aims_at_tasks && self.page.error.is_some());
        stale.then_some(Lock::Stale)
    }

    /// Writes a line of the log.
    pub fn note(&mut self, role: Role, text: impl Into<String>) {
        if self.log.len() >= LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(Logged { at_ms: self.clock.wall_ms, role, text: text.into() });
        self.changed = true;
    }

    /// Says something above the keys.
    pub fn say(&mut self, role: Role, text: impl Into<String>) {
        self.notice = Some(Notice { since: self.clock.mono, role, text: text.into() });
        self.changed = true;
    }

    /// Takes the notice away when it has been there long enough.
    pub fn expire_notice(&mut self) {
        let now = self.clock.mono;
        if self.notice.take_if(|notice| now.saturating_sub(notice.since) > NOTICE_FOR).is_some() {
            self.changed = true;
        }
    }

    /// A number in 0..1 that differs from call to call; it only spreads retries in time.
    pub fn chance(&self) -> f64 {
        // SplitMix64 over what differs between two inspectors and two requests.
        let mut x = self.next_id.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (self.clock.wall_ms as u64);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
