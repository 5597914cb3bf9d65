//! What is around the panes: their heads, the walls, the line of reports, the keys.

use crate::inspector::format::exact;
use crate::inspector::keymap::{self, Binding, Deed};
use crate::inspector::layout::Areas;
use crate::inspector::model::attention::{self, Attention};
use crate::inspector::model::{Lock, Model, Standing};
use crate::inspector::text::width;
use crate::inspector::theme::Role;
use crate::inspector::update::context;
use crate::inspector::view::canvas::{Canvas, Span};
use ratatui::layout::Rect;

/// From this many columns on a lock is named; from this many, that there is none.
const NARROW: u16 = 60;
const ROOMY: u16 = 100;

/// A rule with a title in it; the column after the title.
pub fn head(area: Rect, title: &str, focused: bool, canvas: &mut Canvas) -> u16 {
    if area.height == 0 {
        return area.x;
    }
    canvas.rule(area);
    let role = if focused { Role::Bright } else { Role::Dim };
    let room = area.width.saturating_sub(2);
    let used = canvas.spans(area.x + 1, area.y, room, &[(role, format!(" {title} "))]);
    area.x + 1 + used
}

/// The wall between the two columns of panes, and where it meets the rules.
pub fn walls(areas: &Areas, canvas: &mut Canvas) {
    let wall = areas.wall;
    for y in wall.y..wall.bottom() {
        canvas.sign(wall.x, y, canvas.signs().wall, Role::Dim);
    }
    if wall.height > 0 {
        let [below, right, _] = canvas.signs().joints;
        canvas.sign(wall.x, wall.y, below, Role::Dim);
        if areas.detail_head.height > 0 {
            canvas.sign(wall.x, areas.detail_head.y, right, Role::Dim);
        }
    }
}

/// The rule above the keys: the action under way, else the last report.
pub fn notice(model: &Model, areas: &Areas, canvas: &mut Canvas) {
    let area = areas.notice;
    if area.height == 0 {
        return;
    }
    canvas.rule(area);
    if areas.wall.height > 0 {
        canvas.sign(areas.wall.x, area.y, canvas.signs().joints[2], Role::Dim);
    }
    let spans: Vec<Span> = if let Some(running) = model.actions.front() {
        let tally = &running.tally;
        let tried =
            tally.done + tally.already + tally.moved + tally.gone + tally.running + tally.failed + tally.unknown;
        let more = model.actions.len() - 1;
        let wait = if more > 0 { format!("   {more} more wait") } else { String::new() };
        vec![
            (Role::Bright, format!(" {}", running.title)),
            (Role::Text, format!("  {} of {}{wait}", exact(tried), exact(running.size))),
            (Role::Dim, "  Esc stops ".into()),
        ]
    } else if let Some(notice) = &model.notice {
        vec![(notice.role, format!(" {} ", notice.text))]
    } else if let Standing::Silent(_, Some(why)) = model.standing() {
        vec![(Role::Wrong, format!(" {why} "))]
    } else {
        let mut spans: Vec<Span> = Vec::new();
        for (attention, text) in attention::beyond_queues(model) {
            let role = if attention == Attention::Wrong { Role::Wrong } else { Role::Soon };
            spans.push((role, format!(" {} {text} ", canvas.signs().alert)));
        }
        spans
    };
    canvas.spans(area.x + 1, area.y, area.width.saturating_sub(2), &spans);
}

/// The keys that work now. The key for help is there however little room there is.
pub fn keys(model: &Model, area: Rect, canvas: &mut Canvas) {
    if area.height == 0 {
        return;
    }
    canvas.clear(area);
    let lock = model.lock();
    let sign = canvas.signs().lock;
    let (role, state) = match lock {
        Some(Lock::ReadOnly) => (Role::Soon, format!("{sign} read-only")),
        Some(Lock::Stale) if model.standing() == Standing::Connecting => (Role::Dim, format!("{sign} locked")),
        Some(Lock::Stale) => (Role::Wrong, format!("{sign} locked")),
        None => (Role::Dim, "read-write".into()),
    };
    let columns = u16::try_from(width(&state)).unwrap_or(0);
    let told = area.width >= if lock.is_some() { NARROW } else { ROOMY };
    let end = area.right().saturating_sub(if told { columns + 3 } else { 1 });
    let items: Vec<_> =
        keymap::bar(context(model)).map(|binding| (binding, item(binding, lock.is_some(), sign))).collect();
    let length = |spans: &[Span]| spans.iter().map(|(_, text)| width(text) as u16).sum::<u16>();
    let is_help = |binding: &Binding| binding.deed == Deed::Help;
    let mut for_help = items.iter().find(|(binding, _)| is_help(binding)).map_or(0, |(_, spans)| length(spans) + 2);
    let mut x = area.x + 1;
    for (binding, spans) in &items {
        if is_help(binding) {
            for_help = 0;
        }
        if x + length(spans) + for_help <= end {
            x += canvas.spans(x, area.y, length(spans), spans) + 2;
        }
    }
    if told {
        canvas.right(end + 1, area.y, columns + 1, &state, role);
    }
}

fn item(binding: &Binding, locked: bool, sign: &str) -> Vec<Span> {
    let key = binding.keys.first().map(keymap::Key::name).unwrap_or_default();
    if locked && binding.danger {
        return vec![(Role::Dim, format!("{sign}{key} {}", binding.label))];
    }
    vec![(Role::Accent, key), (Role::Text, format!(" {}", binding.label))]
}
