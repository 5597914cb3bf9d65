//! The help page: the table of keys, and what the signs mean.

use crate::inspector::keymap::{BINDINGS, Key, SECTIONS};
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::Canvas;
use ratatui::layout::Rect;

/// Columns of the page at most.
const WIDTH: u16 = 92;
/// Columns of the keys.
const KEYS: u16 = 22;

/// What the screen says by itself.
const NOTES: [(&str, &str); 6] = [
    ("IN/s OUT/s", "a second, mean of the last minute; the bars are that minute"),
    ("DONE QUAR", "SUCCESSFUL; set aside in quarantine, since it cannot be run"),
    ("sign on a queue", "red: quarantined or broken; yellow: more FAILED than at the start"),
    ("age, first line", "how old what is shown is; acting keys lock when it is too old"),
    ("dimmed row", "the selected task has left the segment; keys still mean it"),
    ("n had moved", "changed since it was asked for, and left alone"),
];

/// Lines of the whole page.
pub fn help_lines() -> usize {
    BINDINGS.len() + SECTIONS.len() * 2 + NOTES.len() + 1
}

/// Draws the page from the line `top` on.
pub fn draw(top: usize, body: Rect, canvas: &mut Canvas) {
    let width = WIDTH.min(body.width);
    let place = Rect { x: body.x + (body.width - width) / 2, width, ..body };
    let inside = canvas.frame(place);
    if place.height > 0 && place.width > 8 {
        canvas.left(place.x + 2, place.y, place.width - 4, " Keys ", Role::Bright);
    }
    let keys = KEYS.min(inside.width / 2);
    for (nth, (left, right)) in lines().skip(top).take(usize::from(inside.height)).enumerate() {
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

fn lines() -> impl Iterator<Item = (String, Option<String>)> {
    let sections = SECTIONS.iter().flat_map(|(context, title)| {
        let keys = BINDINGS.iter().filter(move |binding| binding.context == *context).map(|binding| {
            let keys: Vec<_> = binding.keys.iter().map(Key::name).collect();
            (keys.join(" "), Some(binding.help.to_owned()))
        });
        std::iter::once((title.to_string(), None)).chain(keys).chain(std::iter::once((String::new(), None)))
    });
    let notes = NOTES.into_iter().map(|(what, says)| (what.to_owned(), Some(says.to_owned())));
    sections.chain(std::iter::once(("The screen".to_owned(), None))).chain(notes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_as_long_as_it_says() {
        assert_eq!(super::lines().count(), super::help_lines());
    }
}
