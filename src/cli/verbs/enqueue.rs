//! `enqueue`: a task, put on a queue.

use crate::backend::codec::{check_json, decode_retry, encode_backoff, encode_string, object_fields};
use crate::backend::{EnqueueOutcome, new_id};
use crate::cli::args::JsonOnly;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::talk;
use crate::cli::time::{parse_duration, parse_moment, rfc3339};
use crate::cli::verbs::due;
use crate::task::{ExponentialBackoff, NewTask, RawJson, Retry, TaskId, visible};
use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use std::time::Duration;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill enqueue shop.tasks.add --args '[1, 2]'
  threadmill enqueue shop.tasks.welcome --queue emails --kwargs '{\"user\": 7}' --priority 10
  threadmill enqueue shop.tasks.report --in 2h30m --retry backoff
  threadmill enqueue shop.tasks.report --at 2030-12-24T18:00:00Z --idempotency-key report-2030
  threadmill enqueue shop.tasks.sync --retry '{\"max_retries\": 3, \"base_delay\": 2.0}'";

/// Put a task on a queue and print its id
#[derive(Args, Debug)]
pub struct EnqueueArgs {
    /// The dotted name of the function, such as shop.tasks.add
    #[arg(value_name = "FUNCTION")]
    pub function: String,
    /// The queue
    #[arg(long, short, value_name = "QUEUE", default_value = "default")]
    pub queue: String,
    /// Positional arguments, a JSON list
    #[arg(long, value_name = "JSON", default_value = "[]", allow_hyphen_values = true)]
    pub args: String,
    /// Keyword arguments, a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}", allow_hyphen_values = true)]
    pub kwargs: String,
    /// Run it in a while
    #[arg(long = "in", value_name = "DURATION", value_parser = parse_duration)]
    pub after: Option<Duration>,
    /// Run it at this moment, such as 2030-12-24T18:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_moment, conflicts_with = "after")]
    pub at: Option<DateTime<Utc>>,
    /// Higher goes first, from -100 to 100
    #[arg(long, short, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i32).range(-100..=100))]
    pub priority: i32,
    /// The function takes the task's context as its first argument
    #[arg(long)]
    pub takes_context: bool,
    /// When it runs again after a failure: backoff, a dotted name, or JSON
    ///
    /// `backoff` is the built-in one with its defaults. A JSON object sets its options: base_delay, max_delay (both in
    /// seconds), factor, max_retries, expected_exceptions. A dotted name or a list is stored as the Python package
    /// stores it, and only a worker of the Python package evaluates it.
    #[arg(long, value_name = "POLICY")]
    pub retry: Option<String>,
    /// Use this id; a task that has it already stands for this one
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Store nothing where a task was enqueued with the same key in the last day
    #[arg(long, value_name = "KEY")]
    pub idempotency_key: Option<String>,
    #[command(flatten)]
    pub format: JsonOnly,
}

#[derive(Serialize)]
struct Document {
    id: String,
    queue: String,
    function: String,
    /// `enqueued`, `replayed` or `duplicate`.
    outcome: &'static str,
    due_at: Option<String>,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &EnqueueArgs) -> Result<Exit, CliError> {
    let mut task = prepare(args)?;
    cx.require_write()?;
    task.run_after = due(cx, args.after, args.at).await?;
    let enqueued = cx.backend().enqueue(std::slice::from_ref(&task)).await?.pop();
    // One task was sent, and the backend answers for each.
    let enqueued = enqueued.expect("each task has an answer");
    let (outcome, word) = match enqueued.outcome {
        EnqueueOutcome::Stored => ("enqueued", None),
        EnqueueOutcome::Replayed => ("replayed", Some("a task of this id was enqueued before; nothing changed")),
        EnqueueOutcome::Duplicate => ("duplicate", Some("a task of this key was enqueued before; this is its id")),
    };
    if args.format.json {
        let due_at = task.run_after.map(rfc3339);
        let (queue, function) = (task.queue, task.func);
        cx.out.json(&Versioned::new(Document { id: enqueued.id.to_string(), queue, function, outcome, due_at }))?;
    } else {
        cx.out.line(&visible(enqueued.id.as_str()))?;
        cx.out.flush()?;
        word.into_iter().for_each(talk);
    }
    Ok(Exit::Done)
}

/// The task that the arguments describe, without its time.
fn prepare(args: &EnqueueArgs) -> Result<NewTask, CliError> {
    let id = match args.id.as_deref() {
        Some("") => return Err(CliError::usage("--id is empty")),
        Some(id) => TaskId::from(id),
        None => new_id(),
    };
    let mut task = NewTask::new(id, args.function.trim());
    task.queue.clone_from(&args.queue);
    task.args = json_of("--args", &args.args, '[', "a list, such as '[1, 2]'")?;
    task.kwargs = json_of("--kwargs", &args.kwargs, '{', "an object, such as '{\"user\": 7}'")?;
    task.priority = args.priority;
    task.takes_context = args.takes_context;
    task.idempotency.clone_from(&args.idempotency_key);
    task.retry = args.retry.as_deref().map(retry_of).transpose()?;
    Ok(task)
}

