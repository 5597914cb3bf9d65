//! The mouse, where it is on: the wheel scrolls what is under it, a click selects.

use crate::inspector::model::{Focus, Model, Screen};
use crate::inspector::update::keys;
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Rows that one notch of the wheel scrolls.
const NOTCH: isize = 3;

/// Takes a movement of the mouse; a question is never answered by it.
pub fn mouse(model: &mut Model, event: MouseEvent) {
    if !model.options.mouse || model.ui.overlay.is_some() {
        return;
    }
    let at = Position::new(event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollUp => wheel(model, at, -NOTCH),
        MouseEventKind::ScrollDown => wheel(model, at, NOTCH),
        MouseEventKind::Down(MouseButton::Left) => click(model, at),
        _ => {}
    }
}

fn wheel(model: &mut Model, at: Position, by: isize) {
    if let Some(focus) = pane(model, at) {
        model.ui.focus = focus;
    }
    keys::step(model, by);
    model.changed = true;
}

fn click(model: &mut Model, at: Position) {
    let areas = model.areas();
    let Some(focus) = pane(model, at) else { return };
    model.ui.focus = focus;
    model.changed = true;
    if let Some(row) = row_in(areas.queues, at) {
        let index = model.ui.queue_top + row / usize::from(areas.queue_rows());
        if let Some(queue) = model.queue_list().get(index).map(|counts| counts.queue.clone()) {
            keys::select_queue(model, queue);
        }
    } else if let Some(row) = row_in(areas.tasks, at) {
        let page = model.page.value.as_ref();
        let to = model.ui.tasks.top + row;
        let from = model.ui.tasks.index(page).unwrap_or(0);
        if to < model.ui.tasks.shown(page).len() {
            model.ui.tasks.step(page, to as isize - from as isize, areas.tasks_shown());
        }
    }
}

/// The row below the heading that was hit.
fn row_in(area: Rect, at: Position) -> Option<usize> {
    area.contains(at).then(|| usize::from(at.y - area.y).checked_sub(1)).flatten()
}

fn pane(model: &Model, at: Position) -> Option<Focus> {
    if model.ui.screen != Screen::Main {
        return None;
    }
    let areas = model.areas();
    let panes = [(areas.queues, Focus::Queues), (areas.tasks, Focus::Tasks), (areas.detail, Focus::Detail)];
    panes.into_iter().find(|(area, _)| area.contains(at)).map(|(_, focus)| focus)
}
