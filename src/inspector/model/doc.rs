//! A long text in pieces, so that ten megabytes scroll like ten lines.
//!
//! Only the pieces on the screen are ever sanitised and wrapped. A position is a piece and a line within it; scrolling
//! back wraps one piece anew. Nothing is computed over the whole text, on arrival or on a resize.

use crate::inspector::text::{clean, take};
use crate::inspector::theme::Role;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a piece at most.
const PIECE_MAX: usize = 4_096;
/// Columns that wrapped text gets at least, before its indent gives way.
const TEXT_MIN: usize = 16;

/// A document: fields and texts, one under the other.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Doc {
    pieces: Vec<Piece>,
}

/// A piece of a document.
#[derive(Clone, Debug, PartialEq)]
struct Piece {
    label: &'static str,
    indent: u16,
    role: Role,
    body: Body,
    /// What is opened and closed here.
    fold: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Text(Arc<str>, Range<usize>),
    Live(Live),
}

/// A line whose words depend on the time.
#[derive(Clone, Debug, PartialEq)]
pub enum Live {
    /// A sentence with the age of a moment at its end.
    Since(String, f64),
    /// A moment in milliseconds since 1970, with its stored text where there is one.
    Moment(f64, Option<String>),
}

/// A line as it is drawn: not yet safe in its label, sanitised in its text.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What stands before the text, on the first line of a field.
    pub label: &'static str,
    /// Where the text begins.
    pub indent: u16,
    /// What the text means.
    pub role: Role,
    /// The text, or what is worked out from the time.
    pub text: LineText,
    /// Where it is in the document.
    pub at: Place,
}

/// The text of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum LineText {
    /// Fixed.
    Fixed(String),
    /// Worked out when it is drawn.
    Live(Live),
}

/// A place in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// The piece.
    pub piece: usize,
    /// The line within it.
    pub line: usize,
}

impl Doc {
    /// Adds an empty line.
    pub fn blank(&mut self) {
        self.push("", 0, Role::Text, Body::Text(Arc::from(""), 0..0));
    }

    /// Adds a line that changes with the time.
    pub fn live(&mut self, label: &'static str, indent: u16, role: Role, live: Live) {
        self.push(label, indent, role, Body::Live(live));
    }

    /// Adds a text of any length, its lines under each other at `indent`, a label before the first.
    pub fn text(&mut self, label: &'static str, indent: u16, role: Role, text: impl Into<Arc<str>>) {
        let text: Arc<str> = text.into();
        let mut start = 0;
        let mut label = label;
        loop {
            let end = piece_end(&text, start);
            self.push(label, indent, role, Body::Text(Arc::clone(&text), start..end));
            start = end;
            label = "";
            if start >= text.len() {
                return;
            }
        }
    }

    /// Adds a line at which something is opened and closed, under this name.
    pub fn fold(&mut self, label: &'static str, indent: u16, role: Role, name: impl Into<Arc<str>>, text: String) {
        let text: Arc<str> = text.into();
        let range = 0..text.len();
        self.push(label, indent, role, Body::Text(text, range));
        if let Some(last) = self.pieces.last_mut() {
            last.fold = Some(name.into());
        }
    }

    /// What is opened and closed at a place, or at the nearest line before it.
    pub fn fold_at(&self, place: Place) -> Option<(&Arc<str>, Place)> {
        let upto = self.pieces.len().min(place.piece + 1);
        let found = self.pieces[..upto].iter().enumerate().rev();
        found.filter_map(|(piece, found)| Some((found.fold.as_ref()?, Place { piece, line: 0 }))).next()
    }

    /// The next line after `from`, or the last before it, whose text holds `needle` in either case. Goes around at the
    /// end.
    pub fn search(&self, needle: &str, from: Place, forward: bool, width: u16) -> Option<Place> {
        let needle = needle.to_lowercase();
        let count = self.pieces.len();
        if needle.is_empty() || count == 0 {
            return None;
        }
        let start = from.piece.min(count - 1);
        // The piece of the place itself comes first and last: what it holds lies behind the place, or before it.
        (0..=count).find_map(|step| {
            let piece = if forward { (start + step) % count } else { (start + count - step % count) % count };
            if !self.pieces[piece].holds(&needle) {
                return None;
            }
            let lines = self.pieces[piece].lines(width, false);
            let mut hits = (0..lines.len()).filter(|line| match &lines[*line].text {
                LineText::Fixed(text) => text.to_lowercase().contains(&needle),
                LineText::Live(_) => false,
            });
            let here = step == 0;
            let line = match forward {
                true => hits.find(|line| !here || *line > from.line),
                false => hits.rfind(|line| !here || *line < from.line),
            };
            // Words that are wrapped are on none of the lines.
            let line = line.or_else(|| (!here && hits_none(&lines, &needle)).then_some(0))?;
            Some(Place { piece, line })
        })
    }

    /// The place `by` lines further on, or back where it is negative; up to the last line.
    pub fn walked(&self, from: Place, by: i64, width: u16) -> Place {
        let from = self.clamped(from, width);
        if by < 0 { self.back(from, by.unsigned_abs(), width) } else { self.on(from, by.unsigned_abs(), width) }
    }

