//! Fuzzing of everything that is read from Redis: whatever stands there, no reader panics, and what it can read it writes
//! back the same.
//!
//! A short run is part of every test run. `script/fuzz` runs 10 million inputs, from a seed of the moment that it prints;
//! `THREADMILL_FUZZ_SEED` and `THREADMILL_FUZZ_INPUTS` repeat one.

use crate::backend::answer::Answer;
use crate::backend::codec::{self, check_json, decode, encode, excerpt, heading, looks_like_a_task};
use crate::backend::view::{Summary, WorkerInfo};
use crate::backend::{maintenance, read, telemetry, workers};
use crate::task::{Score, Segment, Stamp};
use fastrand::Rng;
use redis::Value;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Inputs of a short run.
const SHORT: u64 = 8_000;
/// Texts that readers look for, spliced in at random places.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "\\u",
    "\\ud800",
    "\\ud83d\\ude00",
    "null",
    "NaN",
    "-Infinity",
    "1e999",
    "-0",
    "true",
    "\"task\": ",
    "\"func\": ",
    "\"queue_name\": ",
    "\"errors\": [",
    "\"worker_ids\": [",
    "], \"_return_value\": ",
    "\"traceback\": \"",
    "{\"exception_class_path\": ",
    "\"status\": \"FAILED\"",
    "\"retry\": [",
    "\u{feff}",
    "é",
    "\u{0}",
    "9999-12-31T23:59:59.999999999+23:59",
    "0000-01-01T00:00:00Z",
    "threadmill.retry.ExponentialBackoff",
    "inf",
    "-1",
    "\"max_retries\": 1e308",
    "\"base_delay\": -1",
    "ingress:",
    "egress:",
    ":",
    " ",
    "18446744073709551616",
];

/// Records as a live 0.8.4 stored them, in every state.
fn corpus() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/states");
    let mut found = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|ending| ending == "json")) {
        let state: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        for entry in state["keys"].as_object().into_iter().flat_map(|keys| keys.values()) {
            let text = entry["value"].get("data").unwrap_or(&entry["value"]);
            found.extend(text.as_str().map(|text| text.as_bytes().to_vec()));
        }
    }
    assert!(found.len() > 30);
    found
}

struct Fuzz {
    rng: Rng,
    corpus: Vec<Vec<u8>>,
}

impl Fuzz {
    /// A stored text, broken in a few places.
    fn bytes(&mut self) -> Vec<u8> {
        let mut bytes = match self.rng.u8(..) {
            0..=15 => (0..self.rng.usize(..64)).map(|_| self.rng.u8(..)).collect(),
            16..=40 => self.rng.choice(WORDS).map(|word| word.as_bytes().to_vec()).unwrap_or_default(),
            _ => self.corpus[self.rng.usize(..self.corpus.len())].clone(),
        };
        for _ in 0..self.rng.usize(..5) {
            let at = self.rng.usize(..=bytes.len());
            match self.rng.u8(..8) {
                0 if !bytes.is_empty() => {
                    let at = at.min(bytes.len() - 1);
                    bytes[at] = self.rng.u8(..);
                }
                1 => bytes.truncate(at),
                2 => drop(bytes.drain(..at)),
                3 => {
                    let end = (at + self.rng.usize(..40)).min(bytes.len());
                    bytes.drain(at..end);
                }
                4 => {
                    let other = &self.corpus[self.rng.usize(..self.corpus.len())];
                    let from = self.rng.usize(..other.len());
                    bytes.splice(at..at, other[from..].iter().copied());
                }
                5 => {
                    let depth = self.rng.usize(..200);
                    bytes.splice(at..at, std::iter::repeat_n(b"[{"[self.rng.usize(..2)], depth));
                }
                _ => {
                    let word = WORDS[self.rng.usize(..WORDS.len())];
                    bytes.splice(at..at, word.bytes());
                }
            }
        }
        bytes
    }

