//! Reading a filter. Every error knows its place in the text.

use crate::filter::FilterError;
use crate::filter::expr::{Expr, Op, Test, Wanted};
use crate::filter::field::{Field, FieldInfo, Kind, nearest};
use crate::filter::pattern::Pattern;
use crate::task::{Stamp, parse_duration};
use std::ops::Range;

/// Bytes of a filter at most.
const LENGTH_MAX: usize = 4_096;
/// Parentheses within each other at most.
const DEPTH_MAX: usize = 32;
/// Signs that compare, longer ones first.
const OPS: [(&str, Op); 8] = [
    ("!=", Op::Unequal),
    ("<=", Op::AtMost),
    (">=", Op::AtLeast),
    ("==", Op::Equal),
    (":", Op::Equal),
    ("=", Op::Equal),
    ("<", Op::Less),
    (">", Op::More),
];

/// Reads a whole filter.
pub(super) fn parse(text: &str) -> Result<Expr, FilterError> {
    if text.len() > LENGTH_MAX {
        return Err(FilterError::new(LENGTH_MAX..text.len(), format!("a filter has at most {LENGTH_MAX} bytes")));
    }
    let mut parser = Parser { text, at: 0, depth: 0 };
    let expr = parser.any()?;
    match parser.rest().chars().next() {
        None => Ok(expr),
        // What ends a group where none is open.
        Some(_) => {
            Err(FilterError::new(parser.at..parser.at + 1, "`)` closes nothing")
                .hint("put it in quotes to search for it"))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

/// A word as it was typed.
struct Word {
    text: String,
    at: Range<usize>,
    quoted: bool,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Passes this word where it stands alone.
    fn keyword(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word);
        let alone = after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\n', '(', ')']));
        if alone {
            self.at += word.len();
        }
        alone
    }

    fn any(&mut self) -> Result<Expr, FilterError> {
        let mut groups = vec![self.all()?];
        loop {
            let before = self.at;
            if !self.keyword("OR") {
                break;
            }
            let group = self.all()?;
            let empty = |group: &Expr| *group == Expr::All(Vec::new());
            if empty(&group) || groups.last().is_some_and(empty) {
                let hint = "put it in quotes to search for it";
                return Err(FilterError::new(before..before + 2, "`OR` stands between two terms").hint(hint));
            }
            groups.push(group);
        }
        Ok(if groups.len() == 1 { groups.remove(0) } else { Expr::Any(groups) })
    }

    fn all(&mut self) -> Result<Expr, FilterError> {
        let mut terms = Vec::new();
        loop {
            self.skip_space();
            if self.keyword("AND") {
                continue;
            }
            let ahead = self.at;
            let rest = self.rest();
            let ends = rest.is_empty() || rest.starts_with(')') || self.keyword("OR");
            self.at = ahead;
            if ends {
                break;
            }
            terms.push(self.term()?);
        }
        Ok(if terms.len() == 1 { terms.remove(0) } else { Expr::All(terms) })
    }

    fn term(&mut self) -> Result<Expr, FilterError> {
        let start = self.at;
        if self.rest().starts_with(['-', '!']) {
            self.at += 1;
            if self.rest().is_empty() || self.rest().starts_with([' ', ')']) {
                let hint = "write -error:X, or put the sign in quotes to search for it";
                return Err(FilterError::new(start..start + 1, "there is nothing to negate").hint(hint));
            }
            return Ok(Expr::Not(Box::new(self.term()?)));
        }
        if self.rest().starts_with('(') {
            return self.group();
        }
        if self.rest().starts_with('"') {
            let word = self.quoted()?;
            return Ok(Expr::Test(Test::Words(Pattern::new(&word.text, true))));
        }
        let head = self.head();
        match OPS.into_iter().find(|(sign, _)| self.text[head.end..].starts_with(sign)) {
            Some((sign, op)) if !head.is_empty() => self.field(head, sign, op),
            _ => {
                let word = self.bare();
                Ok(Expr::Test(Test::Words(Pattern::new(&word.text, false))))
            }
        }
    }

    fn group(&mut self) -> Result<Expr, FilterError> {
        let start = self.at;
        if self.depth >= DEPTH_MAX {
            return Err(FilterError::new(
                start..start + 1,
                format!("more than {DEPTH_MAX} parentheses within each other"),
            ));
        }
        self.at += 1;
        self.depth += 1;
        let inner = self.any()?;
        self.depth -= 1;
        if !self.rest().starts_with(')') {
            return Err(FilterError::new(start..start + 1, "this `(` is not closed"));
        }
        self.at += 1;
        Ok(inner)
    }

    /// Where the name of a field and its path end.
    fn head(&self) -> Range<usize> {
        let name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '-');
        let length = self.rest().find(|c| !name(c)).unwrap_or(self.rest().len());
        self.at..self.at + length
    }

    fn field(&mut self, head: Range<usize>, sign: &str, op: Op) -> Result<Expr, FilterError> {
        let name = &self.text[head.clone()];
        let (first, path) = name.split_once('.').map_or((name, None), |(first, path)| (first, Some(path)));
        let Some(info) = Field::named(first) else {
            let error = FilterError::new(head.start..head.start + first.len(), format!("unknown field `{first}`"));
            return Err(match nearest(first) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint("put it in quotes to search for it as text"),
            });
        };
        if path.is_some() && info.kind != Kind::Data {
            let hint = "args, kwargs and result have parts";
            return Err(FilterError::new(head, format!("`{first}` has no parts")).hint(hint));
        }
        self.at = head.end + sign.len();
        let value = self.value(info, head.start)?;
        let path: Vec<String> = path.into_iter().flat_map(|path| path.split('.')).map(str::to_owned).collect();
        if path.iter().any(String::is_empty) {
            return Err(FilterError::new(head, "a part of the path is empty"));
        }
        let sign_at = head.end..head.end + sign.len();
        test(info, path, op, sign_at, &value)
    }

    fn value(&mut self, info: &FieldInfo, start: usize) -> Result<Word, FilterError> {
        if self.rest().starts_with('"') {
            return self.quoted();
        }
        let word = self.bare();
        if word.text.is_empty() {
            let what = format!("`{}` has no value", &self.text[start..self.at]);
            return Err(FilterError::new(start..self.at, what).hint(format!("write it like {}", info.example)));
        }
        Ok(word)
    }

    /// A word up to a space, or to the end of the group.
    fn bare(&mut self) -> Word {
        let start = self.at;
        let mut open = 0usize;
        let mut end = self.text.len();
        for (at, c) in self.rest().char_indices() {
            let ends = c.is_whitespace() || (c == ')' && open == 0);
            if ends {
                end = start + at;
                break;
            }
            match c {
                '(' => open += 1,
                ')' => open = open.saturating_sub(1),
                _ => {}
            }
        }
        self.at = end;
        Word { text: self.text[start..end].to_owned(), at: start..end, quoted: false }
    }

    fn quoted(&mut self) -> Result<Word, FilterError> {
        let start = self.at;
        let mut text = String::new();
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + at + 1;
                    return Ok(Word { text, at: start..self.at, quoted: true });
                }
                '\\' => match chars.next() {
                    Some((_, c @ ('"' | '\\'))) => text.push(c),
                    Some((_, c)) => text.extend(['\\', c]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        Err(FilterError::new(start..self.text.len(), "this quote is not closed"))
    }
}

/// A test, once the field, the sign and the value are known to be words.
fn test(info: &FieldInfo, path: Vec<String>, op: Op, sign: Range<usize>, value: &Word) -> Result<Expr, FilterError> {
    let field = info.field;
    let compares = !matches!(op, Op::Equal | Op::Unequal);
    let pattern = || Pattern::new(&value.text, value.quoted);
    let number = |read: Result<f64, FilterError>| read.map(|number| Test::Number(field, op, number));
    let test = match info.kind {
        Kind::Number => return number(plain_number(value)).map(Expr::Test),
        Kind::Size => return number(bytes(value)).map(Expr::Test),
        Kind::Span => return number(span(value)).map(Expr::Test),
        Kind::Time => return time(field, op, value).map(Expr::Test),
        Kind::Segment => {
            Test::Segment(value.text.parse().map_err(|what: String| FilterError::new(value.at.clone(), what))?)
        }
        Kind::Data if !path.is_empty() => {
            let wanted = match value.text.parse() {
                Ok(number) if compares => Wanted::Number(op, number),
                _ if compares => {
                    return Err(FilterError::new(value.at.clone(), "only numbers are compared in user data"));
                }
                _ if value.text == "*" && !value.quoted => Wanted::Any,
                _ => Wanted::Word(pattern()),
            };
            let test = Expr::Test(Test::Path(field, path, wanted));
            return Ok(negated(op, test));
        }
        Kind::Name | Kind::Text | Kind::Word | Kind::Data => Test::Field(field, pattern()),
    };
    if compares {
        let what = format!("`{}` cannot be compared", info.name);
        return Err(FilterError::new(sign, what).hint(format!("write it like {}", info.example)));
    }
    Ok(negated(op, Expr::Test(test)))
}

fn negated(op: Op, test: Expr) -> Expr {
    if op == Op::Unequal { Expr::Not(Box::new(test)) } else { test }
}

fn plain_number(value: &Word) -> Result<f64, FilterError> {
    let wrong = || FilterError::new(value.at.clone(), format!("`{}` is no number", value.text));
    value.text.parse::<f64>().ok().filter(|number| !number.is_nan()).ok_or_else(wrong)
}

fn span(value: &Word) -> Result<f64, FilterError> {
    let duration = parse_duration(&value.text).map_err(|what| FilterError::new(value.at.clone(), what))?;
    Ok(duration.as_secs_f64() * 1_000.0)
}

fn time(field: Field, op: Op, value: &Word) -> Result<Test, FilterError> {
    if let Ok(duration) = parse_duration(&value.text) {
        return Ok(Test::Number(field, op, duration.as_secs_f64() * 1_000.0));
    }
    let day = format!("{}T00:00:00Z", value.text);
    let stamp = Stamp::parse(&value.text).or_else(|| Stamp::parse(&day));
    stamp.map(|stamp| Test::Moment(field, op, stamp.millis())).ok_or_else(|| {
        FilterError::new(value.at.clone(), format!("`{}` is neither a duration nor a moment", value.text))
            .hint("write 2h30m, 1d, 2026-11-30 or 2026-11-30T18:00:00Z")
    })
}

fn bytes(value: &Word) -> Result<f64, FilterError> {
    const UNITS: [(&str, f64); 4] = [("kb", 1024.0), ("mb", 1048576.0), ("gb", 1073741824.0), ("b", 1.0)];
    let lower = value.text.to_ascii_lowercase();
    let unit = UNITS.into_iter().find_map(|(unit, times)| Some((lower.strip_suffix(unit)?.to_owned(), times)));
    let (digits, times) = unit.unwrap_or((lower, 1.0));
    digits.trim().parse::<f64>().map(|number| number * times).map_err(|_| {
        FilterError::new(value.at.clone(), format!("`{}` is no size", value.text)).hint("write 512, 100kb or 2mb")
    })
}
