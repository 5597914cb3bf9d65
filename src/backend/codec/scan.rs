//! A scanner for the JSON that Python writes, which is not always JSON: `NaN`, `Infinity` and `-Infinity` pass as
//! numbers, and strings may hold escaped lone surrogates. It finds where values begin and end, and builds nothing, so
//! that what lies between is carried as it is. Nesting costs a byte of memory a level and no stack.

use crate::backend::codec::text::decode_string;
use std::borrow::Cow;

/// What is wrong with a text that should be JSON, and at which byte.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct JsonError {
    /// What was expected or found.
    pub what: &'static str,
    /// The position in bytes.
    pub at: usize,
}

/// What the scanner reports as it passes through a text.
enum Event<'a> {
    Open(u8),
    Close,
    Key(&'a str),
}

/// Checks that `text` is one value and nothing else.
///
/// # Errors
/// Says what is wrong and where.
pub fn check_json(text: &str) -> Result<(), JsonError> {
    let end = skip_value(text, skip_space(text, 0), &mut |_| {})?;
    expect_end(text, end)
}

/// The fields of an object in their order, with the raw text of each value. A later field of the same name follows.
///
/// # Errors
/// Says what is wrong and where, also where `text` is no object.
pub fn object_fields(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, JsonError> {
    let mut fields = Vec::with_capacity(16);
    let end = each_field(text, |key, value| fields.push((key, value)))?;
    expect_end(text, end)?;
    Ok(fields)
}

/// Calls `found` with each whole field of an object; where the text ends or breaks inside one, says so and where, after
/// the whole ones have been reported.
pub(crate) fn each_field<'a>(text: &'a str, mut found: impl FnMut(Cow<'a, str>, &'a str)) -> Result<usize, JsonError> {
    let bytes = text.as_bytes();
    let mut at = skip_space(text, 0);
    if bytes.get(at) != Some(&b'{') {
        return Err(JsonError { what: "expected an object", at });
    }
    at = skip_space(text, at + 1);
    if bytes.get(at) == Some(&b'}') {
        return Ok(at + 1);
    }
    loop {
        let key_end = skip_string(text, at)?;
        let key = decode_string(&text[at..key_end]);
        at = skip_space(text, key_end);
        if bytes.get(at) != Some(&b':') {
            return Err(JsonError { what: "expected a colon", at });
        }
        at = skip_space(text, at + 1);
        let end = skip_value(text, at, &mut |_| {})?;
        found(key, &text[at..end]);
        at = skip_space(text, end);
        match bytes.get(at) {
            Some(b',') => at = skip_space(text, at + 1),
            Some(b'}') => return Ok(at + 1),
            _ => return Err(JsonError { what: "expected a comma or the end of the object", at }),
        }
    }
}

/// The elements of a list, as raw text.
///
/// # Errors
/// Says what is wrong and where, also where `text` is no list.
pub(crate) fn list_items(text: &str) -> Result<Vec<&str>, JsonError> {
    let bytes = text.as_bytes();
    let mut items = Vec::new();
    let mut at = skip_space(text, 0);
    if bytes.get(at) != Some(&b'[') {
        return Err(JsonError { what: "expected a list", at });
    }
    at = skip_space(text, at + 1);
    if bytes.get(at) == Some(&b']') {
        expect_end(text, at + 1)?;
        return Ok(items);
    }
    loop {
        let end = skip_value(text, at, &mut |_| {})?;
        items.push(&text[at..end]);
        at = skip_space(text, end);
        match bytes.get(at) {
            Some(b',') => at = skip_space(text, at + 1),
            Some(b']') => {
                expect_end(text, at + 1)?;
                return Ok(items);
            }
            _ => return Err(JsonError { what: "expected a comma or the end of the list", at }),
        }
    }
}

