//! What keys do: moving, opening, going back. Acting is in `act`.

use crate::inspector::keymap::{self, Context, Deed};
use crate::inspector::model::confirm::{Reply, TYPED_MAX};
use crate::inspector::model::doc::Place;
use crate::inspector::model::tasks::{Jump, MARKS_MAX, TaskList, revealed};
use crate::inspector::model::{Focus, Model, Overlay, Screen};
use crate::inspector::msg::Effect;
use crate::inspector::theme::Role;
use crate::inspector::update::{act, plan, shell};
use crate::task::Segment;
use crossterm::event::{Event, KeyEvent};
use tui_input::InputRequest;
use tui_input::backend::crossterm::to_input_request;

/// Where the keys go now.
pub fn context(model: &Model) -> Context {
    match (&model.ui.overlay, model.ui.screen, model.ui.focus) {
        (Some(Overlay::Help(_)), ..) => Context::Help,
        (Some(Overlay::Confirm(confirm)), ..) => match confirm.answer {
            Reply::Key => Context::Confirm,
            Reply::Typed { .. } => Context::Typing,
        },
        (None, Screen::Workers, _) => Context::Workers,
        (None, Screen::Log, _) => Context::Log,
        (None, Screen::Main, Focus::Queues) => Context::Queues,
        (None, Screen::Main, Focus::Tasks) => Context::Tasks,
        (None, Screen::Main, Focus::Detail) => Context::Detail,
    }
}

/// Takes a key.
pub fn key(model: &mut Model, event: KeyEvent, effects: &mut Vec<Effect>) {
    let context = context(model);
    match keymap::resolve(context, &event) {
        Some(deed) => {
            model.changed = true;
            perform(model, deed, effects);
        }
        None if context == Context::Typing => {
            if let Some(request) = to_input_request(&Event::Key(event)) {
                typed(model, request);
            }
        }
        None => {}
    }
}

/// Takes a paste: text where a word is to be typed, and nothing anywhere else.
pub fn paste(model: &mut Model, text: &str) {
    for c in text.chars().take(TYPED_MAX) {
        typed(model, InputRequest::InsertChar(c));
    }
}

fn typed(model: &mut Model, request: InputRequest) {
    let Some(Overlay::Confirm(confirm)) = &mut model.ui.overlay else { return };
    let Reply::Typed { input, .. } = &mut confirm.answer else { return };
    let full = input.value().chars().count() >= TYPED_MAX;
    if !(full && matches!(request, InputRequest::InsertChar(_))) {
        input.handle(request);
        model.changed = true;
    }
}

fn perform(model: &mut Model, deed: Deed, effects: &mut Vec<Effect>) {
    match deed {
        Deed::Quit => effects.push(Effect::Quit),
        Deed::Suspend => effects.push(Effect::Suspend),
        Deed::Redraw => effects.push(Effect::Redraw),
        Deed::Help => model.ui.overlay = Some(Overlay::Help(0)),
        Deed::Back => back(model, effects),
        Deed::Leave => leave(model),
        Deed::NextPane => turn(model, 1),
        Deed::PrevPane => turn(model, 2),
        Deed::Zoom => model.ui.zoom = !model.ui.zoom,
        Deed::Workers => screen(model, Screen::Workers),
        Deed::Log => screen(model, Screen::Log),
        Deed::Refresh => plan::hurry(model),
        Deed::Times => model.ui.absolute = !model.ui.absolute,
        Deed::CopyId => shell::copy_id(model, effects),
        Deed::CopyCommand => shell::copy_command(model, effects),
        Deed::Up => step(model, -1),
        Deed::Down => step(model, 1),
        Deed::PageUp => page(model, -1),
        Deed::PageDown => page(model, 1),
        Deed::First => jump(model, Jump::First),
        Deed::Last => jump(model, Jump::Last),
        Deed::Open => open(model),
        Deed::Segment(segment) => list(model, segment),
        Deed::PrevSegment => turn_segment(model, Segment::ALL.len() - 1),
        Deed::NextSegment => turn_segment(model, 1),
        Deed::Mark | Deed::MarkLoaded | Deed::Unmark => mark(model, deed),
        Deed::Requeue | Deed::Drop | Deed::Purge => act::ask(model, deed),
        Deed::Yes | Deed::Submit => act::answer(model, effects),
        Deed::No => model.ui.overlay = None,
    }
}

