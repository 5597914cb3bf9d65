//! A line that is typed, at the bottom, with what is offered above it.

use crate::inspector::model::prompt::{Kind, Prompt};
use crate::inspector::text::width;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use crate::task::visible;
use ratatui::layout::Rect;

/// Offers on the screen at a time.
const OFFERS: usize = 10;

/// Draws the line over the lower part of the screen.
pub fn draw(prompt: &Prompt, body: Rect, canvas: &mut Canvas) {
    let below = usize::from(prompt.error.is_some()) * 2;
    let room = usize::from(body.height).saturating_sub(2 + below);
    let shown = prompt.offered.len().min(OFFERS).min(room);
    let height = u16::try_from(2 + shown + below).unwrap_or(u16::MAX).min(body.height);
    let mut area = Rect { y: body.bottom() - height, height, ..body };
    if area.height == 0 {
        return;
    }
    canvas.clear(area);
    canvas.rule(Rect { height: 1, ..area });
    canvas.left(area.x + 1, area.y, area.width.saturating_sub(2), title(prompt), Role::Bright);
    area.y += 1;
    area.height -= 1;
    let sign = format!("{} ", prompt.sign());
    let indent = u16::try_from(width(&sign)).unwrap_or(0) + 1;
    offers(prompt, Rect { height: shown as u16, ..area }, canvas);
    let y = area.y + shown as u16;
    if y >= area.bottom() {
        return;
    }
    canvas.left(area.x + 1, y, area.width.saturating_sub(1), &sign, Role::Accent);
    let columns = area.width.saturating_sub(indent + 1);
    let (before, after, hidden) = around(prompt, columns);
    let x = area.x + indent;
    let used = canvas.left(x, y, columns, &before, Role::Text);
    let used = used + canvas.left(x + used, y, columns.saturating_sub(used), "_", Role::Accent);
    canvas.left(x + used, y, columns.saturating_sub(used), &after, Role::Text);
    if let Some(error) = &prompt.error {
        let text = prompt.input.value();
        let start = width(&visible(&text[..text.floor_char_boundary(error.at.start)]));
        let at = u16::try_from(start.saturating_sub(hidden)).unwrap_or(u16::MAX).min(columns);
        if y + 1 < area.bottom() {
            canvas.left(x + at, y + 1, columns.saturating_sub(at), "^", Role::Wrong);
        }
        if y + 2 < area.bottom() {
            canvas.left(x, y + 2, columns, &error.to_string(), Role::Wrong);
        }
    }
}

const fn title(prompt: &Prompt) -> &'static str {
    match prompt.kind {
        Kind::Filter => " Filter the whole segment ",
        Kind::Search => " Search in this task ",
        Kind::Palette => " Commands ",
        Kind::Later(..) => " Requeue later: 30s, 10m, 2h30m, 1d ",
    }
}

fn offers(prompt: &Prompt, area: Rect, canvas: &mut Canvas) {
    let rows = usize::from(area.height);
    let chosen = prompt.chosen.unwrap_or(0);
    let top = chosen.saturating_sub(rows.saturating_sub(1));
    for (nth, offer) in prompt.offered.iter().skip(top).take(rows).enumerate() {
        // As many as fit were taken, so this is within the area.
        let row = Rect { y: area.y + nth as u16, height: 1, ..area };
        let is_palette = prompt.kind == Kind::Palette;
        let columns = if is_palette { area.width.saturating_sub(16) } else { 26.min(area.width.saturating_sub(4)) };
        canvas.left(row.x + 3, row.y, columns.saturating_sub(3), &offer.text, Role::Text);
        if is_palette {
            canvas.right(row.right().saturating_sub(14), row.y, 12, &offer.help, Role::Accent);
        } else {
            let x = row.x + columns + 1;
            canvas.left(x, row.y, row.right().saturating_sub(x), &offer.help, Role::Dim);
        }
        if prompt.chosen == Some(top + nth) || (prompt.chosen.is_none() && is_palette && nth == 0) {
            canvas.sign(row.x + 1, row.y, canvas.signs().cursor, Role::Accent);
            canvas.select(row);
        }
    }
}

/// The text before and after the cursor, with as much of its beginning left out as the cursor needs; and how many columns
/// those were.
fn around(prompt: &Prompt, columns: u16) -> (String, String, usize) {
    let value = prompt.input.value();
    let (before, after) = value.split_at(prompt.cursor());
    let mut shown = visible(before).into_owned();
    let mut hidden = 0;
    while width(&shown) + 2 > usize::from(columns) && !shown.is_empty() {
        let first = shown.remove(0);
        hidden += crate::inspector::text::char_width(first);
    }
    (shown, visible(after).into_owned(), hidden)
}
