//! How a run ends: the exit code, and for a failure the report with what a person can do.

use crate::backend::BackendError;
use crate::task::visible;
use color_eyre::Section;
use color_eyre::eyre::Report;
use std::error::Error;
use std::process::ExitCode;

/// How a verb ended. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// What was asked for is done.
    Done = 0,
    /// Done in part, or failed.
    Partial = 1,
    /// The command line or a setting cannot be understood.
    Usage = 2,
    /// There is nothing of that name or id.
    NotFound = 3,
    /// It would have been possible and was refused: no confirmation, the wrong state, read-only.
    Refused = 4,
    /// Redis cannot be reached or cannot be used.
    Unreachable = 5,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A run that did not end well, for `main` to tell.
#[derive(Debug)]
pub struct CliError {
    exit: Exit,
    /// None where there is nobody to tell: the reader of our output has gone.
    report: Option<Report>,
}

impl CliError {
    /// A failure with this exit code. The text may hold anything: what a terminal would obey is written out.
    #[track_caller]
    pub fn new(exit: Exit, text: impl AsRef<str>) -> Self {
        Self { exit, report: Some(Report::msg(lines_visible(text.as_ref()))) }
    }

    /// The command line cannot be understood.
    #[track_caller]
    pub fn usage(text: impl AsRef<str>) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// There is nothing of that name.
    #[track_caller]
    pub fn not_found(text: impl AsRef<str>) -> Self {
        Self::new(Exit::NotFound, text)
    }

    /// It was refused.
    #[track_caller]
    pub fn refused(text: impl AsRef<str>) -> Self {
        Self::new(Exit::Refused, text)
    }

    /// Something that the system would not do.
    #[track_caller]
    pub fn failed(text: impl AsRef<str>, cause: &dyn Error) -> Self {
        Self::new(Exit::Partial, format!("{}: {cause}", text.as_ref()))
    }

    /// The reader of our output has gone: an end like any other.
    fn quiet() -> Self {
        Self { exit: Exit::Done, report: None }
    }

    /// Adds what a person can do about it.
    pub fn hint(mut self, text: impl AsRef<str>) -> Self {
        self.report = self.report.map(|report| report.suggestion(lines_visible(text.as_ref())));
        self
    }

    /// The exit code.
    pub fn exit(&self) -> Exit {
        self.exit
    }

    /// Whether only the reader of our output has gone.
    #[cfg(test)]
    fn is_quiet(&self) -> bool {
        self.report.is_none()
    }

    /// Tells it on stderr.
    pub fn print(&self) {
        if let Some(report) = &self.report {
            let text = format!("{report:?}");
            // The report puts empty lines between and before its parts; one of each is enough.
            let text = text.trim_matches('\n').replace("\n\n\n", "\n\n");
            anstream::eprintln!("Error:\n{text}");
        }
    }
}

impl CliError {
    /// A failure with its causes below it.
    #[track_caller]
    pub fn caused(exit: Exit, error: &dyn Error) -> Self {
        let mut causes = vec![error.to_string()];
        let mut source = error.source();
        while let Some(cause) = source {
            causes.push(cause.to_string());
            source = cause.source();
        }
        // Layers below tell the same thing more than once.
        causes.dedup();
        let mut causes = causes.into_iter().rev().map(|cause| lines_visible(&cause));
        // The error itself is always among its causes.
        let first = Report::msg(causes.next().unwrap_or_default());
        Self { exit, report: Some(causes.fold(first, |report, cause| report.wrap_err(cause))) }
    }
}

impl From<BackendError> for CliError {
    #[track_caller]
    fn from(error: BackendError) -> Self {
        let this = Self::caused(exit_of(&error), &error);
        match error.hint() {
            Some(hint) => this.hint(hint),
            None => this,
        }
    }
}

/// The exit code of an error of the backend.
pub fn exit_of(error: &BackendError) -> Exit {
    match error {
        BackendError::Settings(_) | BackendError::Invalid(_) => Exit::Usage,
        _ => Exit::Unreachable,
    }
}

impl From<std::io::Error> for CliError {
    #[track_caller]
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::quiet();
        }
        Self::failed("cannot write the output", &error)
    }
}

/// A text of several lines with everything else that a terminal would obey written out.
pub fn lines_visible(text: &str) -> String {
    text.split('\n').map(visible).collect::<Vec<_>>().join("\n")
}

/// Makes reports what they are here: causes and suggestions; places and a backtrace only where RUST_BACKTRACE asks.
pub fn install_reports() {
    let asked = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| !value.is_empty() && value != "0");
    // A program that uses the library may have installed its own; its choice stands.
    let _ = color_eyre::config::HookBuilder::default()
        .display_location_section(asked)
        .display_env_section(false)
        .panic_section("This is a bug of threadmill. Set RUST_BACKTRACE=1 to see where it happened.")
        .install();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out_line_by_line() {
        assert_eq!(lines_visible("a\x1b[31m\nb\u{202e}"), "a\\x1b[31m\nb\\u{202e}");
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure() {
        let error = CliError::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        assert!(error.is_quiet());
        assert_eq!(error.exit(), Exit::Done);
    }

    #[test]
    fn settings_are_usage_and_a_server_that_refuses_is_unusable() {
        assert_eq!(CliError::from(BackendError::Settings("x".into())).exit(), Exit::Usage);
        let refused = BackendError::Refused { code: "NOPERM".into(), message: "NOPERM no".into() };
        assert_eq!(CliError::from(refused).exit(), Exit::Unreachable);
    }
}
