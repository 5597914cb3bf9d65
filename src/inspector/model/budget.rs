//! How much may be asked in the background: what goes through whole segments must not be felt by the server.

use std::time::Duration;

/// What is left to spend: records and bytes, filled up at a steady rate, at most a second's worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    records: Bucket,
    bytes: Bucket,
    at: Duration,
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    per_second: f64,
    left: f64,
}

impl Bucket {
    fn new(per_second: u64) -> Self {
        let per_second = per_second.max(1) as f64;
        Self { per_second, left: per_second }
    }

    fn fill(&mut self, seconds: f64) {
        self.left = (self.left + self.per_second * seconds).min(self.per_second);
    }
}

impl Budget {
    /// So many records and bytes a second.
    pub fn new(records: u64, bytes: u64) -> Self {
        Self { records: Bucket::new(records), bytes: Bucket::new(bytes), at: Duration::ZERO }
    }

    /// Whether something may be asked now. What an answer costs is known only when it is there, so a bucket may be
    /// overdrawn; nothing is asked until it is filled again.
    pub fn allows(&mut self, now: Duration) -> bool {
        let seconds = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        self.records.fill(seconds);
        self.bytes.fill(seconds);
        self.records.left > 0.0 && self.bytes.left > 0.0
    }

    /// Takes what an answer has cost.
    pub fn spend(&mut self, records: u64, bytes: u64) {
        self.records.left -= records as f64;
        self.bytes.left -= bytes as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_overdrawn_is_waited_for() {
        let mut budget = Budget::new(1_000, 10_000);
        assert!(budget.allows(Duration::ZERO));
        budget.spend(500, 15_000);
        assert!(!budget.allows(Duration::ZERO));
        assert!(!budget.allows(Duration::from_millis(400)));
        assert!(budget.allows(Duration::from_millis(700)));
        // An idle time saves up no more than a second.
        assert!(budget.allows(Duration::from_secs(100)));
        budget.spend(1_500, 0);
        assert!(!budget.allows(Duration::from_secs(100)));
    }
}
