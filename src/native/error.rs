//! Why an attempt failed, and what is to follow.

use crate::backend::codec::encode_error;
use crate::native::backtrace::captured_backtrace;
use crate::task::{BUILTIN_PREFIX, ErrorRecord};
use std::any::type_name;
use std::borrow::Cow;
use std::error::Error;
use std::fmt::{self, Write as _};
use std::panic::Location;
use std::time::Duration;

/// The Python class of an error that declares none.
const DEFAULT_CLASS: &str = "builtins.RuntimeError";
/// How many causes are told; a chain that goes in a circle ends here.
const CAUSES_MAX: usize = 32;

/// The failure of an attempt.
///
/// Any [`std::error::Error`] becomes one by `?`, with its type's name, its chain of causes and the place. To Python it is
/// a `builtins.RuntimeError` unless [`TaskError::class`] declares another; stored retry policies go by that class.
pub struct TaskError {
    inner: Box<Inner>,
}

struct Inner {
    kind: Cow<'static, str>,
    class: Cow<'static, str>,
    message: String,
    source: Option<Box<dyn Error + Send + Sync>>,
    place: Option<Place>,
    backtrace: Option<String>,
    wish: Wish,
}

/// Where an error came from.
pub(crate) struct Place {
    pub file: Cow<'static, str>,
    pub line: u32,
}

/// What a failed attempt asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// What the retry policy says.
    Policy,
    /// Another attempt after this long.
    RetryIn(Duration),
    /// No further attempt.
    Never,
    /// The same attempt again after this long.
    Snooze(Duration),
}

impl TaskError {
    /// A failure with this message.
    #[track_caller]
    pub fn new(message: impl fmt::Display) -> Self {
        Self::made("threadmill::TaskError".into(), message.to_string(), None, Some(Location::caller().into()))
    }

    /// Puts the attempt off: the task runs again after this long, and no attempt is spent.
    #[track_caller]
    pub fn snooze(delay: Duration) -> Self {
        let mut snooze = Self::new("snoozed");
        snooze.inner.wish = Wish::Snooze(delay);
        snooze
    }

    /// Declares the Python class that this error counts as, such as `builtins.ValueError`.
    pub fn class(mut self, path: impl Into<Cow<'static, str>>) -> Self {
        self.inner.class = path.into();
        self
    }

    /// Asks for another attempt after this long, whatever the retry policy says.
    pub fn retry_in(mut self, delay: Duration) -> Self {
        self.inner.wish = Wish::RetryIn(delay);
        self
    }

    /// Asks for no further attempt, whatever the retry policy says.
    pub fn never_retry(mut self) -> Self {
        self.inner.wish = Wish::Never;
        self
    }

    /// The message, without its causes.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The Python class that it counts as.
    pub fn class_path(&self) -> &str {
        &self.inner.class
    }

