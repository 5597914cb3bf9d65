//! Backtraces of failures, where RUST_BACKTRACE asks for them.

use std::backtrace::{Backtrace, BacktraceStatus};

/// Frames that are kept at most.
const FRAMES_MAX: usize = 40;
/// What stands above the task's own frames: how an error or a panic came to be noted.
const ABOVE: [&str; 8] = [
    "native/backtrace.rs",
    "native/error.rs",
    "native/panics.rs",
    "std::panicking",
    "core::panicking",
    "core::convert::Into<U>>::into",
    "core::ops::try_trait::FromResidual",
    "rust_begin_unwind",
];
/// What stands below them: how the worker came to call the task.
const BELOW: [&str; 2] = ["native/handler.rs", "native/registry.rs"];

/// The task's own part of the present backtrace; none where nobody asked for backtraces.
pub(crate) fn captured_backtrace() -> Option<String> {
    let backtrace = Backtrace::capture();
    (backtrace.status() == BacktraceStatus::Captured).then(|| own_part(&backtrace.to_string()))
}

/// The frames between how it was noted and how it was called.
fn own_part(text: &str) -> String {
    let mut frames: Vec<Vec<&str>> = Vec::new();
    for line in text.lines() {
        let begins = line.trim_start().split_once(": ").is_some_and(|(number, _)| number.parse::<u32>().is_ok());
        match frames.last_mut() {
            Some(frame) if !begins => frame.push(line),
            _ => frames.push(vec![line]),
        }
    }
    let is_any = |frame: &[&str], names: &[&str]| frame.iter().any(|line| names.iter().any(|name| line.contains(name)));
    let below = frames.iter().position(|frame| is_any(frame, &BELOW)).unwrap_or(frames.len());
    let above = frames[..below].iter().rposition(|frame| is_any(frame, &ABOVE)).map_or(0, |last| last + 1);
    frames[above..below].iter().take(FRAMES_MAX).flatten().copied().collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_task_s_own_frames_are_kept() {
        let text = "   0: std::backtrace::Backtrace::create\n   1: of<E>\n             at ./src/native/error.rs:1:2\n   2: \
                    shop::confirm\n             at ./shop.rs:9:9\n   3: call\n             at ./src/native/handler.rs:3:4\n   \
                    4: tokio::run";
        assert_eq!(own_part(text), "   2: shop::confirm\n             at ./shop.rs:9:9");
        assert_eq!(own_part(""), "");
    }
}
