//! The first line: what this is connected to, and how true the rest of the screen is.

use crate::inspector::format::{bytes, span, whole_span};
use crate::inspector::model::{Model, Standing};
use crate::inspector::source::ServerFacts;
use crate::inspector::text::width;
use crate::inspector::theme::{Role, Signs};
use crate::inspector::update::is_paused;
use crate::inspector::view::canvas::{Canvas, Span};
use ratatui::layout::Rect;
use std::time::Duration;

/// Memory is soon full from this part on.
const NEARLY_FULL: f64 = 0.9;

/// Draws the line; the truth is on its right and is never cut for the rest.
pub fn draw(model: &Model, area: Rect, canvas: &mut Canvas) {
    if area.height == 0 {
        return;
    }
    canvas.clear(area);
    let (role, truth) = truth(model, canvas.signs());
    let room = area.width.saturating_sub(2);
    let used = u16::try_from(width(&truth)).unwrap_or(room).min(room);
    canvas.left(area.right().saturating_sub(used + 1), area.y, used, &truth, role);
    let mut x = area.x + 1;
    let end = area.right().saturating_sub(used + 3);
    for part in parts(model, canvas.signs()) {
        let columns: usize = part.iter().map(|(_, text)| width(text)).sum();
        let columns = u16::try_from(columns).unwrap_or(u16::MAX);
        if x.saturating_add(columns) > end {
            break;
        }
        x += canvas.spans(x, area.y, columns, &part) + 2;
    }
}

fn truth(model: &Model, signs: &Signs) -> (Role, String) {
    let old = model.age().map(|age| format!("{age} s old"));
    if is_paused(model) {
        let old = old.map_or_else(String::new, |old| format!(", {old}"));
        return (Role::Soon, format!("{} paused out of focus{old}", signs.hollow));
    }
    match model.standing() {
        Standing::Connecting => (Role::Soon, format!("{} connecting", signs.hollow)),
        Standing::Live => {
            let old = old.map_or_else(String::new, |old| format!(", {old}"));
            (Role::Good, format!("{} live{old}", signs.live))
        }
        Standing::Silent(waited, _) => {
            let waited = match waited.as_secs() {
                0 => String::new(),
                1..60 => format!(" for {} s", waited.as_secs()),
                _ => format!(" for {}", whole_span(waited.as_millis() as f64)),
            };
            let wide = model.size.0 >= 60;
            let old = old.filter(|_| wide).map_or_else(String::new, |old| format!("   shown is {old}"));
            (Role::Wrong, format!("{} no answer{waited}, trying{old}", signs.hollow))
        }
    }
}

/// What stands on the left, most important first.
fn parts(model: &Model, signs: &Signs) -> Vec<Vec<Span>> {
    let dim = |text: String| vec![(Role::Dim, text)];
    let mut parts =
        vec![vec![(Role::Bright, "threadmill".to_owned())], vec![(Role::Accent, model.options.alias.clone())]];
    let Some(facts) = &model.facts.value else {
        if !model.options.endpoint.is_empty() {
            parts.push(dim(model.options.endpoint.clone()));
        }
        return parts;
    };
    parts.extend(model.conn.round_trip.map(|trip| dim(format!("rtt {}", round_trip(trip)))));
    if let Some(version) = &facts.version {
        parts.push(dim(format!("{} {version}", facts.name.as_deref().unwrap_or("redis"))));
    }
    if facts.role.as_deref().is_some_and(|role| role != "master") {
        parts.push(vec![(Role::Soon, format!("{} replica", signs.alert))]);
    }
    parts.extend(memory(facts, signs));
    match facts.append_only {
        Some(true) => parts.push(dim("aof".into())),
        Some(false) => parts.push(dim("no aof".into())),
        None => {}
    }
    match facts.eviction_policy.as_deref() {
        Some("noeviction") => parts.push(dim("noeviction".into())),
        Some(policy) => parts.push(vec![(Role::Soon, format!("{} {policy}", signs.alert))]),
        None => {}
    }
    if !model.options.endpoint.is_empty() {
        parts.push(dim(model.options.endpoint.clone()));
    }
    parts
}

fn memory(facts: &ServerFacts, signs: &Signs) -> Option<Vec<Span>> {
    let used = facts.used_memory?;
    let most = facts.max_memory.filter(|most| *most > 0);
    let Some(most) = most else { return Some(vec![(Role::Dim, bytes(used))]) };
    let text = format!("{} of {}", bytes(used), bytes(most));
    if used as f64 > most as f64 * NEARLY_FULL {
        return Some(vec![(Role::Wrong, format!("{} {text}", signs.alert))]);
    }
    Some(vec![(Role::Dim, text)])
}

/// A round trip; what is under a millisecond is as good as none.
fn round_trip(trip: Duration) -> String {
    if trip < Duration::from_millis(1) { "<1ms".into() } else { span(trip.as_secs_f64() * 1_000.0) }
}
