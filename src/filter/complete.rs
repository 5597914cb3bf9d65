//! What could be typed next.

use crate::filter::field::{FIELDS, Field, Kind};
use crate::task::Segment;
use std::ops::Range;

/// Words that are offered at most.
const OFFERED_MAX: usize = 50;

/// Names that were seen, for the values of fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Functions.
    pub functions: Vec<String>,
    /// Classes of errors.
    pub errors: Vec<String>,
    /// Workers.
    pub workers: Vec<String>,
    /// Queues.
    pub queues: Vec<String>,
}

/// Something that could be typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The part of the text that it takes the place of, in bytes.
    pub at: Range<usize>,
    /// What to put there.
    pub with: String,
    /// What it means; empty for values.
    pub help: &'static str,
}

/// What could be typed at the byte `cursor`.
pub fn complete(text: &str, cursor: usize, known: &Known) -> Vec<Completion> {
    let cursor = text.floor_char_boundary(cursor.min(text.len()));
    let start = word_start(&text[..cursor]);
    let word = &text[start..cursor];
    let offered: Vec<Completion> = match word.find([':', '=', '<', '>']) {
        Some(at) => values(&word[..at], &word[at + 1..], known)
            .into_iter()
            .map(|with| Completion { at: start + at + 1..cursor, with, help: "" })
            .collect(),
        None => fields(word).map(|(with, help)| Completion { at: start..cursor, with, help }).collect(),
    };
    offered.into_iter().filter(|next| text.get(next.at.clone()) != Some(&next.with)).take(OFFERED_MAX).collect()
}

/// Where the word at the end of the text begins, behind a sign that negates or opens.
fn word_start(text: &str) -> usize {
    let mut quoted = false;
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => start = at + c.len_utf8(),
            '(' if !quoted && at == start => start = at + 1,
            '-' | '!' if !quoted && at == start => start = at + 1,
            _ => {}
        }
    }
    start
}

fn fields(word: &str) -> impl Iterator<Item = (String, &'static str)> {
    let lower = word.to_ascii_lowercase();
    FIELDS.iter().filter(move |info| info.name.starts_with(&lower)).map(|info| {
        let sign = match info.kind {
            Kind::Span | Kind::Time | Kind::Size => "<",
            Kind::Number => ">=",
            _ => ":",
        };
        (format!("{}{sign}", info.name), info.help)
    })
}

fn values(name: &str, typed: &str, known: &Known) -> Vec<String> {
    let Some(info) = Field::named(name) else { return Vec::new() };
    let segments: Vec<String> = Segment::ALL.iter().map(|segment| segment.word().to_owned()).collect();
    let seen = match info.field {
        Field::Func => &known.functions,
        Field::Error => &known.errors,
        Field::Worker => &known.workers,
        Field::Queue => &known.queues,
        Field::Segment => &segments,
        _ => return Vec::new(),
    };
    let typed = typed.trim_start_matches('"').to_lowercase();
    // A class is found by its own name as well as by that of its module.
    let fits = |name: &&String| {
        let lower = name.to_lowercase();
        lower.starts_with(&typed) || lower.rsplit('.').next().is_some_and(|last| last.starts_with(&typed))
    };
    seen.iter().filter(fits).map(|name| quoted(name)).collect()
}

fn quoted(name: &str) -> String {
    if name.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '(' | ')' | '*' | '?')) {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let known = Known {
            functions: vec!["shop.tasks.welcome".into(), "shop.pay.refund".into()],
            errors: vec!["builtins.ConnectionError".into()],
            workers: vec!["web 1".into()],
            queues: Vec::new(),
        };
        let mut results = complete(text, text.len(), &known);
        let texts: Vec<_> = results.drain(..).map(|next| format!("{}{}", &text[..next.at.start], next.with)).collect();
        assert_eq!(texts, expected, "{text}");
    }

    #[test]
    fn fields_and_what_was_seen() {
        check("er", &["error:"]);
        check("age<2h -wor", &["age<2h -worker:"]);
        check("a", &["age<", "args:", "attempt>="]);
        check("func:shop.p", &["func:shop.pay.refund"]);
        check("func:wel", &["func:shop.tasks.welcome"]);
        check("(error:Conn", &["(error:builtins.ConnectionError"]);
        check("worker:w", &["worker:\"web 1\""]);
        check("segment:f", &["segment:failed"]);
        check("\"free te", &[]);
        check("nothing:x", &[]);
        assert_eq!(complete("", 0, &Known::default()).len(), FIELDS.len());
    }
}
