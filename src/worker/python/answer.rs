//! What the payloads of a child's frames say.

use crate::backend::codec::{check_json, decode_string, object_fields};
use crate::task::{ErrorRecord, RawJson};
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a child says of itself and of its site, before it takes its first task.
#[derive(Clone, Debug, Deserialize)]
pub struct Hello {
    /// The interpreter's version.
    pub python: String,
    /// Django's version.
    pub django: String,
    /// The version of the Python package, where it is installed.
    pub threadmill: Option<String>,
    /// Whether the interpreter is a free-threaded build.
    pub free_threaded: bool,
    /// Whether its global lock is on all the same.
    pub gil: bool,
    /// Python's own words on which extension turned it on.
    pub gil_warning: Option<String>,
    /// The settings module.
    pub settings: Option<String>,
    /// The entries of the TASKS setting.
    pub aliases: BTreeMap<String, SiteAlias>,
}

/// One entry of a site's TASKS setting.
#[derive(Clone, Debug, Deserialize)]
pub struct SiteAlias {
    /// The dotted path of the backend's class.
    pub backend: String,
    /// REDIS_URL, where it has one.
    pub redis_url: Option<String>,
    /// QUEUES, in their order.
    pub queues: Vec<String>,
    /// OPTIONS: time spans in seconds, what is no JSON as its text.
    pub options: BTreeMap<String, Value>,
}

/// What the decorator says of a function of the site.
#[derive(Clone, Debug, Deserialize)]
pub struct Described {
    /// The path under which it is stored.
    pub func: String,
    /// The alias of its backend.
    pub backend: String,
    /// Its queue.
    pub queue: String,
    /// Its priority.
    pub priority: i32,
    /// Whether it takes the context first.
    pub takes_context: bool,
    /// Its retry policy as it is stored.
    pub retry: Value,
}

/// A hello or an answer is either what was asked for or the traceback of what went wrong.
pub(crate) fn answer<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Result<T, String> {
    #[derive(Deserialize)]
    struct Failed {
        failed: String,
    }
    if let Ok(Failed { failed }) = serde_json::from_slice(payload) {
        return Err(failed);
    }
    serde_json::from_slice(payload).map_err(|e| format!("the answer of the Python process cannot be read: {e}"))
}

/// The verdict in an answer to a `V` frame.
pub(crate) fn verdict(payload: &[u8]) -> Result<Option<Duration>, String> {
    #[derive(Deserialize)]
    struct Decided {
        retry: Option<f64>,
    }
    answer::<Decided>(payload).map(|decided| decided.retry.map(delay_of))
}

/// A log record of the child.
#[derive(Debug, Deserialize)]
pub(crate) struct Logged {
    /// As Python numbers it: 10 debug, 20 info, 30 warning, 40 error.
    pub number: i64,
    pub logger: String,
    pub message: String,
    pub exception: Option<String>,
    pub task: Option<String>,
    pub queue: Option<String>,
}

/// What the policy in the child says of a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ChildVerdict {
    /// The child left it to the supervisor.
    NotAsked,
    /// The policy grants no retry.
    No,
    /// It grants one after this long.
    After(Duration),
}

/// When an attempt began and ended, by the machine's clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Times {
    pub started_at: DateTime<Utc>,
    pub finished_at: DateTime<Utc>,
}

impl Times {
    /// How long it took.
    pub fn took(&self) -> Duration {
        (self.finished_at - self.started_at).to_std().unwrap_or_default()
    }
}

/// Reads a `D` frame.
pub(crate) fn done(payload: &[u8]) -> Option<(Times, RawJson)> {
    let (times, text) = timed(payload)?;
    check_json(text).ok()?;
    Some((times, RawJson::new(text)))
}

/// Reads an `E` frame.
pub(crate) fn failed(payload: &[u8]) -> Option<(Times, ErrorRecord, ChildVerdict)> {
    let (times, text) = timed(payload)?;
    let fields = object_fields(text).ok()?;
    let field = |name: &str| fields.iter().find(|(key, _)| key == name).map(|(_, raw)| *raw);
    let raw = field("error")?;
    let verdict = match field("retry") {
        None => ChildVerdict::NotAsked,
        Some("null") => ChildVerdict::No,
        Some(seconds) => ChildVerdict::After(delay_of(seconds.parse().ok()?)),
    };
    let error = object_fields(raw).ok()?;
    let part = |name: &str| error.iter().find(|(key, _)| key == name).map(|(_, raw)| decode_string(raw).into_owned());
    let error = ErrorRecord {
        class_path: part("exception_class_path")?,
        traceback: part("traceback")?,
        raw: RawJson::new(raw),
    };
    Some((times, error, verdict))
}

/// The numbers in a `U` frame.
pub(crate) fn numbers(payload: &[u8]) -> Vec<u64> {
    payload.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok().map(u64::from_be_bytes)).collect()
}

/// A moment that Python's `time.time()` gave.
pub(crate) fn moment(seconds: f64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros((seconds * 1e6) as i64)
}

fn timed(payload: &[u8]) -> Option<(Times, &str)> {
    let (head, text) = payload.split_at_checked(16)?;
    let time = |bytes: &[u8]| bytes.try_into().ok().map(f64::from_be_bytes).and_then(moment);
    let times = Times { started_at: time(&head[..8])?, finished_at: time(&head[8..])? };
    Some((times, std::str::from_utf8(text).ok()?))
}

/// A delay in seconds; what is no span of time means none.
fn delay_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(text: &str) -> Vec<u8> {
        [&1.5f64.to_be_bytes()[..], &2.0f64.to_be_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn a_value_is_carried_as_it_is() {
        let (times, value) = done(&payload(r#"[NaN, "\ud800"]"#)).unwrap();
        assert_eq!((times.took(), value.as_str()), (Duration::from_millis(500), r#"[NaN, "\ud800"]"#));
        assert!(done(&payload("<object>")).is_none());
        assert!(done(b"short").is_none());
    }

    #[test]
    fn a_failure_has_its_error_and_perhaps_a_verdict() {
        let error = r#"{"exception_class_path": "builtins.ValueError", "traceback": "no \ud800"}"#;
        let read = |retry: &str| failed(&payload(&format!("{{\"error\": {error}{retry}}}"))).unwrap();
        let (_, record, verdict) = read("");
        assert_eq!((record.raw.as_str(), verdict), (error, ChildVerdict::NotAsked));
        assert_eq!((record.class_path.as_str(), record.traceback.as_str()), ("builtins.ValueError", "no \u{fffd}"));
        assert_eq!(read(", \"retry\": null").2, ChildVerdict::No);
        assert_eq!(read(", \"retry\": 0.25").2, ChildVerdict::After(Duration::from_millis(250)));
    }

    #[test]
    fn an_answer_or_the_traceback() {
        assert_eq!(verdict(br#"{"retry": 1.5}"#), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(verdict(br#"{"retry": null}"#), Ok(None));
        assert_eq!(verdict(br#"{"failed": "Traceback"}"#), Err("Traceback".into()));
    }
}
