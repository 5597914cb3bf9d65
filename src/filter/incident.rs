//! Incidents: failures that belong together, since they have the same class, the same message but for what changes from
//! task to task, and the same place in the site's own code.

use crate::backend::{Summary, TaskRow};
use crate::filter::trace;
use crate::task::{ErrorRecord, TaskId};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;

/// Bytes of a traceback's end in which the place is looked for: what lists read of a long record holds no more, and both
/// must find the same.
const TRACEBACK_END: usize = 2_500;
/// A word of hexadecimal digits of at least this length, a decimal one among them, is an id.
const ID_MIN: usize = 6;
/// Characters of a normalised message that count.
const MESSAGE_MAX: usize = 200;
/// Functions and queues that an incident names at most.
const NAMES_MAX: usize = 32;
/// Incidents that are kept apart at most; what is beyond is counted together.
const INCIDENTS_MAX: usize = 1_000;

/// What failures that belong together have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    /// The class without its module.
    pub class: String,
    /// The message, with numbers, quoted words and ids replaced.
    pub message: String,
    /// The file and the function of the innermost frame of the site's own code; empty where there is none.
    pub place: String,
}

/// Failures that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// What they have in common.
    pub fingerprint: Fingerprint,
    /// The class of the latest, with its module where that is known.
    pub class_path: String,
    /// The message of the latest, as it stands.
    pub message: String,
    /// Where: `mail.py:88`; empty where no frame is told.
    pub place: String,
    /// How many.
    pub count: u64,
    /// When the first and the last failed, in milliseconds since 1970.
    pub first_ms: f64,
    /// The last.
    pub last_ms: f64,
    /// How many of each function.
    pub functions: BTreeMap<String, u64>,
    /// How many of each queue.
    pub queues: BTreeMap<String, u64>,
    /// The tasks, where they are kept.
    pub members: Vec<Member>,
}

/// A task of an incident, as it was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The task.
    pub id: TaskId,
    /// The queue that lists it.
    pub queue: String,
    /// When it failed: its score.
    pub score: f64,
}

/// Incidents, as failures are added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Incidents {
    found: HashMap<Fingerprint, Incident>,
    /// Failures that were looked at.
    pub looked_at: u64,
    /// Those of them that have no error that could be read.
    pub without_error: u64,
    /// Those of them that came when there were too many incidents already.
    pub beyond: u64,
    members_max: usize,
    members: usize,
}

impl Fingerprint {
    /// What this error has in common with others.
    pub fn of(error: &ErrorRecord) -> Self {
        let start = error.traceback.ceil_char_boundary(error.traceback.len().saturating_sub(TRACEBACK_END));
        let frame = trace::innermost(&error.traceback[start..]);
        let place = frame.map(|frame| {
            let file = frame.file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            format!("{file}:{}", frame.function)
        });
        Self {
            class: error.class_name().to_owned(),
            message: normalised(message_of(error)),
            place: place.unwrap_or_default(),
        }
    }

    /// A short name that is the same in every session: eight hexadecimal digits.
    pub fn id(&self) -> String {
        let mut hash = Fnv::default();
        for part in [&self.class, &self.message, &self.place] {
            hash.write(part.as_bytes());
            hash.write_u8(0);
        }
        let wide = hash.finish();
        format!("{:08x}", (wide ^ (wide >> 32)) as u32)
    }
}

impl Incidents {
    /// No incidents yet; so many tasks are kept as members, over all of them.
    pub fn new(members_max: usize) -> Self {
        Self { members_max, ..Self::default() }
    }

    /// Adds a failed task.
    pub fn add(&mut self, row: &TaskRow) {
        self.looked_at += 1;
        let Summary::Readable(readable) = &row.summary else {
            self.without_error += 1;
            return;
        };
        let Some(error) = &readable.last_error else {
            self.without_error += 1;
            return;
        };
        let fingerprint = Fingerprint::of(error);
        if self.found.len() >= INCIDENTS_MAX && !self.found.contains_key(&fingerprint) {
            self.beyond += 1;
            return;
        }
        let at = readable.finished_at.as_ref().map_or(row.score, |stamp| stamp.millis());
        let incident = self.found.entry(fingerprint).or_insert_with_key(|fingerprint| Incident::new(fingerprint, at));
        incident.take(row, &readable.func, error, at);
        if self.members < self.members_max {
            self.members += 1;
            let member = Member { id: row.id.clone(), queue: row.queue.clone(), score: row.score };
            incident.members.push(member);
        }
    }

    /// Adds what others found, within the bounds of these.
    pub fn merge(&mut self, others: Incidents) {
        self.looked_at += others.looked_at;
        self.without_error += others.without_error;
        self.beyond += others.beyond;
        for (fingerprint, other) in others.found {
            if self.found.len() >= INCIDENTS_MAX && !self.found.contains_key(&fingerprint) {
                self.beyond += other.count;
                continue;
            }
            let incident = self.found.entry(fingerprint).or_insert_with_key(|key| Incident::new(key, other.first_ms));
            let room = self.members_max.saturating_sub(self.members).min(other.members.len());
            self.members += room;
            incident.merge(other, room);
        }
    }

