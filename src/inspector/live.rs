//! The inspector's source, answered by a live backend. The only file here that calls it.

use crate::backend::{
    Backend, BackendError, DropOutcome, Page, PurgeScope, QueueCounts, RequeueOutcome, ServerFacts, TaskDetail,
    TelemetryEvent, TelemetryStream, When, WorkerInfo,
};
use crate::inspector::source::{Acted, Source};
use crate::task::{Segment, TaskId};
use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;
use tokio::sync::Mutex;

/// Events that one answer holds at most.
const EVENTS: usize = 4096;
/// How long one refresh may search for queues that nobody has named.
const SEARCH_BUDGET: Duration = Duration::from_millis(20);

/// A backend, as the inspector asks it.
pub struct Live {
    backend: Backend,
    /// Queues that were seen in telemetry.
    heard: StdMutex<BTreeSet<String>>,
    events: Mutex<Option<TelemetryStream>>,
}

impl Live {
    /// Asks this backend.
    pub fn new(backend: Backend) -> Self {
        Self { backend, heard: StdMutex::default(), events: Mutex::default() }
    }

    fn hear(&self, event: &TelemetryEvent) {
        let (TelemetryEvent::Ingress(queue) | TelemetryEvent::Egress(queue) | TelemetryEvent::Wake(queue)) = event;
        // A poisoned lock only means that another thread panicked between two inserts: the set is whole.
        let mut heard = self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if !heard.contains(queue) {
            heard.insert(queue.clone());
        }
    }

    fn heard(&self) -> BTreeSet<String> {
        self.heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Source for Live {
    async fn queues(&self) -> Result<Vec<QueueCounts>, String> {
        // A user without SCAN or without write permission still sees the queues that are known by name.
        let _ = self.backend.search_queues(SEARCH_BUDGET).await;
        let mut names = self.heard();
        names.extend(self.backend.known_queues().await.map_err(told)?);
        let names: Vec<String> = names.into_iter().collect();
        self.backend.counts(&names).await.map_err(told)
    }

    async fn page(&self, queue: &str, segment: Segment, offset: u64, limit: u64) -> Result<Page, String> {
        self.backend.page(queue, segment, offset, limit).await.map_err(told)
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

    async fn requeue(&self, id: &TaskId, queue: &str, segment: Segment, seen: f64) -> Result<Acted, String> {
        let Some(detail) = self.backend.find(id, Some(queue)).await.map_err(told)? else { return Ok(Acted::Gone) };
        let Some(record) = detail.record() else {
            return if detail.stored.is_empty() { Ok(Acted::Gone) } else { Err("its record cannot be read".into()) };
        };
        match self.backend.requeue(record, queue, segment, seen, When::Now).await.map_err(told)? {
            RequeueOutcome::Requeued | RequeueOutcome::Replayed => Ok(Acted::Done),
            RequeueOutcome::Moved => Ok(Acted::Moved),
            RequeueOutcome::Gone => Ok(Acted::Gone),
        }
    }

    async fn drop_task(&self, id: &TaskId, queue: &str, segment: Segment, seen: f64) -> Result<Acted, String> {
        match self.backend.drop_task(id, queue, Some((segment, Some(seen)))).await.map_err(told)? {
            DropOutcome::Dropped(_) => Ok(Acted::Done),
            DropOutcome::Running => Ok(Acted::Running),
            DropOutcome::Moved(_) => Ok(Acted::Moved),
            DropOutcome::Gone => Ok(Acted::Gone),
        }
    }

    async fn purge_slice(&self, queue: &str, segment: Segment) -> Result<(u64, u64), String> {
        let purged = self.backend.purge_slice(queue, PurgeScope::Segment(segment), None).await.map_err(told)?;
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

/// An error as one line for a person, with its cause.
fn told(error: BackendError) -> String {
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