/// Whether user data holds, at any depth, an object whose key `task` has an object with a key `func`.
///
/// The Python package takes such an object for a task of its own when it reads the data back, and acts on it.
///
/// # Errors
/// Says where `text` is no JSON.
pub fn looks_like_a_task(text: &str) -> Result<bool, JsonError> {
    let mut found = false;
    // For each open container: whether it is the value of a key `task`.
    let mut open: Vec<bool> = Vec::new();
    let mut after_task_key = false;
    let start = skip_space(text, 0);
    let end = skip_value(text, start, &mut |event| match event {
        Event::Open(kind) => {
            open.push(after_task_key && kind == b'{');
            after_task_key = false;
        }
        Event::Close => {
            open.pop();
            after_task_key = false;
        }
        Event::Key(raw) => {
            let key = decode_string(raw);
            found |= key == "func" && open.last() == Some(&true);
            after_task_key = key == "task";
        }
    })?;
    expect_end(text, end)?;
    Ok(found)
}

/// The end of the value that begins at `at`.
fn skip_value<'a>(text: &'a str, start: usize, seen: &mut dyn FnMut(Event<'a>)) -> Result<usize, JsonError> {
    let bytes = text.as_bytes();
    let mut at = start;
    let mut open: Vec<u8> = Vec::new();
    loop {
        // A value is expected here.
        match bytes.get(at) {
            Some(b'{') => {
                seen(Event::Open(b'{'));
                at = skip_space(text, at + 1);
                if bytes.get(at) == Some(&b'}') {
                    seen(Event::Close);
                    at += 1;
                } else {
                    open.push(b'{');
                    at = skip_key(text, at, seen)?;
                    continue;
                }
            }
            Some(b'[') => {
                seen(Event::Open(b'['));
                at = skip_space(text, at + 1);
                if bytes.get(at) == Some(&b']') {
                    seen(Event::Close);
                    at += 1;
                } else {
                    open.push(b'[');
                    continue;
                }
            }
            Some(b'"') => at = skip_string(text, at)?,
            _ => at = skip_scalar(text, at)?,
        }
        // A value has ended here: close what closes, or go on after a comma.
        loop {
            let Some(container) = open.last().copied() else { return Ok(at) };
            at = skip_space(text, at);
            match (bytes.get(at), container) {
                (Some(b','), b'{') => {
                    at = skip_key(text, skip_space(text, at + 1), seen)?;
                    break;
                }
                (Some(b','), _) => {
                    at = skip_space(text, at + 1);
                    break;
                }
                (Some(b'}'), b'{') | (Some(b']'), b'[') => {
                    open.pop();
                    seen(Event::Close);
                    at += 1;
                }
                _ => return Err(JsonError { what: "expected a comma or the end of a list or object", at }),
            }
        }
    }
}

/// Passes a key and its colon; the position of the value follows.
fn skip_key<'a>(text: &'a str, at: usize, seen: &mut dyn FnMut(Event<'a>)) -> Result<usize, JsonError> {
    let end = skip_string(text, at)?;
    seen(Event::Key(&text[at..end]));
    let colon = skip_space(text, end);
    if text.as_bytes().get(colon) != Some(&b':') {
        return Err(JsonError { what: "expected a colon", at: colon });
    }
    Ok(skip_space(text, colon + 1))
}

fn skip_string(text: &str, start: usize) -> Result<usize, JsonError> {
    let bytes = text.as_bytes();
    if bytes.get(start) != Some(&b'"') {
        return Err(JsonError { what: "expected a string", at: start });
    }
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            None => return Err(JsonError { what: "a string does not end", at: start }),
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = skip_escape(bytes, at)?,
            Some(byte) if *byte < 0x20 => return Err(JsonError { what: "a control character in a string", at }),
            Some(_) => at += 1,
        }
    }
}

fn skip_escape(bytes: &[u8], at: usize) -> Result<usize, JsonError> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') if bytes.len() >= at + 6 && bytes[at + 2..at + 6].iter().all(u8::is_ascii_hexdigit) => Ok(at + 6),
        _ => Err(JsonError { what: "an unknown escape in a string", at }),
    }
}

