//! The tasks of one segment.

use crate::inspector::format::{Times, count, exact, span, when, whole_span};
use crate::inspector::layout::Areas;
use crate::inspector::model::sift::SiftState;
use crate::inspector::model::tasks::{ShownRow, Sort, TaskList};
use crate::inspector::model::{Focus, Model};
use crate::inspector::source::{Readable, Summary, TaskRow};
use crate::inspector::text::width;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::{Canvas, Span};
use crate::task::{Segment, Stamp};
use ratatui::layout::Rect;
use std::time::Duration;

/// Columns before the id: the cursor, the mark, a space.
const MARGIN: u16 = 3;
/// Below this many columns the last column is left out, and below this many the attempts too.
const ROOMY: (u16, u16) = (60, 36);
/// A question that is younger than this is not worth telling.
const PATIENCE: Duration = Duration::from_millis(250);

/// The segments' names where there is room, and where there is little.
const LONG: [&str; 5] = ["Ready", "Scheduled", "Running", "Successful", "Failed"];
const SHORT: [&str; 5] = ["Ready", "Sched", "Run", "Done", "Fail"];

/// What a column shows.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Id,
    Function,
    Priority,
    Attempts,
    Time,
    Span,
    Last,
}

/// A column with its heading, its place and its width.
struct Placed {
    column: Column,
    title: &'static str,
    x: u16,
    width: u16,
}

/// Draws the tasks.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let focused = model.ui.focus == Focus::Tasks;
    head(model, areas.tasks_head, focused, canvas);
    let area = areas.tasks;
    if area.height == 0 {
        return;
    }
    let columns = columns(&model.ui.tasks, area, model.ui.times != Times::Ages);
    for placed in &columns {
        if right_aligned(placed.column) {
            canvas.right(placed.x, area.y, placed.width, placed.title, Role::Dim);
        } else {
            canvas.left(placed.x, area.y, placed.width, placed.title, Role::Dim);
        }
    }
    corner(model, areas, &columns, canvas);
    let shown = model.ui.tasks.shown(model.page.value.as_ref());
    if shown.is_empty() {
        return nothing(model, area, canvas);
    }
    for (nth, row) in shown.iter().skip(model.ui.tasks.top).take(areas.tasks_shown()).enumerate() {
        // As many as fit were taken, so this is within the area.
        let y = area.y + 1 + nth as u16;
        for placed in &columns {
            draw_cell(model, *row, placed, y, canvas);
        }
        let line = Rect { y, height: 1, ..area };
        if row.gone {
            canvas.fade(line);
        }
        if model.ui.tasks.marks.contains_key(&row.row.id) {
            canvas.sign(area.x + 1, y, canvas.signs().mark, Role::Accent);
        }
        if model.ui.tasks.selected.as_ref() == Some(&row.row.id) {
            let sign = if focused { canvas.signs().cursor } else { canvas.signs().anchor };
            canvas.sign(area.x, y, sign, Role::Accent);
            if focused {
                canvas.select(line);
            }
        }
    }
}

/// The rule with the queue's name and the segments with their counts, as long as there is room.
fn head(model: &Model, area: Rect, focused: bool, canvas: &mut Canvas) {
    if area.height == 0 {
        return;
    }
    let tabs = |names: Option<[&str; 5]>| -> Vec<Vec<Span>> {
        Segment::ALL
            .into_iter()
            .enumerate()
            .map(|(at, segment)| tab(model, segment, names.map(|names| names[at])))
            .chain(aside(model, names.is_some()))
            .collect()
    };
    let queue = model.ui.queue.as_deref().unwrap_or("no queue");
    let name = (width(&crate::task::visible(queue)) as u16).min(24.min(area.width / 3).max(8));
    let room = usize::from(area.width.saturating_sub(name + 4));
    let length = |tabs: &[Vec<Span>]| tabs.iter().flatten().map(|(_, text)| width(text)).sum::<usize>();
    let forms = [Some(LONG), Some(SHORT), None];
    let tabs = forms.into_iter().map(tabs).find(|tabs| length(tabs) <= room).unwrap_or_else(|| tabs(None));
    canvas.rule(area);
    let role = if focused { Role::Bright } else { Role::Dim };
    canvas.left(area.x + 1, area.y, 1, " ", role);
    let mut x = area.x + 2;
    x += canvas.left(x, area.y, name.min(area.width.saturating_sub(4)), queue, role);
    x += canvas.left(x, area.y, 1, " ", role) + 1;
    for tab in tabs {
        let columns = area.right().saturating_sub(x);
        x += canvas.spans(x, area.y, columns, &tab);
    }
}

