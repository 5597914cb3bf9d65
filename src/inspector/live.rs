//! The inspector's source, answered by a live backend. The only file here that calls it.

use crate::backend::{
    Backend, BackendError, Browsed, Cursor, DecodeError, DropOutcome, Page, Pulse, PurgeScope, QueueCounts, Requeue,
    RequeueOutcome, RescheduleOutcome, Seen, ServerFacts, Summary, TaskDetail, TaskRow, TelemetryEvent,
    TelemetryStream, When, WorkerInfo,
};
use crate::filter::{Candidate, Filter, Incidents, Needs};
use crate::inspector::source::{Acted, Deal, Sifted, Source, Surveyed};
use crate::task::{RawJson, Segment, TaskId};
use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// Events that one answer holds at most.
const EVENTS: usize = 4096;
/// Tasks that one slice of a filter or a survey looks at: a slice holds the server up for two or three milliseconds.
const SLICE: u64 = 200;
/// How long one refresh may search for queues that nobody has named: the first one where no queue is known; the next ones
/// until the whole keyspace was looked through; all others.
const FIRST_BUDGET: Duration = Duration::from_millis(60);
const ROUND_BUDGET: Duration = Duration::from_millis(500);
const SEARCH_BUDGET: Duration = Duration::from_millis(20);

/// A backend, as the inspector asks it.
pub struct Live {
    backend: Backend,
    /// Whether nothing may be written, not even the names of queues that were found.
    read_only: bool,
    /// Where its own search for queues goes on.
    place: Mutex<String>,
    /// Whether anything was asked yet, and whether the search has come round once.
    asked: AtomicBool,
    searched: AtomicBool,
    /// Queues that were seen in telemetry.
    heard: StdMutex<BTreeSet<String>>,
    events: Mutex<Option<TelemetryStream>>,
}

impl Live {
    /// Asks this backend; with `read_only`, nothing is written for it.
    pub fn new(backend: Backend, read_only: bool) -> Self {
        let place = Mutex::new("0".to_owned());
        Self {
            backend,
            read_only,
            place,
            asked: AtomicBool::new(false),
            searched: AtomicBool::new(false),
            heard: StdMutex::default(),
            events: Mutex::default(),
        }
    }

    /// Goes on with the search for queues that nobody has named. A user without SCAN or without write permission still sees
    /// the queues that are known by name.
    async fn search(&self, budget: Duration) {
        let has_come_round = if self.read_only {
            let mut place = self.place.lock().await;
            match self.backend.look_on_for_queues(&place, budget).await {
                Ok((found, next)) => {
                    *place = next;
                    self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(found);
                    *place == "0"
                }
                Err(_) => false,
            }
        } else {
            self.backend.search_queues(budget).await.unwrap_or(false)
        };
        if has_come_round {
            self.searched.store(true, Ordering::Relaxed);
        }
    }

    /// The queues that are known by name, or were heard or found.
    async fn names(&self) -> Result<BTreeSet<String>, String> {
        let mut names = self.heard();
        names.extend(self.backend.known_queues().await.map_err(told)?);
        Ok(names)
    }

    fn hear(&self, event: &TelemetryEvent) {
        let (TelemetryEvent::Ingress(queue) | TelemetryEvent::Egress(queue) | TelemetryEvent::Wake(queue)) = event;
        // A poisoned lock only means that another thread panicked between two inserts: the set is whole.
        let mut heard = self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !heard.contains(queue) {
            heard.insert(queue.clone());
        }
    }

    async fn requeue(
        &self,
        queue: &str,
        segment: Segment,
        seen: &[Seen],
        after: Option<Duration>,
    ) -> Result<Vec<Result<Acted, String>>, String> {
        let when = match after {
            None => When::Now,
            Some(after) => When::At(self.backend.now().await.map_err(told)? + after),
        };
        let how = Requeue { when, ..Requeue::default() };
        let outcomes = self.backend.requeue_many(queue, segment, seen, how).await.map_err(told)?;
        let acted = |outcome| match outcome {
            RequeueOutcome::Requeued => Acted::Done,
            RequeueOutcome::Replayed => Acted::Already,
            RequeueOutcome::Moved => Acted::Moved,
            RequeueOutcome::Gone => Acted::Gone,
        };
        let read = |error: DecodeError| format!("a record cannot be read: {error}");
        Ok(outcomes.into_iter().map(|outcome| outcome.map(acted).map_err(read)).collect())
    }

