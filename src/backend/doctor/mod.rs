//! What breaks, found and repaired.
//!
//! Other programs act on the same keys without asking (the Python package retries, requeues, purges and drops
//! unconditionally, and gives pending records an end), servers are set up in ways that lose tasks, workers die. Each check
//! looks in slices that hold the server up for a few milliseconds at most and keeps counts and a few examples, never the
//! keyspace. Each repair is one script that judges again what it finds. Absent on purpose: whatever needs a decision of a
//! person, and the retry policy, which only workers apply.

mod finding;
mod fleet;
mod keyspace;
mod names;
mod segments;
mod server;
mod settle;

pub use finding::{Finding, FindingKind, Remedy, Severity};
pub use settle::{Place, Settled};

pub(super) use keyspace::Candidates;

use crate::backend::{Backend, BackendError, QueueCounts};
use finding::Tally;
use std::ops::ControlFlow;
use std::time::Duration;

/// What is to be looked at, and what may be done.
#[derive(Clone, Debug)]
pub struct Checkup {
    /// Only these queues; empty for all that are known or found.
    pub queues: Vec<String>,
    /// Examples kept of each finding.
    pub examples: usize,
    /// Whether to repair what can safely be repaired; else it only looks.
    pub fix: bool,
    /// Whether to search the keyspace for records and results that nothing lists, which takes longest.
    pub search: bool,
    /// Functions that only programs of ours have: on a queue that a worker of the Python package serves, it fails them.
    pub native: Vec<String>,
}

impl Default for Checkup {
    fn default() -> Self {
        Self { queues: Vec::new(), examples: 5, fix: false, search: true, native: Vec::new() }
    }
}

/// How far a checkup has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being looked at, for a person.
    pub stage: &'static str,
    /// The queue, where it is one.
    pub queue: Option<String>,
    /// Ids or keys looked at so far in all.
    pub looked_at: u64,
    /// How many there are in all, as far as known.
    pub total: u64,
}

/// What a checkup found.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The worst first.
    pub findings: Vec<Finding>,
    /// Whether everything was looked at: not where the caller stopped it.
    pub complete: bool,
    /// Ids and keys that were looked at.
    pub looked_at: u64,
    /// The queues that were looked at.
    pub queues: Vec<String>,
}

impl Report {
    /// Whether there is something to act on: anything beyond notes that was not repaired.
    pub fn is_healthy(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity == Severity::Note || finding.left() == 0)
    }
}

/// A checkup under way.
pub(super) struct Run<'a> {
    backend: &'a Backend,
    options: &'a Checkup,
    counts: Vec<QueueCounts>,
    tally: Tally,
    looked_at: u64,
    total: u64,
    progress: &'a mut (dyn FnMut(Progress) -> ControlFlow<()> + Send),
    stopped: bool,
}

/// How long one step of the search for queues may take.
const SEARCH_STEP: Duration = Duration::from_millis(50);

impl Backend {
    /// Looks for everything that is known to go wrong. `progress` is told after each slice and can stop it; what was
    /// found until then is reported.
    ///
    /// # Errors
    /// Why the server could not be asked. What a user may not ask (INFO) is left out and noted.
    pub async fn doctor(
        &self,
        options: &Checkup,
        progress: &mut (dyn FnMut(Progress) -> ControlFlow<()> + Send),
    ) -> Result<Report, BackendError> {
        let mut run = Run {
            backend: self,
            options,
            counts: Vec::new(),
            tally: Tally::new(options.examples),
            looked_at: 0,
            total: 0,
            progress,
            stopped: false,
        };
        run.server().await?;
        run.find_queues().await?;
        run.names();
        let leases = run.segments().await?;
        run.fleet(&leases).await?;
        if options.search && !run.stopped {
            run.keyspace().await?;
        }
        let queues = run.counts.iter().map(|counts| counts.queue.clone()).collect();
        Ok(Report { findings: run.tally.findings(), complete: !run.stopped, looked_at: run.looked_at, queues })
    }
}

impl Run<'_> {
    /// Says how far it is; answers whether to go on.
    fn step(&mut self, stage: &'static str, queue: Option<&str>, looked_at: u64) -> bool {
        self.looked_at += looked_at;
        let progress =
            Progress { stage, queue: queue.map(str::to_owned), looked_at: self.looked_at, total: self.total };
        self.stopped = self.stopped || (self.progress)(progress).is_break();
        !self.stopped
    }

    async fn find_queues(&mut self) -> Result<(), BackendError> {
        let mut queues = self.options.queues.clone();
        if queues.is_empty() {
            // What is found is recorded; a user who may not write still gets the queues that are known by name.
            while self.step("looking for queues", None, 0) {
                match self.backend.search_queues(SEARCH_STEP).await {
                    Ok(false) => {}
                    Ok(true) | Err(BackendError::Refused { .. }) => break,
                    Err(error) => return Err(error),
                }
            }
            queues = self.backend.known_queues().await?;
        }
        self.counts = self.backend.counts(&queues).await?;
        let listed = |counts: &QueueCounts| counts.segments.iter().flatten().sum::<u64>() + counts.quarantined;
        self.total = self.counts.iter().map(listed).sum();
        Ok(())
    }
}
