//! `queues`: the queues with their counts.

use crate::backend::QueueCounts;
use crate::cli::args::Format;
use crate::cli::context::{Context, SEARCH};
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, QueueShape, Table, talk, warn};
use crate::cli::time::parse_duration;
use crate::task::{Segment, visible};
use clap::Args;
use serde::Serialize;
use std::time::Duration;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill queues
  threadmill queues default emails
  threadmill queues --json | jq '.queues[] | select(.failed > 0).name'";

/// List the queues with what each of their segments holds
///
/// Queues are found without being named: those of the settings, those that our programs recorded, and those that a
/// bounded search of the keys finds.
#[derive(Args, Debug)]
pub struct QueuesArgs {
    /// Only these queues
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,
    /// Look for unnamed queues at most this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "200ms")]
    pub search: Duration,
    #[command(flatten)]
    pub format: Format,
}

#[derive(Serialize)]
struct Document {
    backend: String,
    queues: Vec<QueueShape>,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &QueuesArgs) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    if args.queues.is_empty() {
        let names = cx.queues(if args.search.is_zero() { SEARCH } else { args.search }).await?;
        all = cx.backend().counts(&names).await?;
    }
    for name in &args.queues {
        all.push(cx.queue(name).await?);
    }
    print(cx, &all, args.format)?;
    Ok(Exit::Done)
}

/// Prints counts of queues.
pub fn print(cx: &mut Context, all: &[QueueCounts], format: Format) -> Result<(), CliError> {
    if format.json {
        let queues = all.iter().map(QueueShape::from).collect();
        return cx.out.json(&Versioned::new(Document { backend: cx.backend().alias().to_owned(), queues }));
    }
    if format.jsonl {
        return all.iter().try_for_each(|counts| cx.out.json_line(&Versioned::new(QueueShape::from(counts))));
    }
    for counts in all {
        for segment in counts.broken() {
            let queue = visible(&counts.queue);
            warn(&format!("{queue}: the key of its segment {segment} holds another type; something else writes there"));
        }
    }
    if all.is_empty() {
        talk(&format!("no queue is known on backend `{}`", cx.backend().alias()));
        return Ok(());
    }
    let quarantine = all.iter().any(|counts| counts.quarantined > 0);
    let mut columns = vec!["QUEUE", ">READY", ">SCHEDULED", ">RUNNING", ">SUCCESSFUL", ">FAILED"];
    columns.extend(quarantine.then_some(">QUARANTINED"));
    let mut table = Table::new(&columns).whole(0);
    for counts in all {
        table.row(cells(counts, quarantine));
    }
    cx.out.table(table)
}

fn cells(counts: &QueueCounts, quarantine: bool) -> Vec<(String, Paint)> {
    let mut cells = vec![(visible(&counts.queue).into_owned(), Paint::Plain)];
    for segment in Segment::ALL {
        cells.push(match counts.segments[segment as usize] {
            None => ("?".into(), Paint::Warning),
            Some(0) => ("0".into(), Paint::Faint),
            Some(count) if segment == Segment::Failed => (count.to_string(), Paint::Bad),
            Some(count) => (count.to_string(), Paint::Plain),
        });
    }
    if quarantine {
        let paint = if counts.quarantined > 0 { Paint::Warning } else { Paint::Faint };
        cells.push((counts.quarantined.to_string(), paint));
    }
    cells
}
