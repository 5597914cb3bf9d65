//! JSON for programs: valid, with user data as it is stored, and without a byte that a terminal would obey.

use crate::task::{RawJson, visible};
use serde::Serialize;
use serde_json::value::RawValue;
use std::fmt::Write;

/// The version of every document; see `docs/json.md`. It grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A document: the version, then the fields of `body`.
#[derive(Serialize)]
pub struct Versioned<T> {
    schema: u32,
    #[serde(flatten)]
    body: T,
}

impl<T> Versioned<T> {
    /// This body in the current version.
    pub fn new(body: T) -> Self {
        Self { schema: SCHEMA, body }
    }
}

/// User data in a document: the value where it is JSON, else its text.
#[derive(Debug)]
pub struct UserData {
    /// The value as it is stored; none where strict readers would refuse it.
    pub value: Option<Box<RawValue>>,
    /// The stored text, where it is no strict JSON.
    pub text: Option<String>,
}

impl UserData {
    /// Sorts a stored value. Python writes `NaN`, lone surrogates and depths that strict readers refuse.
    pub fn new(stored: &RawJson) -> Self {
        let strict = serde_json::from_str::<serde_json::Value>(stored.as_str()).is_ok();
        let value = strict.then(|| RawValue::from_string(stored.as_str().to_owned()).ok()).flatten();
        let text = value.is_none().then(|| stored.as_str().to_owned());
        Self { value, text }
    }
}

/// A document on several lines.
pub fn document<T: Serialize>(value: &T) -> String {
    // Our shapes have text for keys and no failing parts: serializing them cannot fail.
    safe(&serde_json::to_string_pretty(value).expect("our shapes can be serialized"), true)
}

/// An object on one line.
pub fn line<T: Serialize>(value: &T) -> String {
    // As above.
    safe(&serde_json::to_string(value).expect("our shapes can be serialized"), false)
}

/// The same JSON with hidden characters escaped. Outside of strings JSON knows no such character but white space, and
/// inside of them an escape means the same.
fn safe(json: &str, keep_newlines: bool) -> String {
    let mut out = String::with_capacity(json.len());
    let mut buffer = [0; 4];
    for c in json.chars() {
        match c {
            ' '..='~' => out.push(c),
            '\n' if keep_newlines => out.push(c),
            // User data may be stored with white space between its parts.
            '\n' | '\r' | '\t' => out.push(' '),
            c if is_shown(c.encode_utf8(&mut buffer)) => out.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out
}

fn is_shown(c: &str) -> bool {
    visible(c) == c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_escaped_and_mean_the_same() {
        let text = "a\x1b[31m\u{202e}\u{9b}\u{e0041}größe\u{2028}\n";
        let json = line(&text);
        assert!(json.chars().all(|c| visible(&c.to_string()) == c.to_string()), "{json}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        assert!(json.contains("größe"));
    }

    #[test]
    fn user_data_is_a_value_where_strict_readers_take_it_and_else_its_text() {
        let check = |stored: &str, value: Option<&str>| {
            let data = UserData::new(&RawJson::new(stored));
            assert_eq!(data.value.as_ref().map(|raw| raw.get()), value, "{stored}");
            assert_eq!(data.text.is_some(), value.is_none());
        };
        check("[1, 2]", Some("[1, 2]"));
        check("[123456789012345678901234567890]", Some("[123456789012345678901234567890]"));
        check("[NaN]", None);
        check(r#"["\ud800"]"#, None);
        check(&format!("{}{}", "[".repeat(5000), "]".repeat(5000)), None);
    }

    #[test]
    fn stored_white_space_breaks_no_line() {
        let data = UserData::new(&RawJson::new("[1,\n\t2]"));
        assert_eq!(line(&data.value), "[1,  2]");
    }
}
