//! The table of rooms: who may use whom, held by reading the source.
//!
//! The rooms are the folders of `src`; the table stands in `ARCHITECTURE.md` for people and in [`ROOMS`] for this test.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The most lines that a file of `src` or `lua` may have: beyond that it holds more than one subject.
const MOST_LINES: usize = 450;
/// The only file that may build a key, and what keys begin with.
const KEYS: &str = "src/backend/keys.rs";
const KEY_TEXTS: [&str; 2] = ["threadmill:{", "threadmill-rs:{"];
/// The only files of the inspector that may know the backend: the questions it asks, and their answers from Redis.
const SOURCES: [&str; 2] = ["src/inspector/source.rs", "src/inspector/live.rs"];

struct Room {
    name: &'static str,
    /// The other rooms that it may use.
    may_use: &'static [&'static str],
    /// The external crates that it may use, where they are few.
    only: Option<&'static [&'static str]>,
    /// The external crates that it never uses.
    never: &'static [&'static str],
}

/// The files directly in `src` are the room `root`.
const ROOMS: [Room; 9] = [
    Room {
        name: "task",
        may_use: &[],
        only: Some(&["serde", "chrono", "jiff"]),
        never: &["tokio", "redis", "ratatui", "crossterm", "clap"],
    },
    Room {
        name: "backend",
        may_use: &["task"],
        only: None,
        never: &["ratatui", "crossterm", "tui_input", "clap", "comfy_table", "color_eyre", "anstream"],
    },
    Room {
        name: "native",
        may_use: &["task", "backend"],
        only: None,
        never: &["redis", "ratatui", "crossterm", "tui_input", "clap", "comfy_table"],
    },
    Room {
        name: "worker",
        may_use: &["task", "backend", "native"],
        only: None,
        never: &["redis", "ratatui", "crossterm", "tui_input", "clap", "comfy_table"],
    },
    Room {
        name: "filter",
        may_use: &["task", "backend"],
        only: Some(&["chrono", "strsim", "proptest"]),
        never: &["tokio", "redis", "ratatui", "crossterm", "tui_input", "clap"],
    },
    Room {
        name: "inspector",
        may_use: &["task", "backend", "filter"],
        only: None,
        never: &["redis", "clap", "comfy_table"],
    },
    Room {
        name: "demo",
        may_use: &["task", "backend", "native", "worker"],
        only: None,
        never: &["redis", "ratatui", "crossterm", "tui_input", "clap", "comfy_table"],
    },
    Room {
        name: "cli",
        may_use: &["task", "backend", "filter", "native", "worker", "inspector", "demo"],
        only: None,
        never: &["redis", "ratatui", "crossterm", "tui_input"],
    },
    Room {
        name: "root",
        may_use: &["task", "backend", "filter", "native", "worker", "inspector", "demo", "cli"],
        only: None,
        never: &["redis", "ratatui", "crossterm", "tui_input"],
    },
];

#[test]
fn each_room_keeps_to_the_table() {
    let crates = external_crates();
    let faults = each_file("src", "rs", |name, text| room_faults(name, text, &crates));
    assert!(faults.is_empty(), "against the table of rooms:\n{faults}");
}

#[test]
fn keys_are_built_in_one_place() {
    let mut faults = each_file("src", "rs", key_faults);
    faults += &each_file("lua", "lua", |name, text| {
        let code = |line: &str| line.split("--").next().unwrap_or_default().to_owned();
        let found = text.lines().enumerate().filter(|(_, line)| names_a_key(&code(line)));
        found.map(|(at, _)| format!("{name}:{}: a key is named outside of a comment", at + 1)).collect()
    });
    assert!(faults.is_empty(), "only {KEYS} builds keys:\n{faults}");
}

#[test]
fn no_file_is_too_long() {
    let too_long = |name: &str, text: &str| {
        let lines = text.lines().count();
        Vec::from_iter((lines > MOST_LINES).then(|| format!("{name}:{lines}: more than {MOST_LINES} lines")))
    };
    let faults = each_file("src", "rs", too_long) + &each_file("lua", "lua", too_long);
    assert!(faults.is_empty(), "files that hold more than one subject:\n{faults}");
}