/// A number or a word.
fn skip_scalar(text: &str, start: usize) -> Result<usize, JsonError> {
    const WORDS: [&str; 6] = ["null", "true", "false", "NaN", "Infinity", "-Infinity"];
    let rest = &text.as_bytes()[start.min(text.len())..];
    if let Some(word) = WORDS.iter().find(|word| rest.starts_with(word.as_bytes())) {
        return Ok(start + word.len());
    }
    let digits = |from: usize| rest[from.min(rest.len())..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let error = JsonError { what: "expected a value", at: start };
    let mut at = usize::from(rest.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && rest[at] == b'0') {
        return Err(error);
    }
    at += whole;
    if rest.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return Err(error);
        }
        at += 1 + fraction;
    }
    if matches!(rest.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(rest.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return Err(error);
        }
        at += 1 + sign + exponent;
    }
    Ok(start + at)
}

fn skip_space(text: &str, mut at: usize) -> usize {
    while matches!(text.as_bytes().get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

fn expect_end(text: &str, at: usize) -> Result<(), JsonError> {
    let at = skip_space(text, at);
    if at == text.len() { Ok(()) } else { Err(JsonError { what: "something follows the value", at }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_python_writes_passes() {
        for text in [
            "null",
            " true ",
            "-0",
            "1e+300",
            "1208925819614629174706176",
            "NaN",
            "[NaN, -Infinity, Infinity]",
            "[]",
            "{}",
            r#""\ud800""#,
            r#"{"a": [1, {"b": "\u0000"}], "c": {}}"#,
            "[[[[]]], {}]",
            "\"räksmörgås\"",
        ] {
            assert_eq!(check_json(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in [
            "",
            " ",
            "nul",
            "01",
            "1.",
            "1e",
            "--1",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "\"",
            "\"\\x\"",
            "\"\\u12\"",
            "[",
            "{",
            "{\"a\":1",
            "[1}",
            "1 2",
            "'a'",
            "\"\n\"",
            "[1,,2]",
            ",",
        ] {
            assert!(check_json(text).is_err(), "{text}");
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        assert_eq!(check_json(&deep), Ok(()));
        assert!(check_json(&"[".repeat(1_000_000)).is_err());
    }

    #[test]
    fn an_object_that_the_python_package_would_act_on_is_seen_at_any_depth() {
        for (text, expected) in [
            (r#"{"task": {"func": "os.system"}}"#, true),
            (r#"[1, {"a": [{"task": {"x": 1, "func": 2}}]}]"#, true),
            (r#"{"t\u0061sk": {"\u0066unc": 1}}"#, true),
            (r#"{"task": {"a": {"func": 1}}}"#, false),
            (r#"{"task": [{"func": 1}]}"#, false),
            (r#"{"task": "func", "func": 1}"#, false),
            (r#"{"task": {}, "func": 1}"#, false),
            (r#"["task", {"func": 1}]"#, false),
            (r#"{"task": {"a": {}, "func": 1}}"#, true),
        ] {
            assert_eq!(looks_like_a_task(text), Ok(expected), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC*", cut in 0usize..200) {
            let _ = check_json(&text);
            let _ = object_fields(&text);
            let _ = looks_like_a_task(&text);
            let json = r#"{"task": {"func": "a\u00e9", "x": [1.5e-3, NaN, null]}, "b": "é"}"#;
            if let Some(part) = json.get(..cut) {
                let _ = object_fields(part);
            }
        }

        #[test]
        fn agrees_with_a_strict_parser_on_strict_json(text in "[\\[\\]{},:\"0-9a-z.\\- ]{0,24}") {
            if serde_json::from_str::<serde_json::Value>(&text).is_ok() {
                prop_assert_eq!(check_json(&text), Ok(()));
            }
        }
    }
}
