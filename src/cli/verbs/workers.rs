//! `workers`: the workers that are on record.

use crate::backend::WorkerInfo;
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, Table, WorkerShape, talk};
use crate::cli::time;
use crate::task::{Stamp, visible};
use clap::Args;
use serde::Serialize;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill workers
  threadmill workers --json | jq '.workers[] | select(.silent_seconds > 30).id'";

/// List the workers that are on record
///
/// The one heard of last comes first. Workers of the Python package keep no record.
#[derive(Args, Debug)]
pub struct WorkersArgs {
    #[command(flatten)]
    pub format: Format,
}

#[derive(Serialize)]
struct Document {
    backend: String,
    workers: Vec<WorkerShape>,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &WorkersArgs) -> Result<Exit, CliError> {
    let workers = cx.backend().workers().await?;
    if args.format.json {
        let shapes = workers.iter().map(WorkerShape::from).collect();
        cx.out.json(&Versioned::new(Document { backend: cx.backend().alias().to_owned(), workers: shapes }))?;
    } else if args.format.jsonl {
        workers.iter().try_for_each(|worker| cx.out.json_line(&Versioned::new(WorkerShape::from(worker))))?;
    } else {
        print(cx, &workers).await?;
    }
    Ok(Exit::Done)
}

async fn print(cx: &mut Context, workers: &[WorkerInfo]) -> Result<(), CliError> {
    if workers.is_empty() {
        talk(&format!("no worker is on record on backend `{}`", cx.backend().alias()));
        return Ok(());
    }
    let now = cx.backend().now().await?;
    let columns = ["ID", "HOST", ">PID", "VERSION", "QUEUES", ">RUNNING", "SINCE", "HEARD"];
    let mut table = Table::new(&columns).whole(0);
    for worker in workers {
        let since = Stamp::parse(&worker.started_at).map(|stamp| stamp.at());
        let heard = match worker.dead {
            true => ("dead".to_owned(), Paint::Bad),
            false => (format!("{} ago", time::brief(worker.silent)), Paint::Plain),
        };
        let texts = [
            visible(&worker.id).into_owned(),
            visible(&worker.host).into_owned(),
            worker.pid.to_string(),
            visible(&worker.version).into_owned(),
            visible(&worker.queues.join(", ")).into_owned(),
            worker.running.to_string(),
            cx.out.moment(since, now),
        ];
        table.row(texts.into_iter().map(|text| (text, Paint::Plain)).chain([heard]));
    }
    cx.out.table(table)
}
