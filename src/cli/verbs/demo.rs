//! `demo`: all of it at work, on a private Redis.

use crate::backend::{Backend, BackendError, RedisUrl, Settings};
use crate::cli::args::Format;
use crate::cli::context::{Context, SEARCH};
use crate::cli::error::{CliError, Exit};
use crate::cli::output::talk;
use crate::cli::verbs::inspector::{self, Looks};
use crate::cli::verbs::{queues, show};
use crate::demo::{self, Demo, DemoError, DemoOptions};
use crate::task::{Segment, TaskId};
use clap::Args;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill demo
  threadmill demo --headless";

/// How long it runs where nobody watches.
const HEADLESS: Duration = Duration::from_secs(10);

/// Show it all at work on a private Redis
///
/// Starts a redis-server of its own in a temporary folder, fills it, runs a worker, and opens the inspector on it. With no
/// terminal it does as with --headless. `q` or Ctrl-C ends it, and nothing stays behind.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Run for ten seconds without a screen and print what there is then
    #[arg(long)]
    pub headless: bool,
    #[command(flatten)]
    pub looks: Looks,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &DemoArgs) -> Result<Exit, CliError> {
    let screen = !args.headless && std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    // Listened to from here on, so that no early signal leaves a server behind.
    let ended = asked_to_end().map_err(|e| CliError::failed("cannot listen to signals", &e))?;
    tokio::pin!(ended);
    talk("starting a private Redis, a shop and a worker");
    let demo = tokio::select! {
        demo = demo::start(DemoOptions::default()) => demo.map_err(not_started)?,
        () = &mut ended => return Ok(Exit::Done),
    };
    let result = tokio::select! {
        result = look(cx, args, &demo, screen) => result,
        () = &mut ended => Ok(Exit::Done),
    };
    demo.stop().await;
    result
}

async fn look(cx: &mut Context, args: &DemoArgs, demo: &Demo, screen: bool) -> Result<Exit, CliError> {
    let mut settings = Settings::new(RedisUrl::parse(&demo.redis_url)?);
    settings.queues.clone_from(&demo.queues);
    let backend = Backend::new(settings)?;
    if screen {
        let options = inspector::options(cx, &backend, &args.looks);
        return inspector::show(backend, options).await;
    }
    talk("running for ten seconds");
    tokio::time::sleep(HEADLESS).await;
    cx.use_backend(backend);
    print(cx).await
}

/// Prints the queues and a failed task, as `queues` and `show` print them.
async fn print(cx: &mut Context) -> Result<Exit, CliError> {
    let names = cx.queues(SEARCH).await?;
    let counts = cx.backend().counts(&names).await?;
    queues::print(cx, &counts, Format::default())?;
    for queue in &names {
        let Some(id) = newest_failed(cx, queue).await? else { continue };
        if let Some(detail) = cx.backend().find(&id, Some(queue)).await? {
            let now = cx.backend().now().await?;
            cx.out.line("")?;
            show::print(cx, &detail, now)?;
            break;
        }
    }
    Ok(Exit::Done)
}

async fn newest_failed(cx: &Context, queue: &str) -> Result<Option<TaskId>, BackendError> {
    let page = cx.backend().page(queue, Segment::Failed, 0, 1).await?;
    Ok(page.rows.into_iter().next().map(|row| row.id))
}

/// Completes at the first signal that asks for the end.
fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    })
}

fn not_started(error: DemoError) -> CliError {
    CliError::caused(Exit::Unreachable, &error)
}
