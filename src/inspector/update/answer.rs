//! What the answers of Redis change. An answer that nobody awaits any more changes nothing.

use crate::inspector::model::remote::Remote;
use crate::inspector::model::tasks::TaskList;
use crate::inspector::model::{Conn, Focus, Model, detail};
use crate::inspector::msg::{Answer, Lane};
use crate::inspector::source::{Page, QueueCounts, TaskDetail};
use crate::inspector::theme::Role;
use crate::inspector::update::plan;
use crate::task::Segment;
use std::time::Duration;

/// A lane that answered within this time shows that the connection stands.
const HEALTHY: Duration = Duration::from_secs(3);
/// A round trip that differs by less than this part from the one that is shown is not worth a drawing.
const ROUND_TRIP_STEP: f64 = 0.2;

/// Takes the answer to the request `id`.
pub fn take(model: &mut Model, lane: Lane, id: u64, took: Duration, result: Result<Answer, String>) {
    let awaited = match lane {
        Lane::Queues => model.queues.awaited(id),
        Lane::Page => model.page.awaited(id),
        Lane::Detail => model.detail.awaited(id),
        Lane::Workers => model.workers.awaited(id),
        Lane::Facts => model.facts.awaited(id),
    };
    if !awaited {
        return;
    }
    match result {
        Ok(answer) => {
            good(model);
            accept(model, answer, took);
        }
        Err(why) => failed(model, lane, why),
    }
}

fn good(model: &mut Model) {
    let was = std::mem::take(&mut model.conn);
    if was.told {
        model.note(Role::Good, "Redis answers again");
        model.say(Role::Good, "Redis answers again");
    }
    model.changed |= was.error.is_some() || was.last_good.is_none() || was.told;
    model.conn = Conn { last_good: Some(model.clock.mono), round_trip: was.round_trip, ..Conn::default() };
}

fn failed(model: &mut Model, lane: Lane, why: String) {
    let (now, chance) = (model.clock.mono, model.chance());
    let error = match lane {
        Lane::Queues => fail(&mut model.queues, &why, now, chance),
        Lane::Page => fail(&mut model.page, &why, now, chance),
        Lane::Detail => fail(&mut model.detail, &why, now, chance),
        Lane::Workers => fail(&mut model.workers, &why, now, chance),
        Lane::Facts => fail(&mut model.facts, &why, now, chance),
    };
    model.changed |= error;
    // One lane may fail for its own reason, such as a key of another type; all of them fail when Redis is gone.
    let recent = |at: Option<Duration>, error: &Option<String>| {
        error.is_none() && at.is_some_and(|at| now.saturating_sub(at) < HEALTHY)
    };
    let healthy = recent(model.queues.at, &model.queues.error)
        || recent(model.page.at, &model.page.error)
        || recent(model.detail.at, &model.detail.error);
    if !healthy {
        model.changed |= model.conn.error.as_ref() != Some(&why);
        model.conn.error = Some(why);
        model.conn.waiting_since.get_or_insert(now);
    }
}

/// Whether the failure is news.
fn fail<T>(remote: &mut Remote<T>, why: &str, now: Duration, chance: f64) -> bool {
    let news = remote.error.as_deref() != Some(why);
    remote.failed(why.to_owned(), now, chance);
    news
}

