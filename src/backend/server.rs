//! What the server says of itself.

use crate::backend::answer::Answer;
use crate::backend::connection::Resend;
use crate::backend::{Backend, BackendError, ServerFacts};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::time::Instant;

impl Backend {
    /// The server's time, which is the one that counts for what is due.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn now(&self) -> Result<DateTime<Utc>, BackendError> {
        let answer = Answer::new("now", self.link().command(redis::cmd("TIME"), Resend::Safe).await?);
        let [seconds, micros] = answer.array()?;
        let micros = seconds.number()? * 1e6 + micros.number()?;
        // Microseconds since 1970 are whole numbers far below 2^53: nothing is lost.
        DateTime::from_timestamp_micros(micros as i64).ok_or(BackendError::Unexpected { what: "now" })
    }

    /// The server's version, memory, persistence and the round trip of the question. What it does not say is missing.
    ///
    /// # Errors
    /// Why the server could not be asked; a forbidden INFO is no error.
    pub async fn facts(&self) -> Result<ServerFacts, BackendError> {
        let info = |section: &str| {
            let mut cmd = redis::cmd("INFO");
            cmd.arg(section);
            cmd
        };
        let start = Instant::now();
        self.ping().await?;
        let round_trip = start.elapsed();
        // A forbidden TIME is no error either.
        let time_ms = self.now().await.ok().map(|now| now.timestamp_micros() as f64 / 1_000.0);
        let cmds = ["server", "memory", "persistence", "replication"].map(info).to_vec();
        let mut fields = HashMap::new();
        for section in self.link().commands(cmds, Resend::Safe).await?.into_iter().flatten() {
            let text = Answer::new("facts", section).text()?;
            for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
                fields.insert(key.to_owned(), value.trim().to_owned());
            }
        }
        let text = |key: &str| fields.get(key).cloned();
        let number = |key: &str| fields.get(key).and_then(|text| text.parse().ok());
        Ok(ServerFacts {
            name: text("server_name").or_else(|| text("redis_version").map(|_| "redis".to_owned())),
            version: text("valkey_version").or_else(|| text("redis_version")),
            used_memory: number("used_memory"),
            max_memory: number("maxmemory"),
            eviction_policy: text("maxmemory_policy"),
            append_only: fields.get("aof_enabled").map(|flag| flag == "1"),
            role: text("role"),
            uptime: number("uptime_in_seconds"),
            round_trip,
            time_ms,
        })
    }
}
