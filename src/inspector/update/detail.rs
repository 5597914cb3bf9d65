//! The one task: its document, opening and closing, searching, the line that the keys mean.

use crate::inspector::model::doc::Place;
use crate::inspector::model::tree::Folds;
use crate::inspector::model::{Model, detail};
use crate::inspector::source::TaskDetail;
use crate::inspector::theme::Role;
use crate::task::visible;

/// Makes the document anew; its place stays where it is the same task.
pub fn described(model: &mut Model, found: Option<&TaskDetail>) {
    let id = found.map(|detail| detail.id.clone());
    if model.ui.doc_of != id || id.is_none() {
        model.ui.place = Place::default();
        model.ui.cursor = Place::default();
        // Whether data is shown raw and libraries' frames are, stays from task to task.
        let Folds { raw, frames, .. } = model.ui.folds;
        model.ui.folds = Folds { raw, frames, ..Folds::default() };
    }
    let document =
        |task: &TaskDetail| detail::document(task, model.clock.wall_ms, &model.ui.folds, model.options.ascii);
    model.ui.doc = found.map(document).unwrap_or_default();
    model.ui.doc_of = id;
}

/// Makes the document of the task that is shown anew.
fn again(model: &mut Model) {
    let Some(Some(task)) = model.detail.value.take() else { return };
    described(model, Some(&task));
    model.detail.value = Some(Some(task));
    let width = text_width(model);
    model.ui.cursor = model.ui.doc.clamped(model.ui.cursor, width);
    reveal(model);
}

/// The columns of the document.
pub fn text_width(model: &Model) -> u16 {
    model.areas().detail.width.saturating_sub(1)
}

/// Moves the cursor by lines.
pub fn step(model: &mut Model, by: i64) {
    let width = text_width(model);
    model.ui.cursor = model.ui.doc.walked(model.ui.cursor, by, width);
    reveal(model);
}

/// Goes to an end.
pub fn jump(model: &mut Model, to_last: bool) {
    let width = text_width(model);
    model.ui.cursor = if to_last { model.ui.doc.last(width) } else { Place::default() };
    reveal(model);
}

/// Scrolls so far that the cursor is on the screen.
pub fn reveal(model: &mut Model) {
    let areas = model.areas();
    let width = text_width(model);
    model.ui.place = model.ui.doc.revealed(model.ui.place, model.ui.cursor, width, areas.detail.height);
}

/// Opens or closes what is at the cursor, or nearest before it.
pub fn fold(model: &mut Model) {
    let Some((name, at)) = model.ui.doc.fold_at(model.ui.cursor) else {
        return model.say(Role::Soon, "there is nothing to open or close here");
    };
    let name = std::sync::Arc::clone(name);
    model.ui.cursor = at;
    model.ui.folds.turn(&name);
    again(model);
}

/// Opens or closes the frames of libraries.
pub fn frames(model: &mut Model) {
    model.ui.folds.frames = !model.ui.folds.frames;
    model.ui.folds.turned.retain(|name| !name.contains("/frames/"));
    again(model);
}

/// Shows user data as it is stored, or as a tree.
pub fn raw(model: &mut Model) {
    model.ui.folds.raw = !model.ui.folds.raw;
    again(model);
}

/// Goes to the next place that holds what is searched for.
pub fn search(model: &mut Model, forward: bool) {
    if model.ui.needle.is_empty() {
        return model.say(Role::Soon, "nothing is searched for; / begins");
    }
    let width = text_width(model);
    match model.ui.doc.search(&model.ui.needle, model.ui.cursor, forward, width) {
        Some(place) => {
            model.ui.cursor = place;
            reveal(model);
            model.notice = None;
        }
        None => {
            let text = format!("`{}` is not there; what is closed is not searched", visible(&model.ui.needle));
            model.say(Role::Soon, text);
        }
    }
}
