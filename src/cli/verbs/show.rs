//! `show`: everything about one task.

use crate::backend::{Body, TaskDetail};
use crate::cli::args::JsonOnly;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::lookup::{self, Part};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, count, painted, whole_task};
use crate::cli::time;
use crate::task::{ErrorRecord, Retry, Segment, Stamp, visible};
use chrono::{DateTime, Utc};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill show 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill show d320e7d4
  threadmill show 01a22df8-34ed-7724-a9cf-37fad320e7d4 --json | jq .errors
  threadmill show 01a22df8-34ed-7724-a9cf-37fad320e7d4 --raw > task.json";

/// The width of the labels.
const LABEL: usize = 13;

/// Show one task, in whatever state it is
#[derive(Args, Debug)]
pub struct ShowArgs {
    /// The id, or a part of it that no other has
    #[arg(value_name = "ID")]
    pub id: String,
    /// Print the stored bytes, as they are
    ///
    /// At a terminal, characters that it would obey are written out.
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
    #[command(flatten)]
    pub format: JsonOnly,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &ShowArgs) -> Result<Exit, CliError> {
    let detail = lookup::task(cx, &args.id, Part::Looks).await?;
    if args.raw {
        return raw(cx, &detail);
    }
    let now = cx.backend().now().await?;
    if args.format.json {
        cx.out.json(&Versioned::new(whole_task(&detail, now)))?;
    } else {
        print(cx, &detail, now)?;
    }
    Ok(Exit::Done)
}

fn raw(cx: &mut Context, detail: &TaskDetail) -> Result<Exit, CliError> {
    if detail.stored.is_empty() {
        return Err(CliError::not_found(format!("nothing is stored of {}", detail.id)));
    }
    if cx.out.is_terminal() {
        cx.out.line(&visible(&String::from_utf8_lossy(&detail.stored)))?;
    } else {
        cx.out.bytes(&detail.stored)?;
    }
    Ok(Exit::Done)
}

/// Prints a task for a person.
pub fn print(cx: &mut Context, detail: &TaskDetail, now: DateTime<Utc>) -> Result<(), CliError> {
    let mut lines = Lines(Vec::new());
    lines.field("Task", visible(detail.id.as_str()));
    where_it_is(&mut lines, detail, now);
    match &detail.body {
        Body::Record(_) => {}
        Body::Missing => lines.painted("Record", Paint::Warning, "nothing is stored of it"),
        Body::Unreadable(reason) => {
            lines.painted("Record", Paint::Warning, &format!("cannot be read: {}", visible(reason)));
            lines.field("Stored", visible(&String::from_utf8_lossy(&detail.stored)));
        }
    }
    record(&mut lines, detail, now);
    if let Some(left) = detail.expires_in {
        lines.field("Expires", format!("in {}", time::brief(left)));
    }
    let errors = detail.record().map(|record| &record.errors[..]).unwrap_or_default();
    for (index, error) in errors.iter().enumerate() {
        lines.error(index + 1, errors.len(), error);
    }
    lines.0.iter().try_for_each(|line| cx.out.line(line))
}

fn where_it_is(lines: &mut Lines, detail: &TaskDetail, now: DateTime<Utc>) {
    if let Some(record) = detail.record() {
        lines.field("Function", visible(&record.spec.func));
    }
    if let Some(queue) = &detail.queue {
        lines.field("Queue", visible(queue));
    }
    let paint = match detail.segment() {
        Some(Segment::Failed) => Paint::Bad,
        Some(Segment::Successful) => Paint::Good,
        _ => Paint::Plain,
    };
    let names: Vec<&str> = detail.places.iter().map(|(segment, _)| segment.name()).collect();
    match &names[..] {
        [] if detail.quarantined => lines.painted("Segment", Paint::Warning, "set aside in quarantine"),
        [] => lines.painted("Segment", Paint::Warning, "none: no segment of its queue lists it"),
        [one] => lines.painted("Segment", paint, one),
        several => lines.painted("Segment", Paint::Warning, &format!("{} (it should be in one)", several.join(", "))),
    }
    for (segment, score) in &detail.places {
        let label = match segment {
            Segment::Scheduled => "Due",
            Segment::Running => "Lease ends",
            _ => continue,
        };
        if let Some(at) = time::moment(*score) {
            lines.field(label, format!("{} ({})", time::rfc3339(at), time::relative(at, now)));
        }
    }
    if let Some(lease) = &detail.lease {
        lines.field("Held by", visible(&lease.worker));
        lines.stamp("Held since", lease.started_at.as_ref(), now);
    }
}

fn record(lines: &mut Lines, detail: &TaskDetail, now: DateTime<Utc>) {
    let Some(record) = detail.record() else { return };
    if record.spec.priority.value != 0.0 {
        lines.field("Priority", visible(record.spec.priority.raw.as_str()));
    }
    lines.field("Attempts", detail.attempts().to_string());
    lines.stamp("Enqueued", record.enqueued_at.as_ref(), now);
    lines.stamp("Run after", record.spec.run_after.as_ref(), now);
    lines.stamp("Started", record.started_at.as_ref(), now);
    lines.stamp("Finished", record.finished_at.as_ref(), now);
    if let (Some(from), Some(to)) = (&record.started_at, &record.finished_at) {
        let took = (to.at() - from.at()).to_std().unwrap_or_default();
        lines.field("Took", time::brief(took));
    }
    lines.field("Args", visible(record.args.as_str()));
    lines.field("Kwargs", visible(record.kwargs.as_str()));
    if record.spec.takes_context {
        lines.field("Context", "taken as the first argument");
    }
    if let Some(retry) = &record.spec.retry {
        lines.field("Retry", retry_text(retry));
    }
    if let Some(value) = detail.return_value() {
        lines.field("Returned", visible(value.as_str()));
    }
    for worker in detail.workers() {
        lines.field("Worker", visible(&worker));
    }
}

fn retry_text(retry: &Retry) -> String {
    match retry {
        Retry::Backoff(backoff, _) => format!(
            "{} in all, {}s x {}^attempt, at most {}s, on {}",
            count(u64::from(backoff.max_retries), "attempt", "attempts"),
            backoff.base_delay,
            backoff.factor,
            backoff.max_delay,
            visible(&backoff.expected_exceptions.join(", ")),
        ),
        Retry::Callback(_, raw) => visible(raw.as_str()).into_owned(),
    }
}

struct Lines(Vec<String>);

impl Lines {
    fn field(&mut self, label: &str, value: impl AsRef<str>) {
        self.painted(label, Paint::Plain, value.as_ref());
    }

    fn painted(&mut self, label: &str, paint: Paint, value: &str) {
        let label = painted(Paint::Heading, format_args!("{label:<LABEL$}"));
        self.0.push(format!("{label}{}", painted(paint, value)));
    }

    fn stamp(&mut self, label: &str, stamp: Option<&Stamp>, now: DateTime<Utc>) {
        if let Some(stamp) = stamp {
            self.field(label, format!("{} ({})", visible(stamp.as_str()), time::relative(stamp.at(), now)));
        }
    }

    fn error(&mut self, number: usize, of: usize, error: &ErrorRecord) {
        self.0.push(String::new());
        let label = painted(Paint::Heading, format_args!("Error {number} of {of}"));
        self.0.push(format!("{label}  {}", painted(Paint::Bad, visible(&error.class_path))));
        self.0.extend(error.traceback.lines().map(|line| format!("  {}", visible(line)).trim_end().to_owned()));
    }
}