/// A segment's key, name and count; the listed one stands in brackets.
fn tab(model: &Model, segment: Segment, name: Option<&str>) -> Vec<Span> {
    let key = segment as usize + 1;
    let counts = model.counts();
    let value = counts.map(|counts| counts.of(segment));
    let number = value.map_or_else(String::new, |value| format!(" {}", count(value)));
    let listed = model.ui.tasks.segment == segment && !model.ui.tasks.quarantine;
    let role = match (listed, segment, value) {
        (true, ..) => Role::Accent,
        (_, Segment::Failed, Some(1..)) => Role::Wrong,
        (_, _, Some(0) | None) => Role::Dim,
        _ => Role::Text,
    };
    let label = match name {
        Some(name) => format!("{key} {name}"),
        None if listed => format!("{key} {}", SHORT[segment as usize]),
        None => key.to_string(),
    };
    let (open, close) = if listed { ("[", "]") } else { (" ", " ") };
    let number = if name.is_none() && !listed { String::new() } else { number };
    vec![(role, format!("{open}{label}{number}{close}"))]
}

/// The key and the count of the quarantine, where there is something in it or it is listed.
fn aside(model: &Model, named: bool) -> Option<Vec<Span>> {
    let value = model.counts().map_or(0, |counts| counts.quarantined);
    let listed = model.ui.tasks.quarantine;
    if value == 0 && !listed {
        return None;
    }
    let label = if named || listed { format!("6 Quar {}", count(value)) } else { "6".into() };
    let (open, close) = if listed { ("[", "]") } else { (" ", " ") };
    Some(vec![(if listed { Role::Accent } else { Role::Wrong }, format!("{open}{label}{close}"))])
}

/// How the room is dealt out among the columns of a segment.
fn columns(list: &TaskList, area: Rect, absolute: bool) -> Vec<Placed> {
    let segment = list.segment;
    use Column::{Attempts, Function, Id, Last, Priority, Span, Time};
    let time = if absolute { 11 } else { 10 };
    let (time_title, last_title) = match segment {
        _ if list.quarantine => ("SET ASIDE", "WHY"),
        Segment::Ready => ("ENQUEUED", "ARGS"),
        Segment::Scheduled => ("DUE", "LAST ERROR, ELSE ARGS"),
        Segment::Running => ("SINCE", "WORKER"),
        Segment::Successful => ("FINISHED", "ARGS"),
        Segment::Failed => ("FAILED", "ERROR"),
    };
    let mut fixed = vec![(Id, "ID", 9), (Function, "FUNCTION", 0)];
    if segment == Segment::Ready && !list.quarantine && area.width >= ROOMY.0 {
        fixed.push((Priority, "PRIO", 5));
    }
    if area.width >= ROOMY.1 {
        fixed.push((Attempts, "ATT", 3));
    }
    fixed.push((Time, time_title, time));
    if area.width >= ROOMY.0 {
        match segment {
            _ if list.quarantine => {}
            Segment::Running => fixed.push((Span, "LEASE", 6)),
            Segment::Successful => fixed.push((Span, "TOOK", 6)),
            _ => {}
        }
        fixed.push((Last, last_title, 0));
    }
    let taken: u16 = fixed.iter().map(|(_, _, width)| width + 2).sum::<u16>() + MARGIN;
    let rest = area.width.saturating_sub(taken);
    let has_last = fixed.iter().any(|(column, ..)| *column == Last);
    let function = if has_last { (rest * 9 / 20).clamp(12, 40).min(rest) } else { rest };
    let mut x = area.x + MARGIN;
    let place = |(column, title, width): (Column, &'static str, u16)| {
        let width = match column {
            Function => function,
            Last => rest - function,
            _ => width,
        };
        let placed = Placed { column, title, x, width };
        x += width + 2;
        placed
    };
    fixed.into_iter().map(place).collect()
}

