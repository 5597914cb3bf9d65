//! One child of the pool and what it has been given.

use super::child::Link;
use super::frame::encode_run;
use super::pool::Job;
use crate::backend::codec::encode;
use crate::task::TaskRecord;
use bytes::BytesMut;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A child is given as much as it will have begun within this time, if its tasks take as long as the last ones did.
const AHEAD: f64 = 0.002;
/// The most tasks for each thread.
const MOST_AHEAD: f64 = 256.0;
/// Bytes of records that wait in a child at most; one for each thread it always gets.
const BYTES_AHEAD: usize = 4 << 20;
/// How much the last duration counts in the running mean.
const WEIGHT: f64 = 0.1;
/// A child that holds back answers or tasks is asked for them after it has been silent for this long.
const SILENCE: Duration = Duration::from_millis(5);

/// Where a child is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It loads the site.
    Starting,
    /// It takes tasks.
    Ready,
    /// It takes no more, finishes what it runs, and has its successor already.
    Retiring,
    /// It was told to end.
    Stopping,
}

/// A child of the pool.
pub(crate) struct Member {
    pub link: Link,
    pub stage: Stage,
    /// What it was given and has not answered, in the order in which it begins them.
    pub given: BTreeMap<u64, Job>,
    pub bytes: usize,
    pub born: Instant,
    /// How many tasks it has ended, and after how many it is replaced.
    pub ended: u64,
    pub budget: Option<u64>,
    /// Killed for the time that this task took.
    pub overran: Option<u64>,
    /// The tasks that the soft limit has interrupted.
    pub interrupted: BTreeSet<u64>,
    /// It is too old, or too big.
    pub is_old: bool,
    /// When it was told to end.
    pub told: Option<Instant>,
    threads: usize,
    /// The mean time of a task, in seconds.
    mean: Option<f64>,
    heard: Instant,
    asked: bool,
}

impl Member {
    pub fn new(link: Link, threads: usize, budget: Option<u64>) -> Self {
        let now = Instant::now();
        Self {
            link,
            stage: Stage::Starting,
            given: BTreeMap::new(),
            bytes: 0,
            born: now,
            ended: 0,
            budget,
            overran: None,
            interrupted: BTreeSet::new(),
            is_old: false,
            told: None,
            threads,
            mean: None,
            heard: now,
            asked: false,
        }
    }

    /// How many tasks it may have at a time.
    pub fn window(&self) -> usize {
        let each = self.mean.map_or(1.0, |mean| (AHEAD / mean.max(1e-9)).clamp(1.0, MOST_AHEAD));
        self.threads * each as usize
    }

    /// Whether it can be given another one.
    pub fn has_room(&self) -> bool {
        self.stage == Stage::Ready
            && self.given.len() < self.window()
            && (self.given.len() < self.threads || self.bytes < BYTES_AHEAD)
    }

    /// Gives it a task, as a frame in `out`.
    pub fn give(&mut self, number: u64, job: Job, out: &mut BytesMut) {
        let text = attempt_text(&job.record, &job.worker);
        encode_run(out, number, &job.record, &text);
        self.bytes += text.len();
        self.given.insert(number, job);
        self.heard = if self.given.len() == 1 { Instant::now() } else { self.heard };
    }

    /// Takes back what it has answered or not begun.
    pub fn take(&mut self, number: u64) -> Option<Job> {
        let job = self.given.remove(&number)?;
        // The size is a measure and no account.
        self.bytes = if self.given.is_empty() { 0 } else { self.bytes - self.bytes / (self.given.len() + 1) };
        Some(job)
    }

    /// It has ended a task that took this long.
    pub fn learn(&mut self, took: Duration) {
        let took = took.as_secs_f64();
        self.mean = Some(self.mean.map_or(took, |mean| mean + (took - mean) * WEIGHT));
        self.ended += 1;
        self.heard = Instant::now();
        self.asked = false;
    }

    /// It has given back what it had not begun: its tasks are slower than was thought.
    pub fn slow_down(&mut self) {
        self.mean = Some(self.mean.unwrap_or(AHEAD).max(AHEAD));
    }

    /// When it is to be asked for what it holds back.
    pub fn asks_at(&self) -> Option<Instant> {
        (!self.given.is_empty() && !self.asked && self.stage != Stage::Starting).then(|| self.heard + SILENCE)
    }

    /// It has been asked.
    pub fn asked(&mut self) {
        self.asked = true;
    }

    /// Whether it is older or bigger than it may be.
    pub fn is_spent(&self, max_age: Option<Duration>, max_memory: Option<u64>) -> bool {
        let too_old = max_age.is_some_and(|age| self.born.elapsed() >= age);
        too_old || max_memory.is_some_and(|most| self.link.process.memory().is_some_and(|now| now >= most))
    }

    /// Whether it has done enough, and is to be replaced.
    pub fn is_done(&self) -> bool {
        self.is_old || self.budget.is_some_and(|budget| self.ended >= budget)
    }
}

/// The record of a task in the attempt that `worker` makes: with that worker among its workers.
pub(crate) fn attempt_text(record: &TaskRecord, worker: &str) -> String {
    /// How the record of a task that waits ends.
    const END: &str = "], \"_return_value\": null}";
    let mut text = encode(record);
    if record.return_value.is_null() && text.ends_with(END) {
        text.truncate(text.len() - END.len());
        if !record.worker_ids.is_empty() {
            text.push_str(", ");
        }
        crate::backend::codec::encode_string(&mut text, worker);
        text.push_str(END);
        return text;
    }
    let mut attempt = record.clone();
    attempt.worker_ids.push(worker.to_owned());
    encode(&attempt)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::codec::{decode, queued};
    use crate::task::{NewTask, RawJson, TaskId};

    #[test]
    fn the_attempt_s_worker_is_the_last_one() {
        let mut record = queued(&NewTask::new(TaskId::from("x"), "f"), "default", chrono::Utc::now());
        for value in ["null", "1"] {
            record.return_value = RawJson::new(value);
            record.worker_ids.clear();
            for worker in ["a \"b\"", "c"] {
                let text = attempt_text(&record, worker);
                record.worker_ids.push(worker.into());
                assert_eq!(decode(text.as_bytes()).unwrap(), record);
            }
        }
    }
}
