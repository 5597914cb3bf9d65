//! Who works: workers, leases, what is due.

use crate::backend::answer::Answer;
use crate::backend::connection::Resend;
use crate::backend::doctor::segments::LeaseSeen;
use crate::backend::doctor::{FindingKind, Run};
use crate::backend::{Backend, BackendError, Cursor, Summary, WorkerInfo};
use crate::task::{Score, Segment};
use redis::Cmd;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a worker may be silent: three heartbeats.
const SILENCE: Duration = Duration::from_secs(90);
/// How long what is due may wait for maintenance, which looks every second, in milliseconds.
const GRACE: f64 = 10_000.0;
/// Rows of each segment that are searched for functions of ours.
const ROWS: u64 = 200;

impl Backend {
    /// How many of the next `limit` records of a pending segment have an end, and the first of their ids.
    pub(in crate::backend) async fn ending(
        &self,
        queue: &str,
        segment: Segment,
        from: &Cursor,
        limit: u64,
        examples: usize,
    ) -> Result<(u64, Vec<String>), BackendError> {
        let ids = self.slice_of(queue, segment, from, limit).await?;
        let ttls = ids.iter().map(|id| {
            let mut cmd = redis::cmd("PTTL");
            cmd.arg(self.keys().task(id));
            cmd
        });
        let ttls = self.call_all("ending", ttls.collect()).await?;
        let (mut count, mut found) = (0, Vec::new());
        for (id, ttl) in ids.into_iter().zip(ttls) {
            if ttl?.integer()? >= 0 {
                count += 1;
                if found.len() < examples {
                    found.push(id);
                }
            }
        }
        Ok((count, found))
    }

    /// The ids of a slice of a segment from `from` on: as a walk sees them, near enough for a count.
    async fn slice_of(
        &self,
        queue: &str,
        segment: Segment,
        from: &Cursor,
        limit: u64,
    ) -> Result<Vec<String>, BackendError> {
        let key = self.keys().segment(queue, segment);
        let mut first = 0;
        if !from.score.is_empty() {
            let mut rank = redis::cmd("ZRANK");
            rank.arg(&key).arg(&from.id);
            let mut before = redis::cmd("ZCOUNT");
            before.arg(&key).arg("-inf").arg(format!("({}", from.score));
            let answers = self.call_all("slice", vec![rank, before]).await?;
            let [rank, before] = <[_; 2]>::try_from(answers).map_err(|_| BackendError::Unexpected { what: "slice" })?;
            first = match rank?.optional() {
                Some(rank) => rank.count()? + 1,
                None => before?.count()?,
            };
        }
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(&key).arg(first).arg(first + limit - 1);
        self.call("slice", cmd).await?.list()?.into_iter().map(Answer::text).collect()
    }

    /// The first ids in quarantine.
    pub(in crate::backend) async fn quarantined(&self, queue: &str, limit: usize) -> Result<Vec<String>, BackendError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut cmd = redis::cmd("ZRANGE");
        cmd.arg(self.keys().quarantine(queue)).arg(0).arg(limit - 1);
        self.call("quarantined", cmd).await?.list()?.into_iter().map(Answer::text).collect()
    }
}

