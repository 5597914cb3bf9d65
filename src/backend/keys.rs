//! The names of all keys. No other file makes one.
//!
//! `threadmill:{ALIAS}` is shared with the Python package; `threadmill-rs:{ALIAS}` is ours, out of reach of its
//! patterns and in the same slot of a cluster.

use crate::task::Segment;

/// Makes the keys of one backend alias.
#[derive(Clone, Debug)]
pub struct Keys {
    shared: String,
    own: String,
}

impl Keys {
    /// The keys of the backend `alias`.
    pub fn new(alias: &str) -> Self {
        Self { shared: format!("threadmill:{{{alias}}}"), own: format!("threadmill-rs:{{{alias}}}") }
    }

    /// What the key of a pending task begins with; its id follows.
    pub fn task_prefix(&self) -> String {
        format!("{}:task:", self.shared)
    }

    /// What the key of a result begins with; its id follows.
    pub fn result_prefix(&self) -> String {
        format!("{}:result:", self.shared)
    }

    /// The hash of a pending task.
    pub fn task(&self, id: &str) -> String {
        format!("{}:task:{id}", self.shared)
    }

    /// The JSON of a finished task.
    pub fn result(&self, id: &str) -> String {
        format!("{}:result:{id}", self.shared)
    }

    /// The sorted set of one segment of a queue.
    pub fn segment(&self, queue: &str, segment: Segment) -> String {
        format!("{}:{queue}:{}", self.shared, suffix(segment))
    }

    /// The channel on which enqueues and acknowledgements are told.
    pub fn telemetry(&self) -> String {
        format!("{}:telemetry", self.shared)
    }

    /// Our channel on which it is told that tasks became READY by other ways.
    pub fn wake(&self) -> String {
        format!("{}:wake", self.own)
    }

    /// The sorted set of ids of a queue that were set aside.
    pub fn quarantine(&self, queue: &str) -> String {
        format!("{}:quarantine:{queue}", self.own)
    }

    /// The sorted set of queue names that our programs know, by the time they last said so.
    pub fn queues(&self) -> String {
        format!("{}:queues", self.own)
    }

    /// The sorted set of our workers, by their last heartbeat.
    pub fn workers(&self) -> String {
        format!("{}:workers", self.own)
    }

    /// The record of one of our workers.
    pub fn worker(&self, id: &str) -> String {
        format!("{}:worker:{id}", self.own)
    }

    /// What maintenance remembers of its own looks.
    pub fn watch(&self) -> String {
        format!("{}:watch", self.own)
    }

    /// Where the search for queues goes on.
    pub fn scan(&self) -> String {
        format!("{}:scan", self.own)
    }

    /// How far the slow sweep has come.
    pub fn sweep(&self) -> String {
        format!("{}:sweep", self.own)
    }

    /// What an idempotency key names.
    pub fn idempotency(&self, key: &str) -> String {
        format!("{}:idempotency:{key}", self.own)
    }

    /// What is written so that the server can be asked when it is safe.
    pub fn durable(&self) -> String {
        format!("{}:durable", self.own)
    }

    /// A pattern for SCAN that matches the sorted sets of every queue, among others.
    pub fn scan_pattern(&self) -> String {
        literal(&self.shared) + ":*"
    }

    /// A pattern for SCAN that matches the hashes of all pending tasks. A queue named `task` has keys that match, too.
    pub fn task_pattern(&self) -> String {
        literal(&self.task_prefix()) + "*"
    }

    /// A pattern for SCAN that matches all results. A queue named `result` has keys that match, too.
    pub fn result_pattern(&self) -> String {
        literal(&self.result_prefix()) + "*"
    }

    /// The queue and segment that a key belongs to, where it is the sorted set of one.
    pub fn queue_of(&self, key: &str) -> Option<(String, Segment)> {
        let rest = key.strip_prefix(&self.shared)?.strip_prefix(':')?;
        let (queue, last) = rest.rsplit_once(':')?;
        let segment = Segment::ALL.into_iter().find(|segment| suffix(*segment) == last)?;
        Some((queue.to_owned(), segment))
    }
}

/// A text as a pattern that matches itself only.
fn literal(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len() + 2);
    for c in text.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\' | '^') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

/// How the layout names a segment.
const fn suffix(segment: Segment) -> &'static str {
    match segment {
        Segment::Ready => "ready",
        Segment::Scheduled => "deferred",
        Segment::Running => "running",
        Segment::Successful => "successful",
        Segment::Failed => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_of_any_name_is_found_in_its_key() {
        let keys = Keys::new("default");
        for queue in ["default", "a:b", "with space", "räksmörgås", "task", "x:ready", "*"] {
            for segment in Segment::ALL {
                let key = keys.segment(queue, segment);
                assert_eq!(keys.queue_of(&key), Some((queue.to_owned(), segment)));
            }
        }
        assert_eq!(keys.queue_of(&keys.telemetry()), None);
        assert_eq!(keys.queue_of("threadmill:{other}:default:ready"), None);
    }

    #[test]
    fn an_alias_with_signs_of_the_pattern_language_matches_itself_only() {
        assert_eq!(Keys::new("a*[b]").scan_pattern(), "threadmill:{a\\*\\[b\\]}:*");
    }
}
