//! `worker`: tasks, run.

use crate::cli::config::{LogForm, WorkerPart};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit, exit_of};
use crate::cli::output::warn;
use crate::task::visible;
use crate::worker::python::PythonOptions;
use crate::worker::{Worker, WorkerError, log};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill worker
  threadmill worker --queues emails,default --concurrency 50 --grace 30s
  threadmill worker --exit-empty --log-format text";

/// Run tasks
///
/// The first SIGTERM, SIGINT or SIGHUP begins a clean end: nothing more is taken, what has not started is given back, what
/// runs is finished. A second one ends it now. The log goes to stderr.
///
/// Each option can be set in the table [worker] of threadmill.toml and by THREADMILL_WORKER_*, such as
/// THREADMILL_WORKER_QUEUES. Durations can be plain seconds.
#[derive(Args, Debug)]
pub struct WorkerArgs {
    #[command(flatten)]
    pub options: WorkerPart,
    /// Log these levels or modules, such as debug or threadmill=debug [env: RUST_LOG] [default: info]
    #[arg(long, value_name = "FILTER", help_heading = "Output")]
    pub log_level: Option<String>,
    /// Run a Django site's tasks in so many child interpreters [default: cores less one]
    #[arg(long, short, value_name = "N", help_heading = "How many at once")]
    pub workers: Option<usize>,
}

/// Runs the verb.
pub async fn run(
    cx: &mut Context,
    args: &WorkerArgs,
    site: Option<PythonOptions>,
    prepare: impl FnOnce(Worker) -> Worker,
) -> Result<Exit, CliError> {
    cx.require_write()?;
    let mut worker = prepare(Worker::new(cx.backend().clone()));
    cx.config.worker.apply(worker.options_mut());
    start_log(args, cx.config.worker.log_format())?;
    if let Some(site) = site {
        let options = worker.options_mut();
        let python = PythonOptions {
            workers: args.workers.unwrap_or(site.workers).max(1),
            threads: cx.config.worker.threads().unwrap_or(site.threads),
            max_tasks: cx.config.worker.max_tasks_per_child(),
            ..site
        };
        // In a site the flag recycles children, as it does there; the worker itself goes on.
        options.max_tasks = None;
        worker = worker.python(python);
    } else if worker.task_names().is_empty() {
        let queues = worker.options_mut().queues.join(", ");
        warn(&format!(
            "this worker knows no functions: every task that it takes from {} becomes FAILED. A program registers its \
             functions with threadmill::cli::main_with, a Django site has them beside its manage.py",
            visible(&queues)
        ));
    }
    // That there is no server is said at once; that it goes later is waited out.
    cx.backend().ping().await?;
    let summary = worker.run().await.map_err(|error| match &error {
        WorkerError::Backend(backend) => CliError::caused(exit_of(backend), &error),
        WorkerError::Python(_) => CliError::caused(Exit::Usage, &error),
        WorkerError::NoQueue => CliError::caused(Exit::Usage, &error).hint("name one with --queues"),
        _ => CliError::caused(Exit::Partial, &error),
    })?;
    if summary.is_settled {
        return Ok(Exit::Done);
    }
    warn("Redis has not taken the end of every task; other workers take over what is left");
    Ok(Exit::Partial)
}

fn start_log(args: &WorkerArgs, form: LogForm) -> Result<(), CliError> {
    let variable = || std::env::var("RUST_LOG").ok().filter(|filter| !filter.is_empty());
    let filter = args.log_level.clone().or_else(variable).unwrap_or_else(|| "info".into());
    let started = match form {
        LogForm::Json => log::init_json(std::io::stderr, &filter),
        LogForm::Text => tracing_subscriber::EnvFilter::try_new(&filter).map_err(Into::into).and_then(|filter| {
            let text = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
            text.with_ansi(anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never).try_init()
        }),
    };
    started.map_err(|e| CliError::usage(format!("cannot start the log with the filter `{filter}`: {e}")))
}
