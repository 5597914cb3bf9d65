//! `move`: waiting tasks, to another queue.

use crate::backend::{MoveOutcome, Seen, TaskDetail};
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::verbs::requeue::find;
use crate::cli::verbs::{Acted, Declined};
use crate::task::Segment;
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill move --to emails 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill move --to emails --dry-run 01a22df8-34ed-7724-a9cf-37fad320e7d4";

/// Move waiting tasks to another queue
///
/// They keep their place in line and their due time, and each is in exactly one queue at any moment. READY and SCHEDULED tasks move; the others are refused. A site of the Python package must know
/// the other queue, or it cannot read them there.
#[derive(Args, Debug)]
pub struct MoveArgs {
    /// The ids, or parts of them that no others have
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// The queue that they go to
    #[arg(long, value_name = "QUEUE", required = true)]
    pub to: String,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &MoveArgs) -> Result<Exit, CliError> {
    if !args.dry_run {
        cx.require_write()?;
    }
    if args.to.is_empty() {
        return Err(CliError::usage("--to: a queue has a name"));
    }
    let mut acted = Acted::default();
    for id in &args.ids {
        let (detail, result) = match find(cx, id).await {
            Ok(detail) => {
                let result = move_one(cx, args, &detail).await;
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

async fn move_one(cx: &Context, args: &MoveArgs, detail: &TaskDetail) -> Result<&'static str, Declined> {
    let (segment, score) = waiting(detail)?;
    let queue = detail.queue.as_deref().unwrap_or_default();
    if queue == args.to {
        return Err(Declined::Refused("it is in that queue".into()));
    }
    if args.dry_run {
        return Ok("would_move");
    }
    let seen = [Seen { id: detail.id.clone(), score }];
    match cx.backend().move_many(queue, &args.to, segment, &seen).await?.pop() {
        Some(Ok(MoveOutcome::Moved | MoveOutcome::Replayed)) => Ok("moved"),
        Some(Ok(MoveOutcome::Running)) => Err(Declined::Refused("it runs by now".into())),
        Some(Ok(MoveOutcome::Gone)) | None => Err(Declined::NotFound("it is gone by now".into())),
        Some(Ok(MoveOutcome::Changed)) => Err(Declined::Refused("it has changed since it was looked at".into())),
        Some(Err(why)) => Err(Declined::Refused(format!("its record cannot be read: {why}"))),
    }
}

/// Where a task waits, with its score there.
fn waiting(detail: &TaskDetail) -> Result<(Segment, f64), Declined> {
    match detail.places[..] {
        [(segment @ (Segment::Ready | Segment::Scheduled), score)] => Ok((segment, score)),
        [(segment, _)] => Err(Declined::Refused(format!("it is {segment}; only tasks that wait can move"))),
        [] => Err(Declined::Refused("no segment lists it".into())),
        _ => Err(Declined::Refused("several segments list it; `threadmill doctor --fix` settles that".into())),
    }
}
