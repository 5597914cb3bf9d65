//! The queues: how many in each segment, and how they flow.

use crate::inspector::format::{count, rate, short_span};
use crate::inspector::layout::Areas;
use crate::inspector::model::attention::{self, Attention, LATE_MS};
use crate::inspector::model::flow::Shown;
use crate::inspector::model::{Focus, Model, Screen, Standing};
use crate::inspector::source::QueueCounts;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use crate::inspector::view::{chrome, spark};
use crate::task::Segment;
use ratatui::layout::Rect;

/// Columns before the name: the cursor, the sign, a space.
const MARGIN: u16 = 3;
/// Columns of a number, the space before it included.
const NUMBER: u16 = 7;
/// The name gets at least so many, and at most.
const NAME: (u16, u16) = (10, 30);

/// From this many columns on there is room for sparklines, and what the smallest take.
const SPARKS_FROM: u16 = 76;
const SPARKS: u16 = 16;

/// What a column shows.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Count(Segment),
    Oldest,
    Hour,
    Quarantine,
    In,
    Out,
}

/// The columns in the order of the screen, with their headings and how much each is worth where room is scarce.
const COLUMNS: [(Column, &str, u8); 10] = [
    (Column::Count(Segment::Ready), "READY", 0),
    (Column::Oldest, "OLDEST", 2),
    (Column::Count(Segment::Scheduled), "SCHED", 5),
    (Column::Count(Segment::Running), "RUN", 3),
    (Column::Count(Segment::Successful), "DONE", 8),
    (Column::Count(Segment::Failed), "FAIL", 1),
    (Column::Hour, "1H", 6),
    (Column::Quarantine, "QUAR", 9),
    (Column::In, "IN/s", 4),
    (Column::Out, "OUT/s", 7),
];

/// How the room is dealt out.
struct Plan {
    name: u16,
    columns: Vec<(Column, &'static str)>,
    /// Cells of each of the two sparklines.
    cells: usize,
}

/// Draws the queues.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let focused = model.ui.focus == Focus::Queues && model.ui.screen == Screen::Main;
    chrome::head(areas.queues_head, "Queues", focused, canvas);
    let area = areas.queues;
    if area.height == 0 {
        return;
    }
    let plan = plan(area.width, areas.wide);
    heading(&plan, area, areas.wide, canvas);
    if let Some(error) = &model.queues.error {
        canvas.left(area.x + MARGIN, area.y, area.width.saturating_sub(MARGIN), error, Role::Wrong);
    }
    let list = model.queue_list();
    if list.is_empty() && model.queues.value.is_some() && area.height > 1 {
        let hint = "no queue yet: the first task that is enqueued makes one";
        canvas.left(area.x + MARGIN, area.y + 1, area.width.saturating_sub(MARGIN), hint, Role::Dim);
    }
    let rows = areas.queue_rows();
    for (nth, counts) in list.iter().skip(model.ui.queue_top).take(areas.queues_shown()).enumerate() {
        // As many as fit were taken, so this is within the area.
        let y = area.y + 1 + nth as u16 * rows;
        let row = Rect { y, height: rows, ..area };
        queue(model, counts, &plan, row, areas.wide, canvas);
        if Some(&counts.queue) == model.ui.queue.as_ref() {
            let sign = if focused { canvas.signs().cursor } else { canvas.signs().anchor };
            for y in row.y..row.bottom() {
                canvas.sign(row.x, y, sign, Role::Accent);
            }
            if focused {
                canvas.select(row);
            }
        }
    }
}

fn plan(width: u16, wide: bool) -> Plan {
    // The smallest sparklines come before the last columns: what moves is seen, numbers are read.
    let kept = if !wide && width >= SPARKS_FROM { SPARKS } else { 0 };
    let room = width.saturating_sub(MARGIN + NAME.0 + 1 + kept);
    let mut by_worth: Vec<_> = COLUMNS.iter().collect();
    by_worth.sort_by_key(|(.., worth)| *worth);
    by_worth.retain(|(column, ..)| !wide || !matches!(column, Column::In | Column::Out));
    by_worth.truncate(usize::from(room / NUMBER));
    let columns: Vec<_> = COLUMNS
        .iter()
        .filter(|(column, ..)| by_worth.iter().any(|(kept, ..)| kept == column))
        .map(|(column, title, _)| (*column, *title))
        .collect();
    let numbers = NUMBER * columns.len() as u16;
    let rest = width.saturating_sub(MARGIN + numbers + 1);
    // In two columns the flow has a line of its own: `in 14.2/s ▁▂▃  out 9.8/s ▁▂▃`.
    let for_sparks = if wide { width.saturating_sub(MARGIN + 26) } else { rest.saturating_sub(NAME.0 + 4) };
    let cells = [30, 20, 15, 12, 10, 6].into_iter().find(|cells| cells * 2 <= for_sparks).unwrap_or(0);
    let cells = if !wide { cells.min(12) } else { cells };
    let sparks = if wide || cells == 0 { 0 } else { cells * 2 + 3 };
    Plan { name: rest.saturating_sub(sparks).min(NAME.1), columns, cells: usize::from(cells) }
}

