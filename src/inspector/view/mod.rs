//! What is seen. A view reads the model and changes nothing, at any size.

mod canvas;
mod chrome;
mod confirm;
mod detail;
mod filtered;
mod help;
mod incidents;
mod log;
mod prompt;
mod queues;
mod spark;
mod tasks;
mod truth;
mod workers;

use crate::inspector::model::{Model, Overlay, Screen, Standing};
use canvas::Canvas;
use ratatui::Frame;
use ratatui::layout::Rect;

pub use help::help_lines;

/// Draws the model.
pub fn view(model: &Model, frame: &mut Frame) {
    let areas = model.areas();
    let screen = frame.area();
    let mut canvas = Canvas::new(frame.buffer_mut(), model.theme());
    if !matches!(model.standing(), Standing::Connecting) || model.queues.value.is_some() {
        queues::draw(model, &areas, &mut canvas);
        incidents::side(model, &areas, &mut canvas);
        match model.ui.screen {
            Screen::Main => {
                tasks::draw(model, &areas, &mut canvas);
                filtered::draw(model, areas.filter, &mut canvas);
                detail::draw(model, &areas, &mut canvas);
            }
            Screen::Workers => workers::draw(model, &areas, &mut canvas),
            Screen::Log => log::draw(model, &areas, &mut canvas),
            Screen::Incidents => incidents::draw(model, &areas, &mut canvas),
        }
    }
    chrome::walls(&areas, &mut canvas);
    let body = Rect {
        y: areas.truth.height,
        height: screen.height.saturating_sub(areas.truth.height + areas.notice.height + areas.keys.height),
        ..screen
    };
    if matches!(model.standing(), Standing::Silent(..)) && model.ui.screen != Screen::Log {
        canvas.fade(body);
    }
    chrome::notice(model, &areas, &mut canvas);
    match &model.ui.overlay {
        None => {}
        Some(Overlay::Help(help)) => help::draw(help, body, &mut canvas),
        Some(Overlay::Prompt(prompt)) => prompt::draw(prompt, body, &mut canvas),
        Some(Overlay::Confirm(question)) => {
            canvas.fade(body);
            confirm::draw(question, body, &mut canvas);
        }
    }
    truth::draw(model, areas.truth, &mut canvas);
    chrome::keys(model, areas.keys, &mut canvas);
}