fn json_of(flag: &str, text: &str, opening: char, expected: &str) -> Result<RawJson, CliError> {
    let text = text.trim();
    if let Err(e) = check_json(text) {
        return Err(CliError::usage(format!("{flag} is no JSON: {}\n{}", e.what, pointer(text, e.at)))
            .hint(format!("{flag} takes {expected}; mind the quotes of the shell")));
    }
    if !text.starts_with(opening) {
        return Err(CliError::usage(format!("{flag} must be {expected}\n{}", pointer(text, 0))));
    }
    Ok(RawJson::new(text))
}

/// The part of a text around a byte, with a mark under it.
fn pointer(text: &str, at: usize) -> String {
    const AROUND: usize = 30;
    let at = text.floor_char_boundary(at.min(text.len()));
    let from = text.floor_char_boundary(at.saturating_sub(AROUND));
    let to = text.ceil_char_boundary((at + AROUND).min(text.len()));
    let before = visible(&text[from..at]).into_owned();
    let column = unicode_width::UnicodeWidthStr::width(before.as_str());
    format!("{before}{}\n{}^", visible(&text[at..to]), " ".repeat(column))
}

fn retry_of(text: &str) -> Result<Retry, CliError> {
    let text = text.trim();
    if text == "backoff" {
        let backoff = ExponentialBackoff::new();
        let raw = encode_backoff(&backoff);
        return Ok(Retry::Backoff(backoff, raw));
    }
    let stored = if text.starts_with('{') {
        check_retry(text)?;
        let mut stored = String::from("[");
        encode_string(&mut stored, Retry::backoff_path());
        stored + ", [], " + text + "]"
    } else if text.starts_with(['[', '"']) {
        check_retry(text)?;
        text.to_owned()
    } else if text.contains('.') && text.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '_')) {
        let mut stored = String::new();
        encode_string(&mut stored, text);
        stored
    } else {
        return Err(CliError::usage(format!("--retry: `{text}` is no policy"))
            .hint("give `backoff`, a JSON object of its options, or the dotted name of a Python function"));
    };
    let wrong = |why: String| CliError::usage(format!("--retry: {why}"));
    match decode_retry(&stored).map_err(|e| wrong(e.to_string()))? {
        // Written anew, so that every option has a value and the form that the Python package expects.
        Retry::Backoff(backoff, _) => {
            let raw = encode_backoff(&backoff);
            Ok(Retry::Backoff(backoff, raw))
        }
        Retry::Callback(path, _) if Retry::is_backoff_path(&path) => {
            Err(wrong(format!("the backoff has no such options: {}", unknown_options(text).join(", "))).hint(
                "its options are base_delay, max_delay, factor, max_retries (numbers) and expected_exceptions (a list)",
            ))
        }
        other => Ok(other),
    }
}

fn check_retry(text: &str) -> Result<(), CliError> {
    check_json(text).map_err(|e| CliError::usage(format!("--retry is no JSON: {}\n{}", e.what, pointer(text, e.at))))
}

/// What is written in place of options, as it is told.
fn unknown_options(text: &str) -> Vec<String> {
    object_fields(text)
        .unwrap_or_default()
        .into_iter()
        .map(|(key, value)| format!("{} = {}", visible(&key), visible(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_pointed_at() {
        assert_eq!(pointer("[1, oops]", 4), "[1, oops]\n    ^");
        assert_eq!(pointer("[1", 2), "[1\n  ^");
        let long = format!("[\"{}\", é, {}]", "x".repeat(100), "1".repeat(100));
        let at = long.find('é').unwrap();
        let told = pointer(&long, at);
        let (line, mark) = told.split_once('\n').unwrap();
        assert_eq!(line.chars().nth(mark.len() - 1), Some('é'));
    }

    #[test]
    fn a_retry_is_stored_as_the_python_package_stores_it() {
        let check = |text: &str, expected: &str| {
            assert_eq!(retry_of(text).unwrap().raw().as_str(), expected, "{text}");
        };
        let backoff = encode_backoff(&ExponentialBackoff::new());
        check("backoff", backoff.as_str());
        check("{}", backoff.as_str());
        check("shop.retry.policy", "\"shop.retry.policy\"");
        check("[\"shop.retry.Policy\", [1], {}]", "[\"shop.retry.Policy\", [1], {}]");
        let three = ExponentialBackoff::new().max_retries(3);
        check("{\"max_retries\": 3}", encode_backoff(&three).as_str());
        for text in ["often", "{\"jitter\": 1}", "{\"factor\": }", "[]", "{\"factor\": \"x\"}"] {
            assert!(retry_of(text).is_err(), "{text}");
        }
    }
}
