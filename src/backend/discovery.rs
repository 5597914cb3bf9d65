//! Which queues there are, without anybody naming them, and never with KEYS.

use crate::backend::answer::Answer;
use crate::backend::connection::Resend;
use crate::backend::{Backend, BackendError};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Keys that the server looks at in one step of the search.
const SCAN_COUNT: u64 = 2000;

impl Backend {
    /// The queues that are known: by configuration, and those that our programs recorded. Sorted by name.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn known_queues(&self) -> Result<Vec<String>, BackendError> {
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.keys().queues()).arg(0).arg(-1);
        let recorded = Answer::new("known_queues", self.link().command(cmd, Resend::Safe).await?).list()?;
        let mut queues: BTreeSet<String> = self.settings().queues.iter().cloned().collect();
        for queue in recorded {
            queues.insert(queue.text()?);
        }
        Ok(queues.into_iter().collect())
    }

    /// Records that these queues exist, for programs that have not heard of them.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn record_queues(&self, queues: &[String]) -> Result<(), BackendError> {
        if queues.is_empty() {
            return Ok(());
        }
        let now = chrono::Utc::now().timestamp();
        let mut cmd = redis::cmd("ZADD");
        cmd.arg(self.keys().queues());
        for queue in queues {
            cmd.arg(now).arg(queue);
        }
        self.link().command(cmd, Resend::Safe).await.map(|_| ())
    }

    /// Searches the keyspace for queues for at most `budget`, in small steps, from where the last search stopped, and
    /// records what it finds. Answers whether the search has come round.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn search_queues(&self, budget: Duration) -> Result<bool, BackendError> {
        let keys = self.keys();
        let mut get = redis::cmd("GET");
        get.arg(keys.scan());
        let saved = Answer::new("search_queues", self.link().command(get, Resend::Safe).await?);
        let cursor =
            saved.text_or_none()?.filter(|text| text.bytes().all(|b| b.is_ascii_digit())).unwrap_or("0".into());
        let (found, next) = self.scan_queues(cursor, budget).await?;
        // A reader without write permission still gets what it found recorded by others; its own search is not kept.
        self.record_queues(&found).await?;
        let mut set = redis::cmd("SET");
        set.arg(keys.scan()).arg(&next).arg("EX").arg(3600);
        self.link().command(set, Resend::Safe).await?;
        Ok(next == "0")
    }

    /// Looks through the keyspace for queues from its beginning, for at most `budget`, and writes nothing. Answers what
    /// it found, sorted by name, and whether it came to the end.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn look_for_queues(&self, budget: Duration) -> Result<(Vec<String>, bool), BackendError> {
        let (found, next) = self.scan_queues("0".into(), budget).await?;
        Ok((found, next == "0"))
    }

    /// Looks on for queues from where an earlier look stopped, for at most `budget`, and writes nothing: "0" is the beginning
    /// and the end. Answers what it found and where to go on.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn look_on_for_queues(
        &self,
        cursor: &str,
        budget: Duration,
    ) -> Result<(Vec<String>, String), BackendError> {
        self.scan_queues(cursor.to_owned(), budget).await
    }

    /// The queues that the keyspace holds from `cursor` on, as far as the search comes in `budget`, and where it goes on.
    async fn scan_queues(&self, mut cursor: String, budget: Duration) -> Result<(Vec<String>, String), BackendError> {
        let keys = self.keys();
        let start = Instant::now();
        let mut found = BTreeSet::new();
        loop {
            let mut cmd = redis::cmd("SCAN");
            cmd.arg(&cursor).arg("MATCH").arg(keys.scan_pattern()).arg("COUNT").arg(SCAN_COUNT).arg("TYPE").arg("zset");
            let [next, names] = Answer::new("search_queues", self.link().command(cmd, Resend::Safe).await?).array()?;
            for name in names.list()? {
                found.extend(keys.queue_of(&name.text()?).map(|(queue, _)| queue));
            }
            cursor = next.text()?;
            if cursor == "0" || start.elapsed() >= budget {
                return Ok((found.into_iter().collect(), cursor));
            }
        }
    }
}
