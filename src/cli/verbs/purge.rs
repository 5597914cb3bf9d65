//! `purge`: a queue, emptied.

use crate::backend::{PurgeScope, QueueCounts};
use crate::cli::args::JsonOnly;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, count, painted, talk};
use crate::cli::prompt;
use crate::task::{Segment, visible};
use clap::Args;
use futures_util::FutureExt;
use serde::Serialize;
use serde_json::{Map, Value};

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill purge emails --dry-run
  threadmill purge emails --segment successful,failed
  threadmill purge emails --segment failed --expect 12
  threadmill purge emails --max 1000 --yes --json";

/// Empty a queue, or some of its segments
///
/// RUNNING tasks go only where they are named; their workers go on, and what comes out of them is discarded. Tasks that
/// come in meanwhile stay. At a terminal the queue's name has to be typed; in a script naming it is enough.
#[derive(Args, Debug)]
pub struct PurgeArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    /// Only these segments: ready, scheduled, running, successful, failed [default: all but running]
    #[arg(long, short, value_name = "SEGMENTS", value_delimiter = ',')]
    pub segment: Vec<Segment>,
    /// Also what was set aside in quarantine
    #[arg(long)]
    pub quarantine: bool,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Go on only where exactly so many would be removed
    #[arg(long, value_name = "N")]
    pub expect: Option<u64>,
    /// Go on only where no more than so many would be removed
    #[arg(long, value_name = "N", conflicts_with = "expect")]
    pub max: Option<u64>,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub format: JsonOnly,
}

/// A part of the queue that is to be emptied, with how many it listed and how many have gone.
struct Part {
    scope: PurgeScope,
    listed: u64,
    removed: u64,
}

#[derive(Serialize)]
struct Document {
    queue: String,
    dry_run: bool,
    interrupted: bool,
    matched: Map<String, Value>,
    removed: Map<String, Value>,
    total: u64,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &PurgeArgs) -> Result<Exit, CliError> {
    if !args.dry_run {
        cx.require_write()?;
    }
    let counts = cx.queue(&args.queue).await?;
    let mut parts = parts(args, &counts)?;
    let total: u64 = parts.iter().map(|part| part.listed).sum();
    guard(args, total)?;
    let mut interrupted = None;
    if !args.dry_run && total > 0 {
        confirm(args, &parts, total)?;
        interrupted = remove(cx, &args.queue, &mut parts).await.err();
    }
    tell(cx, args, &parts, interrupted.is_some())?;
    cx.out.flush()?;
    match interrupted {
        None => Ok(Exit::Done),
        Some(Ended::Interrupted) => {
            talk("interrupted; the same line again does the rest");
            Ok(Exit::Partial)
        }
        Some(Ended::Broken(error)) => Err(error),
    }
}

fn parts(args: &PurgeArgs, counts: &QueueCounts) -> Result<Vec<Part>, CliError> {
    let mut segments = args.segment.clone();
    if segments.is_empty() {
        segments = Segment::ALL.into_iter().filter(|segment| *segment != Segment::Running).collect();
    }
    segments.sort_unstable();
    segments.dedup();
    let mut parts = Vec::new();
    for segment in segments {
        let Some(listed) = counts.segments[segment as usize] else {
            return Err(CliError::new(
                Exit::Unreachable,
                format!("the key of {}'s segment {segment} holds another type than the layout says", args.queue),
            )
            .hint("something else writes under this name; nothing was removed"));
        };
        parts.push(Part { scope: PurgeScope::Segment(segment), listed, removed: 0 });
    }
    if args.quarantine {
        parts.push(Part { scope: PurgeScope::Quarantine, listed: counts.quarantined, removed: 0 });
    }
    Ok(parts)
}

