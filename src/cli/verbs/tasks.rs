//! `tasks`: a list of a queue's tasks.

use crate::backend::{BackendError, Page, QueueCounts, Summary, TaskRow};
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::{Versioned, line};
use crate::cli::output::{Paint, Table, TaskShape, talk, warn};
use crate::cli::time;
use crate::task::{Segment, visible};
use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill tasks emails
  threadmill tasks emails --segment failed --limit 5
  threadmill tasks emails --segment ready,scheduled --jsonl | jq -r .id
  threadmill tasks emails --segment failed --all --json";

/// Rows that are asked for at a time.
const PAGE: u64 = 500;

/// List the tasks of a queue
///
/// Waiting tasks come in the order in which they will run, finished ones newest first.
#[derive(Args, Debug)]
pub struct TasksArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    pub queue: String,
    /// Only these segments: ready, scheduled, running, successful, failed
    #[arg(long, short, value_name = "SEGMENTS", value_delimiter = ',')]
    pub segment: Vec<Segment>,
    /// List at most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: u64,
    /// List every one
    #[arg(long, conflicts_with = "limit")]
    pub all: bool,
    /// Leave out the first so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: u64,
    #[command(flatten)]
    pub format: Format,
}

/// What was listed.
struct Listed {
    rows: Vec<TaskRow>,
    count: u64,
    total: u64,
}

#[derive(Serialize)]
struct Document {
    backend: String,
    queue: String,
    segments: Vec<&'static str>,
    total: u64,
    offset: u64,
    tasks: Vec<TaskShape>,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &TasksArgs) -> Result<Exit, CliError> {
    let counts = cx.queue(&args.queue).await?;
    let mut segments = if args.segment.is_empty() { Segment::ALL.to_vec() } else { args.segment.clone() };
    segments.sort_unstable();
    segments.dedup();
    // Where segments were named, one that cannot be read is a failure; where not, the others are listed.
    if args.segment.is_empty() {
        for broken in counts.broken() {
            warn(&format!("the key of the segment {broken} holds another type and is left out"));
        }
        segments.retain(|segment| counts.segments[*segment as usize].is_some());
    }
    let listed = list(cx, args, &segments).await?;
    if args.format.json {
        let tasks = listed.rows.iter().map(TaskShape::from).collect();
        let backend = cx.backend().alias().to_owned();
        let words = segments.iter().map(|segment| segment.word()).collect();
        let queue = args.queue.clone();
        let body = Document { backend, queue, segments: words, total: listed.total, offset: args.offset, tasks };
        cx.out.json(&Versioned::new(body))?;
    } else if !args.format.jsonl {
        print(cx, &listed.rows).await?;
    }
    cx.out.flush()?;
    tell_rest(args, &listed, &counts);
    Ok(Exit::Done)
}

/// Goes through the pages. With `--jsonl` each is printed as it comes and nothing is kept.
async fn list(cx: &mut Context, args: &TasksArgs, segments: &[Segment]) -> Result<Listed, CliError> {
    let mut listed = Listed { rows: Vec::new(), count: 0, total: 0 };
    let (mut skip, mut left) = (args.offset, if args.all { u64::MAX } else { args.limit });
    for segment in segments {
        let (mut offset, mut first) = (skip, true);
        loop {
            let page = page(cx, &args.queue, *segment, offset, left.clamp(1, PAGE)).await?;
            let (total, rows) = (page.total, page.rows.len() as u64);
            if std::mem::take(&mut first) {
                listed.total += total;
                skip = skip.saturating_sub(total);
            }
            if left == 0 || rows == 0 {
                break;
            }
            let mut rows_left = page.rows;
            rows_left.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            left -= rows_left.len() as u64;
            listed.count += rows_left.len() as u64;
            if args.format.jsonl {
                for row in &rows_left {
                    cx.out.line(&line(&Versioned::new(TaskShape::from(row))))?;
                }
                cx.out.flush()?;
            } else {
                listed.rows.append(&mut rows_left);
            }
            offset += rows;
            if offset >= total {
                break;
            }
        }
    }
    Ok(listed)
}

async fn page(cx: &Context, queue: &str, segment: Segment, offset: u64, limit: u64) -> Result<Page, BackendError> {
    cx.backend().page(queue, segment, offset, limit).await
}

fn tell_rest(args: &TasksArgs, listed: &Listed, counts: &QueueCounts) {
    let after = args.offset.saturating_add(listed.count);
    if listed.total == 0 {
        talk(&format!("`{}` holds no such task", visible(&args.queue)));
    } else if listed.count == 0 {
        talk(&format!("there are {} and --offset {} is beyond them", listed.total, args.offset));
    } else if after < listed.total && !args.all {
        talk(&format!("{} of {}; go on with --offset {after}", listed.count, listed.total));
    }
    if counts.quarantined > 0 {
        talk(&format!("{} more were set aside in quarantine", counts.quarantined));
    }
}

/// Prints rows as a table.
pub async fn print(cx: &mut Context, rows: &[TaskRow]) -> Result<(), CliError> {
    if rows.is_empty() {
        return Ok(());
    }
    let now = cx.backend().now().await?;
    let mut table = Table::new(&["ID", "SEGMENT", "FUNCTION", ">ATTEMPTS", "WHEN", "ERROR"]).whole(0).whole(1).whole(4);
    for row in rows {
        table.row(cells(cx, row, now));
    }
    cx.out.table(table)
}

fn cells(cx: &Context, row: &TaskRow, now: DateTime<Utc>) -> Vec<(String, Paint)> {
    let nothing = || cx.out.nothing().to_owned();
    let segment = match row.segment {
        Segment::Failed => Paint::Bad,
        Segment::Successful => Paint::Good,
        _ => Paint::Plain,
    };
    let mut cells =
        vec![(visible(row.id.as_str()).into_owned(), Paint::Plain), (row.segment.name().to_owned(), segment)];
    match &row.summary {
        Summary::Readable(readable) => {
            let at = match row.segment {
                Segment::Ready => readable.enqueued_at.as_ref().map(|stamp| stamp.at()),
                Segment::Running => row.lease.as_ref().and_then(|lease| lease.started_at.as_ref()).map(|at| at.at()),
                _ => time::moment(row.score),
            };
            let error = readable.last_error.as_ref().map_or_else(String::new, |error| match error.summary() {
                "" => visible(&error.class_path).into_owned(),
                summary => visible(summary).into_owned(),
            });
            cells.push((visible(&readable.func).into_owned(), Paint::Plain));
            cells.push((readable.attempts.map_or_else(nothing, |attempts| attempts.to_string()), Paint::Plain));
            cells.push((cx.out.moment(at, now), Paint::Plain));
            cells.push((error, Paint::Plain));
        }
        Summary::Unreadable { reason, .. } => {
            let at = cx.out.moment(score_moment(row), now);
            cells.extend([("(unreadable)".into(), Paint::Warning), (nothing(), Paint::Plain), (at, Paint::Plain)]);
            cells.push((visible(reason).into_owned(), Paint::Warning));
        }
        Summary::Missing => {
            let at = cx.out.moment(score_moment(row), now);
            cells.extend([("(no record)".into(), Paint::Faint), (nothing(), Paint::Plain), (at, Paint::Plain)]);
            let why = if row.segment.is_finished() { "its result has expired" } else { "nothing is stored of it" };
            cells.push((why.into(), Paint::Faint));
        }
    }
    cells
}

/// The time that the score of a segment is; the one of READY is an order and no time.
fn score_moment(row: &TaskRow) -> Option<DateTime<Utc>> {
    if row.segment == Segment::Ready { None } else { time::moment(row.score) }
}
