//! The Python executor: a Django site's tasks, run by interpreters that this process keeps.
//!
//! A [`Pool`] keeps a number of children, each an interpreter of the site that runs `assets/child.py`. Rust owns Redis,
//! leases and results; a child imports, calls, and answers. What has not started stays here, or is taken back, so that a
//! child that dies costs what it was running and nothing else; a journal that it shares with this process tells which
//! tasks those were. Absent on purpose: Redis, and what becomes of an ended attempt.

mod actor;
mod answer;
mod charge;
mod child;
mod discover;
mod frame;
mod journal;
mod lives;
mod member;
mod output;
mod pool;
mod process;
mod questions;
mod site;

pub use answer::{Described, Hello, SiteAlias};
pub use pool::{Ended, Job, Pool, PoolEvent, PythonEnd};
pub use site::{SiteSession, has_site, site_settings};

use process::Launch;
use std::path::PathBuf;
use std::time::Duration;

/// How a site's tasks are run. The first four have the meaning of the Python package's worker flags.
#[derive(Clone, Debug)]
pub struct PythonOptions {
    /// Children.
    pub workers: usize,
    /// Threads in each.
    pub threads: usize,
    /// A child is replaced after this many tasks,
    pub max_tasks: Option<u64>,
    /// and up to this many more, at random, so that not all are replaced at once.
    pub max_tasks_jitter: u64,
    /// A child is replaced once it takes this many bytes of memory.
    pub max_memory: Option<u64>,
    /// A child is replaced at this age.
    pub max_age: Option<Duration>,
    /// A task whose process has died this many times is failed for good.
    pub max_crashes: u32,
    /// After this long a `TimeoutError` is raised in the task.
    pub soft_limit: Option<Duration>,
    /// After this long its process is killed.
    pub hard_limit: Option<Duration>,
    /// The interpreter, where it is not to be looked for.
    pub python: Option<PathBuf>,
    /// The settings module, where neither DJANGO_SETTINGS_MODULE nor `manage.py` names it.
    pub settings: Option<String>,
    /// The site's folder, with its `manage.py`.
    pub directory: PathBuf,
    /// From which level on Python's log records are handed over, where the site's settings do not say: `INFO`.
    pub log_level: String,
    /// The most bytes of a return value.
    pub largest_value: usize,
}

impl PythonOptions {
    /// For the site in `directory`: a child for each core but one, with one thread each, and no limits.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            workers: cores.saturating_sub(1).max(1),
            threads: 1,
            max_tasks: None,
            max_tasks_jitter: 0,
            max_memory: None,
            max_age: None,
            max_crashes: 3,
            soft_limit: None,
            hard_limit: None,
            python: None,
            settings: None,
            directory: directory.into(),
            log_level: "INFO".into(),
            largest_value: 64 << 20,
        }
    }

    /// How a child is started under these options.
    fn launch(&self) -> Result<Launch, PythonError> {
        let around = discover::Surroundings::of_process(&self.directory);
        let interpreter = discover::interpreter(self.python.as_deref(), &around)?;
        // The child does not run in the folder that this process was started in.
        let absolute = |path| std::path::absolute(&path).unwrap_or(path);
        let directory = absolute(self.directory.clone());
        let threads = self.threads.max(1);
        let config = serde_json::json!({
            "directory": directory,
            "settings": self.settings,
            "threads": threads,
            "log_level": self.log_level,
            "interruptible": self.soft_limit.is_some(),
            "largest_value": self.largest_value.min(frame::LARGEST / 2),
        });
        let mut first = bytes::BytesMut::new();
        frame::encode(&mut first, b'C', 0, config.to_string().as_bytes());
        Ok(Launch { interpreter: absolute(interpreter), directory, threads, config: first.to_vec() })
    }
}

/// Why no child works.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// There is no interpreter where it was named, or nowhere.
    #[error("{0}; name one by --python")]
    NoInterpreter(String),
    /// It cannot be started.
    #[error("cannot start {interpreter}")]
    Start {
        /// The interpreter.
        interpreter: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The site cannot be imported or is not configured; Python's own traceback.
    #[error("the site cannot be loaded:\n{}", .0.trim_end())]
    Site(String),
    /// It ended before it said what it is.
    #[error("the Python process {0} before it had loaded the site")]
    Ended(String),
}
