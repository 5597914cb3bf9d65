//! `postpone`: SCHEDULED tasks, at another time.

use crate::backend::When;
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::time::{parse_duration, parse_moment};
use crate::cli::verbs::due;
use crate::cli::verbs::promote::reschedule;
use chrono::{DateTime, Utc};
use clap::Args;
use std::time::Duration;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill postpone --in 2h 01a22df8-34ed-7724-a9cf-37fad320e7d4
  threadmill postpone --at 2026-12-24T18:00:00Z 01a22df8-34ed-7724-a9cf-37fad320e7d4";

/// Let SCHEDULED tasks run at another time
///
/// Earlier or later than they would; what their definition says of it stays in their record.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("when").required(true))]
pub struct PostponeArgs {
    /// The ids, or parts of them that no others have
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Run them in this long from now
    #[arg(long = "in", value_name = "DURATION", value_parser = parse_duration, group = "when")]
    pub after: Option<Duration>,
    /// Run them at this moment, such as 2026-12-24T18:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment, group = "when")]
    pub at: Option<DateTime<Utc>>,
    /// Only say what would be done
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub format: Format,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &PostponeArgs) -> Result<Exit, CliError> {
    let Some(due) = due(cx, args.after, args.at).await? else {
        return Err(CliError::usage("give --in or --at"));
    };
    let done = if args.dry_run { "would_postpone" } else { "postponed" };
    reschedule(cx, &args.ids, When::At(due), done, args.dry_run, args.format).await
}
