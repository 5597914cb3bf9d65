//! Stored JSON to a record.

use crate::backend::codec::scan::{JsonError, list_items, object_fields};
use crate::backend::codec::text::decode_string;
use crate::task::{
    ErrorRecord, ExponentialBackoff, Priority, RawJson, Retry, Stamp, Status, TaskId, TaskRecord, TaskSpec,
};
use std::borrow::Cow;

/// Why a stored record cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Some bytes are not UTF-8.
    #[error("the record is not UTF-8 (byte {0})")]
    NotUtf8(usize),
    /// The text is not JSON, not even as Python writes it.
    #[error("the record is not JSON: {0}")]
    NotJson(#[from] JsonError),
    /// A field that every reader needs is not there.
    #[error("the record has no field `{0}`")]
    MissingField(&'static str),
    /// A field has a value that it cannot have.
    #[error("the record's field `{field}` is {found}")]
    BadField {
        /// Which one.
        field: &'static str,
        /// What stands there, shortened.
        found: String,
    },
}

/// Reads a stored record. Fields may come in any order; `_return_value`, `retry` and `priority` may be missing; fields
/// that nobody knows are passed over.
///
/// # Errors
/// Says what is wrong with this record.
pub fn decode(stored: &[u8]) -> Result<TaskRecord, DecodeError> {
    let text = std::str::from_utf8(stored).map_err(|e| DecodeError::NotUtf8(e.valid_up_to()))?;
    let fields = object_fields(text)?;
    let spec = decode_spec(required(&fields, "task")?)?;
    Ok(TaskRecord {
        id: TaskId::new(text_of("id", required(&fields, "id")?)?.into_owned()),
        status: status_of(required(&fields, "status")?)?,
        enqueued_at: stamp_of("enqueued_at", field(&fields, "enqueued_at"))?,
        started_at: stamp_of("started_at", field(&fields, "started_at"))?,
        finished_at: stamp_of("finished_at", field(&fields, "finished_at"))?,
        last_attempted_at: stamp_of("last_attempted_at", field(&fields, "last_attempted_at"))?,
        args: container_of("args", required(&fields, "args")?, '[')?,
        kwargs: container_of("kwargs", required(&fields, "kwargs")?, '{')?,
        backend: match field(&fields, "backend") {
            Some(raw) => text_of("backend", raw)?.into_owned(),
            None => spec.backend.clone(),
        },
        errors: errors_of(field(&fields, "errors"))?,
        worker_ids: worker_ids_of(field(&fields, "worker_ids"))?,
        return_value: field(&fields, "_return_value").map_or_else(RawJson::null, RawJson::new),
        spec,
    })
}

pub(super) type Fields<'a> = [(Cow<'a, str>, &'a str)];

pub(super) fn decode_spec(raw: &str) -> Result<TaskSpec, DecodeError> {
    let fields = object_fields(raw)?;
    Ok(TaskSpec {
        priority: priority_of(field(&fields, "priority"))?,
        backend: match field(&fields, "backend") {
            Some(raw) => text_of("backend", raw)?.into_owned(),
            None => "default".to_owned(),
        },
        queue_name: text_of("queue_name", required(&fields, "queue_name")?)?.into_owned(),
        run_after: stamp_of("run_after", field(&fields, "run_after"))?,
        takes_context: field(&fields, "takes_context") == Some("true"),
        func: text_of("func", required(&fields, "func")?)?.into_owned(),
        retry: field(&fields, "retry").filter(|raw| *raw != "null").map(decode_retry).transpose()?,
    })
}

/// The last field of that name, as Python takes it.
pub(super) fn field<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a str> {
    fields.iter().rev().find(|(key, _)| key == name).map(|(_, value)| *value)
}

fn required<'a>(fields: &Fields<'a>, name: &'static str) -> Result<&'a str, DecodeError> {
    field(fields, name).ok_or(DecodeError::MissingField(name))
}

fn bad(field: &'static str, raw: &str) -> DecodeError {
    let mut found: String = raw.chars().take(40).collect();
    if found.len() < raw.len() {
        found.push('…');
    }
    DecodeError::BadField { field, found }
}

fn text_of<'a>(name: &'static str, raw: &'a str) -> Result<Cow<'a, str>, DecodeError> {
    if raw.starts_with('"') { Ok(decode_string(raw)) } else { Err(bad(name, raw)) }
}

pub(super) fn stamp_of(name: &'static str, raw: Option<&str>) -> Result<Option<Stamp>, DecodeError> {
    match raw {
        None | Some("null") => Ok(None),
        Some(raw) => Stamp::parse(&text_of(name, raw)?).map(Some).ok_or_else(|| bad(name, raw)),
    }
}

fn status_of(raw: &str) -> Result<Status, DecodeError> {
    Status::from_name(&text_of("status", raw)?).ok_or_else(|| bad("status", raw))
}

fn priority_of(raw: Option<&str>) -> Result<Priority, DecodeError> {
    let raw = raw.unwrap_or("0");
    // Python's booleans are numbers.
    let value = match raw {
        "true" => 1.0,
        "false" => 0.0,
        number => number.parse::<f64>().map_err(|_| bad("priority", raw))?,
    };
    Ok(Priority { value, raw: RawJson::new(raw) })
}

fn container_of(name: &'static str, raw: &str, opening: char) -> Result<RawJson, DecodeError> {
    if raw.starts_with(opening) { Ok(RawJson::new(raw)) } else { Err(bad(name, raw)) }
}

fn errors_of(raw: Option<&str>) -> Result<Vec<ErrorRecord>, DecodeError> {
    let Some(raw) = raw.filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    list_items(raw).map_err(|_| bad("errors", raw))?.into_iter().map(error_of).collect()
}

pub(super) fn error_of(raw: &str) -> Result<ErrorRecord, DecodeError> {
    let fields = object_fields(raw).map_err(|_| bad("errors", raw))?;
    let text = |name| field(&fields, name).map(|raw| decode_string(raw).into_owned()).unwrap_or_default();
    Ok(ErrorRecord { class_path: text("exception_class_path"), traceback: text("traceback"), raw: RawJson::new(raw) })
}

fn worker_ids_of(raw: Option<&str>) -> Result<Vec<String>, DecodeError> {
    let Some(raw) = raw.filter(|raw| *raw != "null") else { return Ok(Vec::new()) };
    let items = list_items(raw).map_err(|_| bad("worker_ids", raw))?;
    items.into_iter().map(|item| Ok(text_of("worker_ids", item)?.into_owned())).collect()
}

/// A stored policy: `"module.function"` or `[path, [positional], {keyword}]`. What is not understood stays a callback
/// of the site, which only Python may judge.
///
/// # Errors
/// Says what is wrong with it.
pub fn decode_retry(raw: &str) -> Result<Retry, DecodeError> {
    let whole = RawJson::new(raw);
    if raw.starts_with('"') {
        return Ok(Retry::Callback(decode_string(raw).into_owned(), whole));
    }
    let parts = list_items(raw).map_err(|_| bad("retry", raw))?;
    let Some(path) = parts.first().filter(|path| path.starts_with('"')) else { return Err(bad("retry", raw)) };
    let path = decode_string(path).into_owned();
    let keywords = parts.get(2).copied().unwrap_or("{}");
    let positional = parts.get(1).copied().unwrap_or("[]");
    if Retry::is_backoff_path(&path)
        && list_items(positional).is_ok_and(|items| items.is_empty())
        && let Some(backoff) = backoff_of(keywords)
    {
        return Ok(Retry::Backoff(backoff, whole));
    }
    Ok(Retry::Callback(path, whole))
}

fn backoff_of(raw: &str) -> Option<ExponentialBackoff> {
    let mut backoff = ExponentialBackoff::new();
    for (key, value) in object_fields(raw).ok()? {
        match &*key {
            "base_delay" => backoff.base_delay = value.parse().ok()?,
            "max_delay" => backoff.max_delay = value.parse().ok()?,
            "factor" => backoff.factor = value.parse().ok()?,
            "max_retries" => backoff.max_retries = value.parse::<f64>().ok()?.clamp(0.0, f64::from(u32::MAX)) as u32,
            "expected_exceptions" => {
                backoff.expected_exceptions =
                    list_items(value).ok()?.into_iter().map(|item| decode_string(item).into_owned()).collect();
            }
            // Not one of ours: a later version means something by it.
            _ => return None,
        }
    }
    Some(backoff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Verdict;
    use proptest::prelude::*;
    use std::time::Duration;

    const PLAIN: &str = r#"{"task": {"priority": 0, "backend": "default", "queue_name": "default", "run_after": null, "takes_context": false, "func": "tasks.add", "retry": null}, "id": "01a22df8-34c1-75b3-9f47-8c0c3115e82f", "status": "READY", "enqueued_at": "2026-11-30T19:39:30.881Z", "started_at": null, "finished_at": null, "last_attempted_at": null, "args": [1, 2], "kwargs": {}, "backend": "default", "errors": [], "worker_ids": [], "_return_value": null}"#;

    #[test]
    fn a_record_and_its_variants() {
        let record = decode(PLAIN.as_bytes()).unwrap();
        assert_eq!((record.spec.func.as_str(), record.args.as_str(), record.attempts()), ("tasks.add", "[1, 2]", 0));
        let compact = PLAIN.replace("\", ", "\",").replace(": ", ":");
        assert_eq!(decode(compact.as_bytes()).unwrap().id, record.id);
        let short = PLAIN.replace(r#", "_return_value": null"#, "").replace(r#", "retry": null"#, "");
        assert_eq!(decode(short.replace(r#""priority": 0, "#, "").as_bytes()).unwrap(), record);
        assert_eq!(
            decode(PLAIN.replace("\"priority\": 0", "\"priority\": true").as_bytes()).unwrap().spec.priority.value,
            1.0
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let check = |from: &str, to: &str, part: &str| {
            let error = decode(PLAIN.replace(from, to).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        check("READY", "ready", "status");
        check("[1, 2]", "7", "args");
        check("\"id\"", "\"di\"", "`id`");
        check("\"errors\": []", "\"errors\": 5", "errors");
        check("2026-11-30T19:39:30.881Z", "soon", "enqueued_at");
        check("[1, 2]", "[1, 2", "not JSON");
        assert_eq!(decode(b"\xff{}"), Err(DecodeError::NotUtf8(0)));
    }

    #[test]
    fn a_stored_backoff_is_understood_and_another_policy_is_left_to_python() {
        let check = |retry: &str, expected: Verdict| {
            let record = decode(PLAIN.replace("\"retry\": null", &format!("\"retry\": {retry}")).as_bytes()).unwrap();
            assert_eq!(record.spec.retry.unwrap().verdict(1, "builtins.ValueError"), expected, "{retry}");
        };
        let backoff = r#"["threadmill.retry.ExponentialBackoff", [], {"base_delay": 1.5, "max_delay": 300.0, "factor": 2.0, "max_retries": 5, "expected_exceptions": ["builtins.ValueError"]}]"#;
        check(backoff, Verdict::RetryIn(Duration::from_secs(3)));
        check(&backoff.replace("factor", "jitter"), Verdict::Unknown);
        check(r#""shop.retry.policy""#, Verdict::Unknown);
        check(r#"["shop.retry.Policy", [1], {}]"#, Verdict::Unknown);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(at in 0usize..520, with in any::<Vec<u8>>(), skip in 0usize..9) {
            let mut bytes = PLAIN.as_bytes().to_vec();
            let at = at.min(bytes.len());
            let end = (at + skip).min(bytes.len());
            bytes.splice(at..end, with);
            let _ = decode(&bytes);
        }
    }
}
