//! What is asked of Redis: what the screen shows, about once a second, and nothing else.

use crate::inspector::model::tasks::PAGE_LIMIT;
use crate::inspector::model::{Model, Screen};
use crate::inspector::msg::{Effect, Query};
use crate::inspector::options::Unfocused;
use std::time::Duration;

/// How often the server's facts are asked for.
pub const FACTS_EVERY: Duration = Duration::from_secs(5);
/// A task whose record is longer than this, in bytes, is asked for less often, in proportion.
const LIGHT: u64 = 64 * 1_024;
/// The longest time between two readings of a long record.
const HEAVY_EVERY: Duration = Duration::from_secs(60);

/// How often it is asked how the queues fare, and who works.
const PULSE_EVERY: u32 = 2;
const WORKERS_EVERY: u32 = 5;
/// By how much everything is slower where the terminal is not in the fore.
const SLOWER: u32 = 10;
/// How far back failures are counted, in milliseconds.
const HOUR_MS: f64 = 3_600_000.0;
/// The start of that hour moves in steps of this, so that the same question is the same.
const HOUR_STEP_MS: f64 = 10_000.0;

/// Asks for what is on the screen and due.
pub fn plan(model: &mut Model, effects: &mut Vec<Effect>) {
    if is_paused(model) {
        return;
    }
    let before = effects.len();
    let now = model.clock.mono;
    let areas = model.areas();
    let ids = &mut model.next_id;
    effects.extend(model.queues.want(Query::Queues, now, ids));
    effects.extend(model.facts.want(Query::Facts, now, ids));
    effects.extend(model.workers.want(Query::Workers, now, ids));
    if let Some(queues) = model.queues.value.as_ref().filter(|queues| !queues.is_empty()) {
        let names = queues.iter().map(|counts| counts.queue.clone()).collect();
        let since = ((model.clock.wall_ms + model.skew_ms - HOUR_MS) / HOUR_STEP_MS).floor() * HOUR_STEP_MS;
        // The names are in the order of attention; a question in another order is not another question.
        let names = sorted(names);
        effects.extend(model.pulse.want(Query::Pulse(names, since), now, ids));
    }
    let lists = areas.tasks.height > 0 || areas.detail.height > 0;
    if let Some(queue) = model.ui.queue.clone().filter(|_| lists && model.sift.is_none()) {
        let list = &model.ui.tasks;
        let (scope, reversed) = (list.scope(), list.reversed);
        let query = Query::Page { queue, scope, reversed, offset: list.offset, limit: PAGE_LIMIT };
        effects.extend(model.page.want(query, now, ids));
    }
    if let Some(id) = model.ui.tasks.selected.clone().filter(|_| areas.detail.height > 0) {
        effects.extend(model.detail.want(Query::Detail(id), now, ids));
    }
    background(model, effects);
    if effects.len() > before && effects[before..].iter().any(|effect| matches!(effect, Effect::Read(..))) {
        model.conn.waiting_since.get_or_insert(now);
    }
}

/// Goes on with what goes through whole segments, as far as the budget lasts; what was asked for by hand first.
fn background(model: &mut Model, effects: &mut Vec<Effect>) {
    let now = model.clock.mono;
    if !model.budget.allows(now) {
        return;
    }
    let shown = model.areas().incidents_shown() > 0;
    let ids = &mut model.next_id;
    let now_ms = model.clock.wall_ms + model.skew_ms;
    let sifted = model.sift.as_mut().and_then(|sift| sift.want(now, now_ms, ids));
    let busy = sifted.is_some();
    effects.extend(sifted);
    if shown && !busy {
        effects.extend(model.survey.want(model.queues.value.as_deref(), now, ids));
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Whether nothing is asked, since nobody looks.
pub fn is_paused(model: &Model) -> bool {
    !model.focused && model.options.unfocused == Unfocused::Pause && model.actions.is_empty()
}

/// How often what is on the screen is asked for.
pub fn every(model: &Model) -> Duration {
    let slow = !model.focused && model.options.unfocused == Unfocused::Slow;
    if slow { model.options.refresh * SLOWER } else { model.options.refresh }
}

/// How often it is asked how the queues fare.
pub fn pulse_every(model: &Model) -> Duration {
    every(model) * PULSE_EVERY
}

/// How often it is asked who works; more often where that is on the screen.
pub fn workers_every(model: &Model) -> Duration {
    if model.ui.screen == Screen::Workers { every(model) } else { every(model) * WORKERS_EVERY }
}

/// How soon a record of so many bytes is asked for again.
pub fn detail_every(model: &Model, bytes: u64) -> Duration {
    let times = u32::try_from(bytes / LIGHT).unwrap_or(u32::MAX).max(1);
    every(model).saturating_mul(times).min(HEAVY_EVERY.max(every(model)))
}

/// Asks for everything on the screen without waiting for its time.
pub fn hurry(model: &mut Model) {
    model.queues.hurry();
    model.page.hurry();
    model.detail.hurry();
    model.workers.hurry();
    model.facts.hurry();
    model.pulse.hurry();
}
