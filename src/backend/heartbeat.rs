//! The signs of life of our workers.

use crate::backend::scripts::HEARTBEAT;
use crate::backend::{Backend, BackendError};
use std::time::Duration;

/// What a worker records of itself.
#[derive(Clone, Debug, Default)]
pub struct Registration {
    /// The worker's id, as its leases name it.
    pub worker: String,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// What it serves.
    pub queues: Vec<String>,
    /// Since when, RFC 3339.
    pub started_at: String,
    /// How many tasks run now.
    pub running: u64,
    /// How long the record outlives the last beat.
    pub ttl: Duration,
    /// Sequence number up to which it has started its leases.
    pub mark: Option<u64>,
}

/// The server's answer to a sign of life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Beat {
    /// Noted; the server's clock in milliseconds since 1970.
    Alive(f64),
    /// The worker is not known, or was declared dead and its leases were taken over. It must register anew, under
    /// another id, and drop what it holds.
    Unregistered,
}

impl Backend {
    /// Registers a worker, before it asks for its first task.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn register(&self, worker: &Registration) -> Result<Beat, BackendError> {
        self.heartbeat("register", worker).await
    }

    /// Says that a registered worker is alive.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn beat(&self, worker: &Registration) -> Result<Beat, BackendError> {
        self.heartbeat("beat", worker).await
    }

    /// Removes the record of a worker that holds nothing any more.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn deregister(&self, worker: &str) -> Result<(), BackendError> {
        let keys = self.keys();
        let mut cmd = HEARTBEAT.call(&[keys.workers(), keys.worker(worker)]);
        cmd.arg(worker).arg("leave").arg(0).arg("");
        self.call("heartbeat", cmd).await.map(|_| ())
    }

    async fn heartbeat(&self, mode: &str, worker: &Registration) -> Result<Beat, BackendError> {
        let keys = self.keys();
        let mut cmd = HEARTBEAT.call(&[keys.workers(), keys.worker(&worker.worker)]);
        cmd.arg(&worker.worker).arg(mode).arg(worker.ttl.as_millis() as u64);
        cmd.arg(worker.mark.map_or_else(String::new, |mark| mark.to_string()));
        let queues = serde_json::to_string(&worker.queues).unwrap_or_default();
        for (field, value) in [
            ("host", worker.host.clone()),
            ("pid", worker.pid.to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("queues", queues),
            ("since", worker.started_at.clone()),
            ("running", worker.running.to_string()),
        ] {
            cmd.arg(field).arg(value);
        }
        let [code, now] = self.call("heartbeat", cmd).await?.array()?;
        match code.text()?.as_str() {
            "alive" => Ok(Beat::Alive(now.number()?)),
            "unregistered" => Ok(Beat::Unregistered),
            _ => Err(BackendError::Unexpected { what: "heartbeat" }),
        }
    }
}
