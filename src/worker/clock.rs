//! The server's clock, as far as this process knows it.

use chrono::{DateTime, TimeDelta, Utc};
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// This process's clock, set right by what the server said.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Microseconds that the server is ahead.
    ahead: AtomicI64,
}

impl Clock {
    /// The server's time.
    pub fn now(&self) -> DateTime<Utc> {
        let ahead = TimeDelta::microseconds(self.ahead.load(Ordering::Relaxed));
        let local = Utc::now();
        local.checked_add_signed(ahead).unwrap_or(local)
    }

    /// Takes what the server said (milliseconds since 1970) in a round trip that began at `asked` and took `round_trip`.
    pub fn learn(&self, server_ms: f64, asked: DateTime<Utc>, round_trip: Duration) {
        let middle = asked.timestamp_micros() as f64 + round_trip.as_micros() as f64 / 2.0;
        self.ahead.store((server_ms * 1_000.0 - middle) as i64, Ordering::Relaxed);
    }
}