fn accept(model: &mut Model, answer: Answer, took: Duration) {
    let (now, every) = (model.clock.mono, model.options.refresh);
    match answer {
        Answer::Queues(queues) => {
            if model.queues.value.as_ref() != Some(&queues) || model.queues.error.is_some() {
                model.changed = true;
                known(model, &queues);
            }
            model.queues.good(queues, now, every);
        }
        Answer::Page(page) => {
            model.changed |= model.page.value.as_ref() != Some(&page) || model.page.error.is_some();
            listed(model, &page);
            model.page.good(page, now, every);
        }
        Answer::Detail(found) => {
            if model.detail.value.as_ref() != Some(&found) || model.detail.error.is_some() {
                model.changed = true;
                described(model, found.as_deref());
            }
            let bytes = found.as_ref().map_or(0, |detail| detail.stored.len() as u64);
            let every = plan::detail_every(model, bytes);
            model.detail.good(found, now, every);
        }
        Answer::Workers(mut workers) => {
            workers.sort_by(|a, b| a.id.cmp(&b.id));
            model.changed |= model.workers.value.as_ref() != Some(&workers) || model.workers.error.is_some();
            model.workers.good(workers, now, every);
        }
        Answer::Facts(facts) => {
            let trip = if facts.round_trip.is_zero() { took } else { facts.round_trip };
            let shown = |facts: &crate::inspector::source::ServerFacts| {
                let memory = facts.used_memory.map(crate::inspector::format::bytes);
                (facts.version.clone(), memory, facts.max_memory, facts.eviction_policy.clone(), facts.role.clone())
            };
            model.changed |= model.facts.value.as_ref().map(shown) != Some(shown(&facts));
            model.changed |= smooth(&mut model.conn, trip);
            model.facts.good(facts, now, plan::FACTS_EVERY);
        }
    }
}

/// Takes a round trip into the smoothed one; whether what is shown changes.
fn smooth(conn: &mut Conn, trip: Duration) -> bool {
    let Some(old) = conn.round_trip else {
        conn.round_trip = Some(trip);
        return true;
    };
    let apart = (trip.as_secs_f64() - old.as_secs_f64()).abs();
    if apart <= old.as_secs_f64() * ROUND_TRIP_STEP {
        return false;
    }
    // One slow answer does not make a slow connection, and one that is over is forgotten at once.
    conn.round_trip = Some(if trip < old { trip } else { (old + trip) / 2 });
    true
}

/// Keeps a queue selected, and remembers how many had failed when each was first seen.
fn known(model: &mut Model, queues: &[QueueCounts]) {
    for counts in queues {
        if !model.failed_before.contains_key(&counts.queue) {
            model.failed_before.insert(counts.queue.clone(), counts.of(Segment::Failed));
        }
    }
    let selected = model.ui.queue.as_ref();
    if selected.is_none_or(|queue| model.queues.at.is_none() && !queues.iter().any(|counts| counts.queue == *queue)) {
        // At the start, the first queue that has failures is the one to look at.
        let first = queues.iter().find(|counts| counts.of(Segment::Failed) > 0).or(queues.first());
        model.ui.queue = first.map(|counts| counts.queue.clone()).or(model.ui.queue.take());
    }
    if model.queues.at.is_none() && model.ui.focus == Focus::Queues {
        first_segment(model, queues);
    }
}

/// What is listed at the start: what has failed, else what runs, else what waits.
fn first_segment(model: &mut Model, queues: &[QueueCounts]) {
    let counts = queues.iter().find(|counts| Some(&counts.queue) == model.ui.queue.as_ref());
    let telling = [Segment::Failed, Segment::Running, Segment::Ready, Segment::Scheduled, Segment::Successful];
    let segment = counts.and_then(|counts| telling.into_iter().find(|segment| counts.of(*segment) > 0));
    if let Some(segment) = segment.filter(|segment| *segment != model.ui.tasks.segment) {
        model.ui.tasks = TaskList::new(segment);
        model.page.forget();
    }
}

fn listed(model: &mut Model, page: &Page) {
    let height = model.areas().tasks_shown();
    model.ui.tasks.settle(model.page.value.as_ref(), page, height);
}

/// Makes the document of the selected task anew; its place stays where it is the same task.
fn described(model: &mut Model, found: Option<&TaskDetail>) {
    let id = found.map(|detail| detail.id.clone());
    if model.ui.doc_of != id || id.is_none() {
        model.ui.place = Default::default();
    }
    model.ui.doc = found.map(|task| detail::document(task, model.clock.wall_ms)).unwrap_or_default();
    model.ui.doc_of = id;
}
