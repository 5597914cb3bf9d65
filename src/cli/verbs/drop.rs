//! `drop`: single tasks, removed.

use crate::backend::{DropOutcome, TaskDetail};
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::count;
use crate::cli::prompt;
use crate::cli::verbs::requeue::find;
use crate::cli::verbs::{Acted, Declined};
use crate::task::{Segment, visible};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill drop 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill drop --dry-run 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill drop --yes --running 01a22df8-34ed-7724-a9cf-37fad320e7d4";

/// Remove single tasks
///
/// They go with their records and results, in whatever state they are. A running task is refused unless --running is given; its worker then goes on, and what comes out of it is
/// discarded.
#[derive(Args, Debug)]
pub struct DropArgs {
    /// The ids, or parts of them that no others have
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Drop running tasks, too
    #[arg(long)]
    pub running: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &DropArgs) -> Result<Exit, CliError> {
    if !args.dry_run {
        cx.require_write()?;
        let question = format!("Drop {} for good?", count(args.ids.len() as u64, "task", "tasks"));
        if !args.yes && prompt::is_interactive() && !prompt::confirm(&question)? {
            return Err(CliError::refused("nothing was dropped"));
        }
    }
    let mut acted = Acted::default();
    for id in &args.ids {
        let (detail, result) = match find(cx, id).await {
            Ok(detail) => {
                let result = drop_one(cx, args, &detail).await;
                (Some(detail), result)
            }
            Err(declined) => (None, Err(declined)),
        };
        if !acted.note(id, detail.as_ref(), result) {
            break;
        }
    }
    acted.tell(cx, args.format, args.dry_run)
}

async fn drop_one(cx: &Context, args: &DropArgs, detail: &TaskDetail) -> Result<&'static str, Declined> {
    let running = detail.places.iter().any(|(segment, _)| *segment == Segment::Running);
    if running && !args.running {
        let holder = detail.lease.as_ref().map(|lease| format!(" on {}", visible(&lease.worker)));
        return Err(Declined::Refused(format!("it runs{}; --running drops it", holder.unwrap_or_default())));
    }
    if args.dry_run {
        return Ok("would_drop");
    }
    let expected = if running { Some((Segment::Running, None)) } else { detail.places.first().copied().map(seen) };
    let queue = detail.queue.as_deref().unwrap_or_default();
    match cx.backend().drop_task(&detail.id, queue, expected).await? {
        DropOutcome::Dropped(_) => Ok("dropped"),
        DropOutcome::Running => Err(Declined::Refused("it runs by now; --running drops it".into())),
        DropOutcome::Moved(_) => Err(Declined::Refused("it has changed since it was looked at".into())),
        DropOutcome::Gone => Err(Declined::NotFound("it is gone by now".into())),
    }
}

fn seen((segment, score): (Segment, f64)) -> (Segment, Option<f64>) {
    (segment, Some(score))
}
