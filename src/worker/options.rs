//! What a worker can be told. The names are those of the Python package's worker flags.

use std::time::Duration;

/// The options of a worker, with the defaults that [`WorkerOptions::default`] gives.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The queues that it takes tasks from, in rotation. Maintenance serves every queue of the alias.
    pub queues: Vec<String>,
    /// Async tasks in flight at most.
    pub concurrency: usize,
    /// Blocking tasks that run at the same time at most; 0 for one a core.
    pub threads: usize,
    /// Leases that wait in this process for a free place at most. They are taken only where they will start within about
    /// 50 ms; 0 takes none ahead.
    pub prefetch_count: usize,
    /// The first pause between two looks at empty queues; it doubles with each.
    pub poll_interval: Duration,
    /// The longest such pause. While the worker listens to the telemetry, which wakes it, it looks more rarely.
    pub poll_max_interval: Duration,
    /// How often due tasks are moved, unless something is due earlier, and the unit of what is looked for more rarely. While
    /// the worker listens to the telemetry, which tells what is scheduled, it looks by itself a fifth as often.
    pub broker_interval: Duration,
    /// Due tasks that one step of maintenance moves at most.
    pub batch_size: u64,
    /// Ends once READY is empty, its own tasks are done and their retries settled.
    pub exit_empty: bool,
    /// Gives up [`WorkerOptions::exit_empty`] after this long: then it takes no more tasks, and comes to a clean end.
    pub exit_timeout: Option<Duration>,
    /// Ends after it has taken this many tasks.
    pub max_tasks: Option<u64>,
    /// Up to so many more, by chance, so that workers that started together do not end together.
    pub max_tasks_jitter: u64,
    /// How long a shutdown waits for running tasks; `None` waits for all.
    pub grace: Option<Duration>,
    /// How long an attempt of a task may take that has no limit of its own. Its context is cancelled then, and it is ended
    /// [`WorkerOptions::HARD_AFTER`] later.
    pub time_limit: Option<Duration>,
    /// After this long without a sign of life a worker counts as gone, and its tasks are taken over. It gives three signs in
    /// that time.
    pub heartbeat: Duration,
    /// Bytes of records that one request for tasks takes at most.
    pub byte_budget: usize,
}

impl WorkerOptions {
    /// How long after the end of its time a task is ended that does not stop by itself.
    pub const HARD_AFTER: Duration = Duration::from_secs(5);

    /// How many tasks it takes, with a jitter of its own at each call.
    pub(crate) fn task_limit(&self) -> Option<u64> {
        let max = self.max_tasks.filter(|max| *max > 0)?;
        Some(max.saturating_add(fastrand::u64(0..=self.max_tasks_jitter)))
    }

    /// The number of threads for blocking tasks.
    pub(crate) fn thread_count(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        }
    }
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            queues: vec!["default".into()],
            concurrency: 500,
            threads: 0,
            prefetch_count: 500,
            poll_interval: Duration::from_millis(10),
            poll_max_interval: Duration::from_secs(1),
            broker_interval: Duration::from_secs(1),
            batch_size: 100,
            exit_empty: false,
            exit_timeout: None,
            max_tasks: None,
            max_tasks_jitter: 0,
            grace: None,
            time_limit: None,
            heartbeat: Duration::from_secs(30),
            byte_budget: 8 << 20,
        }
    }
}
