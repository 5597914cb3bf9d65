//! What goes into the dispatcher and what comes out of it.

use crate::task::TaskId;
use crate::worker::lease::Lease;
use std::time::Duration;

/// The bounds that a dispatcher keeps.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub queues: Vec<String>,
    pub concurrency: usize,
    pub threads: usize,
    pub fetch_max: usize,
    pub prefetch: usize,
    pub byte_budget: usize,
    pub max_tasks: Option<u64>,
    pub exit_empty: bool,
    pub poll: Duration,
    pub poll_max: Duration,
    pub grace: Option<Duration>,
}

/// What has happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The worker is registered, under an id of which no lease exists yet.
    Registered,
    /// The server does not know this worker (any more): what it held is not its own.
    Unregistered,
    /// A request for tasks was answered.
    Granted(Vec<Lease>),
    /// An attempt ended after this long, or had not begun.
    Finished { sequence: u64, took: Duration },
    /// The server knows that everything up to this number has started.
    Marked(u64),
    /// Redis took this many ends.
    Settled(usize),
    /// A task of this worker will run again.
    Retried(TaskId),
    /// These are not waiting any more, or are in other hands.
    Elsewhere(Vec<TaskId>),
    /// There may be tasks.
    Woken,
    /// Whether the telemetry can be heard.
    Listening(bool),
    /// Stop taking tasks, finish what runs.
    Stop,
    /// End now.
    Force,
    /// Time has passed.
    Tick,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Command {
    /// Register under a fresh id.
    Register,
    /// Ask for tasks.
    Fetch(Plan),
    /// Begin.
    Start(Lease),
    /// Tell the server that everything up to this number has started.
    Mark(u64),
    /// Give back what has not started.
    GiveBack(Vec<Lease>),
    /// Give back what waits inside the executor.
    Drain,
    /// End these attempts; nobody is told.
    Cancel(Vec<Lease>),
    /// End these attempts and send them through retry as lost leases.
    CutOff(Vec<Lease>),
    /// Listen to the telemetry, or stop it.
    Listen(bool),
    /// Find out which of these still wait for this worker.
    CheckRetries(Vec<TaskId>),
    /// The end.
    Exit,
}

/// A request for tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In the order of this turn.
    pub queues: Vec<String>,
    pub count: usize,
    pub start_now: usize,
    pub sequence: u64,
}
