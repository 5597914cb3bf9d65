//! What this session did and met.

use crate::inspector::format::{Times, moment};
use crate::inspector::layout::Areas;
use crate::inspector::model::Model;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use crate::inspector::view::chrome;

/// Columns of the time.
const TIME: u16 = 11;

/// Draws the log, its end at the bottom.
pub fn draw(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let area = areas.other;
    let times = if model.ui.times == Times::Local { Times::Local } else { Times::Utc };
    chrome::head(
        areas.other_head,
        if times == Times::Local { "Log of this session" } else { "Log of this session, UTC" },
        true,
        canvas,
    );
    if model.log.is_empty() && area.height > 0 {
        let text = "nothing was done yet; each action and each loss of the connection is kept here";
        canvas.left(area.x + 1, area.y, area.width.saturating_sub(1), text, Role::Dim);
    }
    let end = model.log.len().saturating_sub(model.ui.log_back);
    let start = end.saturating_sub(usize::from(area.height));
    for (nth, line) in model.log.range(start..end).enumerate() {
        // No more than the height was taken, so this is within the area.
        let y = area.y + nth as u16;
        canvas.right(area.x, y, TIME.min(area.width), &moment(line.at_ms, model.clock.wall_ms, times), Role::Dim);
        let indent = (TIME + 2).min(area.width);
        canvas.left(area.x + indent, y, area.width - indent, &line.text, line.role);
    }
}
