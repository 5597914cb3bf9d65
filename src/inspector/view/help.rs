//! The help page: the table of keys, and what the signs mean.

use crate::inspector::keymap::{BINDINGS, Key, SECTIONS};
use crate::inspector::model::Help;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use ratatui::layout::Rect;

/// Columns of the page at most.
const WIDTH: u16 = 92;
/// Columns of the keys.
const KEYS: u16 = 22;

/// What the screen says by itself.
const NOTES: [(&str, &str); 9] = [
    ("OLDEST", "how long the oldest READY task has waited; yellow from five minutes on"),
    ("1H", "failures of the last hour"),
    ("filter", "error:KeyError age<2h func:shop.* args.user_id:42 -worker:web1 OR \"words\""),
    ("IN/s OUT/s", "a second, mean of the last minute; the bars are that minute"),
    ("DONE QUAR", "SUCCESSFUL; set aside in quarantine, since it cannot be run"),
    ("sign on a queue", "red: quarantined or broken; yellow: new failures, or READY tasks wait long"),
    ("age, first line", "how old what is shown is; acting keys lock when it is too old"),
    ("dimmed row", "the selected task has left the segment; keys still mean it"),
    ("n had moved", "changed since it was asked for, and left alone"),
];

/// Lines that hold these words; of the whole page where there are none.
pub fn help_lines(query: &str) -> usize {
    lines(query).len()
}

/// Draws the page, scrolled and searched as it says.
pub fn draw(help: &Help, body: Rect, canvas: &mut Canvas) {
    let width = WIDTH.min(body.width);
    let place = Rect { x: body.x + (body.width - width) / 2, width, ..body };
    let inside = canvas.frame(place);
    let query = help.query.value();
    if place.height > 0 && place.width > 8 {
        let cursor = if help.typing { "_" } else { "" };
        let searched = !query.is_empty() || help.typing;
        let title = if searched { format!(" Keys: {query}{cursor} ") } else { " Keys ".into() };
        canvas.left(place.x + 2, place.y, place.width - 4, &title, Role::Bright);
    }
    let keys = KEYS.min(inside.width / 2);
    let found = lines(query);
    if found.is_empty() {
        canvas.left(inside.x + 1, inside.y, inside.width.saturating_sub(1), "no key does that", Role::Dim);
    }
    for (nth, (left, right)) in found.into_iter().skip(help.top).take(usize::from(inside.height)).enumerate() {
        // No more than the height was taken, so this is within the area.
        let y = inside.y + nth as u16;
        match right {
            Some(right) => {
                canvas.left(inside.x + 1, y, keys, &left, Role::Accent);
                let x = inside.x + 2 + keys;
                canvas.left(x, y, inside.right().saturating_sub(x), &right, Role::Text);
            }
            None => drop(canvas.left(inside.x + 1, y, inside.width.saturating_sub(1), &left, Role::Bright)),
        }
    }
}

type HelpLine = (String, Option<String>);

/// The lines that hold the words, each section below its title.
fn lines(query: &str) -> Vec<HelpLine> {
    let query = query.trim().to_lowercase();
    let mut page: Vec<HelpLine> = Vec::new();
    let notes = NOTES.into_iter().map(|(what, says)| (what.to_owned(), Some(says.to_owned()))).collect();
    let sections = SECTIONS.iter().map(|(context, title)| {
        let keys = BINDINGS.iter().filter(|binding| binding.context == *context).map(|binding| {
            let keys: Vec<_> = binding.keys.iter().map(Key::name).collect();
            (keys.join(" "), Some(binding.help.to_owned()))
        });
        ((*title).to_owned(), keys.collect())
    });
    for (title, mut lines) in sections.chain([("The screen".to_owned(), notes)]) {
        let lines: &mut Vec<HelpLine> = &mut lines;
        lines.retain(|(left, right)| {
            let right = right.as_deref().unwrap_or_default();
            query.is_empty() || left.to_lowercase() == query || right.to_lowercase().contains(&query)
        });
        if !lines.is_empty() {
            if !page.is_empty() {
                page.push((String::new(), None));
            }
            page.push((title, None));
            page.append(lines);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_searched_by_words_and_by_keys() {
        let all = super::help_lines("");
        assert!(all > super::BINDINGS.len());
        let found = super::lines("set aside");
        assert!(found.iter().any(|(left, _)| left == "6") && found.len() < 12, "{found:?}");
        assert!(super::lines("6").iter().any(|(left, _)| left == "6"));
        assert_eq!(super::help_lines("no such words"), 0);
    }
}
