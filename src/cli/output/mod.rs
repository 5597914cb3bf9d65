//! What is printed: data on stdout, talk on stderr. Each answer is made whole before it is written.

pub mod json;
mod shapes;
mod table;

pub use shapes::{ActedShape, QueueShape, TaskShape, WorkerShape, whole_task};
pub use table::{Paint, Table, painted};

use crate::cli::args::ColorWhen;
use crate::cli::error::{CliError, lines_visible};
use crate::cli::time;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 32 << 10;

/// Where a run's output goes and how it is to look.
pub struct Out {
    buffer: String,
    /// The terminal's width; none where stdout is no terminal, and then nothing is cut.
    width: Option<u16>,
    /// Whether the terminal may not know more than ASCII.
    ascii: bool,
}

impl Out {
    /// The process's own.
    pub fn new(color: ColorWhen) -> Self {
        let choice = match color {
            ColorWhen::Auto => anstream::ColorChoice::Auto,
            ColorWhen::Always => anstream::ColorChoice::Always,
            ColorWhen::Never => anstream::ColorChoice::Never,
        };
        choice.write_global();
        let stdout = std::io::stdout();
        let width = stdout.is_terminal().then(|| {
            rustix::termios::tcgetwinsize(&stdout).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
        });
        Self { buffer: String::new(), width: width.map(|columns| columns.unwrap_or(80)), ascii: !locale_is_utf8() }
    }

    /// Whether stdout is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.width.is_some()
    }

    /// Whether stdout is to be coloured.
    pub fn is_coloured(&self) -> bool {
        anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
    }

    /// Whether only ASCII may be drawn.
    pub fn is_ascii(&self) -> bool {
        self.ascii
    }

    /// A line of data. Text that came from elsewhere must have been made visible.
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        self.buffer.push_str(text);
        self.buffer.push('\n');
        if self.buffer.len() >= BUFFER { self.flush() } else { Ok(()) }
    }

    /// A table of data.
    pub fn table(&mut self, table: Table) -> Result<(), CliError> {
        for line in table.lines(self.width, self.ascii) {
            self.line(&line)?;
        }
        Ok(())
    }

    /// One JSON document.
    pub fn json<T: Serialize>(&mut self, document: &T) -> Result<(), CliError> {
        self.line(&json::document(document))
    }

    /// One JSON object on a line of its own.
    pub fn json_line<T: Serialize>(&mut self, object: &T) -> Result<(), CliError> {
        self.line(&json::line(object))
    }

    /// Bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), CliError> {
        self.flush()?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        Ok(stdout.flush()?)
    }

    /// Writes what was gathered.
    pub fn flush(&mut self) -> Result<(), CliError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.buffer);
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// A moment in a list: how far away it is for a person at a terminal, when it is for everybody else.
    pub fn moment(&self, at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> String {
        match at {
            None => self.nothing().to_owned(),
            Some(at) if self.is_terminal() => time::relative(at, now),
            Some(at) => time::rfc3339(at),
        }
    }

    /// What stands where there is nothing.
    pub fn nothing(&self) -> &'static str {
        "-"
    }
}

/// Talk: a line on stderr. What a terminal would obey is written out.
pub fn talk(text: &str) {
    // Where nobody listens there is nothing to do about it.
    let _ = writeln!(anstream::stderr(), "{}", lines_visible(text));
}

/// A warning on stderr.
pub fn warn(text: &str) {
    let label = painted(Paint::Warning, "warning:");
    let _ = writeln!(anstream::stderr(), "{label} {}", lines_visible(text));
}

/// Whether the locale's characters are UTF-8. The first of these that is set decides, as in every C program.
fn locale_is_utf8() -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|value| !value.is_empty()).is_some_and(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// One of a thing, or many.
pub fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
