//! A task's identity.

use std::fmt;
use std::sync::Arc;

/// The id of a task, as text.
///
/// Ids that this library makes are UUIDs of version 7, but an id that was found in Redis can be any text, so it is
/// kept as it stands. Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(Arc<str>);

/// How many characters of an id are enough to tell neighbours apart.
///
/// The head of a version 7 UUID is the time, shared by all that were enqueued together; its tail is random.
const TAIL: usize = 8;

impl TaskId {
    /// Takes any text as an id.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The whole id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last eight characters, by which a person tells neighbours apart.
    pub fn tail(&self) -> &str {
        let start = self.0.char_indices().rev().nth(TAIL - 1).map_or(0, |(at, _)| at);
        &self.0[start..]
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({:?})", &*self.0)
    }
}

impl From<&str> for TaskId {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for TaskId {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_tells_neighbours_apart_at_any_length() {
        assert_eq!(TaskId::from("01a22df8-34ed-7724-a9cf-37fad320e7d4").tail(), "d320e7d4");
        assert_eq!(TaskId::from("abc").tail(), "abc");
        assert_eq!(TaskId::from("").tail(), "");
        assert_eq!(TaskId::from("ééééééééé").tail(), "éééééééé");
    }
}
