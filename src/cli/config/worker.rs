//! What a worker is told by flags, variables and files.

use super::file::{File, Lasting, LogForm};
use super::{Config, Layers, Setting, names, yes_or_no};
use crate::cli::error::CliError;
use crate::cli::time;
use crate::worker::WorkerOptions;
use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use std::str::FromStr;
use std::time::Duration;

/// What a place says of the worker: the flags of one call, or the table `[worker]` of one file. The names are those of
/// the Python package's worker, where it has them; its durations may be plain seconds, as there.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerPart {
    /// Serve these queues, in rotation [default: default]
    #[arg(long, short, value_name = "QUEUES", value_delimiter = ',', help_heading = "Which tasks")]
    pub queues: Option<Vec<String>>,
    /// End after it has taken so many tasks
    #[arg(long, value_name = "N", help_heading = "Which tasks")]
    pub max_tasks: Option<u64>,
    /// Add up to so many to --max-tasks, by chance, so that workers do not end together [default: 0]
    #[arg(long, value_name = "N", help_heading = "Which tasks")]
    pub max_tasks_jitter: Option<u64>,
    /// End once nothing is READY, its own tasks are done and their retries settled
    #[arg(long, help_heading = "Which tasks", num_args = 0, default_missing_value = "true")]
    pub exit_empty: Option<bool>,
    /// With --exit-empty, end after so long all the same [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Which tasks")]
    pub exit_timeout: Option<Lasting>,
    /// Run so many async tasks at the same time at most [default: 500]
    #[arg(long, value_name = "N", help_heading = "How many at once")]
    pub concurrency: Option<usize>,
    /// Run so many blocking tasks at the same time at most [default: one a core]
    #[arg(long, short, value_name = "N", help_heading = "How many at once")]
    pub threads: Option<usize>,
    /// Take so many tasks ahead at most; only what will start within about 50 ms is taken [default: 500]
    #[arg(long, value_name = "N", help_heading = "How many at once")]
    pub prefetch_count: Option<usize>,
    /// Let a task take so long that has no limit of its own [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Time")]
    pub time_limit: Option<Lasting>,
    /// Wait so long for running tasks at the end [default: until they are done]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Time")]
    pub grace: Option<Lasting>,
    /// Hold a task so long before it counts as lost [default: 1h]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Time")]
    pub lease_ttl: Option<Lasting>,
    /// Keep results so long [default: 1d]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Time")]
    pub result_ttl: Option<Lasting>,
    /// Count a worker as gone after so long without a sign of life [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Time")]
    pub heartbeat: Option<Lasting>,
    /// Look at empty queues after this pause, doubling with each look [default: 10ms]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Fine tuning")]
    pub poll_interval: Option<Lasting>,
    /// Look at empty queues at least this often [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Fine tuning")]
    pub poll_max_interval: Option<Lasting>,
    /// Move due tasks and look for lost leases this often [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = lasting, help_heading = "Fine tuning")]
    pub broker_interval: Option<Lasting>,
    /// Move so many due tasks in one step at most [default: 100]
    #[arg(long, value_name = "N", help_heading = "Fine tuning")]
    pub batch_size: Option<u64>,
    /// Write the log as JSON lines or as text [default: json]
    #[arg(long, value_name = "FORM", help_heading = "Output")]
    pub log_format: Option<LogForm>,
}

/// A duration; a plain number is seconds, as the flags of the Python package take it.
fn lasting(text: &str) -> Result<Lasting, String> {
    match text.parse::<f64>() {
        Ok(seconds) => match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if !duration.is_zero() => Ok(Lasting(duration)),
            _ => Err(format!("`{text}` seconds are no time; give a number above zero")),
        },
        Err(_) => time::parse_positive(text).map(Lasting),
    }
}