    /// The error that it was made from, where that is an `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.inner.source.as_ref()?.downcast_ref()
    }

    pub(crate) fn wish(&self) -> Wish {
        self.inner.wish
    }

    /// Names what failed, where no Rust type says it.
    pub(crate) fn kind(mut self, kind: impl Into<Cow<'static, str>>) -> Self {
        self.inner.kind = kind.into();
        self
    }

    pub(crate) fn at(mut self, place: Option<Place>, backtrace: Option<String>) -> Self {
        self.inner.place = place;
        self.inner.backtrace = backtrace;
        self
    }

    fn of<E: Error + Send + Sync + 'static>(error: E, place: Option<Place>) -> Self {
        Self::made(type_name::<E>().into(), error.to_string(), Some(Box::new(error)), place)
    }

    fn made(
        kind: Cow<'static, str>,
        message: String,
        source: Option<Box<dyn Error + Send + Sync>>,
        place: Option<Place>,
    ) -> Self {
        let backtrace = captured_backtrace();
        let class = DEFAULT_CLASS.into();
        Self { inner: Box::new(Inner { kind, class, message, source, place, backtrace, wish: Wish::Policy }) }
    }

    /// The traceback for a person: the Rust type, the place, the causes; the last line is the class and the message, as
    /// Python writes it.
    pub fn traceback(&self, func: &str) -> String {
        let inner = &*self.inner;
        let mut text = format!("{}\n", inner.kind);
        // Writing to a String cannot fail.
        if let Some(place) = &inner.place {
            text.push_str("Traceback (most recent call last):\n");
            let _ = writeln!(text, "  File \"{}\", line {}, in {func}", place.file, place.line);
        }
        for cause in causes(inner.source.as_deref().map(|source| source as &dyn Error)) {
            let _ = writeln!(text, "Caused by: {}", cause.replace('\n', "\n  "));
        }
        if let Some(backtrace) = &inner.backtrace {
            let _ = writeln!(text, "Backtrace:\n{}", backtrace.trim_end());
        }
        let mut lines = inner.message.lines();
        let first = lines.next().unwrap_or_default();
        for (at, line) in inner.message.lines().enumerate().filter(|_| inner.message.contains('\n')) {
            let _ = writeln!(text, "{}{line}", if at == 0 { "Message: " } else { "  " });
        }
        let class = inner.class.strip_prefix(BUILTIN_PREFIX).unwrap_or(&inner.class);
        let _ = writeln!(text, "{class}: {first}");
        text
    }

    /// As the record of the task keeps it.
    pub fn record(&self, func: &str) -> ErrorRecord {
        encode_error(&self.inner.class, &self.traceback(func))
    }
}

/// What the causes of an error say, the nearest first.
fn causes(error: Option<&(dyn Error + 'static)>) -> Vec<String> {
    let first = error.and_then(Error::source);
    std::iter::successors(first, |&cause| cause.source()).take(CAUSES_MAX).map(ToString::to_string).collect()
}

impl<E: Error + Send + Sync + 'static> From<E> for TaskError {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::of(error, Some(Location::caller().into()))
    }
}

/// What a handler may return as its error.
pub trait IntoTaskError {
    /// The failure that it means.
    fn into_task_error(self) -> TaskError;
}

impl IntoTaskError for TaskError {
    fn into_task_error(self) -> TaskError {
        self
    }
}

impl<E: Error + Send + Sync + 'static> IntoTaskError for E {
    /// Without a place: where the handler returned it is not known.
    fn into_task_error(self) -> TaskError {
        TaskError::of(self, None)
    }
}

impl From<&'static Location<'static>> for Place {
    fn from(location: &'static Location<'static>) -> Self {
        Self { file: location.file().into(), line: location.line() }
    }
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}): {}", self.inner.kind, self.inner.class, self.inner.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot resize {0}")]
    struct ResizeError(String, #[source] std::num::ParseIntError);

    fn fails() -> Result<(), TaskError> {
        let cause = "x".parse::<u8>().unwrap_err();
        Err(ResizeError("a.png".into(), cause))?
    }

    #[test]
    fn type_place_causes_and_the_class_last() {
        let error = fails().unwrap_err().class("builtins.ValueError");
        let text = error.traceback("shop.resize");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines[0].ends_with("::ResizeError"), "{text}");
        assert!(lines[2].contains("error.rs\", line ") && lines[2].ends_with("in shop.resize"), "{text}");
        assert!(text.contains("Caused by: invalid digit found in string"), "{text}");
        assert_eq!(lines.last(), Some(&"ValueError: cannot resize a.png"));
        assert!(error.downcast_ref::<ResizeError>().is_some());
        assert_eq!(error.record("f").class_path, "builtins.ValueError");
    }

    #[test]
    fn a_message_of_many_lines_ends_in_one_and_a_foreign_class_keeps_its_module() {
        let text = TaskError::new("one\ntwo").class("shop.errors.Mine").traceback("f");
        assert!(text.ends_with("Message: one\n  two\nshop.errors.Mine: one\n"), "{text}");
    }
}
