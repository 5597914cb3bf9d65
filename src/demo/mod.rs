//! A small living shop on a private Redis, to show everything at work.
//!
//! [`start`] starts the server, fills it with a history and a backlog, and runs a worker and traffic on it until
//! [`Demo::stop`]. May use `task`, `backend`, `native` and `worker`; never clap, ratatui or the redis crate.

mod server;
mod tasks;
mod traffic;

pub use server::ServerError;
pub use tasks::registry;
pub use traffic::QUEUES;

use crate::backend::{Backend, BackendError, RedisUrl, Settings};
use crate::task::Segment;
use crate::worker::{Stopper, Summary, Worker, WorkerError, WorkerOptions};
use server::Server;
use std::time::Duration;
use tasks::Pace;
use tokio::task::JoinHandle;
use traffic::Traffic;

/// How long the history may take: with it done or not, the shop opens.
const HISTORY_LIMIT: Duration = Duration::from_secs(5);
const HISTORY_LOOK: Duration = Duration::from_millis(20);
/// How long running tasks are waited for at the end.
const GRACE: Duration = Duration::from_millis(500);
/// The end of the worker after that.
const END_LIMIT: Duration = Duration::from_secs(3);

/// What a demo can be told.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// Tasks of the history that is there at once.
    pub history: usize,
    /// Tasks of the backlog that the worker finds.
    pub backlog: usize,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self { history: 600, backlog: 160 }
    }
}

/// Why the demo could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The private Redis does not run.
    #[error("the demo's own Redis cannot be started")]
    Server(#[source] ServerError),
    /// The private Redis does not answer as it should.
    #[error("the demo's own Redis does not do its work")]
    Backend(#[source] BackendError),
}

/// A running demo. Dropped, it ends as well; [`Demo::stop`] waits for that.
pub struct Demo {
    /// Where its Redis is.
    pub redis_url: String,
    /// The queues of the shop.
    pub queues: Vec<String>,
    stopper: Stopper,
    traffic: JoinHandle<()>,
    worker: Option<JoinHandle<Result<Summary, WorkerError>>>,
    // Last, so that the server goes when nothing needs it any more.
    _server: Server,
}

/// Starts a demo: the server, the history, the worker, the traffic.
///
/// # Errors
/// Where there is no `redis-server`, or it cannot run here.
pub async fn start(options: DemoOptions) -> Result<Demo, DemoError> {
    let server = Server::start().await.map_err(DemoError::Server)?;
    let redis_url = server.url();
    let mut settings = Settings::new(RedisUrl::parse(&redis_url).map_err(DemoError::Backend)?);
    settings.queues = QUEUES.map(str::to_owned).to_vec();
    // What the shop leaves behind does not grow without end.
    settings.result_ttl = Duration::from_secs(3600);
    let backend = Backend::new(settings).map_err(DemoError::Backend)?;
    let traffic = Traffic::new(backend.clone());
    traffic.history(options.history).await.map_err(DemoError::Backend)?;

    let pace = Pace::hurried();
    let stopper = Stopper::new();
    let worker = Worker::new(backend.clone())
        .options(worker_options())
        .registry(registry())
        .state(pace.clone())
        .run_with(stopper.clone());
    let worker = tokio::spawn(worker);
    let history = async {
        while !is_quiet(&backend).await {
            tokio::time::sleep(HISTORY_LOOK).await;
        }
    };
    // A history that takes too long goes on beside the traffic.
    let _ = tokio::time::timeout(HISTORY_LIMIT, history).await;
    pace.relax();
    traffic.backlog(options.backlog).await.map_err(DemoError::Backend)?;
    let traffic = tokio::spawn(traffic.run());
    let queues = QUEUES.map(str::to_owned).to_vec();
    Ok(Demo { redis_url, queues, stopper, traffic, worker: Some(worker), _server: server })
}

impl Demo {
    /// Ends the traffic, the worker and the server, and removes the server's folder.
    pub async fn stop(mut self) {
        self.traffic.abort();
        self.stopper.stop();
        if let Some(mut worker) = self.worker.take()
            && tokio::time::timeout(END_LIMIT, &mut worker).await.is_err()
        {
            worker.abort();
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.traffic.abort();
        self.stopper.force();
    }
}

/// Few places, so that there is a backlog to look at.
fn worker_options() -> WorkerOptions {
    WorkerOptions {
        queues: QUEUES.map(str::to_owned).to_vec(),
        concurrency: 12,
        threads: 2,
        grace: Some(GRACE),
        broker_interval: Duration::from_millis(500),
        ..WorkerOptions::default()
    }
}

/// Whether nothing is READY or runs.
async fn is_quiet(backend: &Backend) -> bool {
    let counts = backend.counts(&backend.settings().queues).await.unwrap_or_default();
    !counts.is_empty() && counts.iter().all(|queue| queue.of(Segment::Ready) + queue.of(Segment::Running) == 0)
}
