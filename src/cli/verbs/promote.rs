//! `promote`: SCHEDULED tasks, at once.

use crate::backend::{RescheduleOutcome, Seen, TaskDetail, When};
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
  threadmill promote 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill promote --dry-run 01a22df8-34ed-7724-a9cf-37fad320e7d4";

/// Let SCHEDULED tasks run at once
///
/// They take the place in line that their priority and the time at which they were enqueued give them.
#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// The ids, or parts of them that no others have
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &PromoteArgs) -> Result<Exit, CliError> {
    let done = if args.dry_run { "would_promote" } else { "promoted" };
    reschedule(cx, &args.ids, When::Now, done, args.dry_run, args.format).await
}

/// Changes when these tasks run; `done` is the word for it.
pub(super) async fn reschedule(
    cx: &mut Context,
    ids: &[String],
    when: When,
    done: &'static str,
    dry_run: bool,
    format: Format,
) -> Result<Exit, CliError> {
    if !dry_run {
        cx.require_write()?;
    }
    let mut acted = Acted::default();
    for id in ids {
        let (detail, result) = match find(cx, id).await {
            Ok(detail) => {
                let result = if dry_run { scheduled(&detail).map(drop) } else { one(cx, &detail, when).await };
                (Some(detail), result.map(|()| done))
            }
            Err(declined) => (None, Err(declined)),
        };
        if !acted.note(id, detail.as_ref(), result) {
            break;
        }
    }
    acted.tell(cx, format, dry_run)
}

async fn one(cx: &Context, detail: &TaskDetail, when: When) -> Result<(), Declined> {
    let seen = [Seen { id: detail.id.clone(), score: scheduled(detail)? }];
    let queue = detail.queue.as_deref().unwrap_or_default();
    match cx.backend().reschedule_many(queue, &seen, when).await?.pop() {
        Some(RescheduleOutcome::Rescheduled | RescheduleOutcome::Replayed) => Ok(()),
        Some(RescheduleOutcome::Changed) => Err(Declined::Refused("it has changed since it was looked at".into())),
        Some(RescheduleOutcome::Gone) | None => Err(Declined::NotFound("it is gone by now".into())),
    }
}

/// The due time of a task that waits for it.
fn scheduled(detail: &TaskDetail) -> Result<f64, Declined> {
    match detail.places[..] {
        [(Segment::Scheduled, due)] => Ok(due),
        [(segment, _)] => Err(Declined::Refused(format!("it is {segment}, not SCHEDULED"))),
        [] => Err(Declined::Refused("no segment lists it".into())),
        _ => Err(Declined::Refused("several segments list it; `threadmill doctor --fix` settles that".into())),
    }
}