/// Leaves what lies on top, one thing at a time.
fn back(model: &mut Model, effects: &mut Vec<Effect>) {
    if model.ui.overlay.take().is_some() {
        return;
    }
    if let Some(running) = model.actions.front() {
        effects.push(Effect::Stop(running.id));
        return;
    }
    model.notice = None;
    if model.ui.screen == Screen::Main && model.ui.focus == Focus::Tasks && !model.ui.tasks.marks.is_empty() {
        model.ui.tasks.marks.clear();
    } else {
        leave(model);
    }
}

/// Goes back by one: from another screen, from the whole screen, from the pane.
fn leave(model: &mut Model) {
    if model.ui.screen != Screen::Main {
        model.ui.screen = Screen::Main;
    } else if model.ui.zoom {
        model.ui.zoom = false;
    } else {
        model.ui.focus = match model.ui.focus {
            Focus::Detail => Focus::Tasks,
            _ => Focus::Queues,
        };
    }
}

fn turn(model: &mut Model, by: usize) {
    const ORDER: [Focus; 3] = [Focus::Queues, Focus::Tasks, Focus::Detail];
    if model.ui.screen != Screen::Main {
        model.ui.screen = Screen::Main;
        return;
    }
    let at = ORDER.iter().position(|focus| *focus == model.ui.focus).unwrap_or(0);
    model.ui.focus = ORDER[(at + by) % ORDER.len()];
}

fn screen(model: &mut Model, screen: Screen) {
    model.ui.screen = if model.ui.screen == screen { Screen::Main } else { screen };
    model.ui.log_back = 0;
}

fn open(model: &mut Model) {
    model.ui.focus = match model.ui.focus {
        Focus::Queues => Focus::Tasks,
        Focus::Tasks if model.ui.tasks.selected.is_some() => Focus::Detail,
        focus => focus,
    };
}

/// Lists a segment of the selected queue.
pub fn list(model: &mut Model, segment: Segment) {
    model.ui.screen = Screen::Main;
    if model.ui.focus != Focus::Tasks {
        model.ui.focus = Focus::Tasks;
    }
    if model.ui.tasks.segment != segment {
        leave_list(model, segment);
    }
}

fn turn_segment(model: &mut Model, by: usize) {
    let at = Segment::ALL.iter().position(|segment| *segment == model.ui.tasks.segment).unwrap_or(0);
    list(model, Segment::ALL[(at + by) % Segment::ALL.len()]);
}

/// Starts another list: what was selected and marked belongs to the one that is left.
fn leave_list(model: &mut Model, segment: Segment) {
    model.ui.tasks = TaskList::new(segment);
    model.page.forget();
    model.changed = true;
}

/// Selects a queue by its name.
pub fn select_queue(model: &mut Model, queue: String) {
    if model.ui.queue.as_ref() != Some(&queue) {
        model.ui.queue = Some(queue);
        leave_list(model, model.ui.tasks.segment);
    }
}

fn mark(model: &mut Model, deed: Deed) {
    let height = model.areas().tasks_shown();
    let page = model.page.value.as_ref();
    let list = &mut model.ui.tasks;
    let room = match deed {
        Deed::Mark => {
            let room = list.toggle_mark(page);
            list.step(page, 1, height);
            room
        }
        Deed::MarkLoaded => list.mark_loaded(page),
        _ => {
            list.marks.clear();
            true
        }
    };
    if !room {
        model.say(Role::Soon, format!("no more than {MARKS_MAX} tasks can be marked"));
    }
}

