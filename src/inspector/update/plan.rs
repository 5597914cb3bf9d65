//! What is asked of Redis: what the screen shows, about once a second, and nothing else.

use crate::inspector::model::tasks::PAGE_LIMIT;
use crate::inspector::model::{Model, Screen};
use crate::inspector::msg::{Effect, Query};
use std::time::Duration;

/// How often the server's facts are asked for.
pub const FACTS_EVERY: Duration = Duration::from_secs(5);
/// A task whose record is longer than this, in bytes, is asked for less often, in proportion.
const LIGHT: u64 = 64 * 1_024;
/// The longest time between two readings of a long record.
const HEAVY_EVERY: Duration = Duration::from_secs(60);

/// Asks for what is on the screen and due.
pub fn plan(model: &mut Model, effects: &mut Vec<Effect>) {
    let before = effects.len();
    let now = model.clock.mono;
    let areas = model.areas();
    let ids = &mut model.next_id;
    effects.extend(model.queues.want(Query::Queues, now, ids));
    effects.extend(model.facts.want(Query::Facts, now, ids));
    if model.ui.screen == Screen::Workers {
        effects.extend(model.workers.want(Query::Workers, now, ids));
    }
    if let Some(queue) = model.ui.queue.clone().filter(|_| areas.tasks.height > 0 || areas.detail.height > 0) {
        let list = &model.ui.tasks;
        let query = Query::Page { queue, segment: list.segment, offset: list.offset, limit: PAGE_LIMIT };
        effects.extend(model.page.want(query, now, ids));
    }
    if let Some(id) = model.ui.tasks.selected.clone().filter(|_| areas.detail.height > 0) {
        effects.extend(model.detail.want(Query::Detail(id), now, ids));
    }
    if effects.len() > before && effects[before..].iter().any(|effect| matches!(effect, Effect::Read(..))) {
        model.conn.waiting_since.get_or_insert(now);
    }
}

/// How soon a record of so many bytes is asked for again.
pub fn detail_every(model: &Model, bytes: u64) -> Duration {
    let times = u32::try_from(bytes / LIGHT).unwrap_or(u32::MAX).max(1);
    model.options.refresh.saturating_mul(times).min(HEAVY_EVERY.max(model.options.refresh))
}

/// Asks for everything on the screen without waiting for its time.
pub fn hurry(model: &mut Model) {
    model.queues.hurry();
    model.page.hurry();
    model.detail.hurry();
    model.workers.hurry();
    model.facts.hurry();
}
