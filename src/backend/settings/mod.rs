//! Where Redis is and how long things live.

mod address;
mod tls;
mod url;

pub(crate) use address::{Address, Place, Sentinels};
pub use url::RedisUrl;

use std::time::Duration;

/// How one backend is reached and what its options are. The names and defaults of the options are those of the Python
/// package.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where Redis is.
    pub url: RedisUrl,
    /// The backend's alias, which is part of every key.
    pub alias: String,
    /// Queues that are known by configuration.
    pub queues: Vec<String>,
    /// How long a worker may hold a task before it counts as lost.
    pub lease_ttl: Duration,
    /// How long results are kept.
    pub result_ttl: Duration,
    /// How long an answer of the server is waited for.
    pub timeout: Duration,
    /// How long a connection attempt is waited for.
    pub connect_timeout: Duration,
    /// How long one request may take as a whole: connecting, finding the master, waiting for a failover, sending again.
    pub request_timeout: Duration,
    /// The largest record that is stored, in bytes.
    pub max_payload: usize,
}

impl Settings {
    /// The defaults for a server at `url`: alias `default`, leases of an hour, results of a day, 5 seconds for an answer and
    /// 15 for a whole request, 64 MiB.
    pub fn new(url: RedisUrl) -> Self {
        const SECONDS: Duration = Duration::from_secs(5);
        let (timeout, connect_timeout) = (url.timeout.unwrap_or(SECONDS), url.connect_timeout.unwrap_or(SECONDS));
        Self {
            url,
            alias: "default".into(),
            queues: Vec::new(),
            lease_ttl: Duration::from_secs(3600),
            result_ttl: Duration::from_secs(24 * 3600),
            timeout,
            connect_timeout,
            request_timeout: connect_timeout + timeout * 2,
            max_payload: 64 << 20,
        }
    }
}
