//! The telemetry as an alarm clock: an idle worker listens, a busy one does not.

use crate::backend::{Backend, TelemetryEvent};
use crate::worker::ear::Ear;
use crate::worker::engine::Signal;
use crate::worker::pause::Pause;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

/// How far the first looks of many workers are spread, for each of them.
const JITTER_PER_PEER: Duration = Duration::from_micros(100);
const JITTER_MAX: Duration = Duration::from_millis(50);

/// Listens while it is told to.
pub(crate) struct Waker {
    backend: Backend,
    queues: Arc<HashSet<String>>,
    events: UnboundedSender<Signal>,
    /// Whether a wake-up is on its way already.
    pending: Arc<AtomicBool>,
    /// How many workers share the server.
    peers: Arc<AtomicUsize>,
    /// How maintenance hears of it.
    ear: Arc<Ear>,
    listener: Option<AbortHandle>,
}

impl Waker {
    pub fn new(
        backend: Backend,
        queues: &[String],
        events: UnboundedSender<Signal>,
        peers: Arc<AtomicUsize>,
        ear: Arc<Ear>,
    ) -> Self {
        let queues = Arc::new(queues.iter().cloned().collect());
        Self { backend, queues, events, pending: Arc::default(), peers, ear, listener: None }
    }

    /// The last wake-up has been seen.
    pub fn seen(&self) {
        self.pending.store(false, Ordering::Release);
    }

    pub fn listen(&mut self, listen: bool) {
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
        if listen {
            let work = listen_on(
                self.backend.clone(),
                self.queues.clone(),
                self.events.clone(),
                self.pending.clone(),
                self.peers.clone(),
                self.ear.clone(),
            );
            self.listener = Some(tokio::spawn(work).abort_handle());
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        self.listen(false);
    }
}

async fn listen_on(
    backend: Backend,
    queues: Arc<HashSet<String>>,
    events: UnboundedSender<Signal>,
    pending: Arc<AtomicBool>,
    peers: Arc<AtomicUsize>,
    ear: Arc<Ear>,
) {
    let mut pause = Pause::default();
    loop {
        let mut stream = match backend.telemetry().await {
            Ok(stream) => stream,
            Err(error) => {
                tracing::debug!(error = %error, "the telemetry cannot be heard; looking by the clock");
                pause.wait().await;
                continue;
            }
        };
        pause = Pause::default();
        if events.send(Signal::Listening(true)).is_err() {
            return;
        }
        let _listening = ear.listen();
        while let Some(event) = stream.next().await {
            let (TelemetryEvent::Ingress(queue) | TelemetryEvent::Wake(queue)) = event else { continue };
            ear.hear(&queue);
            if !queues.contains(&queue) || pending.swap(true, Ordering::AcqRel) {
                continue;
            }
            let spread =
                (JITTER_PER_PEER * u32::try_from(peers.load(Ordering::Relaxed)).unwrap_or(u32::MAX)).min(JITTER_MAX);
            let jitter = spread.mul_f64(fastrand::f64());
            // The timer's grain is a millisecond: less than that is no wait.
            if jitter >= Duration::from_millis(1) {
                tokio::time::sleep(jitter).await;
            }
            if events.send(Signal::Woken).is_err() {
                return;
            }
        }
        if events.send(Signal::Listening(false)).is_err() {
            return;
        }
    }
}
