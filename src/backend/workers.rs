//! What is known of our workers.

use crate::backend::answer::Answer;
use crate::backend::connection::Resend;
use crate::backend::{Backend, BackendError, WorkerInfo};
use std::time::Duration;

/// Workers shown at most.
const LIMIT: isize = 1000;

impl Backend {
    /// Every worker of ours that is on record, the one heard of last first.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn workers(&self) -> Result<Vec<WorkerInfo>, BackendError> {
        let keys = self.keys();
        let mut listed = redis::cmd("ZRANGE");
        listed.arg(keys.workers()).arg(0).arg(LIMIT - 1).arg("REV").arg("WITHSCORES");
        let mut answers = self.call_all("workers", vec![listed, redis::cmd("TIME")]).await?.into_iter();
        let mut next = || answers.next().unwrap_or(Err(BackendError::Unexpected { what: "workers" }));
        let listed = next()?.list()?;
        let [seconds, micros] = next()?.array()?;
        let now = seconds.number()? * 1_000.0 + micros.number()? / 1_000.0;
        let mut workers = Vec::with_capacity(listed.len() / 2);
        let mut listed = listed.into_iter();
        while let (Some(id), Some(beat)) = (listed.next(), listed.next()) {
            let beat_ms = beat.number()?;
            let silent = Duration::try_from_secs_f64((now - beat_ms) / 1_000.0).unwrap_or_default();
            workers.push(WorkerInfo { id: id.text()?, beat_ms, silent, ..WorkerInfo::default() });
        }
        let records = workers.iter().map(|worker| {
            let mut cmd = redis::cmd("HMGET");
            cmd.arg(keys.worker(&worker.id));
            for field in ["dead", "host", "pid", "version", "queues", "since", "running"] {
                cmd.arg(field);
            }
            cmd
        });
        let records = self.link().commands(records.collect(), Resend::Safe).await?;
        for (worker, record) in workers.iter_mut().zip(records) {
            match record {
                Ok(record) => fill(worker, Answer::new("workers", record))?,
                // A record of another type is none, and hides no other worker.
                Err(error) if error.code() == Some("WRONGTYPE") => {}
                Err(error) => return Err(BackendError::sort(error, self.endpoint())),
            }
        }
        Ok(workers)
    }
}

pub(super) fn fill(worker: &mut WorkerInfo, record: Answer) -> Result<(), BackendError> {
    let [dead, host, pid, version, queues, since, running] = record.array()?;
    worker.dead = dead.text_or_none()?.is_some();
    worker.host = host.text_or_none()?.unwrap_or_default();
    worker.pid = pid.text_or_none()?.and_then(|text| text.parse().ok()).unwrap_or_default();
    worker.version = version.text_or_none()?.unwrap_or_default();
    worker.queues = queues.text_or_none()?.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    worker.started_at = since.text_or_none()?.unwrap_or_default();
    worker.running = running.text_or_none()?.and_then(|text| text.parse().ok()).unwrap_or_default();
    Ok(())
}
