//! What maintenance hears of the telemetry that an idle worker listens to.
//!
//! Whatever is told of a queue may bring something due earlier than what was known; as long as nothing is told, nothing
//! changes, and maintenance need not ask.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Queue names that are kept for one round at most; messages can say anything.
const HEARD_MAX: usize = 1_000;

/// What was told since the last round.
#[derive(Default)]
pub(crate) struct Ear {
    listeners: AtomicUsize,
    heard: Mutex<BTreeSet<String>>,
    changed: Notify,
}

/// Says, as long as it lives, that the telemetry can be heard. A listener that is aborted drops it.
pub(crate) struct Listening(Arc<Ear>);

impl Ear {
    /// From now on the telemetry is heard.
    pub fn listen(self: &Arc<Self>) -> Listening {
        self.listeners.fetch_add(1, Ordering::AcqRel);
        // What came before the subscription was not told.
        self.changed.notify_one();
        Listening(self.clone())
    }

    /// Whether all that happens is told.
    pub fn is_listening(&self) -> bool {
        self.listeners.load(Ordering::Acquire) > 0
    }

    /// Something has happened in this queue.
    pub fn hear(&self, queue: &str) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if !heard.contains(queue) && heard.len() < HEARD_MAX {
            heard.insert(queue.to_owned());
            self.changed.notify_one();
        }
    }

    /// Waits until something was told that the last round did not know, or the telemetry cannot be heard any more.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The queues of which something was told, each once.
    pub fn take(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.listeners.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn it_tells_each_queue_once_a_round_and_when_it_is_deaf() {
        let ear = Arc::new(Ear::default());
        let told = || ear.changed().now_or_never().is_some();
        assert!(!ear.is_listening() && !told());
        let listening = ear.listen();
        assert!(ear.is_listening() && told() && !told());
        ear.hear("a");
        assert!(told());
        ear.hear("a");
        assert!(!told(), "the round that comes sees it anyway");
        assert_eq!(ear.take(), BTreeSet::from(["a".to_owned()]));
        ear.hear("a");
        assert!(told());
        drop(listening);
        assert!(!ear.is_listening() && told());
    }
}
