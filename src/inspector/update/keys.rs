//! What keys do: moving, opening, going back. Acting is in `act`.

use crate::inspector::keymap::{self, Context, Deed};
use crate::inspector::model::confirm::{Reply, TYPED_MAX};
use crate::inspector::model::prompt::Kind;
use crate::inspector::model::sift::Sifting;
use crate::inspector::model::tasks::{Jump, MARKS_MAX, Sort, TaskList, revealed};
use crate::inspector::model::{Focus, Help, Model, Overlay, Screen};
use crate::inspector::msg::Effect;
use crate::inspector::theme::Role;
use crate::inspector::update::{act, detail, filter, incidents, plan, prompt, shell};
use crate::task::Segment;
use crossterm::event::{Event, KeyEvent};
use tui_input::InputRequest;
use tui_input::backend::crossterm::to_input_request;

/// Where the keys go now.
pub fn context(model: &Model) -> Context {
    match (&model.ui.overlay, model.ui.screen, model.ui.focus) {
        (Some(Overlay::Help(help)), ..) if help.typing => Context::HelpSearch,
        (Some(Overlay::Help(_)), ..) => Context::Help,
        (Some(Overlay::Prompt(_)), ..) => Context::Prompt,
        (Some(Overlay::Confirm(confirm)), ..) => match confirm.answer {
            Reply::Key => Context::Confirm,
            Reply::Typed { .. } => Context::Typing,
        },
        (None, ..) => under(model),
    }
}