    fn heard(&self) -> BTreeSet<String> {
        self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Source for Live {
    async fn queues(&self) -> Result<Vec<QueueCounts>, String> {
        let mut names = self.names().await?;
        // What is known is shown at once; then all of the keyspace is looked through once, and after that on the side.
        let budget = match (self.asked.swap(true, Ordering::Relaxed), self.searched.load(Ordering::Relaxed)) {
            (false, _) if !names.is_empty() => None,
            (false, _) => Some(FIRST_BUDGET),
            (true, false) => Some(ROUND_BUDGET),
            (true, true) => Some(SEARCH_BUDGET),
        };
        if let Some(budget) = budget {
            self.search(budget).await;
            names = self.names().await?;
        }
        let names: Vec<String> = names.into_iter().collect();
        self.backend.counts(&names).await.map_err(told)
    }

    async fn pulse(&self, queues: &[String], since_ms: f64) -> Result<Vec<(String, Pulse)>, String> {
        let pulses = self.backend.pulse(queues, since_ms).await.map_err(told)?;
        Ok(queues.iter().cloned().zip(pulses).collect())
    }

    async fn page(
        &self,
        queue: &str,
        scope: PurgeScope,
        reversed: bool,
        offset: u64,
        limit: u64,
    ) -> Result<Page, String> {
        self.backend.page_of(queue, scope, reversed, offset, limit).await.map_err(told)
    }

    async fn sift(
        &self,
        queue: &str,
        segment: Segment,
        after: Option<&Cursor>,
        filter: &Filter,
        now_ms: f64,
    ) -> Result<Sifted, String> {
        let whole = filter.needs() == Needs::Record;
        let slice = self.backend.browse(queue, segment, after, SLICE, whole).await.map_err(told)?;
        let looked_at = slice.tasks.len() as u64;
        let meant = |task: &Browsed| filter.matches(&Candidate::new(&task.row, task.record.as_deref(), now_ms));
        let rows = slice.tasks.into_iter().filter(meant).map(|task| light(task.row)).collect();
        Ok(Sifted { total: slice.total, looked_at, rows, next: slice.next, bytes: slice.bytes })
    }

    async fn survey(&self, queue: &str, after: Option<&Cursor>, since_ms: f64) -> Result<Surveyed, String> {
        let slice = self.backend.browse(queue, Segment::Failed, after, SLICE, false).await.map_err(told)?;
        let mut incidents = Incidents::new(usize::MAX);
        let mut newest = f64::NEG_INFINITY;
        let mut reached = false;
        for task in &slice.tasks {
            reached |= task.row.score <= since_ms;
            if reached {
                break;
            }
            newest = newest.max(task.row.score);
            incidents.add(&task.row);
        }
        let next = slice.next.filter(|_| !reached);
        Ok(Surveyed { incidents, total: slice.total, newest, next, bytes: slice.bytes })
    }

    async fn detail(&self, id: &TaskId) -> Result<Option<TaskDetail>, String> {
        self.backend.find(id, None).await.map_err(told)
    }

    async fn facts(&self) -> Result<ServerFacts, String> {
        self.backend.facts().await.map_err(told)
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, String> {
        self.backend.workers().await.map_err(told)
    }

    async fn deal(
        &self,
        deal: Deal,
        queue: &str,
        scope: PurgeScope,
        seen: &[Seen],
    ) -> Result<Vec<Result<Acted, String>>, String> {
        match (deal, scope) {
            (Deal::Requeue(after), PurgeScope::Segment(segment)) => self.requeue(queue, segment, seen, after).await,
            (Deal::Promote, PurgeScope::Segment(Segment::Scheduled)) => {
                let outcomes = self.backend.reschedule_many(queue, seen, When::Now).await.map_err(told)?;
                Ok(outcomes.into_iter().map(|outcome| Ok(rescheduled(outcome))).collect())
            }
            (Deal::Drop, PurgeScope::Segment(segment)) => {
                let outcomes = self.backend.drop_many(queue, segment, seen).await.map_err(told)?;
                Ok(outcomes.into_iter().map(|outcome| Ok(dropped(outcome))).collect())
            }
            (Deal::Drop, PurgeScope::Quarantine) => {
                let outcomes = self.backend.drop_quarantined(queue, seen).await.map_err(told)?;
                Ok(outcomes.into_iter().map(|outcome| Ok(dropped(outcome))).collect())
            }
            (Deal::Requeue(_) | Deal::Promote, _) => Err("that cannot be done to tasks which are there".into()),
        }
    }

    async fn purge_slice(
        &self,
        queue: &str,
        scope: PurgeScope,
        max_score: Option<f64>,
        limit: u64,
    ) -> Result<(u64, u64), String> {
        let purged = self.backend.purge_at_most(queue, scope, max_score, limit).await.map_err(told)?;
        Ok((purged.removed, purged.left))
    }

    async fn telemetry(&self) -> Result<Vec<TelemetryEvent>, String> {
        let mut events = self.events.lock().await;
        if events.is_none() {
            *events = Some(self.backend.telemetry().await.map_err(told)?);
        }
        // Just filled above where it was empty.
        let Some(stream) = events.as_mut() else { return Err("the telemetry channel is not open".into()) };
        let Some(first) = stream.next().await else {
            *events = None;
            return Err("the telemetry channel was closed".into());
        };
        let mut batch = vec![first];
        while batch.len() < EVENTS {
            match futures_util::FutureExt::now_or_never(stream.next()) {
                Some(Some(event)) => batch.push(event),
                _ => break,
            }
        }
        batch.iter().for_each(|event| self.hear(event));
        Ok(batch)
    }
}

const fn rescheduled(outcome: RescheduleOutcome) -> Acted {
    match outcome {
        RescheduleOutcome::Rescheduled => Acted::Done,
        RescheduleOutcome::Replayed => Acted::Already,
        RescheduleOutcome::Changed => Acted::Moved,
        RescheduleOutcome::Gone => Acted::Gone,
    }
}

const fn dropped(outcome: DropOutcome) -> Acted {
    match outcome {
        DropOutcome::Dropped(_) => Acted::Done,
        DropOutcome::Running => Acted::Running,
        DropOutcome::Moved(_) => Acted::Moved,
        DropOutcome::Gone => Acted::Gone,
    }
}

/// A row that is kept among many: without its traceback but for the last line, which is what a list shows.
fn light(mut row: TaskRow) -> TaskRow {
    if let Summary::Readable(readable) = &mut row.summary
        && let Some(error) = &mut readable.last_error
    {
        error.traceback = error.summary().to_owned();
        error.raw = RawJson::null();
    }
    row
}

/// An error as one line for a person, with its cause.
fn told(error: BackendError) -> String {
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
