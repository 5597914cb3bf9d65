//! What the answers of Redis change. An answer that nobody awaits any more changes nothing.

use crate::inspector::model::remote::Remote;
use crate::inspector::model::tasks::TaskList;
use crate::inspector::model::{Conn, Focus, Model, attention};
use crate::inspector::msg::{Answer, Lane};
use crate::inspector::source::{Page, QueueCounts};
use crate::inspector::theme::Role;
use crate::inspector::update::{detail, filter, incidents, plan};
use crate::task::Segment;
use std::collections::HashMap;
use std::time::Duration;

/// A lane that answered within this time shows that the connection stands.
const HEALTHY: Duration = Duration::from_secs(3);
/// A server whose clock is ahead or behind by less is taken to have the same, in milliseconds.
const SKEW_MS: f64 = 2_000.0;
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
        Lane::Pulse => model.pulse.awaited(id),
        Lane::Sift => model.sift.as_mut().is_some_and(|sift| sift.awaited(id)),
        Lane::Survey => model.survey.awaited(id).is_some(),
    };
    if !awaited {
        return;
    }
    match result {
        Ok(answer) => {
            good(model);
            accept(model, id, answer, took);
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
        Lane::Pulse => fail(&mut model.pulse, &why, now, chance),
        Lane::Sift => {
            filter::failed(model, why.clone());
            true
        }
        Lane::Survey => {
            model.survey.failed(why.clone(), now);
            true
        }
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

fn accept(model: &mut Model, id: u64, answer: Answer, took: Duration) {
    let (now, every) = (model.clock.mono, plan::every(model));
    match answer {
        Answer::Queues(mut queues) => {
            by_attention(model, &mut queues);
            if model.queues.value.as_ref() != Some(&queues) || model.queues.error.is_some() {
                model.changed = true;
                known(model, &queues);
            }
            model.queues.good(queues, now, every);
        }
        Answer::Page(mut page) => {
            model.ui.tasks.sort.apply(&mut page.rows);
            filter::learn(&mut model.known, &page.rows);
            model.changed |= model.page.value.as_ref() != Some(&page) || model.page.error.is_some();
            listed(model, &page);
            model.page.good(page, now, every);
        }
        Answer::Detail(found) => {
            if model.detail.value.as_ref() != Some(&found) || model.detail.error.is_some() {
                model.changed = true;
                detail::described(model, found.as_deref());
                detail::reveal(model);
            }
            let bytes = found.as_ref().map_or(0, |detail| detail.stored.len() as u64);
            let every = plan::detail_every(model, bytes);
            model.detail.good(found, now, every);
        }
        Answer::Workers(mut workers) => {
            workers.sort_by(|a, b| a.id.cmp(&b.id));
            model.changed |= model.workers.value.as_ref() != Some(&workers) || model.workers.error.is_some();
            model.workers.good(workers, now, plan::workers_every(model));
        }
        Answer::Facts(facts) => {
            let trip = if facts.round_trip.is_zero() { took } else { facts.round_trip };
            let shown = |facts: &crate::inspector::source::ServerFacts| {
                let memory = facts.used_memory.map(crate::inspector::format::bytes);
                (facts.version.clone(), memory, facts.max_memory, facts.eviction_policy.clone(), facts.role.clone())
            };
            model.changed |= model.facts.value.as_ref().map(shown) != Some(shown(&facts));
            if let Some(server_ms) = facts.time_ms {
                // Half of the round trip has passed since; a second more or less is within what is shown.
                let skew = server_ms - model.clock.wall_ms;
                model.skew_ms = if skew.abs() < SKEW_MS { 0.0 } else { skew };
            }
            model.changed |= smooth(&mut model.conn, trip);
            model.facts.good(facts, now, plan::FACTS_EVERY);
        }
        Answer::Pulse(pulses) => {
            let pulses: HashMap<_, _> = pulses.into_iter().collect();
            model.changed |= model.pulse.value.as_ref() != Some(&pulses);
            model.pulse.good(pulses, now, plan::pulse_every(model));
            if let Some(mut queues) = model.queues.value.take() {
                by_attention(model, &mut queues);
                model.queues.value = Some(queues);
            }
        }
        Answer::Sift(sifted) => filter::take(model, sifted),
        Answer::Survey(surveyed) => {
            if let Some(at) = model.survey.awaited(id) {
                incidents::take(model, at, *surveyed);
            }
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

/// Sorts the queues: those that need attention first, by their names within. A queue moves only when that changes.
fn by_attention(model: &Model, queues: &mut [QueueCounts]) {
    queues.sort_by(|a, b| {
        let attention = |counts| attention::of_queue(model, counts);
        attention(b).cmp(&attention(a)).then_with(|| a.queue.cmp(&b.queue))
    });
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
