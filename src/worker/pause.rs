//! Pauses between tries.

use std::time::Duration;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(3);

/// Grows with each try, with jitter, so that many workers do not return to a server in one moment.
#[derive(Debug, Default)]
pub(crate) struct Pause {
    tries: u32,
}

impl Pause {
    /// Whether no try has failed yet.
    pub fn is_first(&self) -> bool {
        self.tries == 0
    }

    /// How long to wait before the next try: between half and all of a span that doubles.
    pub fn next(&mut self) -> Duration {
        let span = FIRST.saturating_mul(1 << self.tries.min(16)).min(LONGEST);
        self.tries += 1;
        span.mul_f64(0.5 + fastrand::f64() / 2.0)
    }

    /// Waits that long.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next()).await;
    }
}