#[test]
fn the_reader_of_source_catches_every_way_in() {
    let crates = external_crates();
    let caught = |name: &str, text: &str| room_faults(name, text, &crates);
    for (name, text) in [
        ("src/task/id.rs", "use crate::backend::Page;"),
        ("src/task/id.rs", "use crate::{\n    task::Stamp,\n    worker::{self, Lease},\n};"),
        ("src/task/id.rs", "use super::super::backend::Page;"),
        ("src/task/id.rs", "mod tests {\n    use super::super::super::cli;\n}"),
        ("src/task/mod.rs", "fn f() { super::worker::run() }"),
        ("src/task/id.rs", "fn f(at: crate::cli::Args) {}"),
        ("src/task/id.rs", "use tokio;"),
        ("src/task/id.rs", "use serde_json::json;"),
        ("src/backend/page.rs", "use crate::worker::X;"),
        ("src/backend/page.rs", "#[derive(clap::Parser)] struct A;"),
        ("src/worker/mod.rs", "use {redis as r, std::io};"),
        ("src/worker/mod.rs", "fn f() -> ::redis::Value {}"),
        ("src/inspector/model.rs", "use crate::backend::Page;"),
        ("src/inspector/source.rs", "use crate::worker::X;"),
        ("src/cli/show.rs", "pub(crate) use ratatui::Frame;"),
        ("src/main.rs", "extern crate redis;"),
        ("src/shop/mod.rs", "fn f() {}"),
    ] {
        assert_eq!(caught(name, text).len(), 1, "{name}: {text}: {:?}", caught(name, text));
    }
    assert_eq!(caught("src/task/id.rs", "\n\nuse tokio;")[0], "src/task/id.rs:3: the room task never uses tokio");
    for (name, text) in [
        ("src/task/id.rs", "//! crate::backend::Page\n/* use redis; /* */ */ const A: &str = \"crate::backend\";"),
        (
            "src/task/id.rs",
            "use super::*; use self::x; fn f<'a>(c: char) { let _ = ('\"', 'a', b'\\'', r#\"tokio::x\"#); }",
        ),
        ("src/task/id.rs", "#[cfg(test)]\nmod tests {\n    use super::*;\n    use serde_json::json;\n}"),
        ("src/task/id.rs", "fn f() -> impl Iterator<Item = u8> + use<> { x.redis::<u8>() }"),
        ("src/backend/page.rs", "use redis::Value; use crate::task::{Stamp, TaskId};"),
        ("src/inspector/source.rs", "use crate::backend::Page;"),
        ("src/cli/show.rs", "use crate::{backend, worker::{self}, inspector}; use clap::Parser;"),
        ("src/main.rs", "fn main() { threadmill::cli::main() }"),
    ] {
        assert_eq!(caught(name, text), [""; 0], "{name}: {text}");
    }
    let key = "fn f() { format!(\"threadmill:{{{alias}}}\") }";
    assert_eq!(key_faults("src/backend/page.rs", key).len(), 1);
    assert_eq!(key_faults(KEYS, key).len(), 0);
    assert_eq!(key_faults("src/backend/page.rs", &format!("#[cfg(test)] mod tests {{ {key} }}")).len(), 0);
    assert_eq!(key_faults("src/backend/page.rs", "/// `threadmill:{ALIAS}`\nfn f() {}").len(), 0);
}

/// Reads every file of this kind below a folder of the project; a line a fault.
fn each_file(folder: &str, extension: &str, check: impl Fn(&str, &str) -> Vec<String>) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join(folder), &mut files);
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    assert!(!files.is_empty(), "{folder} holds no .{extension}");
    let mut faults = String::new();
    for file in files {
        let name = file.strip_prefix(root).expect("the file is below").to_string_lossy().replace('\\', "/");
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        for fault in check(&name, &text) {
            let _ = writeln!(faults, "  {fault}");
        }
    }
    faults
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

/// Every crate that Cargo.toml names, as the code writes it.
fn external_crates() -> BTreeSet<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).expect("Cargo.toml");
    let manifest: toml::Table = text.parse().expect("Cargo.toml is TOML");
    let of = |table: &str| manifest[table].as_table().expect("a table").keys().map(|name| name.replace('-', "_"));
    of("dependencies").chain(of("dev-dependencies")).collect()
}