/// Holds the counts against what the caller expects.
fn guard(args: &PurgeArgs, total: u64) -> Result<(), CliError> {
    let told = count(total, "task", "tasks");
    match (args.expect, args.max) {
        (Some(expected), _) if expected != total => Err(CliError::refused(format!(
            "{told} would be removed, and --expect says {expected}; nothing was removed"
        ))),
        (_, Some(max)) if total > max => {
            Err(CliError::refused(format!("{told} would be removed, and --max allows {max}; nothing was removed")))
        }
        _ => Ok(()),
    }
}

fn confirm(args: &PurgeArgs, parts: &[Part], total: u64) -> Result<(), CliError> {
    if args.yes || !prompt::is_interactive() {
        return Ok(());
    }
    let queue = visible(&args.queue);
    let which = list(parts, |part| part.listed);
    talk(&format!("This removes {} of `{queue}` for good: {which}.", count(total, "task", "tasks")));
    if parts.iter().any(|part| part.scope == PurgeScope::Segment(Segment::Running) && part.listed > 0) {
        talk("Workers go on with the running ones, and what comes out of them is discarded.");
    }
    if prompt::confirm_by_name("Type the queue's name to go on:", &args.queue)? {
        return Ok(());
    }
    Err(CliError::refused("that is not the queue's name; nothing was removed"))
}

/// Why a purge did not come to its end.
enum Ended {
    Interrupted,
    Broken(CliError),
}

/// Removes slice by slice, no more of each part than it listed.
async fn remove(cx: &Context, queue: &str, parts: &mut [Part]) -> Result<(), Ended> {
    let broken = |error: crate::backend::BackendError| Ended::Broken(error.into());
    // So that the same line again finds the queue, empty as it is by then.
    cx.backend().record_queues(&[queue.to_owned()]).await.map_err(broken)?;
    let interrupt = tokio::signal::ctrl_c();
    tokio::pin!(interrupt);
    // The first look is what makes Ctrl-C ours.
    let _ = (&mut interrupt).now_or_never();
    for part in parts {
        while part.removed < part.listed {
            let left = part.listed - part.removed;
            // Between two slices, so that each one is counted.
            let slice = cx.backend().purge_at_most(queue, part.scope, None, left);
            let purged = slice.await.map_err(broken)?;
            part.removed += purged.removed;
            if purged.removed == 0 || purged.left == 0 {
                break;
            }
            if (&mut interrupt).now_or_never().is_some() {
                return Err(Ended::Interrupted);
            }
        }
    }
    Ok(())
}

fn tell(cx: &mut Context, args: &PurgeArgs, parts: &[Part], interrupted: bool) -> Result<(), CliError> {
    let of = |part: &Part| if args.dry_run { part.listed } else { part.removed };
    let total = parts.iter().map(of).sum();
    if args.format.json {
        let map = |of: fn(&Part) -> u64| parts.iter().map(|part| (word(part).to_owned(), of(part).into())).collect();
        let document = Document {
            queue: args.queue.clone(),
            dry_run: args.dry_run,
            interrupted,
            matched: map(|part| part.listed),
            removed: map(|part| part.removed),
            total,
        };
        return cx.out.json(&Versioned::new(document));
    }
    let queue = visible(&args.queue);
    if total == 0 {
        return cx.out.line(&format!("nothing to purge in `{queue}`"));
    }
    let verb = if args.dry_run { "would purge" } else { "purged" };
    let told = count(total, "task", "tasks");
    cx.out.line(&format!("{} {told} of `{queue}`: {}", painted(Paint::Good, verb), list(parts, of)))
}

fn word(part: &Part) -> &'static str {
    match part.scope {
        PurgeScope::Segment(segment) => segment.word(),
        PurgeScope::Quarantine => "quarantined",
    }
}

/// How many of which, those that are none left out.
fn list(parts: &[Part], of: impl Fn(&Part) -> u64) -> String {
    let some = parts.iter().filter(|part| of(part) > 0);
    some.map(|part| format!("{} {}", of(part), word(part).to_uppercase())).collect::<Vec<_>>().join(", ")
}