    /// The top of a screen that shows `cursor`, moved from `top` as little as possible.
    pub fn revealed(&self, top: Place, cursor: Place, width: u16, height: u16) -> Place {
        if cursor < top {
            return cursor;
        }
        top.max(self.back(cursor, u64::from(height.saturating_sub(1)), width))
    }

    /// The last line.
    pub fn last(&self, width: u16) -> Place {
        let piece = self.pieces.len().saturating_sub(1);
        Place { piece, line: self.count(piece, width).saturating_sub(1) }
    }

    /// The lines from `place` on, as many as `height` asks for.
    pub fn lines(&self, place: Place, width: u16, height: u16, ascii: bool) -> Vec<Line> {
        let mut lines = Vec::new();
        for (at, piece) in self.pieces.iter().enumerate().skip(place.piece) {
            let skip = if at == place.piece { place.line } else { 0 };
            let numbered = piece.lines(width, ascii).into_iter().enumerate().skip(skip);
            lines.extend(numbered.map(|(line, text)| Line { at: Place { piece: at, line }, ..text }));
            if lines.len() >= usize::from(height) {
                break;
            }
        }
        lines.truncate(usize::from(height));
        lines
    }

    /// The place from which the last screenful is shown.
    pub fn end(&self, width: u16, height: u16) -> Place {
        let Some(last) = self.pieces.len().checked_sub(1) else { return Place::default() };
        let bottom = Place { piece: last, line: self.count(last, width).saturating_sub(1) };
        self.back(bottom, u64::from(height.saturating_sub(1)), width)
    }

    /// The nearest place that exists.
    pub fn clamped(&self, place: Place, width: u16) -> Place {
        let Some(last) = self.pieces.len().checked_sub(1) else { return Place::default() };
        if place.piece > last {
            return Place { piece: last, line: self.count(last, width).saturating_sub(1) };
        }
        Place { piece: place.piece, line: place.line.min(self.count(place.piece, width).saturating_sub(1)) }
    }

    fn on(&self, mut place: Place, mut by: u64, width: u16) -> Place {
        while by > 0 {
            let left = self.count(place.piece, width).saturating_sub(place.line + 1) as u64;
            if by <= left {
                return Place { line: place.line + by as usize, ..place };
            }
            if place.piece + 1 >= self.pieces.len() {
                return Place { line: place.line + left as usize, ..place };
            }
            by -= left + 1;
            place = Place { piece: place.piece + 1, line: 0 };
        }
        place
    }

    fn back(&self, mut place: Place, mut by: u64, width: u16) -> Place {
        while by > 0 {
            if by <= place.line as u64 {
                return Place { line: place.line - by as usize, ..place };
            }
            if place.piece == 0 {
                return Place::default();
            }
            by -= place.line as u64 + 1;
            let piece = place.piece - 1;
            place = Place { piece, line: self.count(piece, width).saturating_sub(1) };
        }
        place
    }

    /// Lines of a piece.
    fn count(&self, piece: usize, width: u16) -> usize {
        // Whether escapes are those of ASCII changes widths by little; a place is clamped wherever it is used.
        self.pieces.get(piece).map_or(0, |piece| piece.lines(width, false).len())
    }

    fn push(&mut self, label: &'static str, indent: u16, role: Role, body: Body) {
        self.pieces.push(Piece { label, indent, role, body, fold: None });
    }
}

/// Whether no line holds the words, so that they are only in what was wrapped.
fn hits_none(lines: &[Line], needle: &str) -> bool {
    !lines.iter().any(|line| matches!(&line.text, LineText::Fixed(text) if text.to_lowercase().contains(needle)))
}

impl Piece {
    /// Whether its text holds these words, which are in lower case.
    fn holds(&self, needle: &str) -> bool {
        let Body::Text(text, range) = &self.body else { return false };
        let text = text.get(range.clone()).unwrap_or("");
        if !text.is_ascii() || !needle.is_ascii() {
            return text.to_lowercase().contains(needle);
        }
        let (text, needle) = (text.as_bytes(), needle.as_bytes());
        text.windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle))
    }

    fn lines(&self, width: u16, ascii: bool) -> Vec<Line> {
        let line = |label, indent, text| Line { label, indent, role: self.role, text, at: Place::default() };
        let (text, range) = match &self.body {
            Body::Live(live) => return vec![line(self.label, self.indent, LineText::Live(live.clone()))],
            Body::Text(text, range) => (text, range.clone()),
        };
        // A narrow screen gives the indent up before it gives up the text, and the label then has its own line.
        let width = usize::from(width).max(1);
        let fits = usize::from(self.indent) + TEXT_MIN <= width;
        let indent = if fits { self.indent } else { 0 };
        let columns = width - usize::from(indent);
        let mut lines = Vec::new();
        let mut label = self.label;
        if !fits && !label.is_empty() {
            lines.push(line(std::mem::take(&mut label), 0, LineText::Fixed(String::new())));
        }
        // The range was cut at character boundaries of this very text.
        let text = text.get(range).unwrap_or("");
        for row in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let shown = clean(row.strip_suffix('\r').unwrap_or(row), ascii);
            let mut rest = &*shown;
            loop {
                let part = take(rest, columns);
                // A character that is wider than the screen still takes its own line.
                let part = if part.is_empty() { &rest[..rest.chars().next().map_or(0, char::len_utf8)] } else { part };
                lines.push(line(std::mem::take(&mut label), indent, LineText::Fixed(part.to_owned())));
                rest = &rest[part.len()..];
                if rest.is_empty() {
                    break;
                }
            }
        }
        lines
    }
}

