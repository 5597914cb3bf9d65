//! The whole keyspace as a value, for tests that compare all of it.

use redis::{Connection, FromRedisValue};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::ops::Deref;

/// Every key with what it holds. Two are equal where a reader could tell no difference, apart from the length of a TTL.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Snapshot(pub BTreeMap<String, Entry>);

/// One key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub value: Value,
    /// Whether it expires at some time.
    pub expires: bool,
}

/// What a key holds. Bytes that are no UTF-8 are written as `\xNN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Hash(BTreeMap<String, String>),
    /// Members in the server's order, each with its score as the server writes it.
    Sorted(Vec<(String, String)>),
    Set(BTreeSet<String>),
    List(Vec<String>),
    /// A type that nothing here uses, by its name.
    Other(String),
}

impl Snapshot {
    /// What this key holds.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key).map(|entry| &entry.value)
    }

    /// The members of a sorted set, in order; none where there is no such key.
    #[track_caller]
    pub fn members(&self, key: &str) -> Vec<&str> {
        match self.value(key) {
            None => Vec::new(),
            Some(Value::Sorted(members)) => members.iter().map(|(member, _)| member.as_str()).collect(),
            Some(other) => panic!("{key} is no sorted set: {other:?}"),
        }
    }

    /// A field of a hash.
    #[track_caller]
    pub fn field(&self, key: &str, field: &str) -> Option<&str> {
        match self.value(key)? {
            Value::Hash(fields) => fields.get(field).map(String::as_str),
            other => panic!("{key} is no hash: {other:?}"),
        }
    }

    /// Only the keys of which this holds.
    pub fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.0.retain(|key, _| keep(key));
        self
    }

    /// What is different in `other`, one line a key, each entry or field; empty where they are equal.
    pub fn difference(&self, other: &Snapshot) -> String {
        let mut text = String::new();
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        for key in keys {
            match (self.0.get(key), other.0.get(key)) {
                (Some(before), Some(after)) if before == after => {}
                (Some(before), Some(after)) => {
                    let _ = writeln!(text, "~ {key}\n    - {before:?}\n    + {after:?}");
                }
                (Some(before), None) => {
                    let _ = writeln!(text, "- {key} {before:?}");
                }
                (None, after) => {
                    let _ = writeln!(text, "+ {key} {after:?}");
                }
            }
        }
        text
    }

    /// Fails, showing only what differs, where the two are not equal.
    #[track_caller]
    pub fn assert_same(&self, other: &Snapshot) {
        let difference = self.difference(other);
        assert!(difference.is_empty(), "the keyspace differs:\n{difference}");
    }
}

impl Deref for Snapshot {
    type Target = BTreeMap<String, Entry>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(&self.0).finish()
    }
}

/// Reads every key. The keyspace must be still: what changes in between is read as it comes.
pub(super) fn take(connection: &mut Connection) -> Snapshot {
    let mut keys = BTreeSet::new();
    let mut cursor = String::from("0");
    loop {
        let (next, batch): (String, Vec<Vec<u8>>) = query(connection, &[b"SCAN", cursor.as_bytes(), b"COUNT", b"1000"]);
        keys.extend(batch);
        if next == "0" {
            break;
        }
        cursor = next;
    }
    let mut snapshot = Snapshot::default();
    for key in keys {
        if let Some(entry) = entry(connection, &key) {
            snapshot.0.insert(text(&key), entry);
        }
    }
    snapshot
}

fn entry(connection: &mut Connection, key: &[u8]) -> Option<Entry> {
    let kind: String = query(connection, &[b"TYPE", key]);
    let value = match kind.as_str() {
        "none" => return None,
        "string" => Value::Text(text(&query::<Vec<u8>>(connection, &[b"GET", key]))),
        "hash" => Value::Hash(pairs(&query::<Vec<Vec<u8>>>(connection, &[b"HGETALL", key])).into_iter().collect()),
        "zset" => {
            Value::Sorted(pairs(&query::<Vec<Vec<u8>>>(connection, &[b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"])))
        }
        "set" => Value::Set(texts(&query::<Vec<Vec<u8>>>(connection, &[b"SMEMBERS", key])).into_iter().collect()),
        "list" => Value::List(texts(&query::<Vec<Vec<u8>>>(connection, &[b"LRANGE", key, b"0", b"-1"]))),
        other => Value::Other(other.to_owned()),
    };
    let ttl: i64 = query(connection, &[b"PTTL", key]);
    Some(Entry { value, expires: ttl >= 0 })
}

fn query<T: FromRedisValue>(connection: &mut Connection, words: &[&[u8]]) -> T {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(*word);
    }
    let mut answer = command.query(connection);
    // A node of a cluster that is being given the key's slot.
    if answer.as_ref().is_err_and(|error: &redis::RedisError| error.code() == Some("MOVED")) {
        redis::cmd("ASKING").exec(connection).expect("a node of a cluster takes it");
        answer = command.query(connection);
    }
    answer.expect("the server answers a plain read")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap_or_else(|_| bytes.escape_ascii().to_string())
}

fn texts(values: &[Vec<u8>]) -> Vec<String> {
    values.iter().map(|value| text(value)).collect()
}

fn pairs(values: &[Vec<u8>]) -> Vec<(String, String)> {
    values.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
}
