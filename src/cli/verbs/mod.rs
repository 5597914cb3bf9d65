//! One file a verb: its arguments, its examples, what it does.

pub mod completions;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod drop;
pub mod enqueue;
pub mod inspector;
pub mod man;
pub mod r#move;
pub mod postpone;
pub mod promote;
pub mod purge;
pub mod queues;
pub mod requeue;
pub mod show;
pub mod tasks;
pub mod watch;
pub mod worker;
pub mod workers;

use crate::backend::TaskDetail;
use crate::cli::args::Format;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::{Versioned, line};
use crate::cli::output::{ActedShape, Paint, painted, talk};
use crate::cli::time;
use crate::task::visible;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use std::time::Duration;

/// When a task is to run: at once, in a while by the server's clock, or at a moment.
async fn due(
    cx: &Context,
    after: Option<Duration>,
    at: Option<DateTime<Utc>>,
) -> Result<Option<DateTime<Utc>>, CliError> {
    let Some(after) = after else { return Ok(at) };
    let too_far = || CliError::usage(format!("--in {}: that is beyond every calendar", time::brief(after)));
    let after = TimeDelta::from_std(after).map_err(|_| too_far())?;
    cx.backend().now().await?.checked_add_signed(after).map(Some).ok_or_else(too_far)
}

/// What became of tasks that were acted on one by one, and how the run ends.
#[derive(Default)]
struct Acted {
    tasks: Vec<ActedShape>,
    /// An error that ended the run early; what came before it is told first.
    broken: Option<CliError>,
}

#[derive(Serialize)]
struct ActedDocument<'a> {
    dry_run: bool,
    tasks: &'a [ActedShape],
}

impl Acted {
    /// Notes what became of one task; `Err` where nothing could be done with it. Answers whether to go on.
    fn note(&mut self, id: &str, detail: Option<&TaskDetail>, result: Result<&'static str, Declined>) -> bool {
        let (outcome, reason) = match result {
            Ok(outcome) => (outcome, None),
            Err(Declined::NotFound(why)) => ("not_found", Some(why)),
            Err(Declined::Refused(why)) => ("refused", Some(why)),
            Err(Declined::Broken(error)) => {
                self.broken = Some(error);
                return false;
            }
        };
        self.tasks.push(ActedShape {
            id: detail.map_or_else(|| id.to_owned(), |detail| detail.id.to_string()),
            queue: detail.and_then(|detail| detail.queue.clone()),
            function: detail.and_then(TaskDetail::record).map(|record| record.spec.func.clone()),
            outcome,
            reason,
        });
        true
    }

    fn exit(&self) -> Exit {
        let count = |outcome| self.tasks.iter().filter(|task| task.outcome == outcome).count();
        match (self.tasks.len(), count("not_found"), count("refused")) {
            (_, 0, 0) => Exit::Done,
            (all, missing, _) if missing == all => Exit::NotFound,
            (all, _, refused) if refused == all => Exit::Refused,
            _ => Exit::Partial,
        }
    }

    /// Tells it and ends the run.
    fn tell(self, cx: &mut Context, format: Format, dry_run: bool) -> Result<Exit, CliError> {
        if format.json {
            cx.out.json(&Versioned::new(ActedDocument { dry_run, tasks: &self.tasks }))?;
        } else {
            for task in &self.tasks {
                self.tell_one(cx, task, format)?;
            }
        }
        let exit = self.exit();
        match self.broken {
            None => Ok(exit),
            Some(error) if self.tasks.is_empty() => Err(error),
            Some(error) => {
                cx.out.flush()?;
                Err(error)
            }
        }
    }

    fn tell_one(&self, cx: &mut Context, task: &ActedShape, format: Format) -> Result<(), CliError> {
        if format.jsonl {
            return cx.out.line(&line(&Versioned::new(task)));
        }
        let id = visible(&task.id);
        match &task.reason {
            Some(reason) => {
                cx.out.flush()?;
                talk(&format!("{}: {id}: {reason}", task.outcome.replace('_', " ")));
                Ok(())
            }
            None => {
                let function = task.function.as_deref().map(visible).unwrap_or_default();
                let verb = painted(Paint::Good, task.outcome.replace('_', " "));
                cx.out.line(format!("{verb} {id} {function}").trim_end())
            }
        }
    }
}

/// Why nothing was done with a task.
enum Declined {
    NotFound(String),
    Refused(String),
    /// The run cannot go on.
    Broken(CliError),
}

impl From<crate::backend::BackendError> for Declined {
    fn from(error: crate::backend::BackendError) -> Self {
        Declined::Broken(error.into())
    }
}
