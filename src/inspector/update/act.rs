//! Acting: a question first, with everything fixed that is on the screen; then the action; then its report.

use crate::inspector::keymap::Deed;
use crate::inspector::model::confirm::{Confirm, Reply};
use crate::inspector::model::prompt::Kind;
use crate::inspector::model::{Focus, Lock, Model, Overlay, Running, Screen};
use crate::inspector::msg::{Action, Effect, Part, Tally, Target};
use crate::inspector::source::{PurgeScope, Summary, TaskDetail};
use crate::inspector::theme::Role;
use crate::inspector::update::{incidents, plan, prompt};
use crate::task::{Segment, visible};
use std::time::Duration;

/// Actions that wait or run at a time.
pub const ACTIONS_MAX: usize = 8;

/// Asks before an action, or says why it cannot be.
pub fn ask(model: &mut Model, deed: Deed) {
    if let Some(lock) = model.lock() {
        return locked(model, lock);
    }
    let question = match deed {
        Deed::Requeue => run_again(model),
        Deed::Later => return later(model),
        Deed::Drop => drop_tasks(model),
        _ => purge(model),
    };
    match question {
        Ok(confirm) => model.ui.overlay = Some(Overlay::Confirm(Box::new(confirm))),
        Err(hint) => model.say(Role::Soon, hint),
    }
}

/// What an action aims at.
struct Aim {
    targets: Vec<Target>,
    /// The function of the first, or what they have in common.
    example: Option<String>,
    /// What else is to be known.
    note: String,
}

fn locked(model: &mut Model, lock: Lock) {
    model.say(
        Role::Soon,
        match lock {
            Lock::ReadOnly => "locked: this inspector is read-only",
            Lock::Stale => "locked until Redis answers",
        },
    );
}

/// Requeues what is finished, runs what is scheduled now.
fn run_again(model: &Model) -> Result<Confirm, String> {
    let aim = aimed(model)?;
    if aim.targets.iter().all(|target| target.segment == Segment::Scheduled && !target.quarantined) {
        return Ok(Confirm::tasks(Action::Promote(aim.targets), aim.example.as_deref(), aim.note));
    }
    finished(&aim.targets)?;
    Ok(Confirm::tasks(Action::Requeue(aim.targets, None), aim.example.as_deref(), aim.note))
}

/// Asks how long a requeue is to wait.
fn later(model: &mut Model) {
    let aim = aimed(model).and_then(|aim| finished(&aim.targets).map(|()| aim));
    match aim {
        Ok(aim) => prompt::open(model, Kind::Later(aim.targets, aim.example)),
        Err(hint) => model.say(Role::Soon, hint),
    }
}

/// Asks before a requeue that waits.
pub fn ask_later(model: &mut Model, targets: Vec<Target>, example: Option<String>, after: Duration) {
    let action = Action::Requeue(targets, Some(after));
    model.ui.overlay = Some(Overlay::Confirm(Box::new(Confirm::tasks(action, example.as_deref(), String::new()))));
}

/// Whether all of these can be requeued, or why not.
fn finished(targets: &[Target]) -> Result<(), String> {
    let hint = |target: &Target| match target.segment {
        _ if target.quarantined => Some("what was set aside cannot be run: look at it, then drop it"),
        Segment::Failed | Segment::Successful => None,
        Segment::Running => Some("it runs now; should it fail for good, it can be requeued from FAILED"),
        Segment::Ready => Some("READY tasks already wait for a worker"),
        Segment::Scheduled => Some("SCHEDULED tasks run by themselves when they are due; R runs them now"),
    };
    targets.iter().find_map(hint).map_or(Ok(()), |hint| Err(hint.into()))
}

fn drop_tasks(model: &Model) -> Result<Confirm, String> {
    let aim = aimed(model)?;
    Ok(Confirm::tasks(Action::Drop(aim.targets), aim.example.as_deref(), aim.note))
}

/// What an action aims at: the incident, the open task, the marked ones, the selected one.
fn aimed(model: &Model) -> Result<Aim, String> {
    if model.ui.screen == Screen::Incidents {
        let (targets, example, note) = incidents::targets(model).ok_or("no incident is selected")?;
        return Ok(Aim { targets, example: Some(example), note });
    }
    let note = String::new();
    if model.ui.focus == Focus::Detail {
        let task = model.task().ok_or("the task is not read yet")?;
        let target = whole(task).ok_or("no segment lists this task; the shell's `drop` takes it away")?;
        let example = task.record().map(|record| record.spec.func.clone());
        return Ok(Aim { targets: vec![target], example, note });
    }
    let page = model.page.value.as_ref();
    let targets = model.ui.tasks.targets(page);
    let Some(first) = targets.first() else { return Err("nothing is selected".into()) };
    let shown = model.ui.tasks.shown(page);
    let example = shown.iter().find(|shown| shown.row.id == first.id).and_then(|shown| match &shown.row.summary {
        Summary::Readable(readable) => Some(readable.func.clone()),
        _ => None,
    });
    Ok(Aim { targets, example, note })
}

