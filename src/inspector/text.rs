//! Text as the screen takes it: sanitised, measured in columns, cut to fit.
//!
//! Everything that comes from a task goes through here before it is drawn.

use crate::task::visible;
use std::borrow::Cow;
use unicode_width::UnicodeWidthChar;

/// Combining marks kept on one base; a longer pile would leave its row.
const MARKS_MAX: usize = 4;

/// The width of a text in columns, as [`clean`] leaves it.
pub fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// The columns that one character takes; none for a combining mark.
pub fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// A text that is safe to draw in one row.
///
/// Beyond [`visible`], piles of combining marks are cut short, a mark without a base gets one, and variation selectors
/// go, since terminals disagree on the width that they cause. In ASCII, every other character is written as an escape.
pub fn clean(text: &str, ascii: bool) -> Cow<'_, str> {
    let shown = visible(text);
    if shown.is_ascii() {
        return shown;
    }
    if ascii {
        let escaped = shown.chars().flat_map(|c| {
            let plain = c.is_ascii().then_some(c);
            let escape = (!c.is_ascii()).then(|| c.escape_unicode());
            plain.into_iter().chain(escape.into_iter().flatten())
        });
        return Cow::Owned(escaped.collect());
    }
    if shown.chars().all(|c| char_width(c) > 0) {
        return shown;
    }
    let mut kept = String::with_capacity(shown.len());
    let mut marks = None;
    for c in shown.chars().filter(|c| !matches!(c, '\u{fe00}'..='\u{fe0f}')) {
        marks = match (char_width(c), marks) {
            (0, None) => {
                kept.push('\u{25cc}');
                kept.push(c);
                Some(1)
            }
            (0, Some(MARKS_MAX)) => marks,
            (0, Some(count)) => {
                kept.push(c);
                Some(count + 1)
            }
            _ => {
                kept.push(c);
                Some(0)
            }
        };
    }
    Cow::Owned(kept)
}

/// The text, cleaned, in at most `columns`; where it is cut, `ellipsis` stands at its end.
pub fn fit<'a>(text: &'a str, columns: usize, ellipsis: &str, ascii: bool) -> Cow<'a, str> {
    // What does not fit is not worth cleaning, however long it is.
    let shown = clean(head(text, columns), ascii);
    let cut_before = head(text, columns).len() < text.len();
    if !cut_before && width(&shown) <= columns {
        return shown;
    }
    let room = columns.saturating_sub(width(ellipsis));
    let mut cut = take(&shown, room).to_owned();
    if columns >= width(ellipsis) {
        cut.push_str(ellipsis);
    }
    Cow::Owned(cut)
}

/// The text, cleaned, in at most `columns`, cut at its beginning: the end of a dotted name tells more than its head.
pub fn fit_tail<'a>(text: &'a str, columns: usize, ellipsis: &str, ascii: bool) -> Cow<'a, str> {
    let chars = columns.saturating_mul(MARKS_MAX + 1).saturating_add(MARKS_MAX + 1);
    let start = text.char_indices().rev().nth(chars).map_or(0, |(at, _)| at);
    let shown = clean(&text[start..], ascii);
    if start == 0 && width(&shown) <= columns {
        return shown;
    }
    let room = columns.saturating_sub(width(ellipsis));
    let (mut used, mut from) = (0, shown.len());
    for (at, c) in shown.char_indices().rev() {
        used += char_width(c);
        if used > room {
            break;
        }
        // A mark is taken only with its base.
        if char_width(c) > 0 {
            from = at;
        }
    }
    let sign = if columns >= width(ellipsis) { ellipsis } else { "" };
    Cow::Owned(format!("{sign}{}", &shown[from..]))
}

/// A text of our own in lines of at most `columns`, broken between words.
pub fn words(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(word) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The longest head of a cleaned text that takes at most `columns`.
pub fn take(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += char_width(c);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// A head of the text that is long enough to fill `columns`, marks included.
fn head(text: &str, columns: usize) -> &str {
    let chars = columns.saturating_mul(MARKS_MAX + 1).saturating_add(MARKS_MAX + 1);
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_by_columns_and_not_by_characters() {
        let check = |text: &str, columns: usize, expected: &str| {
            let fitted = fit(text, columns, "…", false);
            assert_eq!(fitted, expected, "{text:?} in {columns}");
            assert!(width(&fitted) <= columns);
        };
        check("welcome_email", 13, "welcome_email");
        check("welcome_email", 8, "welcome…");
        check("表表表", 6, "表表表");
        check("表表表", 5, "表表…");
        check("表表表", 4, "表…");
        check("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}");
        check("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…");
        check("\x1b[2J", 3, "\\x…");
        check("anything", 1, "…");
        check("anything", 0, "");
    }

    #[test]
    fn names_are_cut_at_their_head() {
        let check = |text: &str, columns: usize, expected: &str| {
            let fitted = fit_tail(text, columns, "…", false);
            assert_eq!(fitted, expected);
            assert!(width(&fitted) <= columns);
        };
        check("shop.tasks.welcome", 18, "shop.tasks.welcome");
        check("shop.tasks.welcome", 8, "…welcome");
        check("表表表", 4, "…表");
        check("ae\u{301}", 1, "…");
        check("ae\u{301}b", 2, "…b");
        check("x", 0, "");
    }

    #[test]
    fn words_are_kept_whole() {
        assert_eq!(words("back to READY, its errors kept", 14), ["back to READY,", "its errors", "kept"]);
    }

    #[test]
    fn marks_have_a_base_and_do_not_pile_up() {
        assert_eq!(clean("\u{301}a", false), "\u{25cc}\u{301}a");
        let pile = format!("a{}b", "\u{301}".repeat(100));
        assert_eq!(clean(&pile, false), format!("a{}b", "\u{301}".repeat(MARKS_MAX)));
        assert_eq!(clean("❤\u{fe0f}", false), "❤");
    }

    #[test]
    fn ascii_is_ascii() {
        assert_eq!(clean("größe", true), "gr\\u{f6}\\u{df}e");
        assert_eq!(fit("größe", 4, "~", true), "gr\\~");
    }
}
