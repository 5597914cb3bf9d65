//! One place where something listens.

use std::fmt;
use std::path::PathBuf;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Address {
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// What a URL points at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// One server.
    Tcp(Address),
    /// One server on this machine.
    Unix(PathBuf),
    /// The master that sentinels name.
    Sentinel(Sentinels),
    /// The node of a cluster that owns a slot; some nodes to ask.
    Cluster(Vec<Address>),
}

/// How the sentinels are asked.
#[derive(Clone, PartialEq)]
pub(crate) struct Sentinels {
    pub addresses: Vec<Address>,
    /// The name that they know the master by.
    pub master: String,
    /// What they want to hear, which may differ from what the master wants.
    pub username: Option<String>,
    pub password: Option<String>,
}

impl fmt::Debug for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sentinels").field("addresses", &self.addresses).field("master", &self.master).finish()
    }
}

/// Addresses as they stand in a URL.
pub(super) fn join(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(",")
}
