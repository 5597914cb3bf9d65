//! The one task.

use crate::inspector::format::{Times, ago, full_moment};
use crate::inspector::layout::Areas;
use crate::inspector::model::doc::{LineText, Live};
use crate::inspector::model::{Focus, Model};
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use crate::inspector::view::chrome;
use ratatui::layout::Rect;

/// Draws the detail.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let focused = model.ui.focus == Focus::Detail;
    let end = chrome::head(areas.detail_head, "Detail", focused, canvas);
    let mut area = areas.detail;
    if area.height == 0 || area.width == 0 {
        return;
    }
    let selected = model.ui.tasks.selected.as_ref();
    let Some(selected) = selected else {
        canvas.left(area.x + 1, area.y, area.width - 1, "no task is selected", Role::Dim);
        return;
    };
    let read = model.ui.doc_of.as_ref() == Some(selected);
    if !read {
        let none = matches!(&model.detail.value, Some(None)) && !model.detail.is_turning();
        let (role, text) = match &model.detail.error {
            Some(error) => (Role::Wrong, format!("{} {error}", canvas.signs().alert)),
            None if none => {
                (Role::Soon, "nothing of this id is left: its time to live is over, or it was dropped".into())
            }
            None => (Role::Dim, "reading".into()),
        };
        canvas.left(area.x + 1, area.y, area.width - 1, selected.as_str(), Role::Dim);
        if area.height > 1 {
            canvas.left(area.x + 1, area.y + 1, area.width - 1, &text, role);
        }
        return;
    }
    let doc = &model.ui.doc;
    let bottom = doc.end(area.width.saturating_sub(1), area.height);
    if bottom != Default::default() {
        let part = (model.ui.place.piece * 100).checked_div(bottom.piece).unwrap_or(0).min(99);
        let text = if model.ui.place == Default::default() {
            " top ".to_owned()
        } else if model.ui.place >= bottom {
            " end ".to_owned()
        } else {
            format!(" {part}% ")
        };
        let right = areas.detail_head.right();
        if right > end + 8 {
            canvas.right(right - 8, areas.detail_head.y, 7, &text, Role::Dim);
        }
    }
    // The column before the text is that of the cursor.
    area.x += 1;
    area.width -= 1;
    let lines = doc.lines(model.ui.place, area.width, area.height, canvas.signs().ascii);
    for (nth, line) in lines.iter().enumerate() {
        // As many as fit were taken, so this is within the area.
        let y = area.y + nth as u16;
        canvas.left(area.x, y, area.width, line.label, Role::Dim);
        let indent = line.indent.min(area.width);
        let text = match &line.text {
            LineText::Fixed(text) => text.clone(),
            LineText::Live(live) => spoken(model, live),
        };
        canvas.left(area.x + indent, y, area.width - indent, &text, line.role);
        if focused && line.at == model.ui.cursor {
            canvas.sign(area.x - 1, y, canvas.signs().cursor, Role::Accent);
            canvas.select(Rect { x: area.x - 1, y, width: area.width + 1, height: 1 });
        }
    }
}

/// A line that changes with the time.
fn spoken(model: &Model, live: &Live) -> String {
    let (now, times) = (model.clock.wall_ms, model.ui.times);
    match live {
        Live::Since(words, at) if times != Times::Ages => {
            format!("{words}, {}", full_moment(*at, times).unwrap_or_else(|| "-".into()))
        }
        Live::Since(words, at) => format!("{words}, {}", ago(*at, now)),
        Live::Moment(at, stored) => {
            let local = (times == Times::Local).then(|| full_moment(*at, times)).flatten();
            let moment = stored.clone().or_else(|| full_moment(*at, Times::Utc)).unwrap_or_else(|| "-".into());
            let local = local.map_or_else(String::new, |local| format!("   {local}"));
            format!("{moment}{local}   {}", ago(*at, now))
        }
    }
}
