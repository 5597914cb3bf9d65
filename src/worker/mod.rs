//! The worker: takes tasks, runs them, tells Redis how they ended, and keeps the queues of its alias in order.
//!
//! One dispatcher, a synchronous state machine, takes events and answers with commands; the engine around it does the
//! I/O; executors run the tasks. The signs of life have a thread and a connection of their own, so that no task can make
//! the worker look dead. May use `task`, `backend` and `native`; never clap, ratatui or the redis crate.

mod bridge;
mod clock;
mod conclude;
mod dispatcher;
mod ear;
mod engine;
mod fetch;
mod heartbeat;
mod lease;
pub mod log;
mod maintenance;
mod moves;
mod native;
mod options;
mod pause;
mod pool;
pub mod python;
mod settle;
mod signals;
mod wake;

pub use options::WorkerOptions;
pub use signals::{Stop, Stopper};

use crate::backend::{Backend, BackendError};
use crate::native::{BlockingHandler, Failure, Handler, Registry, States, Task};
use bridge::{Bridge, Crew};
use engine::{Engine, Signal};
use python::{PythonError, PythonOptions};
use serde::Serialize;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

/// How long a worker tries to remove its record at its end.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);

/// A worker, to be given tasks and then run.
///
/// ```no_run
/// # use threadmill::{backend::Backend, native::Task, worker::Worker};
/// # async fn run(backend: Backend) -> Result<(), Box<dyn std::error::Error>> {
/// const ADD: Task<(i64, i64), i64> = Task::new("shop.tasks.add");
///
/// async fn add((a, b): (i64, i64)) -> Result<i64, std::convert::Infallible> {
///     Ok(a + b)
/// }
///
/// Worker::new(backend).task(ADD, add).run().await?;
/// # Ok(())
/// # }
/// ```
pub struct Worker {
    backend: Backend,
    options: WorkerOptions,
    registry: Registry,
    states: States,
    python: Option<PythonOptions>,
}

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A handler asks for a state that the worker was not given.
    #[error("the task {task} asks for a state of type {state}, which the worker was not given")]
    MissingState {
        /// The task's name.
        task: String,
        /// The type.
        state: &'static str,
    },
    /// It was told to serve no queue.
    #[error("the worker serves no queue")]
    NoQueue,
    /// Its backend cannot be used.
    #[error("the worker cannot use its backend")]
    Backend(#[source] BackendError),
    /// The site whose tasks it is to run cannot be used.
    #[error("the worker cannot run the site's tasks")]
    Python(#[source] PythonError),
    /// The signals of the operating system cannot be heard.
    #[error("the worker cannot listen to signals")]
    Signals(#[source] std::io::Error),
    /// It ended by a defect of its own.
    #[error("the worker broke")]
    Broken(#[source] tokio::task::JoinError),
}

/// What a worker did in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tasks that returned a value.
    pub successful: u64,
    /// Tasks that failed for good.
    pub failed: u64,
    /// Attempts that another one follows.
    pub retried: u64,
    /// Leases that were returned unstarted.
    pub given_back: u64,
    /// Tasks that could not be read and were set aside.
    pub set_aside: u64,
    /// Ends that nobody wanted any more, since the lease had gone to somebody else.
    pub lost: u64,
    /// Whether Redis has taken the end of everything; others take over what it has not.
    pub is_settled: bool,
}

impl Worker {
    /// A worker with the default options and no tasks.
    pub fn new(backend: Backend) -> Self {
        Self {
            backend,
            options: WorkerOptions::default(),
            registry: Registry::new(),
            states: States::default(),
            python: None,
        }
    }

    /// Sets all options.
    pub fn options(mut self, options: WorkerOptions) -> Self {
        self.options = options;
        self
    }

    /// The options, to be changed one by one.
    pub fn options_mut(&mut self) -> &mut WorkerOptions {
        &mut self.options
    }

    /// The names of the tasks that it knows, sorted.
    pub fn task_names(&self) -> Vec<&str> {
        self.registry.names()
    }

    /// Sets the queues that it takes tasks from, in rotation.
    pub fn queues<S: Into<String>>(mut self, queues: impl IntoIterator<Item = S>) -> Self {
        self.options.queues = queues.into_iter().map(Into::into).collect();
        self
    }

    /// Gives the tasks a value that all of them share, one of each type.
    pub fn state<T: Clone + Send + Sync + 'static>(mut self, value: T) -> Self {
        self.states.insert(value);
        self
    }

    /// Registers an async function for a task.
    pub fn task<A, O, M, H>(mut self, task: Task<A, O>, handler: H) -> Self
    where
        A: 'static,
        O: Serialize + 'static,
        M: 'static,
        H: Handler<A, O, M>,
    {
        self.registry.task(task, handler);
        self
    }

    /// Registers a blocking function for a task; it runs on a thread of its own.
    pub fn blocking_task<A, O, M, H>(mut self, task: Task<A, O>, handler: H) -> Self
    where
        O: Serialize,
        H: BlockingHandler<A, O, M>,
    {
        self.registry.blocking_task(task, handler);
        self
    }

    /// Takes a whole registry in place of what was registered before.
    pub fn registry(mut self, registry: Registry) -> Self {
        self.registry = registry;
        self
    }

    /// Runs the tasks of a Django site beside the registered ones, which go before those of the same name.
    pub fn python(mut self, options: PythonOptions) -> Self {
        self.python = Some(options);
        self
    }

    /// Gives a registered task a retry policy of this program, which goes before a stored one.
    pub fn retry_by(
        mut self,
        task: &str,
        policy: impl Fn(&Failure<'_>) -> Option<Duration> + Send + Sync + 'static,
    ) -> Self {
        self.registry.retry_by(task, policy);
        self
    }

    /// Runs until a signal of the operating system (SIGTERM, SIGINT, SIGHUP): the first begins a clean end, a second one
    /// ends it now.
    ///
    /// # Errors
    /// [`WorkerError`] where it could not start.
    pub async fn run(self) -> Result<Summary, WorkerError> {
        let stopper = Stopper::new();
        let watch = signals::watch(stopper.clone()).map_err(WorkerError::Signals)?;
        let summary = self.run_with(stopper).await;
        watch.abort();
        summary
    }

    /// Runs until `shutdown` completes, and then to a clean end.
    ///
    /// # Errors
    /// [`WorkerError`] where it could not start.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<Summary, WorkerError> {
        let stopper = Stopper::new();
        let run = self.run_with(stopper.clone());
        tokio::pin!(run);
        tokio::select! {
            summary = &mut run => return summary,
            () = shutdown => stopper.stop(),
        }
        run.await
    }

    /// Runs until `stopper` says so. Where this future is dropped, the worker comes to a clean end by itself.
    ///
    /// # Errors
    /// [`WorkerError`] where it could not start.
    pub async fn run_with(self, stopper: Stopper) -> Result<Summary, WorkerError> {
        let Self { backend, options, registry, states, python } = self;
        if options.queues.is_empty() {
            return Err(WorkerError::NoQueue);
        }
        if let Some((task, state)) = registry.missing_state(&states) {
            return Err(WorkerError::MissingState { task, state });
        }
        let crew = match python {
            Some(mut python) => {
                python.largest_value = python.largest_value.min(backend.settings().max_payload);
                Some(Crew::start(python).await.map_err(WorkerError::Python)?)
            }
            None => None,
        };
        // Its end follows when this future is dropped, finished or not.
        let _stop_on_drop = stopper.stop_on_drop();
        let work = tokio::spawn(work(backend, options, registry, states, crew, stopper));
        work.await.map_err(WorkerError::Broken)?.map_err(WorkerError::Backend)
    }
}

async fn work(
    backend: Backend,
    options: WorkerOptions,
    registry: Registry,
    states: States,
    crew: Option<Crew>,
    stopper: Stopper,
) -> Result<Summary, BackendError> {
    let clock = Arc::new(clock::Clock::default());
    let pulse = Arc::new(heartbeat::Pulse::new(&backend, &options, clock.clone()));
    let shop = Arc::new(native::Shop {
        registry,
        states: Arc::new(states),
        clock,
        threads: Arc::new(Semaphore::new(options.thread_count())),
        time_limit: options.time_limit,
        lease_ttl: backend.settings().lease_ttl,
        result_max: backend.settings().max_payload,
        drain: CancellationToken::new(),
    });
    // Bounded by what they carry: one end a lease, and a few signals.
    let (results, ended) = mpsc::unbounded_channel();
    let (signals, heard) = mpsc::unbounded_channel();
    let (peers, ear) = (Arc::default(), Arc::default());
    let ending = CancellationToken::new();
    let _end = ending.clone().drop_guard();
    heartbeat::start(&backend, pulse.clone(), options.heartbeat, signals.clone(), ending.clone())?;
    let pool = crew.as_ref().map(|crew| crew.pool.clone());
    let bridge = crew.map(|crew| Bridge::new(crew, shop.clock.clone(), shop.result_max, results.clone()));
    let maintenance = maintenance::Maintenance {
        backend: backend.clone(),
        shop: shop.clone(),
        options: options.clone(),
        peers: Arc::clone(&peers),
        ear: Arc::clone(&ear),
        python: pool.clone(),
    };
    tokio::spawn(ending.clone().run_until_cancelled_owned(maintenance.run()));
    if let Some(limit) = options.exit_timeout.filter(|_| options.exit_empty) {
        tokio::spawn(ending.clone().run_until_cancelled_owned(give_up(limit, stopper.clone())));
    }
    tokio::spawn(ending.clone().run_until_cancelled_owned(pass_on(stopper, signals.clone())));
    let waker = wake::Waker::new(backend.clone(), &options.queues, signals.clone(), peers, ear);
    let executor = native::Native::new(shop, results);
    let engine = Engine::new(backend.clone(), &options, executor, bridge, pulse.clone(), waker, signals);
    let end = engine.run(ended, heard).await;
    pulse.set_worker(None);
    if let Some(pool) = pool {
        bridge::dismiss(&pool).await;
    }
    if end.is_settled {
        // A record that stays is removed by others once it is silent.
        let _ = tokio::time::timeout(LEAVE_LIMIT, backend.deregister(&end.worker)).await;
    }
    let tally = end.tally;
    let summary = Summary {
        successful: tally.successful,
        failed: tally.failed,
        retried: tally.retried,
        given_back: tally.given_back,
        set_aside: tally.set_aside,
        lost: tally.lost,
        is_settled: end.is_settled,
    };
    tracing::info!(worker = &*end.worker, ?summary, "the worker has ended");
    Ok(summary)
}

/// Ends a worker that was to end by itself and did not in time.
async fn give_up(limit: Duration, stopper: Stopper) {
    tokio::time::sleep(limit).await;
    tracing::warn!(?limit, "the queues are not empty in time; the worker ends");
    stopper.stop();
}

/// Tells the engine what the stopper says.
async fn pass_on(stopper: Stopper, signals: mpsc::UnboundedSender<Signal>) {
    stopper.reached(Stop::Drain).await;
    // Nobody listens any more where the worker has ended.
    let _ = signals.send(Signal::Stop);
    stopper.reached(Stop::Now).await;
    let _ = signals.send(Signal::Force);
}