/// Where the piece that begins at `start` ends: at a line's end where there is one within reach, else anywhere.
fn piece_end(text: &str, start: usize) -> usize {
    let mut end = (start + PIECE_MAX).min(text.len());
    if end == text.len() {
        return end;
    }
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[start..end].rfind('\n').map_or(end, |at| start + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(doc: &Doc, place: Place, width: u16, height: u16) -> Vec<String> {
        let text = |line: Line| match line.text {
            LineText::Fixed(text) => format!("{}{}{text}", line.label, " ".repeat(usize::from(line.indent))),
            LineText::Live(_) => "live".into(),
        };
        doc.lines(place, width, height, false).into_iter().map(text).collect()
    }

    /// As a screen scrolls: never beyond the last screenful.
    fn moved(doc: &Doc, from: Place, by: i64, width: u16, height: u16) -> Place {
        doc.walked(from, by, width).min(doc.end(width, height))
    }

    #[test]
    fn searches_forward_and_back_around_the_end() {
        let mut doc = Doc::default();
        doc.text("", 0, Role::Text, "one\nTwo\nthree\n");
        doc.text("args", 2, Role::Text, format!("{}two", "x".repeat(100)));
        let at = |piece, line| Some(Place { piece, line });
        let first = Place::default();
        assert_eq!(doc.search("two", first, true, 40), at(0, 1));
        let second = doc.search("two", Place { piece: 0, line: 1 }, true, 40).unwrap();
        assert_eq!(second.piece, 1);
        assert_eq!(doc.search("two", second, true, 40), at(0, 1));
        assert_eq!(doc.search("TWO", first, false, 40), Some(second));
        assert_eq!(doc.search("four", first, true, 40), None);
        assert_eq!(doc.search("", first, true, 40), None);
    }

    #[test]
    fn wraps_under_its_indent() {
        let mut doc = Doc::default();
        doc.text("args", 4, Role::Text, "abcdefghijklmnopqrstuvwxyz\n\x1b[1m\n");
        assert_eq!(
            shown(&doc, Place::default(), 24, 9),
            ["args    abcdefghijklmnopqrst", "    uvwxyz", "    \\x1b[1m"]
        );
        assert_eq!(shown(&doc, Place::default(), 10, 9)[..2], ["args", "abcdefghij"]);
        shown(&doc, Place::default(), 0, 9);
    }

    #[test]
    fn scrolls_line_by_line_over_pieces_both_ways() {
        let mut doc = Doc::default();
        let text: String = (0..5_000).map(|n| format!("line {n}\n")).collect();
        doc.text("", 0, Role::Text, text);
        assert!(doc.pieces.len() > 5);
        let mut place = Place::default();
        for n in 0..4_990 {
            assert_eq!(shown(&doc, place, 40, 1), [format!("line {n}")]);
            place = moved(&doc, place, 1, 40, 10);
        }
        assert_eq!(place, doc.end(40, 10));
        assert_eq!(moved(&doc, place, 1, 40, 10), place);
        assert_eq!(shown(&doc, place, 40, 20).last().map(String::as_str), Some("line 4999"));
        assert_eq!(shown(&doc, moved(&doc, place, -1_000, 40, 10), 40, 1), ["line 3990"]);
        assert_eq!(moved(&doc, place, i64::MIN + 1, 40, 10), Place::default());
    }

    #[test]
    fn ten_megabytes_in_one_line_are_cut_at_characters_and_lose_nothing() {
        let text = "[\"表\u{202e}a\", ".repeat(1_000_000);
        let mut doc = Doc::default();
        doc.text("args", 8, Role::Text, text.as_str());
        let pieces: usize = doc
            .pieces
            .iter()
            .map(|piece| match &piece.body {
                Body::Text(_, range) => range.len(),
                Body::Live(_) => 0,
            })
            .sum();
        assert_eq!(pieces, text.len());
        let end = doc.end(80, 24);
        assert_eq!(doc.lines(end, 80, 24, false).len(), 24);
        assert!(moved(&doc, end, -500, 80, 24) < end);
    }

    #[test]
    fn an_empty_document_is_no_trouble() {
        let doc = Doc::default();
        assert_eq!(moved(&doc, Place { piece: 9, line: 9 }, 5, 80, 24), Place::default());
        assert!(doc.lines(Place { piece: 9, line: 9 }, 80, 24, false).is_empty());
    }
}
