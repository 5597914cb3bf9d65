//! What needs attention, so that it is seen in seconds.

use crate::inspector::format::{count, whole_span};
use crate::inspector::model::{Model, Standing};
use crate::inspector::source::QueueCounts;
use crate::task::Segment;
use std::time::Duration;

/// A READY task that waits longer than this is late, in milliseconds.
pub const LATE_MS: f64 = 300_000.0;
/// A worker that has been silent for longer may be gone.
pub const SILENT: Duration = Duration::from_secs(15);

/// How much attention something needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// None.
    Calm,
    /// It may soon be wrong.
    Soon,
    /// It is wrong.
    Wrong,
}

/// How much attention a queue needs.
pub fn of_queue(model: &Model, counts: &QueueCounts) -> Attention {
    let failed = counts.of(Segment::Failed);
    let new = model.failed_before.get(&counts.queue).is_some_and(|before| failed > *before);
    if counts.quarantined > 0 || counts.broken().next().is_some() {
        Attention::Wrong
    } else if new || waited(model, &counts.queue).is_some_and(|waited| waited > LATE_MS) {
        Attention::Soon
    } else {
        Attention::Calm
    }
}

/// How long the oldest READY task of a queue has waited, in milliseconds.
pub fn waited(model: &Model, queue: &str) -> Option<f64> {
    let oldest = model.pulse.value.as_ref()?.get(queue)?.oldest_ms?;
    // While nobody answers, nothing is known to wait on.
    let silence = match model.standing() {
        Standing::Silent(..) => model.clock.mono.saturating_sub(model.pulse.at.unwrap_or_default()),
        _ => Duration::ZERO,
    };
    let waited = model.server_ms() - silence.as_secs_f64() * 1_000.0 - oldest;
    // A priority that is no whole number hides the time.
    (waited > -60_000.0).then_some(waited.max(0.0))
}

/// What is wrong beyond one queue, in a few words each.
pub fn beyond_queues(model: &Model) -> Vec<(Attention, String)> {
    let mut found = Vec::new();
    let workers = model.workers.value.as_deref().unwrap_or_default();
    let gone: Vec<_> = workers.iter().filter(|worker| worker.dead || worker.silent > SILENT).collect();
    if let Some(silent) = gone.iter().map(|worker| worker.silent).max() {
        let all = if gone.len() == 1 { "worker" } else { "workers" };
        let attention = if gone.iter().any(|worker| worker.dead) { Attention::Wrong } else { Attention::Soon };
        found.push((attention, format!("{} {all} gone {}", gone.len(), whole_span(silent.as_secs_f64() * 1_000.0))));
    }
    let quarantined: u64 = model.queue_list().iter().map(|counts| counts.quarantined).sum();
    if quarantined > 0 {
        found.push((Attention::Wrong, format!("{} in quarantine", count(quarantined))));
    }
    found
}