/// Where in the segment this is, how many are marked, and whether more is being read.
fn corner(model: &Model, areas: &Areas, columns: &[Placed], canvas: &mut Canvas) {
    let area = areas.tasks;
    let waited = model.page.waiting_since().map_or(Duration::ZERO, |since| model.clock.mono.saturating_sub(since));
    let mut parts = Vec::new();
    if model.page.is_turning() && waited >= PATIENCE {
        parts.push("reading".to_owned());
    }
    let marked = model.ui.tasks.marks.len();
    if marked > 0 {
        parts.push(format!("{} marked", exact(marked as u64)));
    }
    if model.ui.tasks.reversed {
        parts.push("from the other end".to_owned());
    }
    if model.ui.tasks.sort != Sort::Listed {
        parts.push(format!("by {}", model.ui.tasks.sort.name()));
    }
    if let Some(page) = model.page.value.as_ref().filter(|page| !page.rows.is_empty()) {
        let first = page.offset + model.ui.tasks.top as u64 + 1;
        let last = (first + areas.tasks_shown() as u64).saturating_sub(1).min(page.offset + page.rows.len() as u64);
        parts.push(format!("{}-{} of {}", exact(first.min(last)), exact(last), exact(page.total.max(last))));
    }
    let (role, text) = match &model.page.error {
        Some(error) => (Role::Wrong, format!("{} {error}", canvas.signs().alert)),
        None => (Role::Dim, parts.join("   ")),
    };
    if text.is_empty() {
        return;
    }
    let wanted = u16::try_from(width(&text)).unwrap_or(u16::MAX);
    let room = wanted.min(area.width.saturating_sub(MARGIN + 10));
    let x = area.right().saturating_sub(room + 1);
    // A heading that would be cut into gives way.
    let cut = columns.last().filter(|last| last.x + width(last.title) as u16 + 2 > x).map_or(x, |last| last.x.min(x));
    canvas.clear(Rect { x: cut, y: area.y, width: area.right() - cut, height: 1 }.intersection(area));
    canvas.left(x, area.y, room, &text, role);
}

/// What an empty list says.
fn nothing(model: &Model, area: Rect, canvas: &mut Canvas) {
    let text = match (&model.page.value, model.ui.tasks.segment) {
        (None, _) if model.page.error.is_some() => "it cannot be read",
        (None, _) if model.ui.queue.is_none() => "no queue is selected",
        (None, _) => "reading",
        _ if model.sift.as_ref().is_some_and(|sift| sift.state == SiftState::UnderWay) => "nothing found yet",
        _ if model.sift.is_some() => "the filter means none of these tasks",
        _ if model.ui.tasks.quarantine => "nothing was set aside: what cannot be run at all comes here",
        (_, Segment::Ready) => "nothing waits: what is enqueued to run at once comes here until a worker takes it",
        (_, Segment::Scheduled) => "nothing is scheduled: tasks for later and retries come here until they are due",
        (_, Segment::Running) => "nothing runs: what a worker has taken is here",
        (_, Segment::Successful) => "no results: what has returned is here until its time to live is over",
        (_, Segment::Failed) => "nothing has failed: what has raised an error and is not retried comes here",
    };
    if area.height > 1 {
        canvas.left(area.x + MARGIN, area.y + 1, area.width.saturating_sub(MARGIN), text, Role::Dim);
    }
}

fn right_aligned(column: Column) -> bool {
    matches!(column, Column::Priority | Column::Attempts | Column::Time | Column::Span)
}

