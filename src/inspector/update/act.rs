//! Acting: a question first, with everything fixed that is on the screen; then the action; then its report.

use crate::inspector::keymap::Deed;
use crate::inspector::model::confirm::{Confirm, Reply};
use crate::inspector::model::{Focus, Lock, Model, Overlay, Running, Screen};
use crate::inspector::msg::{Action, Effect, Tally, Target};
use crate::inspector::source::TaskDetail;
use crate::inspector::theme::Role;
use crate::inspector::update::plan;
use crate::task::{Segment, visible};

/// Actions that wait or run at a time.
pub const ACTIONS_MAX: usize = 8;

/// Asks before an action, or says why it cannot be.
pub fn ask(model: &mut Model, deed: Deed) {
    if let Some(lock) = model.lock() {
        return locked(model, lock);
    }
    let question = match deed {
        Deed::Requeue => requeue(model),
        Deed::Drop => drop_tasks(model),
        _ => purge(model),
    };
    match question {
        Ok(confirm) => model.ui.overlay = Some(Overlay::Confirm(Box::new(confirm))),
        Err(hint) => model.say(Role::Soon, hint),
    }
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

fn requeue(model: &Model) -> Result<Confirm, String> {
    let (targets, example) = aimed(model)?;
    let hint = |segment| match segment {
        Segment::Failed => None,
        Segment::Successful => Some("SUCCESSFUL tasks are not requeued from here: enqueue the function anew"),
        Segment::Running => Some("it runs now; should it fail for good, it can be requeued from FAILED"),
        Segment::Ready => Some("READY tasks already wait for a worker"),
        Segment::Scheduled => Some("SCHEDULED tasks run by themselves when they are due"),
    };
    if let Some(hint) = targets.iter().find_map(|target| hint(target.segment)) {
        return Err(hint.into());
    }
    Ok(Confirm::tasks(Action::Requeue(targets.clone()), &targets, example.as_deref()))
}

fn drop_tasks(model: &Model) -> Result<Confirm, String> {
    let (targets, example) = aimed(model)?;
    Ok(Confirm::tasks(Action::Drop(targets.clone()), &targets, example.as_deref()))
}

/// What an action aims at, and the function of the first.
fn aimed(model: &Model) -> Result<(Vec<Target>, Option<String>), String> {
    if model.ui.focus == Focus::Detail {
        let task = model.task().ok_or("the task is not read yet")?;
        let target = whole(task).ok_or("no segment lists this task; the shell's `drop` takes it away")?;
        return Ok((vec![target], task.record().map(|record| record.spec.func.clone())));
    }
    let page = model.page.value.as_ref();
    let targets = model.ui.tasks.targets(page);
    let Some(first) = targets.first() else { return Err("nothing is selected".into()) };
    let shown = model.ui.tasks.shown(page);
    let example = shown.iter().find(|shown| shown.row.id == first.id).and_then(|shown| match &shown.row.summary {
        crate::inspector::source::Summary::Readable(readable) => Some(readable.func.clone()),
        _ => None,
    });
    Ok((targets, example))
}

/// A task that was read whole, as something to aim at.
fn whole(task: &TaskDetail) -> Option<Target> {
    let (segment, seen) = *task.places.first()?;
    Some(Target { id: task.id.clone(), queue: task.queue.clone()?, segment, seen })
}

fn purge(model: &Model) -> Result<Confirm, String> {
    let counts = model.counts().ok_or("no queue is selected")?;
    let running = counts.of(Segment::Running);
    let wanted = |segment: &Segment| match model.ui.focus {
        Focus::Queues => *segment != Segment::Running,
        _ => *segment == model.ui.tasks.segment,
    };
    let listed = Segment::ALL.into_iter().filter(wanted).map(|segment| (segment, counts.of(segment)));
    let parts: Vec<_> = listed.filter(|(_, count)| *count > 0).collect();
    if parts.is_empty() {
        return Err("there is nothing to purge".into());
    }
    Ok(Confirm::purge(&counts.queue, parts, running))
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
    match action {
        Action::Requeue(targets) | Action::Drop(targets) => match targets.as_slice() {
            [one] => format!("{verb} {} of {}", one.id, one.queue),
            many => format!("{verb} {} tasks", many.len()),
        },
        Action::Purge { queue, parts } => {
            let segments: Vec<_> = parts.iter().map(|(segment, _)| segment.name()).collect();
            format!("{verb} {} of {}", segments.join(", "), visible(queue))
        }
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
}