/// What was said of the worker, each with the place that said it.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    queues: Option<Setting<Vec<String>>>,
    max_tasks: Option<Setting<u64>>,
    max_tasks_jitter: Option<Setting<u64>>,
    exit_empty: Option<Setting<bool>>,
    exit_timeout: Option<Setting<Lasting>>,
    concurrency: Option<Setting<usize>>,
    threads: Option<Setting<usize>>,
    prefetch_count: Option<Setting<usize>>,
    time_limit: Option<Setting<Lasting>>,
    grace: Option<Setting<Lasting>>,
    heartbeat: Option<Setting<Lasting>>,
    poll_interval: Option<Setting<Lasting>>,
    poll_max_interval: Option<Setting<Lasting>>,
    broker_interval: Option<Setting<Lasting>>,
    batch_size: Option<Setting<u64>>,
    log_format: Option<Setting<LogForm>>,
}

impl WorkerSettings {
    /// Finds what is said.
    pub(super) fn load(layers: &Layers<'_>, flags: &WorkerPart) -> Result<Self, CliError> {
        macro_rules! find {
            ($field:ident, $flag:literal, $variable:literal, $parse:expr) => {
                layers.pick(&flags.$field, $flag, $variable, $parse, |file: &File, _| file.worker.$field.clone())?
            };
        }
        Ok(Self {
            queues: find!(queues, "--queues", "THREADMILL_WORKER_QUEUES", names),
            max_tasks: find!(max_tasks, "--max-tasks", "THREADMILL_WORKER_MAX_TASKS", number),
            max_tasks_jitter: find!(
                max_tasks_jitter,
                "--max-tasks-jitter",
                "THREADMILL_WORKER_MAX_TASKS_JITTER",
                number
            ),
            exit_empty: find!(exit_empty, "--exit-empty", "THREADMILL_WORKER_EXIT_EMPTY", yes_or_no),
            exit_timeout: find!(exit_timeout, "--exit-timeout", "THREADMILL_WORKER_EXIT_TIMEOUT", lasting),
            concurrency: find!(concurrency, "--concurrency", "THREADMILL_WORKER_CONCURRENCY", number),
            threads: find!(threads, "--threads", "THREADMILL_WORKER_THREADS", number),
            prefetch_count: find!(prefetch_count, "--prefetch-count", "THREADMILL_WORKER_PREFETCH_COUNT", number),
            time_limit: find!(time_limit, "--time-limit", "THREADMILL_WORKER_TIME_LIMIT", lasting),
            grace: find!(grace, "--grace", "THREADMILL_WORKER_GRACE", lasting),
            heartbeat: find!(heartbeat, "--heartbeat", "THREADMILL_WORKER_HEARTBEAT", lasting),
            poll_interval: find!(poll_interval, "--poll-interval", "THREADMILL_WORKER_POLL_INTERVAL", lasting),
            poll_max_interval: find!(
                poll_max_interval,
                "--poll-max-interval",
                "THREADMILL_WORKER_POLL_MAX_INTERVAL",
                lasting
            ),
            broker_interval: find!(broker_interval, "--broker-interval", "THREADMILL_WORKER_BROKER_INTERVAL", lasting),
            batch_size: find!(batch_size, "--batch-size", "THREADMILL_WORKER_BATCH_SIZE", number),
            log_format: find!(log_format, "--log-format", "THREADMILL_WORKER_LOG_FORMAT", log_form),
        })
    }

    /// Puts what was said over what the program chose.
    pub fn apply(&self, options: &mut WorkerOptions) {
        fn put<T: Clone, U>(setting: &Option<Setting<T>>, option: &mut U, of: impl Fn(T) -> U) {
            if let Some(setting) = setting {
                *option = of(setting.value.clone());
            }
        }
        let as_it_is = |Lasting(duration)| duration;
        put(&self.queues, &mut options.queues, |queues| queues);
        put(&self.max_tasks, &mut options.max_tasks, Some);
        put(&self.max_tasks_jitter, &mut options.max_tasks_jitter, |number| number);
        put(&self.exit_empty, &mut options.exit_empty, |yes| yes);
        put(&self.exit_timeout, &mut options.exit_timeout, |Lasting(limit)| Some(limit));
        // None at all would be a worker that never works.
        put(&self.concurrency, &mut options.concurrency, |number| number.max(1));
        put(&self.threads, &mut options.threads, |number| number);
        put(&self.prefetch_count, &mut options.prefetch_count, |number| number);
        put(&self.time_limit, &mut options.time_limit, |Lasting(limit)| Some(limit));
        put(&self.grace, &mut options.grace, |Lasting(grace)| Some(grace));
        put(&self.heartbeat, &mut options.heartbeat, as_it_is);
        put(&self.poll_interval, &mut options.poll_interval, as_it_is);
        put(&self.poll_max_interval, &mut options.poll_max_interval, as_it_is);
        put(&self.broker_interval, &mut options.broker_interval, as_it_is);
        put(&self.batch_size, &mut options.batch_size, |number| number.max(1));
    }

