//! Tracebacks: frames, and which of them are the site's own.

use std::ops::Range;

/// A frame of a traceback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The file.
    pub file: String,
    /// The line in it, where it is told.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// Whether it is the site's own code, and not a library's.
    pub own: bool,
    /// Whether it stands in a Rust backtrace, whose innermost frame comes first.
    pub is_rust: bool,
    /// The bytes of the traceback that it takes, its source line included.
    pub at: Range<usize>,
}

impl Frame {
    /// The file's name without its folders, and the line: `smtp.py:88`.
    pub fn place(&self) -> String {
        let file = self.file.rsplit(['/', '\\']).next().unwrap_or(&self.file);
        match self.line {
            Some(line) => format!("{file}:{line}"),
            None => file.to_owned(),
        }
    }
}

/// Parts of paths that only libraries have.
const LIBRARIES: [&str; 9] = [
    "site-packages",
    "dist-packages",
    "/lib/python",
    "\\lib\\",
    "<frozen ",
    "<string>",
    "/.cargo/registry/",
    "/.cargo/git/",
    "/rustc/",
];
/// What the functions of Rust's own crates and of the runtime begin with.
const RUST_LIBRARIES: [&str; 11] = [
    "std::",
    "core::",
    "alloc::",
    "tokio::",
    "futures",
    "threadmill::",
    "rust_begin_unwind",
    "__",
    "_start",
    "start_thread",
    "clone3",
];

/// Whether a frame is the site's own code.
pub fn is_own(file: &str, function: &str) -> bool {
    let library = LIBRARIES.iter().any(|part| file.contains(part))
        || file.contains("/threadmill/") && file.ends_with(".py")
        || file.contains("/library/std/")
        || file.contains("/sysdeps/")
        || file.ends_with(".S");
    let function = function.trim_start_matches('<');
    !library && !RUST_LIBRARIES.iter().any(|start| function.starts_with(start))
}

/// The frames of a traceback, in the order in which they stand: Python's innermost last, a Rust backtrace's first.
pub fn frames(traceback: &str) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    // A function of a Rust backtrace, until the line with its place comes.
    let mut pending: Option<(String, usize)> = None;
    let mut at = 0;
    let mut in_frame = false;
    for line in traceback.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let text = line.trim_end();
        if let Some((file, number, function)) = python(text) {
            let own = is_own(file, function);
            frames.push(Frame {
                file: file.into(),
                line: number,
                function: function.into(),
                own,
                is_rust: false,
                at: range,
            });
            in_frame = true;
        } else if let Some(function) = rust_function(text) {
            pending = Some((function.to_owned(), range.start));
            in_frame = false;
        } else if let Some((function, start)) = pending.take() {
            if let Some((file, number)) = rust_place(text) {
                let own = is_own(file, &function);
                frames.push(Frame {
                    file: file.into(),
                    line: number,
                    function,
                    own,
                    is_rust: true,
                    at: start..range.end,
                });
            }
        } else if in_frame && text.starts_with("    ") {
            // The source, and the signs under it.
            if let Some(last) = frames.last_mut() {
                last.at.end = range.end;
            }
        } else {
            in_frame = false;
        }
    }
    frames
}

/// The innermost frame of the site's own code, else the innermost of Python. Of a Rust backtrace that has no frame of the
/// site's own, none tells anything.
pub fn innermost(traceback: &str) -> Option<Frame> {
    let frames = frames(traceback);
    let (rust, python): (Vec<_>, Vec<_>) = frames.into_iter().partition(|frame| frame.is_rust);
    let own = python.iter().rev().find(|frame| frame.own).or_else(|| rust.iter().find(|frame| frame.own));
    own.or(python.last()).cloned()
}

/// `  File "shop/mail.py", line 88, in send`.
fn python(line: &str) -> Option<(&str, Option<u32>, &str)> {
    let rest = line.trim_start().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once("\", line ")?;
    let (number, function) = rest.split_once(", in ").unwrap_or((rest, ""));
    Some((file, number.trim().parse().ok(), function))
}

/// `  12: shop::mail::send`.
fn rust_function(line: &str) -> Option<&str> {
    let (number, function) = line.trim_start().split_once(": ")?;
    (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(function.trim())
}

/// `             at src/mail.rs:88:5`.
fn rust_place(line: &str) -> Option<(&str, Option<u32>)> {
    let rest = line.trim_start().strip_prefix("at ")?;
    let mut parts = rest.rsplitn(3, ':');
    let (_, number, file) = (parts.next()?, parts.next()?, parts.next()?);
    Some((file, number.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON: &str = "Traceback (most recent call last):\n  File \"/srv/shop/mail.py\", line 88, in send\n    \
        client.send(message)\n    ~~~~~~~^^^^\n  File \"/usr/lib/python3.14/smtplib.py\", line 760, in send\n    raise X\n\
        smtplib.SMTPServerDisconnected: no\n";
    const RUST: &str = "Backtrace:\n   0: core::panicking::panic\n             at /rustc/abc/library/core/src/panicking.rs:1:2\n   \
        1: shop::mail::send\n             at ./src/mail.rs:88:5\n   2: tokio::task::run\n             at \
        /home/x/.cargo/registry/src/tokio/lib.rs:3:4\nValueError: x\n";

    #[test]
    fn frames_of_python() {
        let found = frames(PYTHON);
        let places: Vec<_> = found.iter().map(|frame| (frame.place(), frame.own)).collect();
        assert_eq!(places, [("mail.py:88".to_owned(), true), ("smtplib.py:760".to_owned(), false)]);
        assert!(PYTHON[found[0].at.clone()].ends_with("^^^^\n"));
        assert_eq!(innermost(PYTHON).map(|frame| frame.function), Some("send".into()));
    }

    #[test]
    fn frames_of_rust() {
        let places: Vec<_> = frames(RUST).iter().map(|frame| (frame.place(), frame.own)).collect();
        assert_eq!(
            places,
            [("panicking.rs:1".to_owned(), false), ("mail.rs:88".to_owned(), true), ("lib.rs:3".to_owned(), false)]
        );
        assert_eq!(innermost(RUST).map(|frame| frame.place()), Some("mail.rs:88".into()));
    }

    #[test]
    fn a_rust_backtrace_of_libraries_alone_has_no_place() {
        let text = "Backtrace:\n  20: start_thread\n             at ./nptl/pthread_create.c:448:8\n  21: clone3\n             at \
            ./misc/../sysdeps/unix/sysv/linux/x86_64/clone3.S:81:0\nValueError: x\n";
        assert_eq!(frames(text).len(), 2);
        assert_eq!(innermost(text), None);
    }

    #[test]
    fn what_is_no_traceback_has_no_frames() {
        for text in ["", "Task processing lease expired.", "12: ", "File \"", "at a:b"] {
            assert!(frames(text).is_empty(), "{text}");
        }
    }
}
