//! The only room that knows Redis: keys, scripts, codec, connection, telemetry.
//!
//! Each transition of a task is one Lua script with a typed wrapper here; its answer is a closed set of codes, turned
//! into an enum. Absent on purpose: policy (who runs what, when to retry), printing, screens. May use `task` and the
//! `redis` crate; no other room.

mod acknowledge;
mod acquire;
mod answer;
pub mod bench;
mod browse;
mod bulk;
pub mod codec;
mod connection;
mod discovery;
pub mod doctor;
mod drop;
mod durable;
mod enqueue;
mod error;
#[cfg(test)]
mod fuzz;
mod give_back;
mod heartbeat;
mod keys;
mod maintenance;
mod pulse;
mod purge;
mod quarantine;
mod read;
mod relocate;
mod requeue;
mod retry;
pub mod scripts;
mod server;
mod settings;
mod telemetry;
mod tidy;
mod token;
mod view;
mod walk;
mod workers;

pub use acknowledge::{AcknowledgeOutcome, Acknowledged, Acknowledgement, Outcome};
pub use acquire::{AcquireAnswer, AcquireRequest, Acquired, Leased, SetAside, SetAsideReason};
pub use browse::{Browsed, Slice};
pub use bulk::Seen;
pub use codec::DecodeError;
pub use drop::DropOutcome;
pub use durable::Durability;
pub use enqueue::{EnqueueOutcome, Enqueued, new_id};
pub use error::BackendError;
pub use give_back::{GiveBackOutcome, Unstarted};
pub use heartbeat::{Beat, Registration};
pub use maintenance::{Claimed, Moved, Persisted, Reaped, TakenOver, Watch};
pub use pulse::Pulse;
pub use purge::{PurgeScope, Purged};
pub use quarantine::QuarantineOutcome;
pub use relocate::{MoveOutcome, RescheduleOutcome};
pub use requeue::{Requeue, RequeueOutcome, When};
pub use retry::{Retried, RetryRequest};
pub use settings::{RedisUrl, Settings};
pub use telemetry::TelemetryStream;
pub use tidy::{Repair, Tidied};
pub use token::Token;
pub use view::*;
pub use walk::Cursor;

use answer::Answer;
use connection::{Link, Resend};
use keys::Keys;
use redis::Cmd;
use std::sync::Arc;

/// One backend alias on one Redis. Cloning is cheap; all clones share one connection.
#[derive(Clone)]
pub struct Backend {
    inner: Arc<Inner>,
}

struct Inner {
    link: Link,
    keys: Keys,
    settings: Settings,
}

impl Backend {
    /// Prepares a backend. Nothing is sent until the first request, which connects.
    ///
    /// # Errors
    /// [`BackendError::Settings`] where the URL cannot be used, a certificate of it cannot be read.
    pub fn new(settings: Settings) -> Result<Self, BackendError> {
        let link = Link::new(&settings)?;
        let keys = Keys::new(&settings.alias);
        Ok(Self { inner: Arc::new(Inner { link, keys, settings }) })
    }

    /// The alias that is part of every key.
    pub fn alias(&self) -> &str {
        &self.inner.settings.alias
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    /// Where Redis is, for a person: without the password.
    pub fn endpoint(&self) -> &str {
        self.inner.link.endpoint()
    }

    /// Waits for an answer of the server.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn ping(&self) -> Result<(), BackendError> {
        self.inner.link.command(redis::cmd("PING"), Resend::Safe).await.map(|_| ())
    }

    fn link(&self) -> &Link {
        &self.inner.link
    }

    fn keys(&self) -> &Keys {
        &self.inner.keys
    }

    /// Calls one script. All of ours may be sent again when the answer is lost (decision 4 of the design).
    async fn call(&self, what: &'static str, cmd: Cmd) -> Result<Answer, BackendError> {
        Ok(Answer::new(what, self.link().command(cmd, Resend::Safe).await?))
    }

    /// Calls several in one round trip; each has its own answer.
    async fn call_all(
        &self,
        what: &'static str,
        cmds: Vec<Cmd>,
    ) -> Result<Vec<Result<Answer, BackendError>>, BackendError> {
        let answers = self.link().commands(cmds, Resend::Safe).await?;
        let sort = |answer: redis::RedisResult<redis::Value>| {
            answer.map(|value| Answer::new(what, value)).map_err(|e| BackendError::sort(e, self.endpoint()))
        };
        Ok(answers.into_iter().map(sort).collect())
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backend").field("alias", &self.alias()).field("endpoint", &self.endpoint()).finish()
    }
}
