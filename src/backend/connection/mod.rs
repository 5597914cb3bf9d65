//! One connection that many callers share, made anew when it is lost.
//!
//! The crate's multiplexed connection carries all commands; this layer decides where to connect, when to connect again,
//! what to send again, and how long to wait. It never sends a command twice unless the caller says that it may. A
//! failover, or a slot of a cluster that moves, it follows by itself.

mod cluster;
mod place;
mod request;
mod sentinel;

use crate::backend::error::server_code;
use crate::backend::settings::Address;
use crate::backend::{BackendError, Settings};
use place::{Nowhere, Route, Times, timed_out};
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::{Client, Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value};
use request::Request;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout_at};

/// A shared connection to the server of one alias. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    route: Arc<Route>,
    endpoint: String,
    times: Times,
    current: Mutex<Current>,
    /// Counts the servers that were found to be the one: subscriptions to the one before are of no use.
    moves: watch::Sender<u64>,
    /// Whether the sentinels are still to be listened to; a private link lives too shortly for it.
    unwatched: AtomicBool,
}

#[derive(Default)]
struct Current {
    live: Option<Live>,
    /// Counts the connections made, so that a late failure does not close a newer one.
    generation: u64,
    /// The server of the last connection.
    address: Option<Address>,
    /// How the last attempt failed, for those who waited for it.
    failure: Option<(Instant, Nowhere)>,
}

/// A connection that works as far as is known.
#[derive(Clone)]
struct Live {
    client: Client,
    connection: MultiplexedConnection,
    generation: u64,
}

/// A subscription's connection, and word of when it has become useless.
pub(crate) struct Subscription {
    pub pubsub: PubSub,
    pub moves: watch::Receiver<u64>,
}

/// Whether a request may reach the server twice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resend {
    /// A script of ours, or a read: sent twice, it does what it does once.
    Safe,
    /// Anything else.
    Never,
}

impl Link {
    /// Prepares a link; the first request connects.
    pub fn new(settings: &Settings) -> Result<Self, BackendError> {
        let route = Arc::new(Route::new(settings)?);
        Ok(Self::over(route, settings.url.endpoint(), Times::of(settings), true))
    }

    fn over(route: Arc<Route>, endpoint: String, times: Times, watch: bool) -> Self {
        let (current, moves, unwatched) = (Mutex::default(), watch::Sender::new(0), AtomicBool::new(watch));
        Self { inner: Arc::new(Inner { route, endpoint, times, current, moves, unwatched }) }
    }

    /// A link to the same place with a connection of its own, whose answers may take longer by this much.
    pub fn private(&self, longer: Duration) -> Self {
        let Times { answer, connect, request } = self.inner.times;
        let times = Times { answer: answer + longer, connect, request: request + longer };
        Self::over(Arc::clone(&self.inner.route), self.inner.endpoint.clone(), times, false)
    }

    /// The server's place for a person.
    pub fn endpoint(&self) -> &str {
        &self.inner.endpoint
    }

    /// Sends one command.
    pub async fn command(&self, cmd: Cmd, resend: Resend) -> Result<Value, BackendError> {
        let mut answers = self.commands(vec![cmd], resend).await?;
        match answers.pop() {
            Some(answer) => answer.map_err(|e| BackendError::sort(e, self.endpoint())),
            None => Err(BackendError::Unexpected { what: "a command" }),
        }
    }

    /// Sends commands in one pipeline; each has its own answer or the server's error.
    ///
    /// What the server has not carried out, because it does not know the script or is not (or not yet) the right one, is
    /// sent again.
    pub async fn commands(&self, cmds: Vec<Cmd>, resend: Resend) -> Result<Vec<RedisResult<Value>>, BackendError> {
        // The crate refuses a pipeline of nothing, which is what a question about no queues comes to.
        if cmds.is_empty() {
            return Ok(Vec::new());
        }
        Request::new(cmds, resend, self.inner.times.request).run(self).await
    }

