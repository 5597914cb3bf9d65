//! How a worker is told to end.

use std::sync::Arc;
use tokio::sync::watch;

/// How far a worker is to end; a higher one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// It goes on.
    No,
    /// It takes no more tasks, gives back what has not started, and finishes what runs.
    Drain,
    /// It ends now: what runs is cut off and goes through retry as a lost lease.
    Now,
}

/// Tells workers to end. Clones tell the same ones.
#[derive(Clone, Debug)]
pub struct Stopper {
    state: Arc<watch::Sender<Stop>>,
}

impl Stopper {
    /// One that has not said anything yet.
    #[expect(clippy::new_without_default, reason = "two stoppers are not equal, so none is the default")]
    pub fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(Stop::No)) }
    }

    /// Begins a clean end.
    pub fn stop(&self) {
        self.raise(Stop::Drain);
    }

    /// Ends now.
    pub fn force(&self) {
        self.raise(Stop::Now);
    }

    /// The first call begins a clean end, and any further one ends it now.
    pub fn escalate(&self) {
        let next = if *self.state.borrow() == Stop::No { Stop::Drain } else { Stop::Now };
        self.raise(next);
    }

    /// Waits until it has said that much.
    pub async fn reached(&self, stop: Stop) {
        let mut state = self.state.subscribe();
        // The sender lives as long as this does.
        let _ = state.wait_for(|now| *now >= stop).await;
    }

    fn raise(&self, stop: Stop) {
        self.state.send_if_modified(|now| {
            let rises = stop > *now;
            *now = stop.max(*now);
            rises
        });
    }

    pub(crate) fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

/// Begins a clean end when it is dropped.
pub(crate) struct StopOnDrop(Stopper);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Escalates with each SIGTERM, SIGINT or SIGHUP.
pub(crate) fn watch(stopper: Stopper) -> std::io::Result<tokio::task::AbortHandle> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let work = async move {
        loop {
            let name = tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                _ = hangup.recv() => "SIGHUP",
            };
            tracing::info!(signal = name, "the worker is told to end");
            stopper.escalate();
        }
    };
    Ok(tokio::spawn(work).abort_handle())
}