fn room_faults(name: &str, text: &str, crates: &BTreeSet<String>) -> Vec<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let room_name = if parts.len() > 2 { parts[1] } else { "root" };
    let Some(room) = ROOMS.iter().find(|room| room.name == room_name) else {
        return vec![format!("{name}:1: the table has no room {room_name}")];
    };
    let is_top = parts.last().is_some_and(|file| ["mod.rs", "lib.rs", "main.rs"].contains(file));
    let depth = parts.len() - if is_top { 2 } else { 1 };
    let mut faults = Vec::new();
    for path in paths(&tokens(text), depth) {
        let mut fault = |what: String| faults.push(format!("{name}:{}: the room {room_name} {what}", path.line));
        match target(&path) {
            Some(Target::Room(other)) if other != room_name => {
                if !room.may_use.contains(&other) {
                    fault(format!("may not use the room {other}"));
                } else if room_name == "inspector" && other == "backend" && !SOURCES.contains(&name) {
                    fault(format!("knows {other} only in {}", SOURCES.join(" and ")));
                }
            }
            Some(Target::Crate(other)) if crates.contains(other) => {
                let is_foreign = room.only.is_some_and(|only| !only.contains(&other)) && !path.in_test;
                if is_foreign || room.never.contains(&other) {
                    fault(format!("never uses {other}"));
                }
            }
            _ => {}
        }
    }
    faults.dedup();
    faults
}

fn names_a_key(text: &str) -> bool {
    KEY_TEXTS.iter().any(|start| text.contains(start))
}

fn key_faults(name: &str, text: &str) -> Vec<String> {
    if name == KEYS || name.ends_with("/tests.rs") {
        return Vec::new();
    }
    let tokens = tokens(text);
    let scopes = scopes(&tokens);
    let strings = tokens.iter().zip(&scopes).filter_map(|(token, scope)| match &token.kind {
        Kind::Text(text) if names_a_key(text) && !scope.in_test => Some(token.line),
        _ => None,
    });
    strings.map(|line| format!("{name}:{line}: a text that begins a key")).collect()
}

enum Target<'a> {
    Room(&'a str),
    Crate(&'a str),
}

/// What a path leads to; `None` for something nearby.
fn target(path: &PathTo) -> Option<Target<'_>> {
    let segments: Vec<&str> = path.segments.iter().map(String::as_str).collect();
    let supers = segments.iter().take_while(|segment| **segment == "super").count();
    let room = match segments.first()? {
        &"crate" | &"threadmill" => segments.get(1)?,
        &"super" if supers >= path.depth => segments.get(supers)?,
        &"super" | &"self" => return None,
        other => return Some(Target::Crate(other)),
    };
    ROOMS.iter().any(|known| known.name == *room).then_some(Target::Room(room))
}

/// A path in the source, such as `crate::task::Stamp`, with every group of a `use` written out.
struct PathTo {
    segments: Vec<String>,
    line: usize,
    /// How many modules deep it stands.
    depth: usize,
    in_test: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Word(String),
    Text(String),
    /// `::`
    Colons,
    Mark(char),
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    line: usize,
}

impl Token {
    fn word(&self) -> Option<&str> {
        match &self.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }
}

/// Where a token stands.
#[derive(Clone, Copy, Default)]
struct Scope {
    /// How many `mod name {` are around it.
    modules: usize,
    in_test: bool,
}

fn scopes(tokens: &[Token]) -> Vec<Scope> {
    let mut stack = vec![Scope::default()];
    let mut test_is_next = false;
    let mut scopes = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.iter().enumerate() {
        let here = stack[stack.len() - 1];
        scopes.push(here);
        let before = |back: usize| at.checked_sub(back).and_then(|at| tokens[at].word());
        match token.kind {
            Kind::Mark('{') => {
                let modules = here.modules + usize::from(before(2) == Some("mod"));
                stack.push(Scope { modules, in_test: here.in_test || test_is_next });
                test_is_next = false;
            }
            Kind::Mark('}') if stack.len() > 1 => drop(stack.pop()),
            Kind::Mark(';') => test_is_next = false,
            Kind::Mark(')') if before(1) == Some("test") && before(3) == Some("cfg") => test_is_next = true,
            _ => {}
        }
    }
    scopes
}

