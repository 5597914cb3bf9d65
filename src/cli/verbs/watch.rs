//! `watch`: what happens, as it happens.

use crate::backend::{TelemetryEvent, TelemetryStream};
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Paint, painted, talk};
use crate::cli::time::{self, parse_positive};
use crate::task::visible;
use chrono::Utc;
use clap::Args;
use serde::Serialize;
use std::pin::pin;
use std::time::Duration;
use tokio::time::sleep;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill watch --for 10s
  threadmill watch emails --count 1 --for 1m
  threadmill watch --jsonl --for 1m | jq -r .queue | sort | uniq -c";

/// The pause before a lost subscription is made anew, doubling up to the longest.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Print what happens, as it happens
///
/// A task enters a queue (ingress), is finished (egress), or becomes ready by other ways (wake). These are messages that Redis keeps for nobody: what happens while this does not listen is not told.
#[derive(Args, Debug)]
pub struct WatchArgs {
    /// Only these queues
    #[arg(value_name = "QUEUE")]
    pub queues: Vec<String>,
    /// End after so many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// End after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_positive)]
    pub lasting: Option<Duration>,
    /// Print one JSON object a line
    #[arg(long, help_heading = "Output")]
    pub jsonl: bool,
}

#[derive(Serialize)]
struct Event<'a> {
    at: String,
    event: &'static str,
    queue: &'a str,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &WatchArgs) -> Result<Exit, CliError> {
    let end = async {
        match args.lasting {
            Some(lasting) => sleep(lasting).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        result = watch(cx, args) => result,
        () = end => Ok(Exit::Done),
        _ = tokio::signal::ctrl_c() => Ok(Exit::Done),
    }
}

async fn watch(cx: &mut Context, args: &WatchArgs) -> Result<Exit, CliError> {
    let mut left = args.count;
    // That there is no server at the start is an error; that it goes later is waited out.
    let mut stream = cx.backend().telemetry().await?;
    talk(&format!("watching {}", cx.backend().endpoint()));
    loop {
        let Some(event) = stream.next().await else {
            talk("the connection was lost; what happens until it is back is not told");
            stream = again(cx).await;
            talk("watching again");
            continue;
        };
        let (word, paint, queue) = match &event {
            TelemetryEvent::Ingress(queue) => ("ingress", Paint::Plain, queue),
            TelemetryEvent::Egress(queue) => ("egress", Paint::Good, queue),
            TelemetryEvent::Wake(queue) => ("wake", Paint::Faint, queue),
        };
        if !args.queues.is_empty() && !args.queues.contains(queue) {
            continue;
        }
        let at = time::rfc3339(Utc::now());
        if args.jsonl {
            cx.out.json_line(&Versioned::new(Event { at, event: word, queue }))?;
        } else {
            let word = painted(paint, format_args!("{word:<8}"));
            cx.out.line(&format!("{at}  {word} {}", visible(queue)))?;
        }
        cx.out.flush()?;
        left = left.map(|left| left - 1);
        if left == Some(0) {
            return Ok(Exit::Done);
        }
    }
}

async fn again(cx: &Context) -> TelemetryStream {
    let mut pause = PAUSE;
    loop {
        let waited = pin!(sleep(pause));
        waited.await;
        match cx.backend().telemetry().await {
            Ok(stream) => return stream,
            Err(_) => pause = (pause * 2).min(LONGEST_PAUSE),
        }
    }
}
