//! Values of Rust to JSON as Python writes it.

use crate::backend::codec::encode_string;
use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use std::io::{self, Write};

/// The JSON of a value: `", "` and `": "`, ASCII only, a float that is no number as `null`.
pub(crate) fn to_python(value: &impl Serialize) -> serde_json::Result<String> {
    let mut out = Vec::with_capacity(64);
    value.serialize(&mut Serializer::with_formatter(&mut out, Python))?;
    // The serializer writes UTF-8 and nothing else.
    String::from_utf8(out).map_err(serde::ser::Error::custom)
}

struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if fragment.is_ascii() && !fragment.contains('\u{7f}') {
            return writer.write_all(fragment.as_bytes());
        }
        let mut text = String::with_capacity(fragment.len() * 2);
        encode_string(&mut text, fragment);
        writer.write_all(&text.as_bytes()[1..text.len() - 1])
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let text: &[u8] = match escape {
            CharEscape::Quote => b"\\\"",
            CharEscape::ReverseSolidus => b"\\\\",
            CharEscape::Solidus => b"/",
            CharEscape::Backspace => b"\\b",
            CharEscape::FormFeed => b"\\f",
            CharEscape::LineFeed => b"\\n",
            CharEscape::CarriageReturn => b"\\r",
            CharEscape::Tab => b"\\t",
            CharEscape::AsciiControl(byte) => return write!(writer, "\\u{byte:04x}"),
        };
        writer.write_all(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn written_as_python_writes_it() {
        let check = |value: serde_json::Value, expected: &str| assert_eq!(to_python(&value).unwrap(), expected);
        check(json!({"a": [1, 2.5, null], "b": {"c": true}}), r#"{"a": [1, 2.5, null], "b": {"c": true}}"#);
        check(json!("räk 😀\u{7f}\n\u{1}\"\\/"), r#""r\u00e4k \ud83d\ude00\u007f\n\u0001\"\\/""#);
        assert_eq!(to_python(&(f64::NAN, ())).unwrap(), "[null, null]");
    }
}
