//! Where the server is at this moment, by each way of finding it.

use super::cluster::Cluster;
use super::sentinel::Sentinel;
use crate::backend::error::server_code;
use crate::backend::settings::{Address, Place};
use crate::backend::{BackendError, Settings};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult, ServerErrorKind};
use std::time::Duration;

/// Bytes that may wait for the socket before senders are held back.
const WRITE_BUFFER: usize = 256 << 10;
/// Commands that may wait on one connection.
const PIPELINE_BUFFER: usize = 4096;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// An answer.
    pub answer: Duration,
    /// A connection.
    pub connect: Duration,
    /// A whole request.
    pub request: Duration,
}

impl Times {
    pub fn of(settings: &Settings) -> Self {
        Self { answer: settings.timeout, connect: settings.connect_timeout, request: settings.request_timeout }
    }

    /// For those that are only asked for the way: one that is silent must not use up the time of the others.
    pub fn for_guides(self) -> Self {
        let short = |time: Duration| (time / 3).max(Duration::from_secs(1)).min(time);
        Self { answer: short(self.answer), connect: short(self.connect), ..self }
    }
}

/// A way of finding the server.
pub(super) enum Route {
    /// It is always the same.
    Single(Client),
    /// Sentinels know the master.
    Sentinel(Sentinel),
    /// The nodes of a cluster know who owns the slot.
    Cluster(Cluster),
}

/// A server that was found, with a connection to it.
pub(super) struct Found {
    pub client: Client,
    pub connection: MultiplexedConnection,
    /// Its address, to tell it from the one before; none where there is only one.
    pub address: Option<Address>,
}

/// Why there is no server to talk to.
#[derive(Clone, Debug)]
pub(super) struct Nowhere {
    pub error: RedisError,
    /// A failover, or a slot on its way, is the likely cause: the server will be found again soon.
    pub unsettled: bool,
}

impl Nowhere {
    /// Nothing answered, or what answered refuses: it is for the caller to decide about another try.
    pub fn plain(error: RedisError) -> Self {
        Self { error, unsettled: false }
    }

    /// Somebody answered, and named a server that is not (or not yet) there.
    pub fn unsettled(error: RedisError) -> Self {
        // A wrong password does not get right by waiting.
        let hopeless = error.kind() == redis::ErrorKind::AuthenticationFailed
            || matches!(server_code(&error).as_deref(), Some("NOPERM" | "NOAUTH" | "WRONGPASS"));
        Self { error, unsettled: !hopeless }
    }
}

impl Route {
    pub fn new(settings: &Settings) -> Result<Self, BackendError> {
        let url = &settings.url;
        Ok(match url.place() {
            Place::Tcp(address) => Route::Single(url.client(address)?),
            Place::Unix(path) => Route::Single(url.unix_client(path.clone())?),
            Place::Sentinel(sentinels) => Route::Sentinel(Sentinel::new(url.clone(), sentinels.clone())?),
            Place::Cluster(seeds) => Route::Cluster(Cluster::new(url.clone(), seeds.clone(), &settings.alias)?),
        })
    }

    /// Whether there is no other server to go to.
    pub fn is_single(&self) -> bool {
        matches!(self, Route::Single(_))
    }

    /// Finds the server and connects.
    pub async fn find(&self, times: Times) -> Result<Found, Nowhere> {
        match self {
            Route::Single(client) => {
                let connection = open(client, times).await.map_err(Nowhere::plain)?;
                Ok(Found { client: client.clone(), connection, address: None })
            }
            Route::Sentinel(sentinel) => sentinel.find(times).await,
            Route::Cluster(cluster) => cluster.find(times).await,
        }
    }
}

/// Connects to one server.
pub(super) async fn open(client: &Client, times: Times) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(times.connect))
        .set_response_timeout(Some(times.answer))
        .set_write_backpressure_boundary(WRITE_BUFFER)
        .set_pipeline_buffer_size(PIPELINE_BUFFER);
    // The crate's own time-out does not cover the greeting on a server that accepts and is silent.
    let attempt = client.get_multiplexed_async_connection_with_config(&config);
    tokio::time::timeout(times.connect, attempt).await.unwrap_or_else(|_| Err(timed_out()))
}

pub(super) fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}

/// An error of one of the server's kinds that we found out ourselves.
pub(super) fn found_out(kind: ServerErrorKind, what: String) -> RedisError {
    (redis::ErrorKind::Server(kind), "", what).into()
}