fn page(model: &mut Model, way: isize) {
    let areas = model.areas();
    let rows = match context(model) {
        Context::Queues => areas.queues_shown(),
        Context::Tasks => areas.tasks_shown(),
        Context::Detail => usize::from(areas.detail.height),
        Context::Help => usize::from(model.size.1 / 2),
        _ => areas.others_shown(),
    };
    // One row stays on the screen, for the eye to hold on to.
    step(model, way * isize::try_from(rows.saturating_sub(1).max(1)).unwrap_or(isize::MAX));
}

/// Moves by rows in the pane that has the keys.
pub fn step(model: &mut Model, by: isize) {
    let areas = model.areas();
    match context(model) {
        Context::Queues => {
            let list = model.queue_list();
            let at = list.iter().position(|counts| Some(&counts.queue) == model.ui.queue.as_ref());
            let to = at.map_or(0, |at| at.saturating_add_signed(by)).min(list.len().saturating_sub(1));
            if let Some(queue) = list.get(to).map(|counts| counts.queue.clone()) {
                select_queue(model, queue);
            }
        }
        Context::Tasks => model.ui.tasks.step(model.page.value.as_ref(), by, areas.tasks_shown()),
        Context::Detail => {
            let (width, height) = (areas.detail.width, areas.detail.height);
            model.ui.place = model.ui.doc.moved(model.ui.place, by as i64, width, height);
        }
        Context::Workers => {
            let list = model.workers.value.as_deref().unwrap_or_default();
            let at = list.iter().position(|worker| Some(&worker.id) == model.ui.worker.as_ref());
            let to = at.map_or(0, |at| at.saturating_add_signed(by)).min(list.len().saturating_sub(1));
            model.ui.worker = list.get(to).map(|worker| worker.id.clone());
        }
        Context::Log => model.ui.log_back = model.ui.log_back.saturating_add_signed(-by),
        Context::Help => {
            if let Some(Overlay::Help(top)) = &mut model.ui.overlay {
                *top = top.saturating_add_signed(by);
            }
        }
        _ => {}
    }
}

fn jump(model: &mut Model, to: Jump) {
    let areas = model.areas();
    match context(model) {
        Context::Tasks => model.ui.tasks.jump(model.page.value.as_ref(), to, areas.tasks_shown()),
        Context::Detail => {
            model.ui.place = match to {
                Jump::First => Place::default(),
                Jump::Last => model.ui.doc.end(areas.detail.width, areas.detail.height),
            }
        }
        // The log grows downwards and is scrolled back from its end; the others stop at their ends by themselves.
        _ => step(model, if to == Jump::First { -isize::MAX } else { isize::MAX }),
    }
}

/// Brings whatever a message may have moved back into what there is.
pub fn settle(model: &mut Model) {
    let areas = model.areas();
    let queues = model.queue_list();
    let at = queues.iter().position(|counts| Some(&counts.queue) == model.ui.queue.as_ref()).unwrap_or(0);
    model.ui.queue_top = revealed(model.ui.queue_top, at, queues.len(), areas.queues_shown());
    let workers = model.workers.value.as_deref().unwrap_or_default();
    let at = workers.iter().position(|worker| Some(&worker.id) == model.ui.worker.as_ref()).unwrap_or(0);
    model.ui.worker_top = revealed(model.ui.worker_top, at, workers.len(), areas.others_shown());
    model.ui.log_back = model.ui.log_back.min(model.log.len().saturating_sub(usize::from(areas.other.height)));
    model.ui.tasks.reveal(model.page.value.as_ref(), areas.tasks_shown());
    if let Some(Overlay::Help(top)) = &mut model.ui.overlay {
        *top = (*top).min(crate::inspector::view::help_lines().saturating_sub(1));
    }
}
