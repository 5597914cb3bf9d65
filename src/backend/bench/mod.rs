//! How fast the core is on a given server: our transitions, and transitions of the shape of the Python package's, replayed
//! with nothing executed, in alternating runs.
//!
//! A rate alone says more of the machine than of the scripts; the server's microseconds for each task, taken from `INFO
//! commandstats`, and the ratio of the two shapes in one run are what to compare.

mod ours;
mod theirs;

use crate::backend::answer::Answer;
use crate::backend::connection::Resend;
use crate::backend::{Backend, BackendError};
use std::time::{Duration, Instant};

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct BenchOptions {
    /// Tasks of each run.
    pub tasks: usize,
    /// Tasks of each acquire, acknowledge and bulk enqueue.
    pub batch: usize,
    /// Calls under way at the same time.
    pub in_flight: usize,
    /// Alternating runs of each shape.
    pub runs: usize,
}

impl Default for BenchOptions {
    fn default() -> Self {
        Self { tasks: 20_000, batch: 100, in_flight: 4, runs: 5 }
    }
}

/// One kind of work, in the median of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What was done.
    pub name: &'static str,
    /// Tasks in a second.
    pub rate: f64,
    /// Microseconds of the server for each task.
    pub server_us: f64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct BenchReport {
    /// In the order in which they were taken.
    pub figures: Vec<Figure>,
}

impl BenchReport {
    /// A figure by its name.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }

    /// The server's time of one kind of work as a part of another's.
    pub fn server_ratio(&self, name: &str, base: &str) -> Option<f64> {
        Some(self.figure(name)?.server_us / self.figure(base)?.server_us)
    }
}

/// Acquire and acknowledge, by our scripts.
pub const DRAIN_OURS: &str = "drain";
/// The same by scripts of the Python package's shape.
pub const DRAIN_THEIRS: &str = "drain, shape of 0.8.4";
/// Enqueue in bulk.
pub const ENQUEUE_BULK: &str = "enqueue, bulk";
/// Enqueue one a call, pipelined.
pub const ENQUEUE_ONE: &str = "enqueue, one a call";
/// Enqueue by transactions of the Python package's shape, pipelined.
pub const ENQUEUE_THEIRS: &str = "enqueue, shape of 0.8.4";

impl Backend {
    /// Measures the core on a queue of its own, which it empties again. `progress` is told each run that begins.
    ///
    /// # Errors
    /// Why the server could not be asked; what was enqueued by then may be left in the queue that is named first.
    pub async fn bench(
        &self,
        options: BenchOptions,
        mut progress: impl FnMut(&str),
    ) -> Result<BenchReport, BackendError> {
        let queue = format!("threadmill-bench-{}", std::process::id());
        let mut taken: Vec<(&'static str, Vec<Sample>)> = Vec::new();
        for run in 1..=options.runs.max(1) {
            progress(&format!("run {run} of {}, on the queue {queue}", options.runs.max(1)));
            for (name, sample) in [
                (ENQUEUE_BULK, ours::enqueue(self, &queue, options, options.batch).await?),
                (DRAIN_OURS, ours::drain(self, &queue, options).await?),
                (ENQUEUE_ONE, ours::enqueue(self, &queue, options, 1).await?),
                (DRAIN_THEIRS, theirs::drain(self, &queue, options).await?),
                (ENQUEUE_THEIRS, theirs::enqueue(self, &queue, options).await?),
            ] {
                match taken.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, samples)) => samples.push(sample),
                    None => taken.push((name, vec![sample])),
                }
            }
            ours::clear(self, &queue).await?;
        }
        let figures = taken
            .into_iter()
            .map(|(name, samples)| Figure {
                name,
                rate: median(samples.iter().map(|s| options.tasks as f64 / s.wall.as_secs_f64())),
                server_us: median(samples.iter().map(|s| s.server_us / options.tasks as f64)),
            })
            .collect();
        Ok(BenchReport { figures })
    }

    /// Microseconds that the server has spent on commands that clients sent: the commands inside scripts are counted in
    /// the scripts.
    async fn server_micros(&self) -> Result<f64, BackendError> {
        let mut cmd = redis::cmd("INFO");
        cmd.arg("commandstats");
        let text = Answer::new("bench", self.link().command(cmd, Resend::Safe).await?).text()?;
        let mut inside = 0.0;
        for line in text.lines() {
            let Some((name, rest)) = line.strip_prefix("cmdstat_").and_then(|line| line.split_once(':')) else {
                continue;
            };
            if TOP_LEVEL.contains(&name) {
                let micros = rest.split(',').find_map(|part| part.strip_prefix("usec="));
                inside += micros.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
            }
        }
        Ok(inside)
    }
}

/// What the runs send from outside of scripts. `exec` contains the commands of its transaction.
const TOP_LEVEL: [&str; 3] = ["evalsha", "exec", "multi"];

/// One run.
struct Sample {
    wall: Duration,
    server_us: f64,
}

/// Takes the time of some work, on the clock and on the server.
async fn sample(
    backend: &Backend,
    work: impl Future<Output = Result<(), BackendError>>,
) -> Result<Sample, BackendError> {
    let before = backend.server_micros().await?;
    let start = Instant::now();
    work.await?;
    let wall = start.elapsed();
    Ok(Sample { wall, server_us: backend.server_micros().await? - before })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
