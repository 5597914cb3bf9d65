//! The incidents: which is selected, and from there to its tasks.

use crate::filter::Filter;
use crate::inspector::model::tasks::TaskList;
use crate::inspector::model::{Focus, Model, Screen};
use crate::inspector::msg::Target;
use crate::inspector::source::Surveyed;
use crate::inspector::theme::Role;
use crate::inspector::update::filter;
use crate::task::Segment;

/// Takes in a slice of what has failed.
pub fn take(model: &mut Model, at: usize, surveyed: Surveyed) {
    model.budget.spend(surveyed.incidents.looked_at, surveyed.bytes);
    model.changed |= model.survey.take(at, surveyed);
    if model.ui.incident.is_none() {
        model.ui.incident = model.survey.order.first().cloned();
    }
}

/// Moves the selection by rows.
pub fn step(model: &mut Model, by: isize) {
    let order = &model.survey.order;
    let at = order.iter().position(|id| Some(id) == model.ui.incident.as_ref());
    let to = at.map_or(0, |at| at.saturating_add_signed(by)).min(order.len().saturating_sub(1));
    model.ui.incident = order.get(to).cloned();
}

/// Lists the tasks of the selected incident, in the queue that has most of them.
pub fn open(model: &mut Model) {
    let Some(incident) = model.incident() else { return };
    let id = incident.fingerprint.id();
    let Some(queue) = incident.queues.iter().max_by_key(|(_, count)| **count).map(|(queue, _)| queue.clone()) else {
        return;
    };
    let others: Vec<_> = incident.queues.keys().filter(|other| **other != queue).cloned().collect();
    let Ok(meant) = Filter::parse(&format!("incident:{id}")) else { return };
    model.ui.queue = Some(queue);
    model.ui.tasks = TaskList::new(Segment::Failed);
    model.ui.screen = Screen::Main;
    model.ui.focus = Focus::Tasks;
    filter::apply(model, meant);
    if !others.is_empty() {
        model.say(Role::Text, format!("this incident is in {} too", others.join(", ")));
    }
}

/// The tasks of the selected incident, as they were seen, and what is to be known of them.
pub fn targets(model: &Model) -> Option<(Vec<Target>, String, String)> {
    let incident = model.incident()?;
    let target = |member: &crate::filter::Member| Target {
        id: member.id.clone(),
        queue: member.queue.clone(),
        segment: Segment::Failed,
        quarantined: false,
        seen: member.score,
    };
    let targets: Vec<Target> = incident.members.iter().map(target).collect();
    let what = format!("{}: {}", incident.fingerprint.class, incident.message);
    let all = model.survey.total();
    let looked = model.survey.incidents.looked_at;
    let exact = crate::inspector::format::exact;
    let sampled = if looked < all {
        format!("Those among the {} failures that were looked at, of {}. Enter lists all.", exact(looked), exact(all))
    } else {
        String::new()
    };
    Some((targets, what, sampled))
}
