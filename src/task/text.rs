//! Text that comes from tasks, made safe to show.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with everything that a terminal would obey, or that a person could not see, written as an escape.
///
/// Control and escape characters become `\n`, `\t`, `\r`, `\x1b`; bidirectional marks, zero-width characters, line and
/// paragraph separators and other characters without a shape become `\u{202e}`. Nothing is lost and nothing is sent.
/// A text without such characters is passed through as it is.
///
/// A newline is escaped as well: a caller that shows several lines splits first.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Most text is printable ASCII, where one pass over bytes is enough to know.
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    let Some(first) = text.char_indices().find_map(|(at, c)| is_hidden(c).then_some(at)) else {
        return Cow::Borrowed(text);
    };
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        match c {
            c if !is_hidden(c) => shown.push(c),
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            // Writing to a string cannot fail.
            c if u32::from(c) < 0x100 => drop(write!(shown, "\\x{:02x}", u32::from(c))),
            c => drop(write!(shown, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is obeyed instead of shown, or has no shape of its own.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        let check = |text: &str, expected: &str| assert_eq!(visible(text), expected, "{text:?}");
        check("shop.tasks.welcome_email", "shop.tasks.welcome_email");
        check("\x1b[31mred\x07", "\\x1b[31mred\\x07");
        check("one\ntwo\tthree\r", "one\\ntwo\\tthree\\r");
        check("\u{9b}2J\u{7f}", "\\x9b2J\\x7f");
        check("user\u{202e}gnp.exe\u{2066}", "user\\u{202e}gnp.exe\\u{2066}");
        check("a\u{200b}b\u{feff}c\u{2028}d\u{61c}", "a\\u{200b}b\\u{feff}c\\u{2028}d\\u{61c}");
        check("größe, 表, 🎉, e\u{301}, שלום", "größe, 表, 🎉, e\u{301}, שלום");
        check("", "");
    }

    #[test]
    fn safe_text_is_not_copied() {
        assert!(matches!(visible("größe"), Cow::Borrowed(_)));
        assert!(matches!(visible("plain"), Cow::Borrowed(_)));
    }
}
