//! Failures that belong together: a short list beside the queues, and a screen of their own.

use crate::filter::Incident;
use crate::inspector::format::{count, exact, when};
use crate::inspector::layout::Areas;
use crate::inspector::model::{Model, Screen};
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::{Canvas, Span};
use crate::inspector::view::chrome;
use ratatui::layout::Rect;

/// Columns before the count: the cursor, the sign, a space.
const MARGIN: u16 = 3;
/// Columns of a count and of a time.
const COUNT: u16 = 5;
const TIME: u16 = 11;
/// From this many columns on the first failure, and from this many the queues, have a column of their own.
const ROOMY: (u16, u16) = (84, 110);

/// Draws the short list beside the queues.
pub fn side(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let area = areas.incidents;
    if area.height == 0 || model.ui.screen == Screen::Incidents {
        return;
    }
    chrome::head(areas.incidents_head, "Incidents", false, canvas);
    sampled(model, areas.incidents_head, 13, canvas);
    if model.survey.order.is_empty() {
        let (role, text) = nothing(model);
        canvas.left(area.x + MARGIN, area.y, area.width.saturating_sub(MARGIN), &text, role);
        return;
    }
    for (nth, id) in model.survey.order.iter().take(usize::from(area.height)).enumerate() {
        let Some(incident) = model.survey.incidents.get(id) else { continue };
        // As many as fit were taken, so this is within the area.
        let y = area.y + nth as u16;
        let place = u16::try_from(incident.place.len()).unwrap_or(u16::MAX).min(area.width / 3);
        let mut x = area.x + 1;
        if model.is_new(incident) {
            canvas.sign(x, y, canvas.signs().alert, Role::Soon);
        }
        x += 1;
        canvas.right(x, y, COUNT, &count(incident.count), Role::Text);
        x += COUNT + 2;
        let room = area.right().saturating_sub(x + place + 2);
        canvas.spans(x, y, room, &error(incident));
        canvas.left(area.right().saturating_sub(place + 1), y, place, &incident.place, Role::Dim);
    }
}

/// Draws the screen.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let area = areas.incidents;
    let end = chrome::head(areas.other_head, "Incidents", true, canvas);
    sampled(model, areas.other_head, end - areas.other_head.x, canvas);
    if area.height == 0 {
        return;
    }
    heading(model, area, canvas);
    if model.survey.order.is_empty() && area.height > 1 {
        let (role, text) = nothing(model);
        canvas.left(area.x + MARGIN, area.y + 1, area.width.saturating_sub(MARGIN), &text, role);
        return;
    }
    let shown = model.survey.order.iter().skip(model.ui.incident_top).take(areas.incidents_shown());
    for (nth, id) in shown.enumerate() {
        let Some(incident) = model.survey.incidents.get(id) else { continue };
        // As many as fit were taken, so this is within the area.
        let row = Rect { y: area.y + 1 + nth as u16, height: 1, ..area };
        draw_row(model, incident, row, canvas);
        if model.ui.incident.as_ref() == Some(id) {
            canvas.sign(row.x, row.y, canvas.signs().cursor, Role::Accent);
            canvas.select(row);
        }
    }
    about(model, areas.about, canvas);
}

/// What is known of how much was looked at.
fn sampled(model: &Model, head: Rect, taken: u16, canvas: &mut Canvas) {
    let (looked, total) = (model.survey.incidents.looked_at, model.survey.total());
    let (role, text) = match &model.survey.error {
        Some(error) => (Role::Wrong, format!(" {} {error} ", canvas.signs().alert)),
        None if looked == 0 => return,
        None if looked < total => (Role::Soon, format!(" sampled {} of {} ", exact(looked), exact(total))),
        None => (Role::Dim, format!(" all of {} ", exact(total))),
    };
    let room = head.width.saturating_sub(taken + 2);
    let wanted = u16::try_from(crate::inspector::text::width(&text)).unwrap_or(room).min(room);
    if head.height > 0 {
        canvas.left(head.right().saturating_sub(wanted + 1), head.y, wanted, &text, role);
    }
}

fn nothing(model: &Model) -> (Role, String) {
    match &model.survey.error {
        Some(error) => (Role::Wrong, error.clone()),
        None if model.survey.complete => (Role::Dim, "nothing has failed".into()),
        None => (Role::Dim, "reading what has failed".into()),
    }
}

