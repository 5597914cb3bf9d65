//! What is wrong with a filter, and where.

use crate::task::visible;
use std::fmt;
use std::ops::Range;

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The part of the text that is meant, in bytes.
    pub at: Range<usize>,
    /// What is wrong with it.
    pub what: String,
    /// What may be meant.
    pub hint: Option<String>,
}

impl FilterError {
    pub(super) fn new(at: Range<usize>, what: impl Into<String>) -> Self {
        Self { at, what: what.into(), hint: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The filter with signs under the place that is meant, for a terminal.
    pub fn pointed(&self, text: &str) -> String {
        let start = text.floor_char_boundary(self.at.start);
        let end = text.floor_char_boundary(self.at.end.max(start));
        let before = visible(&text[..start]).chars().count();
        let signs = visible(&text[start..end]).chars().count().max(1);
        format!("{}\n{}{}", visible(text), " ".repeat(before), "^".repeat(signs))
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for FilterError {}
