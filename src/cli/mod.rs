//! The command line: arguments, one file a verb, output, and the end of each run as an exit code.
//!
//! May use the entry points of the other rooms and clap. Absent on purpose: redis (only `backend` knows it), widgets,
//! and anything that decides about tasks. Only this room prints and exits.

mod args;
mod config;
mod context;
mod error;
mod lookup;
mod output;
mod prompt;
mod site;
mod time;
mod verbs;

pub use error::Exit;

use crate::worker::Worker;
use args::{Cli, ColorWhen, GlobalArgs, Verb};
use clap::FromArgMatches;
use config::{Config, WorkerPart, World};
use context::Context;
use error::CliError;
use output::Out;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command line of this process. Its worker knows no tasks of its own.
pub fn main() -> ExitCode {
    main_with(|worker| worker)
}

/// Runs the command line of this process for a program with tasks of its own: every verb, and a worker that knows them.
///
/// What `prepare` sets are this program's defaults; flags, variables and files go before them.
///
/// ```no_run
/// use threadmill::native::Task;
///
/// const ADD: Task<(i64, i64), i64> = Task::new("shop.tasks.add");
///
/// async fn add((a, b): (i64, i64)) -> Result<i64, std::convert::Infallible> {
///     Ok(a + b)
/// }
///
/// fn main() -> std::process::ExitCode {
///     threadmill::cli::main_with(|worker| worker.task(ADD, add))
/// }
/// ```
pub fn main_with(prepare: impl FnOnce(Worker) -> Worker) -> ExitCode {
    error::install_reports();
    let words: Vec<OsString> = std::env::args_os().collect();
    match run(&words, prepare) {
        Ok(exit) => exit.into(),
        Err(error) => {
            error.print();
            error.exit().into()
        }
    }
}

fn run(words: &[OsString], prepare: impl FnOnce(Worker) -> Worker) -> Result<Exit, CliError> {
    let cli = match parse(words) {
        Ok(cli) => cli,
        Err(error) => {
            // clap tells help and mistakes by the same way; only mistakes have the code of one.
            let _ = error.print();
            return Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    let name = binary_name(words);
    let config = load(&cli)?;
    let mut out = Out::new(config.color.value);
    log_to_stderr(&cli);
    let exit = match &cli.verb {
        Verb::Config(args) => verbs::config::run(&config, &mut out, args)?,
        Verb::Completions(args) => verbs::completions::run(&mut out, &name, args)?,
        Verb::Man(args) => verbs::man::run(&mut out, &name, args)?,
        verb => return run_async(verb, &cli.global, Context::new(config, out, name)?, prepare),
    };
    out.flush()?;
    Ok(exit)
}

/// The settings of this call. The demo has a Redis of its own, and no setting of another is to be in its way.
fn load(cli: &Cli) -> Result<Config, CliError> {
    match &cli.verb {
        Verb::Worker(args) => Config::load(&cli.global, &args.options, &World::real()),
        Verb::Demo(_) => {
            let flags = GlobalArgs { color: cli.global.color, ..GlobalArgs::default() };
            Config::load(&flags, &WorkerPart::default(), &World::silent())
        }
        _ => Config::load(&cli.global, &WorkerPart::default(), &World::real()),
    }
}

/// What the library tells of itself, on stderr, where `-v` asks for it. Worker and inspector have logs of their own.
fn log_to_stderr(cli: &Cli) {
    use tracing::level_filters::LevelFilter;
    let level = match cli.global.verbose {
        0 => return,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    if !matches!(cli.verb, Verb::Worker(_) | Verb::Inspector(_) | Verb::Demo(_)) {
        let log = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_ansi(false);
        // A program that uses the library may have its own log; then that one is told.
        let _ = log.try_init();
    }
}

fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let color = match color_of(words) {
        Some(ColorWhen::Always) => clap::ColorChoice::Always,
        Some(ColorWhen::Never) => clap::ColorChoice::Never,
        _ => clap::ColorChoice::Auto,
    };
    let matches = args::grouped(&binary_name(words)).color(color).try_get_matches_from(words)?;
    Cli::from_arg_matches(&matches)
}

/// What `--color` says, before anything is parsed: help and mistakes are coloured, too.
fn color_of(words: &[OsString]) -> Option<ColorWhen> {
    use clap::ValueEnum;
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let value = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--color=") {
        Some(value) => Some(value),
        None if word == "--color" => words.get(at + 1).map(|next| &**next),
        None => None,
    });
    ColorWhen::from_str(value?, true).ok()
}

/// What the binary is called: a program of the user's has every verb under its own name.
fn binary_name(words: &[OsString]) -> String {
    let name = words.first().and_then(|word| Path::new(word).file_name()).map(|name| name.to_string_lossy());
    name.map_or_else(|| "threadmill".to_owned(), |name| name.into_owned())
}

/// Runs a verb that talks to Redis. One thread is enough for those that ask and answer, and it starts faster.
fn run_async(
    verb: &Verb,
    flags: &GlobalArgs,
    mut cx: Context,
    prepare: impl FnOnce(Worker) -> Worker,
) -> Result<Exit, CliError> {
    let many = matches!(verb, Verb::Worker(_) | Verb::Demo(_) | Verb::Inspector(_));
    let mut builder = match many {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build().map_err(|e| CliError::failed("cannot start the runtime", &e))?;
    let result = runtime.block_on(dispatch(verb, flags, &mut cx, prepare));
    // A blocking task that was cut off must not hold up the end.
    runtime.shutdown_background();
    // What was printed before an error belongs to the answer.
    let flushed = cx.out.flush();
    let exit = result?;
    flushed.map(|()| exit)
}

async fn dispatch(
    verb: &Verb,
    flags: &GlobalArgs,
    cx: &mut Context,
    prepare: impl FnOnce(Worker) -> Worker,
) -> Result<Exit, CliError> {
    let site = match verb {
        // It has a Redis of its own.
        Verb::Demo(_) => None,
        verb => site::join(cx, flags, matches!(verb, Verb::Worker(_))).await?,
    };
    match verb {
        Verb::Queues(args) => verbs::queues::run(cx, args).await,
        Verb::Tasks(args) => verbs::tasks::run(cx, args).await,
        Verb::Show(args) => verbs::show::run(cx, args).await,
        Verb::Workers(args) => verbs::workers::run(cx, args).await,
        Verb::Watch(args) => verbs::watch::run(cx, args).await,
        Verb::Inspector(args) => verbs::inspector::run(cx, args).await,
        Verb::Enqueue(args) => verbs::enqueue::run(cx, args).await,
        Verb::Requeue(args) => verbs::requeue::run(cx, args).await,
        Verb::Drop(args) => verbs::drop::run(cx, args).await,
        Verb::Purge(args) => verbs::purge::run(cx, args).await,
        Verb::Move(args) => verbs::r#move::run(cx, args).await,
        Verb::Promote(args) => verbs::promote::run(cx, args).await,
        Verb::Postpone(args) => verbs::postpone::run(cx, args).await,
        Verb::Doctor(args) => verbs::doctor::run(cx, args).await,
        Verb::Worker(args) => verbs::worker::run(cx, args, site, prepare).await,
        Verb::Demo(args) => verbs::demo::run(cx, args).await,
        // These need no Redis and have run.
        Verb::Config(_) | Verb::Completions(_) | Verb::Man(_) => Ok(Exit::Done),
    }
}
