//! What a message changes, and what is to be done for it. No I/O, no clock, no waiting.

mod act;
mod answer;
mod detail;
mod filter;
mod incidents;
mod keys;
mod mouse;
mod plan;
mod prompt;
mod shell;

use crate::inspector::model::{Model, Standing};
use crate::inspector::msg::{Clock, Effect, Msg};
use crate::inspector::theme::Role;

pub use act::ACTIONS_MAX;
pub use keys::context;
pub use plan::is_paused;

/// Takes a message in.
pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = Vec::new();
    match msg {
        Msg::Tick(clock) => tick(model, clock),
        Msg::Key(event) => keys::key(model, event, &mut effects),
        Msg::Paste(text) => keys::paste(model, &text),
        Msg::Mouse(event) => mouse::mouse(model, event),
        Msg::Resized(width, height) => {
            model.size = (width, height);
            model.changed = true;
        }
        Msg::Answer { lane, id, took, result } => answer::take(model, lane, id, took, result),
        Msg::Telemetry(flows) => {
            let now = model.clock.mono;
            for (queue, entered, left) in flows {
                model.flows.record(&queue, now, entered, left);
            }
        }
        Msg::TelemetryBack => {
            if model.flows.lost.is_some() {
                model.note(Role::Good, "telemetry is back; rates are counted anew");
            }
            model.flows.opened(model.clock.mono);
            model.changed = true;
        }
        Msg::TelemetryLost(why) => {
            if model.flows.lost.is_none() {
                model.note(Role::Soon, format!("telemetry is lost: {why}"));
            }
            model.flows.lost = Some(why);
            model.changed = true;
        }
        Msg::Progress(id, tally) => act::progress(model, id, tally),
        Msg::Acted(id, tally) => act::ended(model, id, &tally),
        Msg::Resumed => resumed(model, &mut effects),
        Msg::Focus(focused) => focus(model, focused),
        Msg::Quit => effects.push(Effect::Quit),
    }
    keys::settle(model);
    plan::plan(model, &mut effects);
    effects
}

/// Lets time pass. What is shown of it are whole seconds, so only a new second, or news, are worth a drawing.
fn tick(model: &mut Model, clock: Clock) {
    let before = (model.clock.mono.as_secs(), model.standing(), model.lock());
    model.clock = clock;
    let after = (clock.mono.as_secs(), model.standing(), model.lock());
    model.changed |= before != after;
    model.expire_notice();
    if let Standing::Silent(_, why) = model.standing()
        && !model.conn.told
    {
        model.conn.told = true;
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        model.note(Role::Wrong, format!("no answer from Redis{why}"));
    }
}

/// Takes in that the terminal has come to the fore, or has left it. Nobody is silent who is not asked.
fn focus(model: &mut Model, focused: bool) {
    model.changed |= model.focused != focused;
    model.focused = focused;
    model.conn.waiting_since = model.conn.waiting_since.filter(|_| !plan::is_paused(model)).map(|_| model.clock.mono);
    if focused {
        plan::hurry(model);
    }
}

/// Takes the terminal back after a suspension; nobody was asked meanwhile, so nobody was silent.
fn resumed(model: &mut Model, effects: &mut Vec<Effect>) {
    model.conn.waiting_since = model.conn.waiting_since.map(|_| model.clock.mono);
    plan::hurry(model);
    model.changed = true;
    effects.push(Effect::Redraw);
}