/// Where the keys go once nothing lies over the screen.
pub fn under(model: &Model) -> Context {
    match (model.ui.screen, model.ui.focus) {
        (Screen::Workers, _) => Context::Workers,
        (Screen::Log, _) => Context::Log,
        (Screen::Incidents, _) => Context::Incidents,
        (Screen::Main, Focus::Queues) => Context::Queues,
        (Screen::Main, Focus::Tasks) => Context::Tasks,
        (Screen::Main, Focus::Detail) => Context::Detail,
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
        None if matches!(context, Context::Typing | Context::Prompt | Context::HelpSearch) => {
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
    let input = match &mut model.ui.overlay {
        Some(Overlay::Prompt(_)) => return prompt::typed(model, request),
        Some(Overlay::Help(help)) if help.typing => {
            help.top = 0;
            &mut help.query
        }
        Some(Overlay::Confirm(confirm)) => match &mut confirm.answer {
            Reply::Typed { input, .. } => input,
            Reply::Key => return,
        },
        _ => return,
    };
    let full = input.value().chars().count() >= TYPED_MAX;
    if !(full && matches!(request, InputRequest::InsertChar(_))) {
        input.handle(request);
        model.changed = true;
    }
}

/// Does what a key or a command says.
pub fn perform(model: &mut Model, deed: Deed, effects: &mut Vec<Effect>) {
    match deed {
        Deed::Quit => effects.push(Effect::Quit),
        Deed::Suspend => effects.push(Effect::Suspend),
        Deed::Redraw => effects.push(Effect::Redraw),
        Deed::Help => model.ui.overlay = Some(Overlay::Help(Help::default())),
        Deed::Back => back(model, effects),
        Deed::Leave => leave(model),
        Deed::NextPane => turn(model, 1),
        Deed::PrevPane => turn(model, 2),
        Deed::Zoom => model.ui.zoom = !model.ui.zoom,
        Deed::Workers => screen(model, Screen::Workers),
        Deed::Log => screen(model, Screen::Log),
        Deed::Incidents => screen(model, Screen::Incidents),
        Deed::Refresh => refresh(model),
        Deed::Times => times(model),
        Deed::CopyId => shell::copy_id(model, effects),
        Deed::CopyCommand => shell::copy_command(model, effects),
        Deed::Up => step(model, -1),
        Deed::Down => step(model, 1),
        Deed::PageUp => page(model, -1),
        Deed::PageDown => page(model, 1),
        Deed::First => jump(model, Jump::First),
        Deed::Last => jump(model, Jump::Last),
        Deed::Open if model.ui.screen == Screen::Incidents => incidents::open(model),
        Deed::Open => open(model),
        Deed::Segment(segment) => list(model, segment),
        Deed::PrevSegment => turn_segment(model, Segment::ALL.len() - 1),
        Deed::NextSegment => turn_segment(model, 1),
        Deed::Mark | Deed::MarkLoaded | Deed::Unmark => mark(model, deed),
        Deed::Quarantine => quarantine(model),
        Deed::Sort | Deed::Reverse => sort(model, deed),
        Deed::Filter => match &mut model.ui.overlay {
            Some(Overlay::Help(help)) => help.typing = true,
            _ => prompt::open(model, Kind::Filter),
        },
        Deed::Search => prompt::open(model, Kind::Search),
        Deed::Palette => prompt::open(model, Kind::Palette),
        Deed::SearchNext => detail::search(model, true),
        Deed::SearchPrev => detail::search(model, false),
        Deed::Fold => detail::fold(model),
        Deed::Frames => detail::frames(model),
        Deed::Raw => detail::raw(model),
        Deed::Complete => prompt::take_offer(model),
        Deed::Requeue | Deed::Later | Deed::Drop | Deed::Purge => act::ask(model, deed),
        Deed::Yes => act::answer(model, effects),
        Deed::Submit => submit(model, effects),
        Deed::No => no(model),
    }
}

/// Does what was typed.
fn submit(model: &mut Model, effects: &mut Vec<Effect>) {
    match &mut model.ui.overlay {
        Some(Overlay::Prompt(_)) => prompt::submit(model, effects),
        Some(Overlay::Help(help)) => help.typing = false,
        _ => act::answer(model, effects),
    }
}

/// Leaves a question or a line; the help page only its search.
fn no(model: &mut Model) {
    match &mut model.ui.overlay {
        Some(Overlay::Help(help)) => *help = Help::default(),
        _ => model.ui.overlay = None,
    }
}

/// Asks for everything on the screen; a filter and the incidents begin again.
fn refresh(model: &mut Model) {
    plan::hurry(model);
    if model.ui.screen == Screen::Incidents {
        model.survey.restart();
    } else if model.ui.focus == Focus::Tasks {
        filter::again(model);
    }
}

fn times(model: &mut Model) {
    model.ui.times = model.ui.times.next();
    model.say(Role::Text, format!("times are {}", model.ui.times.name()));
}

fn quarantine(model: &mut Model) {
    model.ui.screen = Screen::Main;
    model.ui.focus = Focus::Tasks;
    if !model.ui.tasks.quarantine {
        leave_list(model, model.ui.tasks.segment);
        model.ui.tasks.quarantine = true;
    }
}

fn sort(model: &mut Model, deed: Deed) {
    let height = model.areas().tasks_shown();
    if deed == Deed::Reverse {
        if model.sift.is_some() {
            return model.say(Role::Soon, "what a filter found is sorted by s; Esc takes the filter away");
        }
        let list = &model.ui.tasks;
        let turned = TaskList { reversed: !list.reversed, quarantine: list.quarantine, ..TaskList::new(list.segment) };
        model.ui.tasks = turned;
        model.page.forget();
        return;
    }
    let list = &mut model.ui.tasks;
    list.sort = list.sort.next();
    if let Some(page) = &mut model.page.value {
        match list.sort {
            // The order of the segment is that of the next page, or of the filter begun again.
            Sort::Listed => model.page.hurry(),
            sort => sort.apply(&mut page.rows),
        }
        // What comes first now is what was asked for.
        if let Some(page) = model.page.value.as_ref().filter(|_| list.sort != Sort::Listed) {
            list.select_at(page, 0, height);
        }
    }
    let what = if list.sort == Sort::Listed { "as listed" } else { list.sort.name() };
    if list.sort == Sort::Listed && model.sift.is_some() {
        filter::again(model);
    }
    model.say(Role::Text, format!("sorted {what}{}", if what == "as listed" { "" } else { ", what is loaded" }));
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
    let in_tasks = model.ui.screen == Screen::Main && model.ui.focus == Focus::Tasks;
    if in_tasks && model.sift.as_mut().is_some_and(Sifting::stop) {
        return;
    }
    if in_tasks && !model.ui.tasks.marks.is_empty() {
        model.ui.tasks.marks.clear();
    } else if !(in_tasks && filter::clear(model)) {
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
    if model.ui.tasks.segment != segment || model.ui.tasks.quarantine {
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
    model.sift = None;
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
        Deed::MarkLoaded => match &model.sift {
            Some(sift) => list.mark_found(&sift.found),
            None => list.mark_loaded(page),
        },
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
        Context::Incidents => areas.incidents_shown(),
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
        Context::Detail => detail::step(model, by as i64),
        Context::Incidents => incidents::step(model, by),
        Context::Prompt => prompt::choose(model, by),
        Context::Workers => {
            let list = model.workers.value.as_deref().unwrap_or_default();
            let at = list.iter().position(|worker| Some(&worker.id) == model.ui.worker.as_ref());
            let to = at.map_or(0, |at| at.saturating_add_signed(by)).min(list.len().saturating_sub(1));
            model.ui.worker = list.get(to).map(|worker| worker.id.clone());
        }
        Context::Log => model.ui.log_back = model.ui.log_back.saturating_add_signed(-by),
        Context::Help => {
            if let Some(Overlay::Help(help)) = &mut model.ui.overlay {
                help.top = help.top.saturating_add_signed(by);
            }
        }
        _ => {}
    }
}

fn jump(model: &mut Model, to: Jump) {
    let areas = model.areas();
    match context(model) {
        Context::Tasks => model.ui.tasks.jump(model.page.value.as_ref(), to, areas.tasks_shown()),
        Context::Detail => detail::jump(model, to == Jump::Last),
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
    let order = &model.survey.order;
    let at = order.iter().position(|id| Some(id) == model.ui.incident.as_ref()).unwrap_or(0);
    model.ui.incident_top = revealed(model.ui.incident_top, at, order.len(), areas.incidents_shown());
    if let Some(Overlay::Help(help)) = &mut model.ui.overlay {
        help.top = help.top.min(crate::inspector::view::help_lines(help.query.value()).saturating_sub(1));
    }
}