    /// Threads, where somebody said it.
    pub fn threads(&self) -> Option<usize> {
        self.threads.as_ref().map(|setting| setting.value).filter(|threads| *threads > 0)
    }

    /// Tasks after which a child interpreter is replaced, where somebody said it.
    pub fn max_tasks_per_child(&self) -> Option<u64> {
        self.max_tasks.as_ref().map(|setting| setting.value)
    }

    /// How the log is written.
    pub fn log_format(&self) -> LogForm {
        self.log_format.as_ref().map_or(LogForm::Json, |setting| setting.value)
    }

    /// Each setting that was said, for a person: name, value, place.
    pub fn said(&self) -> Vec<(&'static str, Value, String)> {
        let mut said = Vec::new();
        fn note<T>(
            said: &mut Vec<(&'static str, Value, String)>,
            name: &'static str,
            setting: &Option<Setting<T>>,
            value: impl Fn(&T) -> Value,
        ) {
            said.extend(setting.iter().map(|found| (name, value(&found.value), found.origin.to_string())));
        }
        let brief = |Lasting(duration): &Lasting| json!(time::brief(*duration));
        // Text, as every number in this list is.
        let size = |number: &usize| json!(number.to_string());
        let count = |number: &u64| json!(number.to_string());
        note(&mut said, "worker.queues", &self.queues, |queues| json!(queues));
        note(&mut said, "worker.max_tasks", &self.max_tasks, count);
        note(&mut said, "worker.max_tasks_jitter", &self.max_tasks_jitter, count);
        note(&mut said, "worker.exit_empty", &self.exit_empty, |yes| json!(yes));
        note(&mut said, "worker.exit_timeout", &self.exit_timeout, brief);
        note(&mut said, "worker.concurrency", &self.concurrency, size);
        note(&mut said, "worker.threads", &self.threads, size);
        note(&mut said, "worker.prefetch_count", &self.prefetch_count, size);
        note(&mut said, "worker.time_limit", &self.time_limit, brief);
        note(&mut said, "worker.grace", &self.grace, brief);
        note(&mut said, "worker.heartbeat", &self.heartbeat, brief);
        note(&mut said, "worker.poll_interval", &self.poll_interval, brief);
        note(&mut said, "worker.poll_max_interval", &self.poll_max_interval, brief);
        note(&mut said, "worker.broker_interval", &self.broker_interval, brief);
        note(&mut said, "worker.batch_size", &self.batch_size, count);
        note(&mut said, "worker.log_format", &self.log_format, |form| json!(form.word()));
        said
    }
}

impl Config {
    /// The worker's flags say the lifetimes of leases and results, too.
    pub(super) fn lifetimes(flags: &WorkerPart) -> (Option<Duration>, Option<Duration>) {
        (flags.lease_ttl.map(|lasting| lasting.0), flags.result_ttl.map(|lasting| lasting.0))
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is no whole number from 0 up"))
}

fn log_form(text: &str) -> Result<LogForm, String> {
    use clap::ValueEnum;
    LogForm::from_str(text, true).map_err(|_| format!("`{text}` is neither json nor text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_seconds_as_in_the_python_package() {
        assert_eq!(lasting("0.5").map(|lasting| lasting.0), Ok(Duration::from_millis(500)));
        assert_eq!(lasting("5m").map(|lasting| lasting.0), Ok(Duration::from_secs(300)));
        for text in ["0", "-1", "NaN", "inf", "soon"] {
            assert!(lasting(text).is_err(), "{text}");
        }
    }
}