    /// Opens a connection for subscriptions, to the server that commands go to; the caller owns it.
    pub async fn pubsub(&self) -> Result<Subscription, BackendError> {
        let deadline = Instant::now() + self.inner.times.request;
        // Before the server is looked up: a move in between counts.
        let moves = self.inner.moves.subscribe();
        let mut client = self.live(deadline).await.map_err(|nowhere| self.connect_error(nowhere.error))?.client;
        for last in [false, true] {
            let limit = deadline.min(Instant::now() + self.inner.times.connect);
            match timeout_at(limit, client.get_async_pubsub()).await.unwrap_or_else(|_| Err(timed_out())) {
                Ok(pubsub) => return Ok(Subscription { pubsub, moves }),
                Err(error) if last => return Err(self.connect_error(error)),
                // The server may have gone since the last command; then somebody else may be the one.
                Err(_) => {
                    let generation = self.generation().await;
                    self.close(generation).await;
                    client = self.live(deadline).await.map_err(|nowhere| self.connect_error(nowhere.error))?.client;
                }
            }
        }
        Err(self.connect_error(timed_out()))
    }

    /// The number of the connection that is in use, or was last.
    pub async fn generation(&self) -> u64 {
        self.inner.current.lock().await.generation
    }

    /// The connection, made if there is none.
    async fn live(&self, deadline: Instant) -> Result<Live, Nowhere> {
        let asked = Instant::now();
        let late = || Nowhere::plain(timed_out());
        let mut current = timeout_at(deadline, self.inner.current.lock()).await.map_err(|_| late())?;
        if let Some(live) = &current.live {
            return Ok(live.clone());
        }
        // Many may have waited for one attempt; each trying on its own would take as many times as long.
        if let Some((at, failure)) = &current.failure
            && *at >= asked
        {
            return Err(failure.clone());
        }
        match timeout_at(deadline, self.inner.route.find(self.inner.times)).await.unwrap_or_else(|_| Err(late())) {
            Ok(found) => {
                if let Route::Sentinel(sentinel) = &*self.inner.route
                    && self.inner.unwatched.swap(false, Ordering::Relaxed)
                {
                    sentinel.watch(&Arc::downgrade(&self.inner), self.inner.times);
                }
                if current.address.is_some() && current.address != found.address {
                    self.inner.moves.send_modify(|moves| *moves += 1);
                }
                current.generation += 1;
                current.address = found.address;
                current.failure = None;
                let live = Live { client: found.client, connection: found.connection, generation: current.generation };
                current.live = Some(live.clone());
                Ok(live)
            }
            Err(nowhere) => {
                current.failure = Some((Instant::now(), nowhere.clone()));
                Err(nowhere)
            }
        }
    }

    /// Forgets the connection, unless a newer one has taken its place.
    async fn close(&self, generation: u64) {
        let mut current = self.inner.current.lock().await;
        if current.generation == generation {
            current.live = None;
        }
    }

    /// Forgets the connection where it does not go to this server, which is the master now.
    async fn leave(&self, master: &Address) {
        let mut current = self.inner.current.lock().await;
        if current.address.as_ref().is_some_and(|address| address != master) {
            tracing::info!(%master, "the sentinels name another master");
            current.live = None;
            self.inner.moves.send_modify(|moves| *moves += 1);
        }
    }

    /// One pipeline over one connection, at most until the deadline. An error means that no answer came.
    async fn exchange(
        &self,
        live: &Live,
        pipeline: &Pipeline,
        deadline: Instant,
    ) -> RedisResult<Vec<RedisResult<Value>>> {
        let mut connection = live.connection.clone();
        let answers = connection.req_packed_commands(pipeline, 0, pipeline.len());
        let values = timeout_at(deadline, answers).await.unwrap_or_else(|_| Err(timed_out()))?;
        Ok(values
            .into_iter()
            .map(|value| match value {
                Value::ServerError(error) => Err(error.into()),
                value => Ok(value),
            })
            .collect())
    }

    fn connect_error(&self, source: RedisError) -> BackendError {
        match source.kind() {
            ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::InvalidClientConfig => {
                BackendError::Settings(source.detail().map_or_else(|| source.to_string(), str::to_owned))
            }
            _ if server_code(&source).is_some() => BackendError::sort(source, self.endpoint()),
            _ => BackendError::Connect { endpoint: self.endpoint().to_owned(), source },
        }
    }
}
