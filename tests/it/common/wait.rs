//! Waiting for a condition. The limit is only for the case that it never comes true: no test depends on a duration.

use std::time::{Duration, Instant};

/// How long a condition may take before the test fails: far more than a loaded machine needs.
pub const LIMIT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until the condition holds; fails the test, naming `what`, where it never does.
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    eventually_some(what, || condition().then_some(()));
}

/// Waits until there is a value, and returns it.
#[track_caller]
pub fn eventually_some<T>(what: &str, mut value: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = value() {
            return value;
        }
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// As [`eventually`], without holding up the runtime.
pub async fn eventually_async(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let start = Instant::now();
    while !condition().await {
        assert!(start.elapsed() < LIMIT, "waited in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
