//! User data as a tree that opens and closes, built only as far as it is open.

use crate::inspector::format;
use crate::inspector::model::doc::Doc;
use crate::inspector::source::{decode_string, list_items, object_fields};
use crate::inspector::theme::Role;
use std::collections::HashSet;
use std::sync::Arc;

/// A container whose text is no longer than this stands on one line.
const SHORT: usize = 56;
/// A container whose text is longer than this is closed at first.
const LONG: usize = 2_048;
/// Children of one container that are shown.
const CHILDREN_MAX: usize = 500;
/// Containers within each other that are shown.
const DEPTH_MAX: u16 = 24;

/// What is open, and how user data is shown.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Folds {
    /// User data as it is stored.
    pub raw: bool,
    /// Whether the frames of libraries are shown.
    pub frames: bool,
    /// What is not as it would be by itself, by its name.
    pub turned: HashSet<Arc<str>>,
}

impl Folds {
    /// Whether this is open; `by_itself` tells how it would be.
    pub fn is_open(&self, name: &str, by_itself: bool) -> bool {
        by_itself != self.turned.contains(name)
    }

    /// Opens what is closed, closes what is open.
    pub fn turn(&mut self, name: &Arc<str>) {
        if !self.turned.remove(name) {
            self.turned.insert(Arc::clone(name));
        }
    }
}

/// Where a tree is put.
pub struct Tree<'a> {
    /// The document.
    pub doc: &'a mut Doc,
    /// What is open.
    pub folds: &'a Folds,
    /// The signs of what is closed and what is open.
    pub signs: [&'static str; 2],
}

impl Tree<'_> {
    /// Adds a value under this label.
    pub fn value(&mut self, label: &'static str, indent: u16, raw: &str) {
        self.node(label, indent, label, "", raw, 0);
    }

    fn node(&mut self, label: &'static str, indent: u16, path: &str, key: &str, raw: &str, depth: u16) {
        let raw = raw.trim();
        let named = |text: String| if key.is_empty() { text } else { format!("{key}: {text}") };
        let children = if raw.len() > SHORT && depth < DEPTH_MAX { self.open(raw, path, depth) } else { Opened::No };
        match children {
            Opened::No => {
                let text = named(leaf(raw));
                self.doc.text(label, indent, Role::Text, text);
            }
            Opened::Closed(what) => {
                let text = named(format!("{} {what}", self.signs[0]));
                self.doc.fold(label, indent, Role::Text, path, text);
            }
            Opened::Open(children, what) => {
                let text = named(format!("{} {what}", self.signs[1]));
                self.doc.fold(label, indent, Role::Text, path, text);
                let shown = children.iter().take(CHILDREN_MAX);
                for (key, value) in shown {
                    self.node("", indent + 2, &format!("{path}/{key}"), key, value, depth + 1);
                }
                if children.len() > CHILDREN_MAX {
                    let more = format::exact((children.len() - CHILDREN_MAX) as u64);
                    self.doc.text("", indent + 2, Role::Dim, format!("and {more} more; v shows all of it"));
                }
            }
        }
    }

    /// The children of a container, where it is one and open.
    fn open<'r>(&self, raw: &'r str, path: &str, depth: u16) -> Opened<'r> {
        let signs = match raw.as_bytes().first() {
            Some(b'{') => ["{", "}"],
            Some(b'[') => ["[", "]"],
            _ => return Opened::No,
        };
        let what = |inside: String| format!("{}{inside}{}", signs[0], signs[1]);
        if !self.folds.is_open(path, raw.len() <= LONG && depth < 3) {
            return Opened::Closed(what(format::bytes(raw.len() as u64)));
        }
        let children: Vec<(String, &str)> = if signs[0] == "{" {
            let Ok(fields) = object_fields(raw) else { return Opened::No };
            fields.into_iter().map(|(key, value)| (key.into_owned(), value)).collect()
        } else {
            let Ok(items) = list_items(raw) else { return Opened::No };
            items.into_iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
        };
        let count = what(format::exact(children.len() as u64));
        Opened::Open(children, count)
    }
}

enum Opened<'r> {
    No,
    Closed(String),
    Open(Vec<(String, &'r str)>, String),
}

/// A value that has no parts, or whose parts are not shown apart: strings as they read, between their quotes.
fn leaf(raw: &str) -> String {
    if raw.len() >= 2 && raw.starts_with('"') && raw.contains('\\') {
        format!("\"{}\"", decode_string(raw))
    } else {
        raw.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspector::model::doc::{LineText, Place};

    fn shown(raw: &str, folds: &Folds) -> Vec<String> {
        let mut doc = Doc::default();
        Tree { doc: &mut doc, folds, signs: ["+", "-"] }.value("args", 6, raw);
        let lines = doc.lines(Place::default(), 100, 50, false);
        let text = |line: &crate::inspector::model::doc::Line| match &line.text {
            LineText::Fixed(text) => format!("{}{text}", " ".repeat(usize::from(line.indent) - 6)),
            LineText::Live(_) => String::new(),
        };
        lines.iter().map(text).collect()
    }

    #[test]
    fn what_is_short_stands_on_one_line_and_what_is_long_is_closed() {
        let mut folds = Folds::default();
        assert_eq!(shown("[8123, {\"a\": 1}]", &folds), ["[8123, {\"a\": 1}]"]);
        let raw =
            format!("{{\"user\": {{\"name\": \"gr\\u00f6\\u00dfe\", \"id\": 42}}, \"text\": \"{}\"}}", "x".repeat(40));
        let open = [
            "- {2}",
            "  user: {\"name\": \"gr\\u00f6\\u00dfe\", \"id\": 42}",
            &format!("  text: \"{}\"", "x".repeat(40)),
        ];
        assert_eq!(shown(&raw, &folds), open);
        folds.turn(&"args".into());
        assert_eq!(shown(&raw, &folds), [format!("+ {{{} B}}", raw.len())]);
        let long = format!("[\"{}\", NaN]", "y".repeat(3_000));
        assert_eq!(shown(&long, &Folds::default()), ["+ [2.9 KB]"]);
        assert_eq!(shown(&long, &folds)[0], "- [2]");
    }

    #[test]
    fn what_is_no_json_is_shown_as_it_stands() {
        let broken = "{".repeat(100);
        assert_eq!(shown(&broken, &Folds::default()).concat(), broken);
        let deep = "[".repeat(300) + &"]".repeat(300);
        assert!(shown(&deep, &Folds::default()).len() < 30);
    }
}