fn heading(plan: &Plan, area: Rect, wide: bool, canvas: &mut Canvas) {
    canvas.left(area.x + MARGIN, area.y, plan.name, "QUEUE", Role::Dim);
    let mut x = area.x + MARGIN + plan.name;
    for (_, title) in &plan.columns {
        canvas.right(x, area.y, NUMBER, title, Role::Dim);
        x += NUMBER;
    }
    if !wide && plan.cells > 0 {
        let cells = plan.cells as u16;
        canvas.left(x + 2, area.y, cells, "IN", Role::Dim);
        canvas.left(x + 3 + cells, area.y, cells, "OUT", Role::Dim);
    }
}

fn queue(model: &Model, counts: &QueueCounts, plan: &Plan, row: Rect, wide: bool, canvas: &mut Canvas) {
    match attention::of_queue(model, counts) {
        Attention::Wrong => canvas.sign(row.x + 1, row.y, canvas.signs().alert, Role::Wrong),
        Attention::Soon => canvas.sign(row.x + 1, row.y, canvas.signs().alert, Role::Soon),
        Attention::Calm => {}
    }
    canvas.left(row.x + MARGIN, row.y, plan.name, &counts.queue, Role::Text);
    // While nothing is heard, nothing is known to have stopped.
    let heard = match model.standing() {
        Standing::Silent(..) => model.conn.last_good.unwrap_or(model.clock.mono),
        _ => model.clock.mono,
    };
    let flow = model.flows.shown(&counts.queue, heard, plan.cells);
    let mut x = row.x + MARGIN + plan.name;
    for (column, _) in &plan.columns {
        let (role, text) = cell(model, *column, counts, flow.as_ref(), canvas.signs().alert);
        canvas.right(x, row.y, NUMBER, &text, role);
        x += NUMBER;
    }
    let Some(flow) = flow else {
        if wide {
            let why = if model.flows.lost.is_some() { "rates unknown: telemetry is lost" } else { "listening" };
            canvas.left(row.x + MARGIN, row.y + 1, row.width.saturating_sub(MARGIN), why, Role::Dim);
        }
        return;
    };
    // Both lines have one scale, so that a queue that grows is seen to grow.
    let most = flow.cells_in.iter().chain(&flow.cells_out).copied().max().unwrap_or(0);
    let line_in = spark::line(&flow.cells_in, most, canvas.signs());
    let line_out = spark::line(&flow.cells_out, most, canvas.signs());
    let cells = plan.cells as u16;
    if wide {
        let y = row.y + 1;
        let x = row.x + MARGIN;
        canvas.left(x, y, 3, "in", Role::Dim);
        canvas.right(x + 2, y, 6, &rate(flow.rate_in), moving(flow.rate_in));
        canvas.left(x + 8, y, 2, "/s", Role::Dim);
        canvas.left(x + 11, y, cells, &line_in, Role::Good);
        let x = x + 11 + cells + 2;
        canvas.left(x, y, 3, "out", Role::Dim);
        canvas.right(x + 3, y, 6, &rate(flow.rate_out), moving(flow.rate_out));
        canvas.left(x + 9, y, 2, "/s", Role::Dim);
        canvas.left(x + 12, y, cells, &line_out, Role::Good);
    } else {
        canvas.left(x + 2, row.y, cells, &line_in, Role::Good);
        canvas.left(x + 3 + cells, row.y, cells, &line_out, Role::Good);
    }
}

fn cell(model: &Model, column: Column, counts: &QueueCounts, flow: Option<&Shown>, alert: &str) -> (Role, String) {
    let per_second =
        |value: Option<f64>| value.map_or((Role::Dim, "-".to_owned()), |value| (moving(value), rate(value)));
    match column {
        Column::Count(segment) if counts.segments[segment as usize].is_none() => (Role::Wrong, format!("{alert}type")),
        Column::Count(segment) => {
            let value = counts.of(segment);
            let role = match (segment, value) {
                (_, 0) => Role::Dim,
                (Segment::Failed, _) => Role::Wrong,
                (Segment::Running, _) => Role::Good,
                _ => Role::Text,
            };
            (role, count(value))
        }
        Column::Oldest => match attention::waited(model, &counts.queue) {
            None => (Role::Dim, "-".into()),
            Some(waited) if waited > LATE_MS => (Role::Soon, short_span(waited)),
            Some(waited) => (Role::Text, short_span(waited)),
        },
        Column::Hour => {
            let failed =
                model.pulse.value.as_ref().and_then(|pulses| pulses.get(&counts.queue)).map(|pulse| pulse.failed);
            let role = if failed.is_some_and(|failed| failed > 0) { Role::Wrong } else { Role::Dim };
            (role, failed.map_or_else(|| "-".into(), count))
        }
        Column::Quarantine => (if counts.quarantined > 0 { Role::Wrong } else { Role::Dim }, count(counts.quarantined)),
        Column::In => per_second(flow.map(|flow| flow.rate_in)),
        Column::Out => per_second(flow.map(|flow| flow.rate_out)),
    }
}

fn moving(rate: f64) -> Role {
    if rate > 0.0 { Role::Text } else { Role::Dim }
}
