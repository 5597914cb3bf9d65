//! What the beginning of a stored record says of the whole, without reading what may be megabytes behind it.

use crate::backend::codec::decode::{decode_spec, field, stamp_of};
use crate::backend::codec::scan::each_field;
use crate::backend::codec::text::decode_string;
use crate::task::{Stamp, Status};

/// Bytes of a record that hold its definition, its status and its times, unless names in it are absurdly long.
pub(crate) const HEADING: usize = 4096;

/// The fields that stand before the user data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Heading {
    /// The queue that it names.
    pub queue: String,
    /// How it stands.
    pub status: Option<Status>,
    /// When it finished.
    pub finished_at: Option<Stamp>,
}

/// Reads the beginning of a record; `None` where it cannot be read or names no queue.
pub(crate) fn heading(head: &[u8]) -> Option<Heading> {
    // The cut may go through a character of the user data; what stands before is whole.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&head[..e.valid_up_to()]).ok()?,
    };
    let mut fields = Vec::new();
    // It breaks off somewhere; the fields before that are whole.
    let _ = each_field(text, |key, value| fields.push((key, value)));
    let spec = decode_spec(field(&fields, "task")?).ok()?;
    let status = field(&fields, "status").and_then(|raw| Status::from_name(&decode_string(raw)));
    let finished_at = stamp_of("finished_at", field(&fields, "finished_at")).ok().flatten();
    Some(Heading { queue: spec.queue_name, status, finished_at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::{Attempt, encode, encode_error, failure, queued};
    use crate::task::{NewTask, RawJson, TaskId};
    use chrono::DateTime;
    use proptest::prelude::*;

    fn long_failure() -> String {
        let at = DateTime::from_timestamp_millis(1_796_067_570_881).unwrap();
        let mut task = NewTask::new(TaskId::from("x"), "shop.f");
        task.queue = "größe: a".into();
        task.args = RawJson::new(format!("[\"{}\"]", "é".repeat(9000)));
        let attempt = Attempt { worker: "w".into(), started_at: at, finished_at: at };
        encode(&failure(&queued(&task, "default", at), &attempt, encode_error("builtins.ValueError", "no\n")))
    }

    #[test]
    fn the_beginning_of_a_long_record_is_enough() {
        let text = long_failure();
        for cut in [HEADING, HEADING + 1, text.len()] {
            let read = heading(&text.as_bytes()[..cut]).unwrap();
            assert_eq!((read.queue.as_str(), read.status), ("größe: a", Some(Status::Failed)));
            assert_eq!(read.finished_at.unwrap().millis(), 1_796_067_570_881.0);
        }
        assert_eq!(heading(b"{\"task\": {\"queue_name\": \"a\""), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>(), cut in 0usize..4000) {
            heading(&bytes);
            heading(&long_failure().as_bytes()[..cut]);
        }
    }
}
