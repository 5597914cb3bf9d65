//! The places for one kind of work, and how soon they become free.

use std::time::Duration;

/// What is taken ahead is to start within this time.
const PREFETCH_HORIZON: Duration = Duration::from_millis(50);
/// How much the last duration counts in the running mean.
const MEAN_WEIGHT: f64 = 0.1;

/// The places of one kind of work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pool {
    pub running: usize,
    /// The sum of the starts of what runs, in seconds.
    pub starts: f64,
    /// The mean of the last durations, in seconds.
    pub mean: Option<f64>,
}

impl Pool {
    /// How many of the running will end within the horizon, as far as the last durations and the ages tell.
    pub fn ends_soon(&self, now: f64) -> usize {
        let (Some(mean), true) = (self.mean, self.running > 0) else { return 0 };
        let age = now - self.starts / self.running as f64;
        (self.running as f64 * PREFETCH_HORIZON.as_secs_f64() / mean.max(age).max(1e-6)) as usize
    }

    /// One begins at this second.
    pub fn begin(&mut self, at: f64) {
        self.running += 1;
        self.starts += at;
    }

    /// One that began at this second ends after this long.
    pub fn end(&mut self, at: f64, took: Duration) {
        self.running -= 1;
        self.starts = if self.running == 0 { 0.0 } else { self.starts - at };
        let seconds = took.as_secs_f64();
        self.mean = Some(self.mean.map_or(seconds, |mean| mean + (seconds - mean) * MEAN_WEIGHT));
    }

    /// None runs any more.
    pub fn clear(&mut self) {
        (self.running, self.starts) = (0, 0.0);
    }
}
