//! Finding the master that sentinels name, and hearing of the next one.

use super::place::{Found, Nowhere, Times, found_out, open, timed_out};
use super::{Inner, Link};
use crate::backend::error::server_code;
use crate::backend::settings::{Address, Sentinels};
use crate::backend::{BackendError, RedisUrl};
use futures_util::StreamExt;
use redis::aio::MultiplexedConnection;
use redis::{Client, ErrorKind, RedisError, RedisResult, ServerErrorKind, Value};
use std::sync::Weak;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::timeout;

/// What sentinels tell when they have made another server the master.
const SWITCHED: &str = "+switch-master";
/// How often a sentinel that tells nothing is asked whether it is there, and the pause before one that is gone is tried
/// again.
const POLL: Duration = Duration::from_secs(10);

/// The sentinels of one master.
pub(super) struct Sentinel {
    url: RedisUrl,
    sentinels: Sentinels,
    clients: Vec<Client>,
    /// The one to ask first: the last that answered.
    first: AtomicUsize,
}

impl Sentinel {
    pub fn new(url: RedisUrl, sentinels: Sentinels) -> Result<Self, BackendError> {
        let clients = sentinels
            .addresses
            .iter()
            .map(|address| url.sentinel_client(&sentinels, address))
            .collect::<Result<_, _>>()?;
        // A certificate that cannot be read is told now, not at the first request.
        if let Some(address) = sentinels.addresses.first() {
            url.client(address)?;
        }
        Ok(Self { url, sentinels, clients, first: AtomicUsize::new(0) })
    }

    /// Asks the sentinels in turn, connects to the master that the first answer names, and lets it confirm that it is one.
    pub async fn find(&self, times: Times) -> Result<Found, Nowhere> {
        let first = self.first.load(Ordering::Relaxed);
        let mut last = None;
        for i in 0..self.clients.len() {
            let at = (first + i) % self.clients.len();
            let answer = match open(&self.clients[at], times.for_guides()).await {
                Ok(mut sentinel) => ask(&mut sentinel, &self.sentinels.master).await,
                Err(error) => Err(error),
            };
            match answer {
                Ok(address) => {
                    // One that names a master that cannot be used is not asked first again: it may be behind the others.
                    self.first.store(at + 1, Ordering::Relaxed);
                    let found = self.connect(address, times).await?;
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(found);
                }
                // That one of them does not know the name says more than that another is down.
                Err(error) => match &last {
                    Some(earlier) if is_unknown(earlier) => {}
                    _ => last = Some(error),
                },
            }
        }
        Err(Nowhere::plain(last.unwrap_or_else(|| (ErrorKind::EmptySentinelList, "no sentinel is named").into())))
    }

    async fn connect(&self, address: Address, times: Times) -> Result<Found, Nowhere> {
        let client = self.url.client(&address).map_err(|e| {
            Nowhere::plain(RedisError::from((ErrorKind::InvalidClientConfig, "the master", e.to_string())))
        })?;
        let mut connection = open(&client, times).await.map_err(Nowhere::unsettled)?;
        let role: RedisResult<Vec<Value>> = redis::cmd("ROLE").query_async(&mut connection).await;
        match role {
            Ok(role) if matches!(role.first(), Some(Value::BulkString(name)) if name == b"master") => {}
            // Who may not ask still finds out by the first write: READONLY.
            Err(error) if server_code(&error).as_deref() == Some("NOPERM") => {}
            Ok(_) => {
                let what = format!("{address} is named as the master and is (still, or again) a replica");
                return Err(Nowhere::unsettled(found_out(ServerErrorKind::ReadOnly, what)));
            }
            Err(error) => return Err(Nowhere::unsettled(error)),
        }
        Ok(Found { client, connection, address: Some(address) })
    }

    /// Listens to every sentinel from now on, for as long as the link is in use. Writes to a former master that does not
    /// know it yet would be lost.
    pub fn watch(&self, link: &Weak<Inner>, times: Times) {
        for client in &self.clients {
            let watcher = Watcher {
                client: client.clone(),
                link: link.clone(),
                master: self.sentinels.master.clone(),
                times: times.for_guides(),
            };
            tokio::spawn(async move {
                while watcher.link.strong_count() > 0 {
                    // The end of a connection says nothing of the master.
                    let _ = watcher.listen().await;
                    tokio::time::sleep(POLL).await;
                }
            });
        }
    }
}

async fn ask(sentinel: &mut MultiplexedConnection, master: &str) -> RedisResult<Address> {
    let mut cmd = redis::cmd("SENTINEL");
    cmd.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
    let answer: Option<(String, u16)> = cmd.query_async(sentinel).await?;
    let unknown = || {
        let what = format!("no sentinel knows a master named `{master}`");
        RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "", what))
    };
    answer.map(|(host, port)| Address { host, port }).ok_or_else(unknown)
}

/// One that listens to one sentinel.
struct Watcher {
    client: Client,
    link: Weak<Inner>,
    master: String,
    times: Times,
}

impl Watcher {
    /// Listens until the connection or the link ends.
    async fn listen(&self) -> RedisResult<()> {
        let subscribe = async {
            let mut pubsub = self.client.get_async_pubsub().await?;
            pubsub.subscribe(SWITCHED).await?;
            RedisResult::Ok(pubsub)
        };
        let pubsub = timeout(self.times.connect, subscribe).await.unwrap_or_else(|_| Err(timed_out()))?;
        // What was told before the subscription stood.
        let mut sentinel = open(&self.client, self.times).await?;
        self.tell(&ask(&mut sentinel, &self.master).await?).await;
        drop(sentinel);
        let (mut sink, mut messages) = pubsub.split();
        loop {
            match timeout(POLL, messages.next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(message)) => {
                    let text: String = message.get_payload()?;
                    if let Some(address) = new_master(&text, &self.master) {
                        self.tell(&address).await;
                    }
                }
                Err(_) if self.link.strong_count() == 0 => return Ok(()),
                // A sentinel that is frozen, or on the far side of a broken network, tells nothing.
                Err(_) => {
                    let ping = timeout(self.times.answer, sink.ping::<Value>()).await;
                    ping.unwrap_or_else(|_| Err(timed_out()))?;
                }
            }
        }
    }

    async fn tell(&self, master: &Address) {
        if let Some(inner) = self.link.upgrade() {
            Link { inner }.leave(master).await;
        }
    }
}

/// The new address, out of "NAME OLD-HOST OLD-PORT NEW-HOST NEW-PORT"; none where another master is meant.
fn new_master(text: &str, master: &str) -> Option<Address> {
    let rest = text.strip_prefix(master)?.strip_prefix(' ')?;
    let [_, _, host, port] = rest.split(' ').collect::<Vec<_>>().try_into().ok()?;
    Some(Address { host: host.to_owned(), port: port.parse().ok()? })
}

fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::MasterNameNotFoundBySentinel
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_master_counts() {
        let address = Address { host: "10.0.0.2".into(), port: 6380 };
        assert_eq!(new_master("my 10.0.0.1 6379 10.0.0.2 6380", "my"), Some(address));
        assert_eq!(new_master("my2 10.0.0.1 6379 10.0.0.2 6380", "my"), None);
        assert_eq!(new_master("my 10.0.0.1", "my"), None);
    }
}
