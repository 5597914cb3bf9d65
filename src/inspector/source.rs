//! What the inspector asks of Redis, and nothing more.
//!
//! The inspector reaches the backend only through these requests, so that its update and its views can be tested
//! without a server, and a slow server can never hold up a key.

use crate::task::{Segment, TaskId};
use std::future::Future;

// What the backend shows; the rest of the room takes it from here.
pub use crate::backend::{
    Body, Page, QueueCounts, Readable, ServerFacts, Summary, TaskDetail, TaskRow, TelemetryEvent, WorkerInfo,
};

/// The narrow door to the backend. All answers are owned values; errors are texts for a person.
pub trait Source: Send + Sync + 'static {
    /// Every queue that is known, sorted by name, with its counts.
    fn queues(&self) -> impl Future<Output = Result<Vec<QueueCounts>, String>> + Send;
    /// A page of a segment.
    fn page(
        &self,
        queue: &str,
        segment: Segment,
        offset: u64,
        limit: u64,
    ) -> impl Future<Output = Result<Page, String>> + Send;
    /// Everything about one task; `None` where there is nothing of that id.
    fn detail(&self, id: &TaskId) -> impl Future<Output = Result<Option<TaskDetail>, String>> + Send;
    /// The server's own facts.
    fn facts(&self) -> impl Future<Output = Result<ServerFacts, String>> + Send;
    /// Workers of ours that are known.
    fn workers(&self) -> impl Future<Output = Result<Vec<WorkerInfo>, String>> + Send;
    /// Requeues a finished task that had this finish score when it was seen.
    fn requeue(
        &self,
        id: &TaskId,
        queue: &str,
        segment: Segment,
        seen: f64,
    ) -> impl Future<Output = Result<Acted, String>> + Send;
    /// Drops a task that was seen in this segment.
    fn drop_task(
        &self,
        id: &TaskId,
        queue: &str,
        segment: Segment,
        seen: f64,
    ) -> impl Future<Output = Result<Acted, String>> + Send;
    /// Purges a slice of a segment, up to this score: how many went, and how many are left.
    fn purge_slice(&self, queue: &str, segment: Segment) -> impl Future<Output = Result<(u64, u64), String>> + Send;
    /// The next telemetry events; waits for at least one. An error means the channel is lost for now; ask again.
    fn telemetry(&self) -> impl Future<Output = Result<Vec<TelemetryEvent>, String>> + Send;
}

/// How an action on one task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was done.
    Done,
    /// The task has changed since it was seen; nothing was done.
    Moved,
    /// There is nothing of that id any more.
    Gone,
    /// It runs, and the action leaves running tasks alone.
    Running,
}