fn draw_cell(model: &Model, shown: ShownRow, placed: &Placed, y: u16, canvas: &mut Canvas) {
    let row = shown.row;
    let (x, columns) = (placed.x, placed.width);
    let readable = match &row.summary {
        Summary::Readable(readable) => Some(&**readable),
        _ => None,
    };
    match placed.column {
        Column::Id => {
            let cut = row.id.tail().len() < row.id.as_str().len();
            let sign = if cut { canvas.signs().ellipsis } else { "" };
            canvas.left(x, y, columns, &format!("{sign}{}", row.id.tail()), Role::Dim);
        }
        Column::Function => match &row.summary {
            Summary::Readable(readable) => drop(canvas.tail(x, y, columns, &readable.func, Role::Text)),
            Summary::Unreadable { .. } => {
                let text = format!("{} unreadable", canvas.signs().alert);
                canvas.left(x, y, columns, &text, Role::Wrong);
            }
            Summary::Missing => {
                let text = format!("{} no record", canvas.signs().alert);
                canvas.left(x, y, columns, &text, Role::Soon);
            }
        },
        Column::Priority => {
            let priority = readable.map(|readable| readable.priority);
            let text = priority.map_or_else(
                || "-".into(),
                |value| if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value}") },
            );
            let role = if priority == Some(0.0) { Role::Dim } else { Role::Text };
            canvas.right(x, y, columns, &text, role);
        }
        Column::Attempts => {
            let attempts = readable.and_then(|readable| readable.attempts);
            let text = attempts.map_or_else(|| "-".into(), |value| count(u64::from(value)));
            canvas.right(x, y, columns, &text, if attempts == Some(0) { Role::Dim } else { Role::Text });
        }
        Column::Time => {
            let at = if model.ui.tasks.quarantine { Some(row.score) } else { time(row, readable) };
            let text = at.map_or_else(|| "-".into(), |at| when(at, model.clock.wall_ms, model.ui.times));
            canvas.right(x, y, columns, &text, Role::Text);
        }
        Column::Span => {
            let (role, text) = length(model, row, readable);
            canvas.right(x, y, columns, &text, role);
        }
        Column::Last => {
            let (role, text) = last(shown, readable, model.ui.tasks.quarantine);
            canvas.left(x, y, columns, &text, role);
        }
    }
}

/// The moment that matters in this segment.
fn time(row: &TaskRow, readable: Option<&Readable>) -> Option<f64> {
    let stamp = |stamp: &Option<Stamp>| stamp.as_ref().map(Stamp::millis);
    match row.segment {
        Segment::Scheduled => Some(row.score),
        Segment::Ready => readable.and_then(|readable| stamp(&readable.enqueued_at)),
        Segment::Running => row.lease.as_ref().and_then(|lease| stamp(&lease.started_at)),
        Segment::Successful | Segment::Failed => {
            readable.and_then(|readable| stamp(&readable.finished_at)).or(Some(row.score))
        }
    }
}

/// What is left of a lease, or how long it took.
fn length(model: &Model, row: &TaskRow, readable: Option<&Readable>) -> (Role, String) {
    if row.segment == Segment::Running {
        let left = row.score - model.clock.wall_ms;
        return if left > 0.0 { (Role::Text, whole_span(left)) } else { (Role::Wrong, "over".into()) };
    }
    let stamps = readable.and_then(|readable| readable.started_at.as_ref().zip(readable.finished_at.as_ref()));
    let took = stamps.map(|(started, finished)| finished.millis() - started.millis());
    (Role::Text, took.map_or_else(|| "-".into(), span))
}

/// The column that takes the room that is left.
fn last(shown: ShownRow, readable: Option<&Readable>, quarantine: bool) -> (Role, String) {
    let row = shown.row;
    if shown.gone {
        let place = if quarantine { "QUARANTINE" } else { row.segment.name() };
        return (Role::Dim, format!("no longer in {place}"));
    }
    if let Summary::Unreadable { reason, head } = &row.summary {
        return (Role::Wrong, format!("{reason}: {head}"));
    }
    if quarantine {
        let why = if row.summary == Summary::Missing { "it has no record" } else { "a worker could not run it" };
        return (Role::Wrong, why.into());
    }
    let error = readable.and_then(|readable| readable.last_error.as_ref()).map(|error| {
        // The class without its module leaves room for the message.
        match (error.summary(), error.summary().strip_prefix(error.class_path.as_str())) {
            ("", _) => error.class_name().to_owned(),
            (_, Some(rest)) => format!("{}{rest}", error.class_name()),
            (summary, None) => summary.to_owned(),
        }
    });
    let args = || readable.map(|readable| readable.args_head.clone()).unwrap_or_default();
    match row.segment {
        Segment::Failed => (Role::Wrong, error.unwrap_or_default()),
        Segment::Scheduled => error.map_or_else(|| (Role::Dim, args()), |error| (Role::Soon, error)),
        Segment::Running => match &row.lease {
            Some(lease) => (Role::Text, lease.worker.clone()),
            None => (Role::Soon, "nobody holds it".into()),
        },
        Segment::Ready | Segment::Successful => (Role::Dim, args()),
    }
}
