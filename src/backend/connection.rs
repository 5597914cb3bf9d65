//! One connection that many callers share, made anew when it is lost.
//!
//! The crate's multiplexed connection carries all commands; this layer decides when to connect again, what to send
//! again, and how long to wait. It never sends a command twice unless the caller says that it may.

use crate::backend::error::{is_noscript, server_code};
use crate::backend::scripts::{self, Script};
use crate::backend::{BackendError, Settings};
use redis::aio::{ConnectionLike, MultiplexedConnection, PubSub};
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, RedisError, RedisResult, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;

/// Bytes that may wait for the socket before senders are held back.
const WRITE_BUFFER: usize = 256 << 10;
/// Commands that may wait on one connection.
const PIPELINE_BUFFER: usize = 4096;
/// How often a replay-safe request is sent again after the connection was lost under it.
const RESENDS: u32 = 2;
/// The pause before it is sent again, growing with each try.
const RESEND_PAUSE: Duration = Duration::from_millis(50);

/// A shared connection to one server. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Link {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    endpoint: String,
    timeout: Duration,
    connect_timeout: Duration,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Current {
    connection: Option<MultiplexedConnection>,
    /// Counts the connections made, so that a late failure does not close a newer one.
    generation: u64,
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
        Ok(Self {
            inner: Arc::new(Inner {
                client: settings.url.client()?,
                endpoint: settings.url.endpoint(),
                timeout: settings.timeout,
                connect_timeout: settings.connect_timeout,
                current: Mutex::default(),
            }),
        })
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
    /// Scripts that the server does not know are loaded and sent again: they have not run.
    pub async fn commands(&self, cmds: Vec<Cmd>, resend: Resend) -> Result<Vec<RedisResult<Value>>, BackendError> {
        // The crate refuses a pipeline of nothing, which is what a question about no queues comes to.
        if cmds.is_empty() {
            return Ok(Vec::new());
        }
        let mut answers = self.send(&cmds, resend).await?;
        let unknown: Vec<usize> =
            answers.iter().enumerate().filter(|(_, a)| matches!(a, Err(e) if is_noscript(e))).map(|(i, _)| i).collect();
        if unknown.is_empty() {
            return Ok(answers);
        }
        self.load_scripts().await?;
        let again: Vec<Cmd> = unknown.iter().map(|i| cmds[*i].clone()).collect();
        for (i, answer) in unknown.into_iter().zip(self.send(&again, resend).await?) {
            answers[i] = answer;
        }
        Ok(answers)
    }

    /// Opens a connection for subscriptions; the caller owns it.
    pub async fn pubsub(&self) -> Result<PubSub, BackendError> {
        let attempt = tokio::time::timeout(self.inner.connect_timeout, self.inner.client.get_async_pubsub());
        attempt.await.unwrap_or_else(|_| Err(timed_out())).map_err(|e| self.connect_error(e))
    }

    async fn load_scripts(&self) -> Result<(), BackendError> {
        let loads = scripts::ALL
            .iter()
            .map(|script: &&Script| {
                let mut cmd = redis::cmd("SCRIPT");
                cmd.arg("LOAD").arg(script.text());
                cmd
            })
            .collect::<Vec<_>>();
        for answer in self.send(&loads, Resend::Safe).await? {
            answer.map_err(|e| BackendError::sort(e, self.endpoint()))?;
        }
        Ok(())
    }

    async fn send(&self, cmds: &[Cmd], resend: Resend) -> Result<Vec<RedisResult<Value>>, BackendError> {
        let mut pipeline = Pipeline::with_capacity(cmds.len());
        for cmd in cmds {
            pipeline.add_command(cmd.clone());
        }
        let mut tries = 0;
        loop {
            let (mut connection, generation) = self.connection().await?;
            match connection.req_packed_commands(pipeline.ignore_errors(), 0, cmds.len()).await {
                Ok(values) => {
                    return Ok(values
                        .into_iter()
                        .map(|value| match value {
                            Value::ServerError(error) => Err(error.into()),
                            value => Ok(value),
                        })
                        .collect());
                }
                Err(error) if server_code(&error).is_some() => return Err(BackendError::sort(error, self.endpoint())),
                Err(error) => {
                    self.close(generation).await;
                    if resend == Resend::Never || tries >= RESENDS {
                        return Err(BackendError::sort(error, self.endpoint()));
                    }
                    tries += 1;
                    tokio::time::sleep(RESEND_PAUSE * tries).await;
                }
            }
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), BackendError> {
        let mut current = self.inner.current.lock().await;
        if let Some(connection) = &current.connection {
            return Ok((connection.clone(), current.generation));
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.inner.connect_timeout))
            .set_response_timeout(Some(self.inner.timeout))
            .set_write_backpressure_boundary(WRITE_BUFFER)
            .set_pipeline_buffer_size(PIPELINE_BUFFER);
        let attempt = self.inner.client.get_multiplexed_async_connection_with_config(&config);
        // The crate's own time-out does not cover the greeting on a server that accepts and is silent.
        let connection = tokio::time::timeout(self.inner.connect_timeout + self.inner.timeout, attempt)
            .await
            .unwrap_or_else(|_| Err(timed_out()))
            .map_err(|e| self.connect_error(e))?;
        current.generation += 1;
        current.connection = Some(connection.clone());
        Ok((connection, current.generation))
    }

    /// Forgets the connection, unless a newer one has taken its place.
    async fn close(&self, generation: u64) {
        let mut current = self.inner.current.lock().await;
        if current.generation == generation {
            current.connection = None;
        }
    }

    fn connect_error(&self, source: RedisError) -> BackendError {
        match server_code(&source) {
            Some(_) => BackendError::sort(source, self.endpoint()),
            None => BackendError::Connect { endpoint: self.endpoint().to_owned(), source },
        }
    }
}

fn timed_out() -> RedisError {
    std::io::Error::from(std::io::ErrorKind::TimedOut).into()
}
