//! The words that mean some tasks: `error:ConnectionError age<2h -worker:web1`.
//!
//! One language for the inspector's `/` and the shell's `--where`, described in `docs/filter.md`. Beside it stand the
//! incidents: failures that belong together, for both as well. Pure values: nothing here asks a server or knows the
//! time by itself. May use `task`, and the codec and the views of `backend`; no other room.

mod candidate;
mod complete;
mod data;
mod error;
mod expr;
mod field;
mod incident;
mod parse;
mod pattern;
mod trace;

#[cfg(test)]
mod tests;

pub use candidate::Candidate;
pub use complete::{Completion, Known, complete};
pub use error::FilterError;
pub use expr::Needs;
pub use field::{FIELDS, Field, FieldInfo};
pub use incident::{Fingerprint, Incident, Incidents, Member};
pub use trace::{Frame, frames, innermost, is_own};

use expr::Expr;

/// A filter that was understood.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    expr: Expr,
}

impl Filter {
    /// Reads a filter. An empty one means every task.
    ///
    /// # Errors
    /// Says what is wrong, where, and what may be meant.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.trim().to_owned(), expr: parse::parse(text)? })
    }

    /// The text that it was read from.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it means every task.
    pub fn is_empty(&self) -> bool {
        self.expr == Expr::All(Vec::new())
    }

    /// Whether what lists read of a record is enough to decide, or the whole record is needed.
    pub fn needs(&self) -> Needs {
        self.expr.needs()
    }

    /// Whether the task is meant. What cannot be known of it, such as the function of a record that cannot be read,
    /// means neither it nor, where the term is negated, its opposite.
    pub fn matches(&self, candidate: &Candidate) -> bool {
        self.expr.holds(candidate) == Some(true)
    }
}
