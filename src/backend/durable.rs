//! Enqueueing that waits until the tasks are safe.

use crate::backend::answer::Answer;
use crate::backend::connection::{Link, Resend};
use crate::backend::{Backend, BackendError, Enqueued};
use crate::task::NewTask;
use redis::Cmd;
use std::sync::Arc;
use std::time::Duration;

/// How often an enqueue is made certain again after the server changed under it.
const ROUNDS: u32 = 3;

/// How safe tasks are to be before an enqueue answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Durability {
    /// Whether they are to be on the server's own disk (`WAITAOF`, from Redis 7.2 on, with `appendonly yes`).
    pub disk: bool,
    /// How many replicas are to have them: in memory, or with `disk` on their disks too.
    pub replicas: u32,
    /// How long that may take.
    pub within: Duration,
}

impl Durability {
    /// The command that waits for it, at most this long.
    fn wait(&self, limit: Duration) -> Cmd {
        // 0 would wait for ever.
        let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        let mut cmd = redis::cmd(if self.disk { "WAITAOF" } else { "WAIT" });
        if self.disk {
            cmd.arg(1);
        }
        cmd.arg(self.replicas).arg(limit);
        cmd
    }
}

impl Backend {
    /// As [`enqueue`](Self::enqueue), and waits until the tasks are as safe as that, over a connection of its own.
    ///
    /// # Errors
    /// [`BackendError::Settings`] before anything is stored, where the server cannot tell.
    /// [`BackendError::NotDurable`] where the tasks are stored and the confirmation did not come in time. Those of
    /// [`enqueue`](Self::enqueue).
    pub async fn enqueue_durable(
        &self,
        tasks: &[NewTask],
        durability: Durability,
    ) -> Result<Vec<Enqueued>, BackendError> {
        let link = self.link().private(durability.within);
        let private = Backend {
            inner: Arc::new(super::Inner {
                link: link.clone(),
                keys: self.keys().clone(),
                settings: self.settings().clone(),
            }),
        };
        let probe = link.command(durability.wait(Duration::from_millis(1)), Resend::Safe).await;
        probe.map_err(|error| explain(error, durability))?;
        let mut round = 0;
        loop {
            round += 1;
            let before = link.generation().await;
            let enqueued = private.enqueue(tasks).await?;
            let reached = private.confirm(&link, durability).await?;
            // Another connection may lead to another server, which may never have got the tasks. Sent again, they are
            // found or stored there.
            if link.generation().await != before && round < ROUNDS {
                continue;
            }
            let (disks, want_disks, want_replicas) =
                (reached.disks, u64::from(durability.disk), u64::from(durability.replicas));
            if link.generation().await == before && disks >= want_disks && reached.replicas >= want_replicas {
                return Ok(enqueued);
            }
            return Err(BackendError::NotDurable { disks, want_disks, replicas: reached.replicas, want_replicas });
        }
    }

    /// Waits for what was written so far.
    async fn confirm(&self, link: &Link, durability: Durability) -> Result<Reached, BackendError> {
        // The server waits for the last write of this connection. Tasks that were stored by an earlier try were written by
        // another one; this write comes after them.
        let mut mark = redis::cmd("SET");
        mark.arg(self.keys().durable()).arg("").arg("PX").arg(1000);
        let answers = link.commands(vec![mark, durability.wait(durability.within)], Resend::Safe).await?;
        let mut answers = answers.into_iter().map(|answer| answer.map_err(|e| BackendError::sort(e, link.endpoint())));
        let unexpected = || BackendError::Unexpected { what: "WAIT" };
        answers.next().ok_or_else(unexpected)??;
        let reached = Answer::new("WAIT", answers.next().ok_or_else(unexpected)??);
        Ok(if durability.disk {
            let [disks, replicas] = reached.array()?;
            Reached { disks: disks.count()?, replicas: replicas.count()? }
        } else {
            Reached { disks: 0, replicas: reached.count()? }
        })
    }
}

/// Who confirmed.
struct Reached {
    disks: u64,
    replicas: u64,
}

/// Why the server cannot wait, in words that say what to do.
fn explain(error: BackendError, durability: Durability) -> BackendError {
    let BackendError::Refused { code, message } = &error else { return error };
    match code.as_str() {
        "ERR" if message.contains("unknown command") => BackendError::Settings(
            "this server cannot confirm that a task is on its disk: WAITAOF came with Redis 7.2; ask for replicas only".into(),
        ),
        "ERR" if durability.disk && message.contains("appendonly") => BackendError::Settings(
            "this server keeps nothing on its disk by which it could confirm a task: set appendonly yes there, or ask for \
             replicas only"
                .into(),
        ),
        _ => error,
    }
}
