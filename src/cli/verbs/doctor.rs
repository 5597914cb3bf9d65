//! `doctor`: what is broken, and what repairs it.

use crate::backend::doctor::{Checkup, Finding, Progress, Remedy, Report, Severity};
use crate::cli::args::JsonOnly;
use crate::cli::context::{Context, SEARCH};
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, count, painted, talk};
use crate::task::visible;
use clap::Args;
use futures_util::FutureExt;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill doctor
  threadmill doctor --fix --dry-run
  threadmill doctor --fix emails
  threadmill doctor --json | jq -r '.findings[].kind'";

/// How often progress is told at a terminal.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// Find what is broken, and repair it
///
/// Looks at the server, at every id of every segment, at the workers, and for records and results that nothing lists. It looks in slices and holds the server up for no one. Exit code 1 where there
/// is something to act on. What a worker of ours repairs by itself is repaired by --fix at once; the rest says what a person can do.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Look at these queues only
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,
    /// Repair what can safely be repaired
    #[arg(long)]
    pub fix: bool,
    /// Only say what --fix would repair
    #[arg(long, requires = "fix")]
    pub dry_run: bool,
    /// Leave out the search for records and results that nothing lists
    #[arg(long)]
    pub quick: bool,
    /// Show this many examples of each finding
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub examples: usize,
    /// A function that only programs of ours have, to be looked for where the Python package works; can be repeated
    #[arg(long, value_name = "FUNCTION")]
    pub native: Vec<String>,
    #[command(flatten)]
    pub format: JsonOnly,
}

#[derive(Serialize)]
struct Document<'a> {
    backend: &'a str,
    healthy: bool,
    complete: bool,
    dry_run: bool,
    looked_at: u64,
    queues: &'a [String],
    findings: Vec<FindingShape<'a>>,
}

#[derive(Serialize)]
struct FindingShape<'a> {
    kind: &'static str,
    severity: &'static str,
    queue: Option<&'a str>,
    count: u64,
    fixed: u64,
    repairable: bool,
    meaning: &'static str,
    remedy: &'static str,
    examples: &'a [String],
}

impl<'a> From<&'a Finding> for FindingShape<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            kind: finding.kind.code(),
            severity: finding.severity.word(),
            queue: finding.queue.as_deref(),
            count: finding.count,
            fixed: finding.fixed,
            repairable: finding.is_repairable(),
            meaning: finding.meaning(),
            remedy: finding.remedy().text(),
            examples: &finding.examples,
        }
    }
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &DoctorArgs) -> Result<Exit, CliError> {
    let fix = args.fix && !args.dry_run;
    if fix {
        cx.require_write()?;
    }
    for queue in &args.queues {
        cx.queue(queue).await?;
    }
    let mut queues = args.queues.clone();
    if queues.is_empty() && cx.is_read_only() {
        // The search that remembers how far it came would write.
        queues = cx.queues(SEARCH).await?;
    }
    let options = Checkup { queues, examples: args.examples, fix, search: !args.quick, native: args.native.clone() };
    let mut interrupt = Box::pin(tokio::signal::ctrl_c());
    // The first look is what makes Ctrl-C ours.
    let _ = interrupt.as_mut().now_or_never();
    let mut told = Teller::new();
    let mut progress = |progress: Progress| {
        told.tell(&progress);
        if interrupt.as_mut().now_or_never().is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report = cx.backend().doctor(&options, &mut progress).await;
    told.clear();
    let report = report?;
    if args.format.json {
        json(cx, args, &report)?
    } else {
        print(cx, args, &report)?
    }
    cx.out.flush()?;
    if !report.complete {
        talk("interrupted; not everything was looked at");
    }
    Ok(if report.is_healthy() && report.complete { Exit::Done } else { Exit::Partial })
}

fn json(cx: &mut Context, args: &DoctorArgs, report: &Report) -> Result<(), CliError> {
    let backend = cx.backend().alias().to_owned();
    cx.out.json(&Versioned::new(Document {
        backend: &backend,
        healthy: report.is_healthy(),
        complete: report.complete,
        dry_run: args.dry_run,
        looked_at: report.looked_at,
        queues: &report.queues,
        findings: report.findings.iter().map(FindingShape::from).collect(),
    }))
}

fn print(cx: &mut Context, args: &DoctorArgs, report: &Report) -> Result<(), CliError> {
    for finding in &report.findings {
        let paint = match finding.severity {
            Severity::Error => Paint::Bad,
            Severity::Warning => Paint::Warning,
            Severity::Note => Paint::Faint,
        };
        let queue = finding.queue.as_deref().map(|queue| format!(" in `{}`", visible(queue))).unwrap_or_default();
        let label = painted(paint, format_args!("{}:", finding.severity.word()));
        cx.out.line(&format!("{label} {} {}{queue}", finding.count, finding.kind.code()))?;
        cx.out.line(&format!("  {}", finding.meaning()))?;
        if !finding.examples.is_empty() {
            let examples: Vec<_> = finding.examples.iter().map(|example| visible(example).into_owned()).collect();
            let more = if finding.count > examples.len() as u64 { ", …" } else { "" };
            cx.out.line(&format!("  {}{more}", examples.join(", ")))?;
        }
        cx.out.line(&format!("  {}", remedy(args, finding)))?;
    }
    let left = report.findings.iter().filter(|finding| finding.severity > Severity::Note && finding.left() > 0);
    let queues = count(report.queues.len() as u64, "queue", "queues");
    let looked_at = count(report.looked_at, "entry", "entries");
    cx.out.flush()?;
    match left.count() {
        0 => talk(&format!("nothing to act on in {queues}, {looked_at} looked at")),
        left => {
            let found = count(left as u64, "finding", "findings");
            let fixable = !args.fix && report.findings.iter().any(Finding::is_repairable);
            let hint = if fixable { "; `threadmill doctor --fix` repairs what can safely be repaired" } else { "" };
            talk(&format!("{found} in {queues}, {looked_at} looked at{hint}"));
        }
    }
    Ok(())
}

/// What was done about a finding, or can be.
fn remedy(args: &DoctorArgs, finding: &Finding) -> String {
    let text = finding.remedy().text();
    match finding.remedy() {
        Remedy::Advice(_) => text.to_owned(),
        Remedy::Repair(_) if args.dry_run => format!("would be repaired: {text}"),
        Remedy::Repair(_) if args.fix && finding.left() == 0 => format!("repaired: {text}"),
        Remedy::Repair(_) if args.fix => format!("repaired {} of {}: {text}", finding.fixed, finding.count),
        Remedy::Repair(_) => format!("--fix repairs it: {text}"),
    }
}

/// Progress on stderr, at a terminal only.
struct Teller {
    last: Option<Instant>,
    shown: bool,
}

impl Teller {
    fn new() -> Self {
        Self { last: std::io::stderr().is_terminal().then(Instant::now), shown: false }
    }

    fn tell(&mut self, progress: &Progress) {
        if self.last.is_none_or(|last| last.elapsed() < TELL_EVERY) {
            return;
        }
        (self.last, self.shown) = (Some(Instant::now()), true);
        let queue = progress.queue.as_deref().map(|queue| format!(" of {}", visible(queue))).unwrap_or_default();
        // Where nobody listens there is nothing to do about it.
        let _ = write!(std::io::stderr(), "\r\x1b[K{}{queue}: {}", progress.stage, progress.looked_at);
    }

    fn clear(&mut self) {
        if self.shown {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