    /// Anything that a server can answer.
    fn value(&mut self, depth: u8) -> Value {
        match self.rng.u8(..if depth == 0 { 7 } else { 9 }) {
            0 => Value::Nil,
            1 => Value::Int(self.rng.i64(..)),
            2 => Value::Int(self.rng.i64(-3..100)),
            3 => Value::Double(f64::from_bits(self.rng.u64(..))),
            4 => Value::Okay,
            5 | 6 => Value::BulkString(self.bytes()),
            7 => Value::Map(vec![(self.value(0), self.value(depth - 1))]),
            _ => Value::Array((0..self.rng.usize(..12)).map(|_| self.value(depth - 1)).collect()),
        }
    }

    /// An array of exactly this many texts and numbers, as scripts and HMGET answer.
    fn row(&mut self, width: usize) -> Value {
        Value::Array((0..width).map(|_| self.value(0)).collect())
    }
}

/// What is read of a stored text.
fn read_text(bytes: &[u8], cut: usize) {
    if let Ok(record) = decode(bytes) {
        let written = encode(&record);
        let again = decode(written.as_bytes()).expect("what was written can be read");
        assert_eq!(encode(&again), written, "what was read is written back the same");
        if let Some(retry) = &record.spec.retry {
            for attempt in [0, 1, u32::MAX] {
                let _ = retry.verdict(attempt, "builtins.ValueError");
            }
        }
        assert!(record.errors.iter().all(|error| error.summary().len() <= error.traceback.len()));
        assert_eq!(codec::requeued(&record).args, record.args, "user data is carried");
    }
    let cut = cut.min(bytes.len());
    let _ = (heading(bytes), heading(&bytes[..cut]));
    for (head, tail) in [(bytes, &[][..]), (&bytes[..cut], &bytes[cut..]), (&bytes[cut..], &bytes[..cut])] {
        match excerpt(head, tail, true) {
            Summary::Readable(_) | Summary::Unreadable { .. } | Summary::Missing => {}
        }
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (check_json(text), looks_like_a_task(text), codec::decode_string(text), telemetry::event_of(text));
        if let Some(stamp) = Stamp::parse(text) {
            let _ = (stamp.at(), stamp.millis(), stamp.with_offset());
        }
        if let Ok(number) = text.parse::<f64>() {
            let _ = Score(number).to_string();
        }
    }
}

/// What is read of an answer: rows of lists with their lease fields and scores, workers, claims.
fn read_answers(fuzz: &mut Fuzz) {
    let segment = Segment::ALL[fuzz.rng.usize(..5)];
    let _ = read::row(Answer::new("fuzz", fuzz.row(9)), "default", segment);
    let _ = read::row(Answer::new("fuzz", fuzz.value(2)), "default", segment);
    let _ = workers::fill(&mut WorkerInfo::default(), Answer::new("fuzz", fuzz.row(7)));
    let token = crate::backend::Token::new();
    let claims = Value::Array(vec![fuzz.row(5), fuzz.row(5)]);
    let _ = maintenance::claims(Answer::new("fuzz", claims), "default", &token);
    let _ = Answer::new("fuzz", fuzz.value(3)).list();
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn whatever_redis_holds_no_reader_panics() {
    let inputs = number("THREADMILL_FUZZ_INPUTS").unwrap_or(SHORT);
    let seed = number("THREADMILL_FUZZ_SEED").unwrap_or(0x7431);
    let mut fuzz = Fuzz { rng: Rng::with_seed(seed), corpus: corpus() };
    for input in 0..inputs {
        let bytes = fuzz.bytes();
        let cut = fuzz.rng.usize(..5000);
        let before = fuzz.rng.clone();
        let read = catch_unwind(AssertUnwindSafe(|| {
            read_text(&bytes, cut);
            if input % 4 == 0 {
                read_answers(&mut fuzz);
            }
        }));
        assert!(
            read.is_ok(),
            "input {input} of seed {seed} (state {before:?}), cut at {cut}: {}",
            bytes.escape_ascii()
        );
    }
    if inputs > SHORT {
        println!("{inputs} inputs from seed {seed}: no panic");
    }
}
