//! `requeue`: finished tasks, again.

use crate::backend::{Body, RequeueOutcome, TaskDetail, When};
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::lookup::{self, Part};
use crate::cli::time::{self, parse_duration, parse_moment};
use crate::cli::verbs::{Acted, Declined, due};
use crate::task::{Segment, TaskId, visible};
use chrono::{DateTime, Utc};
use clap::Args;
use std::time::Duration;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill requeue 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill requeue --in 10m 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill requeue --again 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill tasks emails --segment failed --all --jsonl | jq -r .id | xargs threadmill requeue";

/// Run finished tasks again
///
/// Their errors and workers are kept. FAILED tasks run again as they are; a SUCCESSFUL one only with --again. A task that waits or runs is refused.
#[derive(Args, Debug)]
pub struct RequeueArgs {
    /// The ids, or parts of them that no others have
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Run them in a while
    #[arg(long = "in", value_name = "DURATION", value_parser = parse_duration)]
    pub after: Option<Duration>,
    /// Run them at this moment, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment, conflicts_with = "after")]
    pub at: Option<DateTime<Utc>>,
    /// Run SUCCESSFUL tasks again, too
    #[arg(long)]
    pub again: bool,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &RequeueArgs) -> Result<Exit, CliError> {
    if !args.dry_run {
        cx.require_write()?;
    }
    let when = due(cx, args.after, args.at).await?.map_or(When::Now, When::At);
    let mut acted = Acted::default();
    for id in &args.ids {
        let (detail, result) = match find(cx, id).await {
            Ok(detail) => {
                let result = requeue(cx, args, &detail, when).await;
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

/// The task that is meant.
pub(super) async fn find(cx: &Context, id: &str) -> Result<TaskDetail, Declined> {
    // A whole id that is not there is one outcome among several; what else goes wrong ends the run.
    match lookup::task(cx, id, Part::Acts).await {
        Ok(detail) => Ok(detail),
        Err(error) if error.exit() == Exit::NotFound => {
            Err(Declined::NotFound("there is no such task; finished ones are gone when their results expire".into()))
        }
        Err(error) => Err(Declined::Broken(error)),
    }
}

async fn requeue(cx: &Context, args: &RequeueArgs, detail: &TaskDetail, when: When) -> Result<&'static str, Declined> {
    let (segment, seen) = finish_of(detail, args.again)?;
    let record = match &detail.body {
        Body::Record(record) => record,
        Body::Missing => return Err(Declined::NotFound("its result has expired, and nothing is left to run".into())),
        Body::Unreadable(why) => return Err(Declined::Refused(format!("its record cannot be read: {why}"))),
    };
    if args.dry_run {
        return Ok("would_requeue");
    }
    // The record may name another queue than the one that lists it; where it is listed is where it is.
    let queue = detail.queue.as_deref().unwrap_or(&record.spec.queue_name);
    match cx.backend().requeue(record, queue, segment, seen, when).await? {
        RequeueOutcome::Requeued | RequeueOutcome::Replayed => Ok("requeued"),
        RequeueOutcome::Moved => Err(Declined::Refused("it has changed since it was looked at".into())),
        RequeueOutcome::Gone => Err(Declined::NotFound("its result has expired meanwhile".into())),
    }
}

/// Where a task was finished, with which score; the reason why not, where it cannot run again.
fn finish_of(detail: &TaskDetail, again: bool) -> Result<(Segment, f64), Declined> {
    let pending = detail.places.iter().find(|(segment, _)| !segment.is_finished());
    match pending {
        Some((Segment::Running, _)) => {
            let holder = detail.lease.as_ref().map(|lease| format!(" on {}", visible(&lease.worker)));
            return Err(Declined::Refused(format!("it runs{}", holder.unwrap_or_default())));
        }
        Some((Segment::Scheduled, score)) => {
            let at = time::moment(*score).map(|at| format!(" until {}", time::rfc3339(at)));
            return Err(Declined::Refused(format!("it waits{} and will run by itself", at.unwrap_or_default())));
        }
        Some(_) => return Err(Declined::Refused("it waits and will run by itself".into())),
        None => {}
    }
    match detail.places.first() {
        Some((Segment::Successful, _)) if !again => {
            Err(Declined::Refused("it was successful; --again runs it once more".into()))
        }
        Some(place) => Ok(*place),
        None if detail.quarantined => Err(Declined::Refused("it was set aside in quarantine".into())),
        None => Err(Declined::Refused(format!("no segment lists {}", visible(TaskId::as_str(&detail.id))))),
    }
}
