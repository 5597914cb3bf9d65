//! What a list shows of a record, from its whole text or from its beginning and end alone.

use crate::backend::codec::decode::{decode, decode_spec, error_of, field, stamp_of};
use crate::backend::codec::scan::{check_json, each_field};
use crate::backend::codec::text::decode_string;
use crate::backend::view::{Readable, Summary};
use crate::task::{ErrorRecord, RawJson, TaskRecord};

/// Bytes of `args` that a list keeps.
const ARGS_HEAD: usize = 200;
/// Bytes of an unreadable record that a list keeps.
const RAW_HEAD: usize = 200;

/// What a list shows of a record that was read whole.
fn readable(record: &TaskRecord, leased: bool) -> Readable {
    Readable {
        func: record.spec.func.clone(),
        priority: record.spec.priority.value,
        enqueued_at: record.enqueued_at.clone(),
        started_at: record.started_at.clone(),
        finished_at: record.finished_at.clone(),
        attempts: Some(record.attempts() + u32::from(leased)),
        last_error: record.errors.last().cloned(),
        args_head: head_of(record.args.as_str(), ARGS_HEAD).to_owned(),
    }
}

/// What a list shows of a record that was read whole.
pub(crate) fn summary_of(record: &TaskRecord, leased: bool) -> Summary {
    Summary::Readable(Box::new(readable(record, leased)))
}

/// What a list shows of a stored record: `head` is all of it, or its beginning where `tail` is not empty.
pub(crate) fn excerpt(head: &[u8], tail: &[u8], leased: bool) -> Summary {
    let read = if tail.is_empty() {
        decode(head).map(|record| readable(&record, leased)).map_err(|e| e.to_string())
    } else {
        from_parts(&String::from_utf8_lossy(head), &String::from_utf8_lossy(tail), leased)
    };
    match read {
        Ok(readable) => Summary::Readable(Box::new(readable)),
        Err(reason) => {
            let text = String::from_utf8_lossy(head);
            Summary::Unreadable { reason, head: head_of(&text, RAW_HEAD).to_owned() }
        }
    }
}

/// Reads what can be read of a long record. The definition and the times come first in it, the workers last.
fn from_parts(head: &str, tail: &str, leased: bool) -> Result<Readable, String> {
    let mut fields = Vec::new();
    // The text breaks off somewhere: the fields before that are whole.
    let broken = each_field(head, |key, value| fields.push((key, value)));
    let spec = field(&fields, "task").ok_or_else(|| match broken {
        Err(e) => format!("the record is not JSON: {e}"),
        Ok(_) => "the record has no field `task`".to_owned(),
    })?;
    let spec = decode_spec(spec).map_err(|e| e.to_string())?;
    let stamp = |name| stamp_of(name, field(&fields, name)).map_err(|e| e.to_string());
    let end = tail_of(tail);
    Ok(Readable {
        func: spec.func,
        priority: spec.priority.value,
        enqueued_at: stamp("enqueued_at")?,
        started_at: stamp("started_at")?,
        finished_at: stamp("finished_at")?,
        attempts: end.as_ref().map(|end| end.attempts + u32::from(leased)),
        last_error: end.and_then(|end| end.last_error),
        args_head: match field(&fields, "args") {
            Some(args) => head_of(args, ARGS_HEAD).to_owned(),
            None => head.split_once("\"args\": ").map_or("", |(_, rest)| head_of(rest, ARGS_HEAD)).to_owned(),
        },
    })
}

struct Tail {
    attempts: u32,
    last_error: Option<ErrorRecord>,
}

/// The end of a record as the Python package and we write it: the last error, the workers, a short return value.
fn tail_of(tail: &str) -> Option<Tail> {
    const WORKERS: &str = "], \"worker_ids\": [";
    const TRACEBACK: &str = "\"traceback\": ";
    // User data may hold the same words; only what reads as the end of a record counts.
    let (at, workers) = tail.rmatch_indices(WORKERS).find_map(|(at, _)| {
        let rest = &tail[at + WORKERS.len() - 1..];
        let (list, value) = rest.split_once("], \"_return_value\": ")?;
        let list = format!("{list}]");
        check_json(value.strip_suffix('}')?).ok()?;
        Some((at, crate::backend::codec::scan::list_items(&list).ok()?.len()))
    })?;
    let errors = &tail[..at];
    let last_error = errors.strip_suffix("\"}").and_then(|errors| {
        let whole = errors
            .rfind("{\"exception_class_path\": ")
            .and_then(|from| error_of(&format!("{}\"}}", &errors[from..])).ok());
        whole.or_else(|| {
            let from = errors.rfind(TRACEBACK).map_or(0, |from| from + TRACEBACK.len() + 1);
            // Broken text may end where a traceback should begin.
            let text = errors.get(from..).unwrap_or_default();
            let traceback = decode_string(&format!("\"{text}\"")).into_owned();
            let last = traceback.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
            let class_path = last.split(':').next().unwrap_or("").trim().to_owned();
            Some(ErrorRecord { class_path, traceback, raw: RawJson::null() })
        })
    });
    Some(Tail { attempts: u32::try_from(workers).unwrap_or(u32::MAX), last_error })
}

/// The first bytes of a text, cut between characters.
fn head_of(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::{Attempt, encode, encode_error, failure, queued};
    use crate::task::{NewTask, TaskId};
    use chrono::DateTime;
    use proptest::prelude::*;

    fn long_failure(traceback: &str) -> String {
        let at = DateTime::from_timestamp_millis(1).unwrap();
        let mut task = NewTask::new(TaskId::from("x"), "shop.f");
        task.args = RawJson::new(format!("[\"{}\"]", "], \\\"worker_ids\\\": [".repeat(2000)));
        let attempt = Attempt { worker: "w".into(), started_at: at, finished_at: at };
        encode(&failure(&queued(&task, "default", at), &attempt, encode_error("builtins.ValueError", traceback)))
    }

    fn parts(text: &str) -> Readable {
        match excerpt(&text.as_bytes()[..2048], &text.as_bytes()[text.len() - 4096..], false) {
            Summary::Readable(readable) => *readable,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn both_ends_of_a_long_record_are_enough_for_a_list() {
        let read = parts(&long_failure("Traceback\nValueError: no \"luck\"\n"));
        assert_eq!((read.func.as_str(), read.attempts), ("shop.f", Some(1)));
        let error = read.last_error.unwrap();
        assert_eq!((error.class_path.as_str(), error.summary()), ("builtins.ValueError", "ValueError: no \"luck\""));
        assert!(read.args_head.starts_with("[\"], "));
    }

    #[test]
    fn a_traceback_longer_than_the_end_still_gives_its_last_line() {
        let read = parts(&long_failure(&format!("{}\nValueError: far\n", "x".repeat(9000))));
        let error = read.last_error.unwrap();
        assert_eq!((error.class_path.as_str(), error.summary()), ("ValueError", "ValueError: far"));
    }

    #[test]
    fn an_error_that_breaks_off_at_its_traceback_is_no_panic() {
        for end in ["\"traceback\": \"}", "\"traceback\": é\"}"] {
            let tail = format!("{end}], \"worker_ids\": [\"w\"], \"_return_value\": null}}");
            assert!(tail_of(&tail).is_some_and(|tail| tail.attempts == 1));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(head in any::<Vec<u8>>(), tail in any::<Vec<u8>>(), cut in 0usize..4000) {
            excerpt(&head, &tail, true);
            let text = long_failure("Traceback\nValueError: é\n");
            excerpt(&text.as_bytes()[..cut], &text.as_bytes()[text.len() - cut..], false);
        }
    }
}
