//! A question, in the middle, over the dimmed screen.

use crate::inspector::model::confirm::{Confirm, Reply};
use crate::inspector::text::words;
use crate::inspector::theme::Role;
use crate::inspector::view::canvas::{Canvas, Span};
use crate::task::visible;
use ratatui::layout::Rect;

/// Columns of the box at most.
const WIDTH: u16 = 68;

/// Draws the question; where there is little room, what is asked and the answers come before the rest.
pub fn draw(question: &Confirm, body: Rect, canvas: &mut Canvas) {
    let width = WIDTH.min(body.width);
    let columns = usize::from(width.saturating_sub(4));
    let line = |role: Role| move |text: String| vec![(role, text)];
    let asked: Vec<Vec<Span>> =
        words(&visible(&question.question), columns).into_iter().map(line(Role::Bright)).collect();
    let facts = question.facts.iter().flat_map(|fact| words(&visible(fact), columns)).map(line(Role::Text));
    let facts: Vec<Vec<Span>> = facts.collect();
    let answers = answers(question);
    let wanted = asked.len() + facts.len() + answers.len() + 4;
    let framed = usize::from(body.height) >= wanted && width > 8;
    let lines: Vec<Vec<Span>> = if framed {
        asked.into_iter().chain([vec![]]).chain(facts).chain([vec![]]).chain(answers).collect()
    } else {
        let room = usize::from(body.height).saturating_sub(answers.len());
        asked.into_iter().chain(facts).take(room).chain(answers).collect()
    };
    let height = (lines.len() + if framed { 2 } else { 0 }).min(usize::from(body.height)) as u16;
    let place = Rect { x: body.x + (body.width - width) / 2, y: body.y + (body.height - height) / 2, width, height };
    let inside = if framed {
        canvas.frame(place)
    } else {
        canvas.clear(place);
        place
    };
    for (nth, spans) in lines.iter().enumerate().take(usize::from(inside.height)) {
        // No more than the height was taken, so this is within the area.
        canvas.spans(inside.x + 1, inside.y + nth as u16, inside.width.saturating_sub(1), spans);
    }
}

fn answers(question: &Confirm) -> Vec<Vec<Span>> {
    let accent = |text: &str| (Role::Accent, text.to_owned());
    let text = |text: &str| (Role::Text, text.to_owned());
    match &question.answer {
        Reply::Key => vec![vec![accent("y"), text(" yes   "), accent("n"), text(" no")]],
        typed @ Reply::Typed { word, input } => {
            let (before, after) = split(input.value(), input.cursor());
            let ready = typed.is_complete();
            let enter = if ready { vec![accent("Enter"), text(" do it   ")] } else { vec![] };
            vec![
                vec![(Role::Dim, "Type  ".into()), (Role::Bright, visible(word).into_owned())],
                vec![accent("> "), text(&before), accent("_"), text(&after)],
                enter.into_iter().chain([accent("Esc"), text(" cancel")]).collect(),
            ]
        }
    }
}

/// The text before and after the cursor, which counts characters.
fn split(value: &str, cursor: usize) -> (String, String) {
    (value.chars().take(cursor).collect(), value.chars().skip(cursor).collect())
}
