//! What an attempt is charged with that its child could not end: the error in its record.

use crate::backend::codec::encode_error;
use crate::task::{ErrorRecord, LEASE_LOST_CLASS, TaskRecord};
use std::time::Duration;

/// How the message of a crash begins; counted in a task's errors.
const CRASH: &str = "The process that ran this task ";
/// The class of an error of time; Python's, so that a retry policy can name it.
const TIMEOUT_CLASS: &str = "builtins.TimeoutError";

/// The error of a task whose process `ended` like that. Its class is that of a lost lease, as a process that dies under the
/// Python package leaves it, so that retry policies which name it hold.
pub(crate) fn crashed(ended: &str) -> ErrorRecord {
    encode_error(LEASE_LOST_CLASS, &format!("{LEASE_LOST_CLASS}: {CRASH}{ended}.\n"))
}

/// The error of a task whose process was killed at the hard limit.
pub(crate) fn overran(limit: Duration) -> ErrorRecord {
    let text = format!("the task ran longer than its hard limit of {limit:?}; its process was killed");
    encode_error(TIMEOUT_CLASS, &format!("TimeoutError: {text}\n"))
}

/// The message of the exception that the soft limit raises.
pub(crate) fn soft_limit(limit: Duration) -> String {
    format!("the task ran longer than its soft limit of {limit:?}")
}

/// How many processes a task has ended, by its record.
pub(crate) fn crashes(record: &TaskRecord) -> u32 {
    let is_crash = |error: &&ErrorRecord| error.class_path == LEASE_LOST_CLASS && error.traceback.contains(CRASH);
    u32::try_from(record.errors.iter().filter(is_crash).count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::queued;
    use crate::task::{NewTask, TaskId};

    #[test]
    fn a_crash_is_told_and_counted() {
        let mut record = queued(&NewTask::new(TaskId::from("x"), "f"), "default", chrono::Utc::now());
        record.errors = vec![crashed("was ended by SIGSEGV"), overran(Duration::from_secs(5))];
        record.errors.push(encode_error(LEASE_LOST_CLASS, "Task processing lease expired.\n"));
        assert_eq!(crashes(&record), 1);
        assert_eq!(
            record.errors[0].summary(),
            "threadmill.exceptions.AcknowledgementTimeoutError: The process that ran this task was ended by SIGSEGV."
        );
        assert_eq!(record.errors[1].summary().split(':').next(), Some("TimeoutError"));
    }
}