fn heading(model: &Model, area: Rect, canvas: &mut Canvas) {
    let y = area.y;
    let mut x = area.x + MARGIN;
    canvas.right(x, y, COUNT, "COUNT", Role::Dim);
    x += COUNT + 2;
    canvas.right(x, y, TIME, "LAST", Role::Dim);
    x += TIME + 2;
    if area.width >= ROOMY.0 {
        canvas.right(x, y, TIME, "FIRST", Role::Dim);
        x += TIME + 2;
    }
    let columns = columns(area, x);
    if area.width >= ROOMY.1 {
        canvas.left(columns[0].0, y, columns[0].1, "QUEUE", Role::Dim);
    }
    canvas.left(columns[1].0, y, columns[1].1, "WHERE", Role::Dim);
    canvas.left(columns[2].0, y, columns[2].1, "ERROR", Role::Dim);
    let new = model.survey.order.iter().filter_map(|id| model.survey.incidents.get(id));
    let new = new.filter(|incident| model.is_new(incident)).count();
    if new > 0 && area.width >= ROOMY.0 {
        let text = format!("{} {} new since this session began", canvas.signs().alert, exact(new as u64));
        canvas.right(area.right().saturating_sub(40), y, 39, &text, Role::Soon);
    }
}

/// The places of the queue, of where it happened, and of the error.
fn columns(area: Rect, x: u16) -> [(u16, u16); 3] {
    let queue = if area.width >= ROOMY.1 { 14 } else { 0 };
    let at = x + if queue > 0 { queue + 2 } else { 0 };
    let place = if area.width >= ROOMY.0 { 22 } else { 14 };
    let error = at + place + 2;
    [(x, queue), (at, place), (error, area.right().saturating_sub(error))]
}

fn draw_row(model: &Model, incident: &Incident, row: Rect, canvas: &mut Canvas) {
    let y = row.y;
    let now = model.clock.wall_ms;
    if model.is_new(incident) {
        canvas.sign(row.x + 1, y, canvas.signs().alert, Role::Soon);
    }
    let mut x = row.x + MARGIN;
    canvas.right(x, y, COUNT, &count(incident.count), Role::Bright);
    x += COUNT + 2;
    canvas.right(x, y, TIME, &when(incident.last_ms, now, model.ui.times), Role::Text);
    x += TIME + 2;
    if row.width >= ROOMY.0 {
        canvas.right(x, y, TIME, &when(incident.first_ms, now, model.ui.times), Role::Dim);
        x += TIME + 2;
    }
    let columns = columns(row, x);
    if row.width >= ROOMY.1 {
        let mut queues = incident.queues.keys();
        let first = queues.next().cloned().unwrap_or_default();
        let more = queues.count();
        let text = if more > 0 { format!("{first} +{more}") } else { first };
        canvas.left(columns[0].0, y, columns[0].1, &text, Role::Dim);
    }
    canvas.tail(columns[1].0, y, columns[1].1, &incident.place, Role::Text);
    canvas.spans(columns[2].0, y, columns[2].1, &error(incident));
}

fn error(incident: &Incident) -> Vec<Span> {
    let class = incident.class_path.rsplit('.').next().unwrap_or_default().to_owned();
    let message = if incident.message.is_empty() { String::new() } else { format!(": {}", incident.message) };
    vec![(Role::Wrong, class), (Role::Text, message)]
}

/// What is known of the selected one.
fn about(model: &Model, area: Rect, canvas: &mut Canvas) {
    let Some(incident) = model.incident().filter(|_| area.height > 1) else { return };
    let times = model.ui.times;
    let now = model.clock.wall_ms;
    canvas.rule(Rect { height: 1, ..area });
    canvas.left(area.x + 1, area.y, area.width.saturating_sub(2), &format!(" {} ", incident.class_path), Role::Bright);
    let counted = |names: &std::collections::BTreeMap<String, u64>| {
        let mut names: Vec<_> = names.iter().collect();
        names.sort_by(|a, b| b.1.cmp(a.1));
        names.iter().map(|(name, many)| format!("{name} {}", exact(**many))).collect::<Vec<_>>().join("   ")
    };
    let began = if model.is_new(incident) { ", new since this session began" } else { "" };
    let lines = [
        ("message", incident.message.clone()),
        ("where", format!("{}   {}", incident.place, incident.fingerprint.place)),
        ("first", format!("{}{began}", when(incident.first_ms, now, times))),
        ("last", when(incident.last_ms, now, times)),
        ("functions", counted(&incident.functions)),
        ("queues", counted(&incident.queues)),
        ("filter", format!("incident:{}", incident.fingerprint.id())),
    ];
    for (nth, (label, text)) in lines.into_iter().enumerate().take(usize::from(area.height) - 1) {
        // No more than the height was taken, so this is within the area.
        let y = area.y + 1 + nth as u16;
        canvas.left(area.x + 1, y, 10, label, Role::Dim);
        canvas.left(area.x + 12, y, area.width.saturating_sub(13), &text, Role::Text);
    }
}