    /// The incidents, those that failed most often first.
    pub fn sorted(&self) -> Vec<&Incident> {
        let mut sorted: Vec<_> = self.found.values().collect();
        let key = |incident: &Incident| (incident.count, incident.last_ms.max(0.0) as u64);
        sorted.sort_by(|a, b| key(b).cmp(&key(a)).then_with(|| a.fingerprint.id().cmp(&b.fingerprint.id())));
        sorted
    }

    /// The incident of this short name.
    pub fn get(&self, id: &str) -> Option<&Incident> {
        self.found.values().find(|incident| incident.fingerprint.id() == id)
    }

    /// How many incidents there are.
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }
}

impl Incident {
    fn new(fingerprint: &Fingerprint, at: f64) -> Self {
        Self {
            fingerprint: fingerprint.clone(),
            class_path: String::new(),
            message: String::new(),
            place: String::new(),
            count: 0,
            first_ms: at,
            last_ms: f64::NEG_INFINITY,
            functions: BTreeMap::new(),
            queues: BTreeMap::new(),
            members: Vec::new(),
        }
    }

    fn take(&mut self, row: &TaskRow, func: &str, error: &ErrorRecord, at: f64) {
        self.count += 1;
        self.first_ms = self.first_ms.min(at);
        if at > self.last_ms {
            self.last_ms = at;
            error.class_path.clone_into(&mut self.class_path);
            self.message = message_of(error).chars().take(MESSAGE_MAX).collect();
            self.place = trace::innermost(&error.traceback).map(|frame| frame.place()).unwrap_or_default();
        }
        count(&mut self.functions, func, 1);
        count(&mut self.queues, &row.queue, 1);
    }

    /// Takes in another of the same fingerprint, with so many of its members.
    fn merge(&mut self, other: Incident, members: usize) {
        self.count += other.count;
        self.first_ms = self.first_ms.min(other.first_ms);
        if other.last_ms > self.last_ms {
            self.last_ms = other.last_ms;
            self.class_path = other.class_path;
            self.message = other.message;
            self.place = other.place;
        }
        other.functions.iter().for_each(|(name, more)| count(&mut self.functions, name, *more));
        other.queues.iter().for_each(|(name, more)| count(&mut self.queues, name, *more));
        self.members.extend(other.members.into_iter().take(members));
    }
}

/// Counts a name so many times more, where there is room for it.
fn count(names: &mut BTreeMap<String, u64>, name: &str, more: u64) {
    let room = names.len() < NAMES_MAX;
    if let Some(count) = names.get_mut(name) {
        *count += more;
    } else if room {
        names.insert(name.to_owned(), more);
    }
}

/// What an error says, without its class.
fn message_of(error: &ErrorRecord) -> &str {
    let of = |line: &str, class: &str| line.strip_prefix(class).and_then(|rest| rest.strip_prefix(':')).map(str::len);
    let summary = error.summary();
    // A message of several lines begins where the class stands, and its first line tells most.
    for line in error.traceback.lines().rev().filter(|line| !line.starts_with(' ')) {
        for class in [error.class_path.as_str(), error.class_name()] {
            if let Some(length) = of(line, class) {
                return line[line.len() - length..].trim();
            }
        }
    }
    if summary == error.class_path || summary == error.class_name() { "" } else { summary }
}

/// A message without what changes from task to task: quoted words, ids, numbers.
fn normalised(message: &str) -> String {
    let mut out = String::with_capacity(message.len().min(MESSAGE_MAX));
    let mut rest = message;
    while let Some(c) = rest.chars().next() {
        if out.len() >= MESSAGE_MAX {
            break;
        }
        let quoted = matches!(c, '\'' | '"' | '`').then(|| rest[1..].find(c)).flatten();
        if let Some(end) = quoted.filter(|_| !out.ends_with(char::is_alphanumeric)) {
            out.push_str("'…'");
            rest = &rest[end + 2..];
        } else if c.is_ascii_alphanumeric() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
            let word = &rest[..length];
            out.push_str(&word_of(word));
            rest = &rest[length..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// A word as it counts: an id or a number becomes a sign, letters with digits in them keep the letters.
fn word_of(word: &str) -> String {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = word.split('-').collect();
    if parts.len() == 5 && word.len() == 36 && parts.iter().all(|part| hex(part)) {
        return "<id>".into();
    }
    let number = |text: &str| text.bytes().any(|byte| byte.is_ascii_digit());
    let joined = parts.into_iter().map(|part| {
        let after = part.strip_prefix("0x").or_else(|| part.strip_prefix("0X"));
        if after.is_some_and(hex) || (part.len() >= ID_MIN && hex(part) && number(part)) {
            return "<n>".to_owned();
        }
        let mut kept = String::new();
        for c in part.chars() {
            if !c.is_ascii_digit() {
                kept.push(c);
            } else if !kept.ends_with("<n>") {
                kept.push_str("<n>");
            }
        }
        kept
    });
    joined.collect::<Vec<_>>().join("-")
}

/// FNV-1a: small, and the same on every machine and in every version.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