/// A task that was read whole, as something to aim at.
fn whole(task: &TaskDetail) -> Option<Target> {
    let (segment, seen) = *task.places.first()?;
    Some(Target { id: task.id.clone(), queue: task.queue.clone()?, segment, quarantined: false, seen })
}

fn purge(model: &Model) -> Result<Confirm, String> {
    if model.sift.is_some() && model.ui.focus != Focus::Queues {
        return Err("a purge takes the whole segment; mark all with a, then D drops what the filter found".into());
    }
    let counts = model.counts().ok_or("no queue is selected")?;
    let running = counts.of(Segment::Running);
    let list = &model.ui.tasks;
    let whole_queue = model.ui.focus == Focus::Queues;
    let mut parts = Vec::new();
    for segment in Segment::ALL {
        let wanted =
            if whole_queue { segment != Segment::Running } else { !list.quarantine && segment == list.segment };
        if wanted {
            let max_score = newest(model, &counts.queue, segment);
            parts.push(Part { scope: PurgeScope::Segment(segment), count: counts.of(segment), max_score });
        }
    }
    if list.quarantine && !whole_queue {
        let max_score = Some(model.server_ms());
        parts.push(Part { scope: PurgeScope::Quarantine, count: counts.quarantined, max_score });
    }
    parts.retain(|part| part.count > 0);
    if parts.is_empty() {
        return Err("there is nothing to purge".into());
    }
    Ok(Confirm::purge(&counts.queue, parts, running))
}

/// The highest score that a segment has now, so that a purge takes nothing that comes later; none where newcomers may
/// have a lower one.
fn newest(model: &Model, queue: &str, segment: Segment) -> Option<f64> {
    match segment {
        Segment::Successful | Segment::Failed => Some(model.server_ms()),
        Segment::Scheduled => model.pulse.value.as_ref()?.get(queue)?.last_due_ms,
        Segment::Ready | Segment::Running => None,
    }
}

/// Takes the answer yes; the word must be right where one is asked for.
pub fn answer(model: &mut Model, effects: &mut Vec<Effect>) {
    let Some(Overlay::Confirm(confirm)) = &model.ui.overlay else { return };
    let sure = match &confirm.answer {
        Reply::Key => true,
        typed @ Reply::Typed { .. } => typed.is_complete(),
    };
    if !sure {
        return model.say(Role::Soon, "the word is not the one that is asked for");
    }
    if let Some(lock) = model.lock() {
        return locked(model, lock);
    }
    if model.actions.len() >= ACTIONS_MAX {
        return model.say(Role::Soon, format!("{ACTIONS_MAX} actions are under way; wait for one to end"));
    }
    let action = confirm.action.clone();
    model.ui.overlay = None;
    model.next_id += 1;
    let id = model.next_id;
    let title = title(&action);
    model.note(Role::Text, format!("asked to {title}"));
    model.actions.push_back(Running { id, title, done: action.verb().1, size: action.size(), tally: Tally::default() });
    // The marks were for this; what could not be done is told in the report.
    if !matches!(action, Action::Purge { .. }) && model.ui.focus == Focus::Tasks && model.ui.screen == Screen::Main {
        model.ui.tasks.marks.clear();
    }
    model.notice = None;
    effects.push(Effect::Act(id, action));
}

/// An action for a person.
fn title(action: &Action) -> String {
    let verb = action.verb().0;
    match (action, action.targets()) {
        (Action::Purge { queue, parts }, _) => {
            let names: Vec<_> = parts.iter().map(Part::name).collect();
            format!("{verb} {} of {}", names.join(", "), visible(queue))
        }
        (_, [one]) => format!("{verb} {} of {}", one.id, visible(&one.queue)),
        (_, many) => format!("{verb} {} tasks", many.len()),
    }
}

/// Takes in how far an action is.
pub fn progress(model: &mut Model, id: u64, tally: Tally) {
    if let Some(running) = model.actions.iter_mut().find(|running| running.id == id) {
        model.changed |= running.tally != tally;
        running.tally = tally;
    }
}

/// Takes in the end of an action: a line above the keys and in the log, and a fresh look.
pub fn ended(model: &mut Model, id: u64, tally: &Tally) {
    let Some(at) = model.actions.iter().position(|running| running.id == id) else { return };
    let Some(running) = model.actions.remove(at) else { return };
    let report = tally.report(running.done);
    let role = if tally.error.is_some() {
        Role::Wrong
    } else if tally.is_clean() {
        Role::Good
    } else {
        Role::Soon
    };
    model.note(role, format!("{}: {report}", running.title));
    model.say(role, report);
    plan::hurry(model);
    // What was dealt with is in no incident any more.
    model.survey.restart();
}
