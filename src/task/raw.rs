//! User data, carried byte for byte.

use std::fmt;
use std::sync::Arc;

/// A piece of JSON as Python's `json.dumps` writes it, never re-encoded.
///
/// It may hold what strict JSON refuses: `NaN`, `Infinity`, integers of any size, lone surrogates as `\ud800`.
/// Cloning is cheap.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Takes the text as it is. The backend's codec checks it before anything is written.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// `null`.
    pub fn null() -> Self {
        Self::new("null")
    }

    /// `[]`.
    pub fn empty_list() -> Self {
        Self::new("[]")
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self::new("{}")
    }

    /// The text as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
