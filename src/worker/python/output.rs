//! What tasks write: lines of their standard output and error, and Python's log records, beside the worker's own log.

use super::answer::Logged;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::mpsc;

/// Around a task's id and its queue, at the head of a line.
const MARK: char = '\u{1f}';
const END: &str = "\u{1f}\u{1f}";
/// A longer line is cut into pieces.
const LONGEST_LINE: usize = 16 << 10;

/// One line, and whose it is where the line says so.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    pub stream: &'static str,
    pub owner: Option<(String, String)>,
    pub text: String,
}

/// Reads lines until the last writer is gone. A full channel holds the writers up, as a full pipe does.
pub(crate) async fn follow(
    mut pipe: impl AsyncRead + Unpin,
    stream: &'static str,
    child: u32,
    lines: mpsc::Sender<(u32, Line)>,
) {
    let mut held = Vec::new();
    loop {
        let read = pipe.read_buf(&mut held).await.unwrap_or(0);
        for text in take_lines(&mut held, read == 0) {
            if lines.send((child, line_of(stream, &text))).await.is_err() {
                return;
            }
        }
        if read == 0 {
            return;
        }
    }
}

/// Takes the whole lines out of what was read; the rest too, where it is too long or the last.
fn take_lines(held: &mut Vec<u8>, last: bool) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    let mut start = 0;
    while let Some(length) = held[start..].iter().position(|byte| *byte == b'\n') {
        lines.push(held[start..start + length].to_vec());
        start += length + 1;
    }
    held.drain(..start);
    if !held.is_empty() && (last || held.len() >= LONGEST_LINE) {
        lines.push(std::mem::take(held));
    }
    lines
}

fn line_of(stream: &'static str, bytes: &[u8]) -> Line {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_end_matches('\r');
    let tagged = text.strip_prefix(MARK).and_then(|rest| {
        let (id, rest) = rest.split_once(MARK)?;
        let (queue, rest) = rest.split_once(END)?;
        Some(((id.to_owned(), queue.to_owned()), rest.to_owned()))
    });
    match tagged {
        Some((owner, text)) => Line { stream, owner: Some(owner), text },
        None => Line { stream, owner: None, text: text.to_owned() },
    }
}

/// Writes a line to the log.
pub(crate) fn write(line: &Line, pid: u32) {
    let (stream, text) = (line.stream, line.text.as_str());
    match &line.owner {
        Some((task, queue)) => tracing::info!(target: "threadmill::task", stream, task, queue, pid, "{text}"),
        None => tracing::info!(target: "threadmill::task", stream, pid, "{text}"),
    }
}

/// Writes a log record of the child to the log.
pub(crate) fn write_record(logged: &Logged, pid: u32) {
    macro_rules! event {
        ($level:ident) => {
            tracing::$level!(
                target: "threadmill::python",
                logger = logged.logger,
                task = logged.task,
                queue = logged.queue,
                exception = logged.exception,
                pid,
                "{}",
                logged.message
            )
        };
    }
    match logged.number {
        40.. => event!(error),
        30..40 => event!(warn),
        20..30 => event!(info),
        _ => event!(debug),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_or_the_last_or_too_long() {
        let mut held = b"one\ntwo\nthr".to_vec();
        assert_eq!(take_lines(&mut held, false), [b"one".to_vec(), b"two".to_vec()]);
        assert!(take_lines(&mut held, false).is_empty());
        assert_eq!(take_lines(&mut held, true), [b"thr".to_vec()]);
        let mut held = vec![b'x'; LONGEST_LINE];
        assert_eq!(take_lines(&mut held, false).len(), 1);
    }

    #[test]
    fn a_mark_names_the_task() {
        let line = line_of("stdout", "\u{1f}01a\u{1f}two words\u{1f}\u{1f}hello\u{1f}\r".as_bytes());
        assert_eq!(line.owner, Some(("01a".into(), "two words".into())));
        assert_eq!(line.text, "hello\u{1f}");
        assert_eq!(line_of("stderr", b"plain \xff").text, "plain \u{fffd}");
        assert_eq!(line_of("stderr", "\u{1f}half".as_bytes()).owner, None);
    }
}