fn paths(tokens: &[Token], depth: usize) -> Vec<PathTo> {
    let scopes = scopes(tokens);
    let mut paths = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let Scope { modules, in_test } = scopes[at];
        // Whether what stands this far before is such a token.
        let before = |back: usize, is: fn(&Token) -> bool| at.checked_sub(back).is_some_and(|at| is(&tokens[at]));
        let ends_a_type = before(2, |token| token.is('>')) && !before(3, |token| token.is('-'));
        let follows_a_path = before(2, |token| token.word().is_some()) || ends_a_type;
        let is_inner =
            before(1, |token| token.kind == Kind::Colons) && follows_a_path || before(1, |token| token.is('.'));
        let next = tokens.get(at + 1);
        let mut add = |segments, line| paths.push(PathTo { segments, line, depth: depth + modules, in_test });
        match tokens[at].word() {
            Some("use") if !next.is_some_and(|token| token.is('<')) => {
                at += 1;
                use_tree(tokens, &mut at, &[], &mut add);
                continue;
            }
            Some("crate") if before(1, |token| token.word() == Some("extern")) => {
                add(next.and_then(Token::word).map(str::to_owned).into_iter().collect(), tokens[at].line);
            }
            Some(_) if !is_inner && next.is_some_and(|token| token.kind == Kind::Colons) => {
                let mut segments = Vec::new();
                let line = tokens[at].line;
                while let Some(word) = tokens.get(at).and_then(Token::word) {
                    segments.push(word.to_owned());
                    at += 1;
                    if tokens.get(at).is_none_or(|token| token.kind != Kind::Colons) {
                        break;
                    }
                    at += 1;
                }
                add(segments, line);
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

/// Reads what follows `use`, up to the end of this branch.
fn use_tree(tokens: &[Token], at: &mut usize, before: &[String], add: &mut impl FnMut(Vec<String>, usize)) {
    let mut segments = before.to_vec();
    let mut line = 0;
    while let Some(token) = tokens.get(*at) {
        match &token.kind {
            Kind::Word(word) if word == "as" => *at += 2,
            Kind::Word(word) => {
                line = token.line;
                segments.push(word.clone());
                *at += 1;
            }
            Kind::Colons => *at += 1,
            Kind::Mark('*') => {
                line = token.line;
                *at += 1;
            }
            Kind::Mark('{') => {
                *at += 1;
                while tokens.get(*at).is_some_and(|token| !token.is('}')) {
                    use_tree(tokens, at, &segments, add);
                    *at += usize::from(tokens.get(*at).is_some_and(|token| token.is(',')));
                }
                *at += 1;
                return;
            }
            _ => break,
        }
    }
    add(segments, line);
}

/// Splits Rust source into words, texts and marks; comments, characters and lifetimes are left out.
fn tokens(source: &str) -> Vec<Token> {
    let chars: Vec<char> = source.chars().collect();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    while at < chars.len() {
        let start = at;
        let rest = |text: &str| text.chars().enumerate().all(|(i, c)| chars.get(start + i) == Some(&c));
        if rest("//") {
            at += chars[at..].iter().take_while(|c| **c != '\n').count();
        } else if rest("/*") {
            let mut open = 0;
            loop {
                let pair = (chars.get(at).copied(), chars.get(at + 1).copied());
                match pair {
                    (Some('/'), Some('*')) => (open, at) = (open + 1, at + 2),
                    (Some('*'), Some('/')) => (open, at) = (open - 1, at + 2),
                    (None, _) => break,
                    _ => at += 1,
                }
                if open == 0 {
                    break;
                }
            }
        } else if chars[at] == '"' {
            at = end_of_text(&chars, at);
            tokens.push(Token { kind: Kind::Text(chars[start..at].iter().collect()), line });
        } else if chars[at] == '\'' {
            at = match (chars.get(at + 1), chars.get(at + 2)) {
                (Some('\\'), _) => at + 3 + chars[at + 3..].iter().take_while(|c| **c != '\'').count() + 1,
                (Some(_), Some('\'')) => at + 3,
                _ => at + 1 + chars[at + 1..].iter().take_while(|c| is_word(**c)).count(),
            };
        } else if is_word(chars[at]) {
            at += chars[at..].iter().take_while(|c| is_word(**c)).count();
            let word: String = chars[start..at].iter().collect();
            let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
            let is_text = chars.get(at + hashes) == Some(&'"');
            if is_text && ["r", "br", "cr"].contains(&word.as_str()) {
                let close: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                let from = at + hashes + 1;
                let length = chars[from..].windows(close.len()).position(|window| window == close);
                at = length.map_or(chars.len(), |length| from + length + close.len());
                tokens.push(Token { kind: Kind::Text(chars[start..at].iter().collect()), line });
            } else if !(hashes == 0 && is_text && ["b", "c"].contains(&word.as_str())) {
                tokens.push(Token { kind: Kind::Word(word), line });
            }
        } else if rest("::") {
            tokens.push(Token { kind: Kind::Colons, line });
            at += 2;
        } else {
            if !chars[at].is_whitespace() {
                tokens.push(Token { kind: Kind::Mark(chars[at]), line });
            }
            at += 1;
        }
        let end = at.min(chars.len());
        line += chars[start..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    tokens
}

/// Where the text that begins at this quote ends.
fn end_of_text(chars: &[char], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}
