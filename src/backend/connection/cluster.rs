//! Finding the node of a cluster that owns the slot of one alias.
//!
//! All keys of an alias lie in one slot, by the tag in braces. So a plain connection to the owner does, with pipelines
//! and scripts; the crate's cluster client would send commands again on its own.

use super::place::{Found, Nowhere, Times, found_out, open};
use crate::backend::settings::Address;
use crate::backend::{BackendError, RedisUrl};
use redis::{ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use std::sync::Mutex;

/// The nodes of a cluster, and what is looked for.
pub(super) struct Cluster {
    url: RedisUrl,
    seeds: Vec<Address>,
    slot: u16,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Named by a node that knows better: asked first, once.
    hint: Option<Address>,
    /// All nodes of the last answer.
    nodes: Vec<Address>,
    /// Where the next search begins, so that one node that is behind the others is not asked for ever.
    turn: usize,
}

impl Cluster {
    pub fn new(url: RedisUrl, seeds: Vec<Address>, alias: &str) -> Result<Self, BackendError> {
        // An empty tag is none: the keys would lie in many slots.
        if alias.is_empty() || alias.starts_with('}') {
            return Err(BackendError::Settings(format!(
                "the alias `{alias}` cannot be used on a Redis Cluster: it must not be empty or begin with a brace"
            )));
        }
        // A certificate that cannot be read is told now, not at the first request.
        if let Some(seed) = seeds.first() {
            url.client(seed)?;
        }
        Ok(Self { url, seeds, slot: slot_of(alias), known: Mutex::default() })
    }

    /// Asks one node after the other who owns the slot, and connects there.
    pub async fn find(&self, times: Times) -> Result<Found, Nowhere> {
        let mut last = None;
        for node in self.candidates() {
            match self.ask(&node, times.for_guides()).await {
                Ok(Some(owner)) => return self.connect(owner, times).await,
                Ok(None) => {
                    let what = format!("slot {} of the cluster is served by no node", self.slot);
                    last = Some(Nowhere::unsettled(found_out(ServerErrorKind::ClusterDown, what)));
                }
                Err(error) if last.is_none() => last = Some(Nowhere::plain(error)),
                Err(_) => {}
            }
        }
        Err(last.unwrap_or_else(|| Nowhere::plain((ErrorKind::ClusterConnectionNotFound, "no node is named").into())))
    }

    /// Takes note of the node that an answer named as the owner.
    pub fn hint(&self, error: &RedisError) {
        if let Some((host, port)) = error.redirect_node().and_then(|(address, _slot)| address.rsplit_once(':'))
            && let Ok(port) = port.parse()
            && !host.is_empty()
        {
            self.known().hint = Some(Address { host: host.trim_matches(['[', ']']).to_owned(), port });
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The nodes in the order in which they are to be asked.
    fn candidates(&self) -> Vec<Address> {
        let mut known = self.known();
        let mut nodes = known.nodes.clone();
        nodes.extend(self.seeds.iter().cloned());
        let turn = known.turn % nodes.len().max(1);
        known.turn = known.turn.wrapping_add(1);
        nodes.rotate_left(turn);
        nodes.splice(0..0, known.hint.take());
        let mut seen = std::collections::HashSet::new();
        nodes.retain(|node| seen.insert(node.clone()));
        nodes
    }

    /// The owner of the slot, by what this node knows; none where the slot has none.
    async fn ask(&self, node: &Address, times: Times) -> RedisResult<Option<Address>> {
        let mut connection = open(&self.client(node)?, times).await?;
        let mut cmd = redis::cmd("CLUSTER");
        cmd.arg("SLOTS");
        let answer: Vec<Vec<Value>> = cmd.query_async(&mut connection).await?;
        let (mut owner, mut nodes) = (None, Vec::new());
        for range in answer {
            let mut range = range.into_iter();
            let (Some(Value::Int(first)), Some(Value::Int(last))) = (range.next(), range.next()) else { continue };
            let master = range.next().and_then(|value| address_of(value, node));
            if (first..=last).contains(&i64::from(self.slot)) {
                owner.clone_from(&master);
            }
            nodes.extend(master);
            nodes.extend(range.filter_map(|value| address_of(value, node)));
        }
        self.known().nodes = nodes;
        Ok(owner)
    }

    async fn connect(&self, owner: Address, times: Times) -> Result<Found, Nowhere> {
        let client = self.client(&owner).map_err(Nowhere::plain)?;
        let connection = open(&client, times).await.map_err(Nowhere::unsettled)?;
        Ok(Found { client, connection, address: Some(owner) })
    }

    fn client(&self, node: &Address) -> RedisResult<redis::Client> {
        self.url
            .client(node)
            .map_err(|e| (ErrorKind::InvalidClientConfig, "a node of the cluster", e.to_string()).into())
    }
}

/// A node of a CLUSTER SLOTS answer. One that does not know its own host is the one that was asked.
fn address_of(value: Value, asked: &Address) -> Option<Address> {
    let Value::Array(fields) = value else { return None };
    let mut fields = fields.into_iter();
    let host = match fields.next()? {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok()?,
        Value::SimpleString(text) => text,
        Value::Nil => String::new(),
        _ => return None,
    };
    let Some(Value::Int(port)) = fields.next() else { return None };
    let port = u16::try_from(port).ok().filter(|port| *port != 0)?;
    match host.as_str() {
        "" => Some(Address { host: asked.host.clone(), port }),
        // A host name that is not known yet.
        "?" => None,
        _ => Some(Address { host, port }),
    }
}

/// The slot of all keys of an alias, which is their tag up to the first closing brace.
fn slot_of(alias: &str) -> u16 {
    let tag = alias.split_once('}').map_or(alias, |(tag, _)| tag);
    crc16(tag.as_bytes()) % 16_384
}

/// CRC-16/XMODEM, as the cluster's specification says.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |mut crc: u16, byte| {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
        }
        crc
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_server() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        // By CLUSTER KEYSLOT.
        assert_eq!(slot_of("foo"), 12182);
        assert_eq!(slot_of("foo}bar"), 12182);
    }

    #[test]
    fn an_alias_without_a_slot_of_its_own_is_refused() {
        let url = RedisUrl::parse("redis+cluster://h").unwrap();
        for alias in ["", "}x"] {
            assert!(Cluster::new(url.clone(), Vec::new(), alias).is_err(), "{alias}");
        }
    }

    #[test]
    fn a_node_without_a_host_is_the_one_that_was_asked() {
        let asked = Address { host: "a".into(), port: 1 };
        let node = |host: Value| address_of(Value::Array(vec![host, Value::Int(7)]), &asked);
        assert_eq!(node(Value::Nil).unwrap().to_string(), "a:7");
        assert_eq!(node(Value::BulkString(b"b".to_vec())).unwrap().to_string(), "b:7");
        assert_eq!(node(Value::BulkString(b"?".to_vec())), None);
    }
}
