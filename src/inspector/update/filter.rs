//! Filters on the listed segment.

use crate::filter::{Filter, Known};
use crate::inspector::model::sift::{SiftState, Sifting};
use crate::inspector::model::tasks::{Sort, TaskList};
use crate::inspector::model::{Focus, Model, Screen};
use crate::inspector::source::{Page, Sifted, Summary, TaskRow};
use crate::inspector::theme::Role;

/// Names of each kind that are remembered.
const KNOWN_MAX: usize = 200;

/// Puts a filter on the listed segment; an empty one takes it away.
pub fn apply(model: &mut Model, filter: Filter) {
    if filter.is_empty() {
        clear(model);
        return;
    }
    if model.ui.tasks.quarantine {
        return model.say(Role::Soon, "what was set aside is not filtered: its records cannot be relied on");
    }
    let Some(queue) = model.ui.queue.clone() else { return model.say(Role::Soon, "no queue is selected") };
    let list = &model.ui.tasks;
    let (segment, sort) = (list.segment, list.sort);
    model.ui.tasks = TaskList { sort, ..TaskList::new(segment) };
    model.ui.screen = Screen::Main;
    model.ui.focus = Focus::Tasks;
    model.page.forget();
    model.page.value = Some(Page { total: 0, offset: 0, rows: Vec::new() });
    model.sift = Some(Sifting::new(filter, queue, segment));
    model.changed = true;
}

/// Takes the filter away; whether there was one.
pub fn clear(model: &mut Model) -> bool {
    let had = model.sift.take().is_some();
    if had {
        model.ui.tasks = TaskList::new(model.ui.tasks.segment);
        model.page.forget();
        model.changed = true;
    }
    had
}

/// Goes through the segment again with the same filter.
pub fn again(model: &mut Model) {
    if let Some(sift) = &model.sift {
        let filter = (*sift.filter).clone();
        apply(model, filter);
    }
}

/// Takes in what a slice held.
pub fn take(model: &mut Model, sifted: Sifted) {
    model.budget.spend(sifted.looked_at, sifted.bytes);
    learn(&mut model.known, &sifted.rows);
    let height = model.areas().tasks_shown();
    let (Some(sift), Some(page)) = (&mut model.sift, &mut model.page.value) else { return };
    sift.take(sifted, page);
    let sort = model.ui.tasks.sort;
    if sort != Sort::Listed {
        sort.apply(&mut page.rows);
    }
    model.changed = true;
    if model.ui.tasks.selected.is_none() && !page.rows.is_empty() {
        let page = page.clone();
        model.ui.tasks.select_at(&page, 0, height);
    }
}

/// Takes in that a slice could not be read.
pub fn failed(model: &mut Model, why: String) {
    let now = model.clock.mono;
    if let Some(sift) = &mut model.sift {
        sift.failed(why.clone(), now);
        if matches!(sift.state, SiftState::Failed(_)) {
            model.say(Role::Wrong, format!("the filter cannot go on: {why}"));
        }
    }
}

/// Remembers the names in these rows, for completion.
pub fn learn(known: &mut Known, rows: &[TaskRow]) {
    let mut add = |names: fn(&mut Known) -> &mut Vec<String>, name: &str| {
        let names = names(known);
        if names.len() < KNOWN_MAX && !name.is_empty() && !names.iter().any(|seen| seen == name) {
            names.push(name.to_owned());
        }
    };
    for row in rows {
        if let Some(lease) = &row.lease {
            add(|known| &mut known.workers, &lease.worker);
        }
        if let Summary::Readable(readable) = &row.summary {
            add(|known| &mut known.functions, &readable.func);
            if let Some(error) = &readable.last_error {
                add(|known| &mut known.errors, error.class_name());
            }
        }
    }
}
