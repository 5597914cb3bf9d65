//! What the inspector asks of Redis, and nothing more.
//!
//! The inspector reaches the backend only through these requests, so that its update and its views can be tested
//! without a server, and a slow server can never hold up a key.

use crate::filter::{Filter, Incidents};
use crate::task::{Segment, TaskId};
use std::future::Future;
use std::time::Duration;

// What the backend shows; the rest of the room takes it from here.
pub(crate) use crate::backend::codec::list_items;
pub use crate::backend::codec::{decode_string, object_fields};
pub use crate::backend::{
    Body, Cursor, Page, Pulse, PurgeScope, QueueCounts, Readable, Seen, ServerFacts, Summary, TaskDetail, TaskRow,
    TelemetryEvent, WorkerInfo,
};

/// What a filter found in a slice of a segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Sifted {
    /// How many the segment lists in all.
    pub total: u64,
    /// How many were looked at.
    pub looked_at: u64,
    /// Those that are meant.
    pub rows: Vec<TaskRow>,
    /// Where to go on; none at the end.
    pub next: Option<Cursor>,
    /// Bytes that were read for it.
    pub bytes: u64,
}

/// What has failed, grouped.
#[derive(Clone, Debug, PartialEq)]
pub struct Surveyed {
    /// The incidents.
    pub incidents: Incidents,
    /// How many FAILED tasks the queue lists.
    pub total: u64,
    /// When the newest of these failed: its score.
    pub newest: f64,
    /// Where to go on; none where all was looked at that is to be.
    pub next: Option<Cursor>,
    /// Bytes that were read for it.
    pub bytes: u64,
}

/// What is to happen to tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Deal {
    /// A finished task runs again, at once or after so long.
    Requeue(Option<Duration>),
    /// A SCHEDULED task runs now.
    Promote,
    /// It goes.
    Drop,
}

/// The narrow door to the backend. All answers are owned values; errors are texts for a person.
pub trait Source: Send + Sync + 'static {
    /// Every queue that is known, sorted by name, with its counts.
    fn queues(&self) -> impl Future<Output = Result<Vec<QueueCounts>, String>> + Send;
    /// How these queues fare; failures are counted since this moment of the server.
    fn pulse(
        &self,
        queues: &[String],
        since_ms: f64,
    ) -> impl Future<Output = Result<Vec<(String, Pulse)>, String>> + Send;
    /// A page of a segment or of a quarantine.
    fn page(
        &self,
        queue: &str,
        scope: PurgeScope,
        reversed: bool,
        offset: u64,
        limit: u64,
    ) -> impl Future<Output = Result<Page, String>> + Send;
    /// The tasks that a filter means, in a slice of a segment.
    fn sift(
        &self,
        queue: &str,
        segment: Segment,
        after: Option<&Cursor>,
        filter: &Filter,
        now_ms: f64,
    ) -> impl Future<Output = Result<Sifted, String>> + Send;
    /// The incidents of a slice of what failed in a queue after this moment, newest first.
    fn survey(
        &self,
        queue: &str,
        after: Option<&Cursor>,
        since_ms: f64,
    ) -> impl Future<Output = Result<Surveyed, String>> + Send;
    /// Everything about one task; `None` where there is nothing of that id.
    fn detail(&self, id: &TaskId) -> impl Future<Output = Result<Option<TaskDetail>, String>> + Send;
    /// The server's own facts.
    fn facts(&self) -> impl Future<Output = Result<ServerFacts, String>> + Send;
    /// Workers of ours that are known.
    fn workers(&self) -> impl Future<Output = Result<Vec<WorkerInfo>, String>> + Send;
    /// Deals with tasks of one queue that were seen in one place with these scores. How each ended, in their order.
    fn deal(
        &self,
        deal: Deal,
        queue: &str,
        scope: PurgeScope,
        seen: &[Seen],
    ) -> impl Future<Output = Result<Vec<Result<Acted, String>>, String>> + Send;
    /// Purges a slice of at most so many, up to this score: how many went, and how many are left.
    fn purge_slice(
        &self,
        queue: &str,
        scope: PurgeScope,
        max_score: Option<f64>,
        limit: u64,
    ) -> impl Future<Output = Result<(u64, u64), String>> + Send;
    /// The next telemetry events; waits for at least one. An error means the channel is lost for now; ask again.
    fn telemetry(&self) -> impl Future<Output = Result<Vec<TelemetryEvent>, String>> + Send;
}

/// How an action on one task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acted {
    /// It was done.
    Done,
    /// It was done before, by another operator or by this request when its answer was lost.
    Already,
    /// The task has changed since it was seen; nothing was done.
    Moved,
    /// There is nothing of that id any more.
    Gone,
    /// It runs, and the action leaves running tasks alone.
    Running,
}
