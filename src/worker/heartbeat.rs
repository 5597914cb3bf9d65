//! The signs of life, on a thread of their own: whatever the tasks do to the runtime, the worker does not look dead.

use crate::backend::{Backend, BackendError, Beat, Registration};
use crate::worker::clock::Clock;
use crate::worker::engine::Signal;
use crate::worker::options::WorkerOptions;
use crate::worker::pause::Pause;
use chrono::Utc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio_util::sync::CancellationToken;

/// Signs of life in one interval of silence.
const BEATS: u32 = 3;
/// How long the record of a worker outlives its lease time: what had started is known for as long as it matters.
const RECORD_OUTLIVES: Duration = Duration::from_secs(3600);

/// What the signs of life tell, filled in by the engine.
pub(crate) struct Pulse {
    /// The worker's id; none while it is not registered.
    worker: Mutex<Option<Arc<str>>>,
    pub running: AtomicU64,
    about: Registration,
    clock: Arc<Clock>,
}

impl Pulse {
    pub fn new(backend: &Backend, options: &WorkerOptions, clock: Arc<Clock>) -> Self {
        let about = Registration {
            worker: String::new(),
            host: host(),
            pid: std::process::id(),
            queues: options.queues.clone(),
            started_at: Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            running: 0,
            ttl: backend.settings().lease_ttl * 2 + RECORD_OUTLIVES,
            mark: None,
        };
        Self { worker: Mutex::default(), running: AtomicU64::new(0), about, clock }
    }

    /// A fresh id for a worker: host, process and random digits.
    pub fn fresh_id(&self) -> Arc<str> {
        format!("{}:{}-{:08x}", self.about.host, self.about.pid, fastrand::u32(..)).into()
    }

    /// From now on the signs of life are of this worker; of none while it registers.
    pub fn set_worker(&self, worker: Option<Arc<str>>) {
        *self.worker.lock().unwrap_or_else(PoisonError::into_inner) = worker;
    }

    fn worker(&self) -> Option<Arc<str>> {
        self.worker.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn registration(&self, worker: &str) -> Registration {
        let running = self.running.load(Ordering::Relaxed);
        Registration { worker: worker.to_owned(), running, ..self.about.clone() }
    }

    /// Registers a worker, however long it takes. Answers false where the id is not free.
    pub async fn register(&self, backend: &Backend, worker: &str) -> bool {
        let mut pause = Pause::default();
        loop {
            let (asked, start) = (Utc::now(), Instant::now());
            match backend.register(&self.registration(worker)).await {
                Ok(Beat::Alive(now)) => {
                    self.clock.learn(now, asked, start.elapsed());
                    return true;
                }
                Ok(Beat::Unregistered) => return false,
                Err(error) => tell(&error, &pause, "the worker cannot register; trying again"),
            }
            pause.wait().await;
        }
    }

    /// Gives one sign of life. Answers false where the worker is not known.
    async fn beat(&self, backend: &Backend, worker: &str) -> Result<bool, BackendError> {
        let (asked, start) = (Utc::now(), Instant::now());
        match backend.beat(&self.registration(worker)).await? {
            Beat::Alive(now) => {
                self.clock.learn(now, asked, start.elapsed());
                Ok(true)
            }
            Beat::Unregistered => Ok(false),
        }
    }
}

/// Starts the thread. It ends soon after `stop` is cancelled.
pub(crate) fn start(
    backend: &Backend,
    pulse: Arc<Pulse>,
    silence: Duration,
    events: UnboundedSender<Signal>,
    stop: CancellationToken,
) -> Result<(), BackendError> {
    // A connection of its own: that of the worker is driven by the runtime that the tasks may block.
    let backend = Backend::new(backend.settings().clone())?;
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => {
                runtime.block_on(stop.run_until_cancelled_owned(beats(backend, pulse, silence / BEATS, events)))
            }
            Err(error) => {
                tracing::error!(error = %error, "no signs of life can be given");
                None
            }
        };
    };
    let thread = std::thread::Builder::new().name("heartbeat".into()).spawn(work);
    thread.map(drop).map_err(|e| BackendError::Settings(format!("no thread for the heartbeat: {e}")))
}

async fn beats(backend: Backend, pulse: Arc<Pulse>, interval: Duration, events: UnboundedSender<Signal>) {
    let mut pause = Pause::default();
    loop {
        // A failed sign is tried again soon: the time until others take the tasks over is short.
        let wait = if pause.is_first() { interval } else { pause.next().min(interval) };
        tokio::time::sleep(wait).await;
        let Some(worker) = pulse.worker() else { continue };
        match pulse.beat(&backend, &worker).await {
            Ok(true) => pause = Pause::default(),
            Ok(false) => {
                pause = Pause::default();
                if events.send(Signal::Unregistered(worker)).is_err() {
                    return;
                }
            }
            Err(error) => {
                tell(&error, &pause, "a sign of life was not taken");
                pause.next();
            }
        }
    }
}

fn tell(error: &BackendError, pause: &Pause, what: &str) {
    if pause.is_first() {
        let source = std::error::Error::source(error).map(ToString::to_string);
        tracing::warn!(error = %error, source, "{what}");
    }
}

/// The machine's name.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".into() } else { name }
}
