//! The workers of ours.

use crate::inspector::format::{count, when, whole_span};
use crate::inspector::layout::Areas;
use crate::inspector::model::Model;
use crate::inspector::model::attention::SILENT;
use crate::inspector::source::WorkerInfo;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use crate::inspector::view::chrome;
use crate::task::Stamp;
use ratatui::layout::Rect;

/// Columns before the id: the cursor, the sign, a space.
const MARGIN: u16 = 3;

/// The columns: heading, width, and from which width of the pane on they are there.
const COLUMNS: [(&str, u16, u16); 7] = [
    ("HOST", 14, 84),
    ("PID", 7, 50),
    ("VERSION", 9, 110),
    ("RUN", 5, 0),
    ("SINCE", 11, 70),
    ("BEAT", 9, 0),
    ("QUEUES", 0, 76),
];

/// Draws the workers.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let area = areas.other;
    let workers = model.workers.value.as_deref().unwrap_or_default();
    let title = if workers.is_empty() { "Workers".to_owned() } else { format!("Workers {}", workers.len()) };
    chrome::head(areas.other_head, &title, true, canvas);
    if area.height == 0 {
        return;
    }
    let shown: Vec<_> = COLUMNS.into_iter().filter(|(_, _, from)| area.width >= *from).collect();
    let fixed: u16 = shown.iter().map(|(_, width, _)| width + 2).sum::<u16>() + MARGIN;
    let rest = area.width.saturating_sub(fixed);
    let has_queues = shown.iter().any(|(title, ..)| *title == "QUEUES");
    let id = if has_queues { (rest * 2 / 3).min(38) } else { rest };
    let mut places = Vec::new();
    let mut x = area.x + MARGIN + id + 2;
    for (title, width, _) in shown {
        let width = if title == "QUEUES" { rest - id } else { width };
        places.push((title, x, width));
        x += width + 2;
    }
    canvas.left(area.x + MARGIN, area.y, id, "WORKER", Role::Dim);
    for (title, x, width) in &places {
        if matches!(*title, "PID" | "RUN" | "SINCE" | "BEAT") {
            canvas.right(*x, area.y, *width, title, Role::Dim);
        } else {
            canvas.left(*x, area.y, *width, title, Role::Dim);
        }
    }
    if workers.is_empty() {
        return nothing(model, area, canvas);
    }
    for (nth, worker) in workers.iter().skip(model.ui.worker_top).take(areas.others_shown()).enumerate() {
        // As many as fit were taken, so this is within the area.
        let y = area.y + 1 + nth as u16;
        draw_worker(model, worker, Rect { y, height: 1, ..area }, id, &places, canvas);
    }
}

fn nothing(model: &Model, area: Rect, canvas: &mut Canvas) {
    let (role, text) = match (&model.workers.error, &model.workers.value) {
        (Some(error), _) => (Role::Wrong, error.as_str()),
        (None, None) => (Role::Dim, "reading"),
        (None, Some(_)) => (Role::Dim, "no worker of ours is known; those of the Python package do not tell"),
    };
    if area.height > 1 {
        canvas.left(area.x + MARGIN, area.y + 1, area.width.saturating_sub(MARGIN), text, role);
    }
}

fn draw_worker(
    model: &Model,
    worker: &WorkerInfo,
    row: Rect,
    id: u16,
    places: &[(&str, u16, u16)],
    canvas: &mut Canvas,
) {
    let (sign, role) = if worker.dead {
        (canvas.signs().alert, Role::Wrong)
    } else if worker.silent > SILENT {
        (canvas.signs().hollow, Role::Soon)
    } else {
        (canvas.signs().live, Role::Good)
    };
    canvas.sign(row.x + 1, row.y, sign, role);
    canvas.left(row.x + MARGIN, row.y, id, &worker.id, Role::Text);
    for (title, x, width) in places {
        let (x, width) = (*x, *width);
        match *title {
            "HOST" => drop(canvas.left(x, row.y, width, &worker.host, Role::Text)),
            "PID" => canvas.right(x, row.y, width, &worker.pid.to_string(), Role::Dim),
            "VERSION" => drop(canvas.left(x, row.y, width, &worker.version, Role::Dim)),
            "RUN" => canvas.right(x, row.y, width, &count(worker.running), Role::Text),
            "SINCE" => canvas.right(x, row.y, width, &since(model, worker), Role::Text),
            "BEAT" if worker.dead => canvas.right(x, row.y, width, "dead", Role::Wrong),
            "BEAT" => {
                let silent = format!("{} ago", whole_span(worker.silent.as_secs_f64() * 1_000.0));
                canvas.right(x, row.y, width, &silent, role);
            }
            _ => drop(canvas.left(x, row.y, width, &worker.queues.join(" "), Role::Dim)),
        }
    }
    if model.ui.worker.as_ref() == Some(&worker.id) {
        canvas.sign(row.x, row.y, canvas.signs().cursor, Role::Accent);
        canvas.select(row);
    }
}

fn since(model: &Model, worker: &WorkerInfo) -> String {
    let Some(at) = Stamp::parse(&worker.started_at).map(|stamp| stamp.millis()) else { return "-".into() };
    when(at, model.clock.wall_ms, model.ui.times)
}
