//! The line that says which filter is on the list, and how far it is.

use crate::inspector::format::{count, exact};
use crate::inspector::model::Model;
use crate::inspector::model::sift::{ROWS_MAX, SiftState, Sifting};
use crate::inspector::text::width;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use ratatui::layout::Rect;

/// Draws the line.
pub fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    let Some(sift) = model.sift.as_ref().filter(|_| area.height > 0) else { return };
    let (role, progress) = progress(sift, area.width >= 70);
    let room = area.width.saturating_sub(2);
    let used = u16::try_from(width(&progress)).unwrap_or(room).min(room);
    canvas.left(area.right().saturating_sub(used + 1), area.y, used, &progress, role);
    let columns = area.width.saturating_sub(used + 13);
    canvas.left(area.x + 3, area.y, 7, "filter", Role::Accent);
    canvas.left(area.x + 10, area.y, columns, sift.filter.as_str(), Role::Bright);
}

fn progress(sift: &Sifting, is_roomy: bool) -> (Role, String) {
    let matched = exact(sift.matched);
    let more = if sift.matched > ROWS_MAX as u64 {
        format!(", first {} listed", exact(ROWS_MAX as u64))
    } else {
        String::new()
    };
    match &sift.state {
        SiftState::UnderWay if is_roomy => {
            let looked = format!("{} of {} looked at", count(sift.looked_at), count(sift.total));
            (Role::Good, format!("{matched} found, {looked}, Esc stops"))
        }
        SiftState::UnderWay => (Role::Good, format!("{matched}, {} of {}", count(sift.looked_at), count(sift.total))),
        SiftState::Done if is_roomy => (Role::Text, format!("{matched} of {}{more}", exact(sift.total))),
        SiftState::Done => (Role::Text, format!("{matched} of {}", count(sift.total))),
        SiftState::Stopped => {
            (Role::Soon, format!("{matched} in {} of {}, stopped", count(sift.looked_at), count(sift.total)))
        }
        SiftState::Failed(_) => {
            (Role::Wrong, format!("{matched} in {} of {}, failed", count(sift.looked_at), count(sift.total)))
        }
    }
}
