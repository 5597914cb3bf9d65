//! JSON strings as Python writes them.

use std::borrow::Cow;
use std::fmt::Write;

/// Writes `text` as a JSON string in ASCII, as Python's `json.dumps` does: everything outside the printable ASCII range
/// becomes `\uXXXX`, in surrogate pairs where needed.
pub fn encode_string(out: &mut String, text: &str) {
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        if matches!(c, ' '..='~') && c != '"' && c != '\\' {
            continue;
        }
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Reads a JSON string with its quotes; a lone surrogate becomes U+FFFD. Text that is no JSON string is given back.
pub fn decode_string(raw: &str) -> Cow<'_, str> {
    let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return Cow::Borrowed(raw) };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (c, used) = match escape.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b'r') => ('\r', 1),
            Some(b't') => ('\t', 1),
            Some(b'b') => ('\u{8}', 1),
            Some(b'f') => ('\u{c}', 1),
            Some(b'u') => unicode_escape(escape),
            Some(c @ (b'"' | b'\\' | b'/')) => (char::from(*c), 1),
            // Not JSON; the backslash is kept as it is.
            _ => ('\\', 0),
        };
        out.push(c);
        rest = &escape[used..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The character of `uXXXX`, or of `uXXXX\uXXXX` where the two are a pair, and how many bytes it took.
fn unicode_escape(text: &str) -> (char, usize) {
    let unit = |from: usize| text.get(from..from + 4).and_then(|hex| u16::from_str_radix(hex, 16).ok());
    let Some(first) = unit(1) else { return ('\u{fffd}', 1) };
    let pair = text.get(5..7) == Some("\\u");
    let mut units = vec![first];
    if pair && (0xd800..0xdc00).contains(&first) {
        units.extend(unit(7));
    }
    match char::decode_utf16(units.iter().copied()).next() {
        Some(Ok(c)) => (c, if c.len_utf16() == 2 { 11 } else { 5 }),
        _ => ('\u{fffd}', 5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(text: &str) -> String {
        let mut out = String::new();
        encode_string(&mut out, text);
        out
    }

    #[test]
    fn written_as_python_writes_it() {
        assert_eq!(encoded("it broke — café"), r#""it broke \u2014 caf\u00e9""#);
        assert_eq!(encoded("a\"b\\c\n\r\t\u{8}\u{c}\0\u{7f}/"), r#""a\"b\\c\n\r\t\b\f\u0000\u007f/""#);
        assert_eq!(encoded("😀"), r#""\ud83d\ude00""#);
    }

    #[test]
    fn lone_surrogates_and_broken_escapes_are_read_without_a_panic() {
        assert_eq!(decode_string(r#""a\ud800b""#), "a\u{fffd}b");
        assert_eq!(decode_string(r#""\ud83d\ude00\/""#), "😀/");
        assert_eq!(decode_string(r#""\ud83dx""#), "\u{fffd}x");
        assert_eq!(decode_string(r#""\ud83d\u0041""#), "\u{fffd}A");
        assert_eq!(decode_string(r#""\u00""#), "\u{fffd}00");
        assert_eq!(decode_string("plain"), "plain");
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(text in any::<String>()) {
            let json = encoded(&text);
            prop_assert!(json.is_ascii());
            let parsed: String = serde_json::from_str(&json).unwrap();
            prop_assert_eq!(&parsed, &text);
            prop_assert_eq!(decode_string(&json), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "\"?(\\\\|\\\\u[0-9a-f]{0,4}|d83d|.){0,12}\"?") {
            decode_string(&text);
        }
    }
}