impl Run<'_> {
    /// Looks at who works, and at what waits for somebody.
    pub(super) async fn fleet(&mut self, leases: &[LeaseSeen]) -> Result<(), BackendError> {
        if self.stopped {
            return Ok(());
        }
        let workers = self.backend.workers().await?;
        self.workers(&workers);
        self.holders(leases, &workers);
        self.overdue().await?;
        self.nobody(&workers);
        self.functions(leases).await?;
        self.step("looking at the workers", None, 0);
        Ok(())
    }

    fn workers(&mut self, workers: &[WorkerInfo]) {
        for worker in workers {
            if worker.dead {
                self.tally.add(FindingKind::WorkerDead, None, &worker.id);
            } else if worker.silent > SILENCE {
                self.tally.add(FindingKind::WorkerSilent, None, &worker.id);
            }
        }
    }

    fn holders(&mut self, leases: &[LeaseSeen], workers: &[WorkerInfo]) {
        let alive: BTreeSet<&str> =
            workers.iter().filter(|worker| is_alive(worker)).map(|worker| worker.id.as_str()).collect();
        for lease in leases.iter().filter(|lease| lease.ours && !lease.claimed) {
            if !alive.contains(lease.worker.as_str()) {
                let example = format!("{} held by {}", lease.id, lease.worker);
                self.tally.add(FindingKind::HolderGone, Some(&lease.queue), example);
            }
        }
    }

    /// What is due and what is over, each for longer than maintenance takes to look.
    async fn overdue(&mut self) -> Result<(), BackendError> {
        let [seconds, micros] = self.backend.call("time", redis::cmd("TIME")).await?.array()?;
        let until = Score(seconds.number()? * 1_000.0 + micros.number()? / 1_000.0 - GRACE).to_string();
        let checks = [(Segment::Scheduled, FindingKind::DueNotMoved), (Segment::Running, FindingKind::LeaseOver)];
        for counts in self.counts.clone() {
            for (segment, kind) in checks {
                if counts.of(segment) == 0 {
                    continue;
                }
                let key = self.backend.keys().segment(&counts.queue, segment);
                let mut count = redis::cmd("ZCOUNT");
                count.arg(&key).arg("-inf").arg(&until);
                let mut first: Cmd = redis::cmd("ZRANGE");
                first.arg(&key).arg("-inf").arg(&until).arg("BYSCORE").arg("LIMIT").arg(0).arg(self.options.examples);
                let mut answers = self.backend.link().commands(vec![count, first], Resend::Safe).await?.into_iter();
                let (Some(Ok(count)), Some(Ok(first))) = (answers.next(), answers.next()) else { continue };
                let count = Answer::new("overdue", count).count()?;
                let ids = Answer::new("overdue", first).list()?;
                let ids = ids.into_iter().map(Answer::text).collect::<Result<Vec<_>, _>>()?;
                if count > 0 {
                    self.tally.add_many(kind, Some(&counts.queue), count, ids);
                }
            }
        }
        Ok(())
    }

    fn nobody(&mut self, workers: &[WorkerInfo]) {
        for counts in &self.counts {
            let served = workers.iter().any(|worker| is_alive(worker) && worker.queues.contains(&counts.queue));
            if counts.of(Segment::Ready) > 0 && counts.of(Segment::Running) == 0 && !served {
                let ready = format!("{} READY", counts.of(Segment::Ready));
                self.tally.add(FindingKind::NobodyWorks, Some(&counts.queue), ready);
            }
        }
    }

    /// Functions that only programs of ours have, waiting where a worker of the Python package was seen to work. Such a
    /// worker leaves no other trace than its leases, so this is as far as it can be known.
    async fn functions(&mut self, leases: &[LeaseSeen]) -> Result<(), BackendError> {
        if self.options.native.is_empty() {
            return Ok(());
        }
        let foreign = leases.iter().filter(|lease| !lease.ours && !lease.claimed && !lease.worker.is_empty());
        let queues: BTreeSet<&str> = foreign.map(|lease| lease.queue.as_str()).collect();
        for queue in queues {
            let mut found: BTreeMap<String, u64> = BTreeMap::new();
            for segment in [Segment::Ready, Segment::Scheduled] {
                for row in self.backend.page(queue, segment, 0, ROWS).await?.rows {
                    if let Summary::Readable(readable) = row.summary
                        && self.options.native.contains(&readable.func)
                    {
                        *found.entry(readable.func).or_default() += 1;
                    }
                }
            }
            for (func, count) in found {
                self.tally.add_many(FindingKind::NativeOnPython, Some(queue), count, [func]);
            }
        }
        Ok(())
    }
}

fn is_alive(worker: &WorkerInfo) -> bool {
    !worker.dead && worker.silent <= SILENCE
}
