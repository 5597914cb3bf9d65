//! The keys, once. Matching, the footer, the help page and the table in the README all read [`BINDINGS`].

use crate::task::Segment;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Where a key is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Context {
    /// Everywhere, whatever lies over the screen.
    Always,
    /// On every screen, while nothing lies over it.
    Global,
    /// Wherever there is something to scroll.
    Move,
    /// In the queues.
    Queues,
    /// In the tasks.
    Tasks,
    /// In the detail.
    Detail,
    /// In the workers.
    Workers,
    /// In the log.
    Log,
    /// On the help page.
    Help,
    /// At a question that one key answers.
    Confirm,
    /// At a question that a word answers; other keys are text.
    Typing,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// End.
    Quit,
    /// Stop the process until it is continued.
    Suspend,
    /// Draw every cell anew.
    Redraw,
    /// Show the keys.
    Help,
    /// Leave what lies on top; else stop the action under way, unmark, go back.
    Back,
    /// Go back.
    Leave,
    /// The next pane.
    NextPane,
    /// The pane before.
    PrevPane,
    /// The pane with the keys on the whole screen, and back.
    Zoom,
    /// The workers, and back.
    Workers,
    /// The log, and back.
    Log,
    /// Ask for everything on the screen at once.
    Refresh,
    /// Ages or moments.
    Times,
    /// Copy the id or the name.
    CopyId,
    /// Copy the shell command.
    CopyCommand,
    /// One up.
    Up,
    /// One down.
    Down,
    /// A screenful up.
    PageUp,
    /// A screenful down.
    PageDown,
    /// To the first.
    First,
    /// To the last.
    Last,
    /// Open what is selected.
    Open,
    /// List this segment.
    Segment(Segment),
    /// List the segment before.
    PrevSegment,
    /// List the next segment.
    NextSegment,
    /// Mark or unmark.
    Mark,
    /// Mark every loaded row.
    MarkLoaded,
    /// Take every mark away.
    Unmark,
    /// Requeue.
    Requeue,
    /// Drop.
    Drop,
    /// Purge.
    Purge,
    /// Yes.
    Yes,
    /// No.
    No,
    /// Do it, if the word is right.
    Submit,
}

/// A key as it is written in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    code: KeyCode,
    ctrl: bool,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// Where it holds.
    pub context: Context,
    /// The keys; the first is the one that the footer names.
    pub keys: &'static [Key],
    /// What they do.
    pub deed: Deed,
    /// One or two words for the footer.
    pub label: &'static str,
    /// A sentence for the help page.
    pub help: &'static str,
    /// Whether the footer shows it.
    pub in_bar: bool,
    /// Whether it changes anything in Redis; it is an upper-case letter and asks first.
    pub danger: bool,
}

const fn key(c: char) -> Key {
    Key { code: KeyCode::Char(c), ctrl: false }
}

const fn ctrl(c: char) -> Key {
    Key { code: KeyCode::Char(c), ctrl: true }
}

const fn named(code: KeyCode) -> Key {
    Key { code, ctrl: false }
}

const fn bind(context: Context, keys: &'static [Key], deed: Deed, label: &'static str, help: &'static str) -> Binding {
    Binding { context, keys, deed, label, help, in_bar: false, danger: false }
}

impl Binding {
    const fn bar(mut self) -> Self {
        self.in_bar = true;
        self
    }

    const fn danger(mut self) -> Self {
        self.danger = true;
        self
    }
}

/// Every key. The footer shows its keys in this order.
pub const BINDINGS: &[Binding] = {
    use Context::{Always, Confirm, Detail, Global, Help, Log, Move, Queues, Tasks, Typing, Workers};
    use KeyCode::{BackTab, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};
    &[
        bind(
            Queues,
            &[named(Enter), key('l'), named(Right)],
            Deed::Open,
            "tasks",
            "Go to the tasks of the selected queue",
        )
        .bar(),
        bind(Queues, &[key('P')], Deed::Purge, "purge", "Purge the selected queue; what runs is left alone")
            .bar()
            .danger(),
        bind(Tasks, &[key('R')], Deed::Requeue, "requeue", "Requeue the marked tasks, else this one (FAILED)")
            .bar()
            .danger(),
        bind(Tasks, &[key('D')], Deed::Drop, "drop", "Drop the marked tasks, else this one").bar().danger(),
        bind(Tasks, &[key('P')], Deed::Purge, "purge", "Purge the segment that is listed").bar().danger(),
        bind(Tasks, &[key(' ')], Deed::Mark, "mark", "Mark or unmark the selected task, and go down").bar(),
        bind(Tasks, &[key('a')], Deed::MarkLoaded, "mark all", "Mark every task of the loaded page"),
        bind(Tasks, &[key('u')], Deed::Unmark, "unmark", "Take every mark away"),
        bind(Tasks, &[named(Enter), key('l'), named(Right)], Deed::Open, "detail", "Open the selected task").bar(),
        bind(Detail, &[key('R')], Deed::Requeue, "requeue", "Requeue this task (FAILED)").bar().danger(),
        bind(Detail, &[key('D')], Deed::Drop, "drop", "Drop this task").bar().danger(),
        bind(Move, &[named(Up), key('k')], Deed::Up, "up", "One up"),
        bind(Move, &[named(Down), key('j')], Deed::Down, "down", "One down"),
        bind(Move, &[named(PageUp), ctrl('b'), ctrl('u')], Deed::PageUp, "page up", "A screenful up"),
        bind(Move, &[named(PageDown), ctrl('f'), ctrl('d')], Deed::PageDown, "page down", "A screenful down"),
        bind(Move, &[named(Home), key('g')], Deed::First, "first", "To the first"),
        bind(Move, &[named(End), key('G')], Deed::Last, "last", "To the last"),
        bind(Global, &[named(Esc)], Deed::Back, "back", "Stop the action under way; else unmark; else go back").bar(),
        bind(Global, &[key('?')], Deed::Help, "help", "Show the keys").bar(),
        bind(Global, &[key('h'), named(Left)], Deed::Leave, "back", "Go back"),
        bind(Global, &[key('1')], Deed::Segment(Segment::Ready), "ready", "List READY"),
        bind(Global, &[key('2')], Deed::Segment(Segment::Scheduled), "scheduled", "List SCHEDULED"),
        bind(Global, &[key('3')], Deed::Segment(Segment::Running), "running", "List RUNNING"),
        bind(Global, &[key('4')], Deed::Segment(Segment::Successful), "successful", "List SUCCESSFUL"),
        bind(Global, &[key('5')], Deed::Segment(Segment::Failed), "failed", "List FAILED"),
        bind(Global, &[key('[')], Deed::PrevSegment, "segment", "List the segment before"),
        bind(Global, &[key(']')], Deed::NextSegment, "segment", "List the next segment"),
        bind(Global, &[named(Tab)], Deed::NextPane, "pane", "To the next pane"),
        bind(Global, &[named(BackTab)], Deed::PrevPane, "pane", "To the pane before"),
        bind(Global, &[key('z')], Deed::Zoom, "zoom", "This pane on the whole screen, and back"),
        bind(Global, &[key('w')], Deed::Workers, "workers", "The workers, and back").bar(),
        bind(Global, &[key('e')], Deed::Log, "log", "What this session did, and back").bar(),
        bind(Global, &[key('t')], Deed::Times, "times", "Ages or moments (UTC)"),
        bind(Global, &[key('r')], Deed::Refresh, "refresh", "Ask for what is on the screen now"),
        bind(Global, &[key('y')], Deed::CopyId, "copy id", "Copy the id, or the queue's name"),
        bind(Global, &[key('Y')], Deed::CopyCommand, "copy", "Copy the shell command that shows this").bar(),
        bind(Global, &[key('q')], Deed::Quit, "quit", "Quit").bar(),
        bind(Workers, &[named(Enter)], Deed::Back, "back", "Back to the queues"),
        bind(Log, &[named(Enter)], Deed::Back, "back", "Back to the queues"),
        bind(Help, &[named(Esc), key('?'), key('q'), named(Enter)], Deed::Back, "close", "Close this page").bar(),
        bind(Confirm, &[key('y')], Deed::Yes, "yes", "Do it").bar(),
        bind(Confirm, &[key('n'), named(Esc), key('q')], Deed::No, "no", "Do not").bar(),
        bind(Confirm, &[key('Y')], Deed::CopyCommand, "copy", "Copy the shell command that does the same").bar(),
        bind(Typing, &[named(Enter)], Deed::Submit, "do it", "Do it, once the word is typed").bar(),
        bind(Typing, &[named(Esc)], Deed::No, "cancel", "Do not").bar(),
        bind(Typing, &[ctrl('y')], Deed::CopyCommand, "copy", "Copy the shell command that does the same").bar(),
        bind(Always, &[ctrl('c')], Deed::Quit, "quit", "Quit, from anywhere"),
        bind(Always, &[ctrl('z')], Deed::Suspend, "suspend", "Suspend; `fg` comes back"),
        bind(Always, &[ctrl('l')], Deed::Redraw, "redraw", "Draw the screen anew"),
    ]
};

/// The order of the contexts on the help page, with their titles.
pub const SECTIONS: &[(Context, &str)] = &[
    (Context::Queues, "Queues"),
    (Context::Tasks, "Tasks"),
    (Context::Detail, "Detail"),
    (Context::Move, "Moving"),
    (Context::Global, "Everywhere"),
    (Context::Workers, "Workers"),
    (Context::Log, "Log"),
    (Context::Help, "This page"),
    (Context::Confirm, "Questions"),
    (Context::Typing, "Questions with a word to type"),
    (Context::Always, "At any time"),
];

impl Context {
    /// The contexts whose keys hold here, nearest first.
    pub const fn layers(self) -> &'static [Context] {
        match self {
            Context::Queues => &[Context::Queues, Context::Move, Context::Global, Context::Always],
            Context::Tasks => &[Context::Tasks, Context::Move, Context::Global, Context::Always],
            Context::Detail => &[Context::Detail, Context::Move, Context::Global, Context::Always],
            Context::Workers => &[Context::Workers, Context::Move, Context::Global, Context::Always],
            Context::Log => &[Context::Log, Context::Move, Context::Global, Context::Always],
            Context::Help => &[Context::Help, Context::Move, Context::Always],
            Context::Confirm => &[Context::Confirm, Context::Always],
            Context::Typing => &[Context::Typing, Context::Always],
            Context::Move => &[Context::Move],
            Context::Global => &[Context::Global, Context::Always],
            Context::Always => &[Context::Always],
        }
    }
}

/// What a key does in a context.
pub fn resolve(context: Context, event: &KeyEvent) -> Option<Deed> {
    let pressed = Key::of(event)?;
    let found = context.layers().iter().find_map(|layer| {
        BINDINGS.iter().find(|binding| binding.context == *layer && binding.keys.contains(&pressed))
    })?;
    // A key that is held down moves on, and does nothing else twice.
    let held = event.kind == KeyEventKind::Repeat && !matches!(found.context, Context::Move);
    (!held).then_some(found.deed)
}

/// The bindings that the footer shows in a context, nearest first.
pub fn bar(context: Context) -> impl Iterator<Item = &'static Binding> {
    context
        .layers()
        .iter()
        .flat_map(|layer| BINDINGS.iter().filter(move |binding| binding.in_bar && binding.context == *layer))
}

/// The table for the README.
pub fn markdown() -> String {
    let mut table = String::from("| Where | Keys | What they do |\n| --- | --- | --- |\n");
    for (context, title) in SECTIONS {
        for binding in BINDINGS.iter().filter(|binding| binding.context == *context) {
            let keys: Vec<_> = binding.keys.iter().map(|key| format!("`{}`", key.name())).collect();
            let asks = if binding.danger { "; asks first" } else { "" };
            table.push_str(&format!("| {title} | {} | {}{asks} |\n", keys.join(" "), binding.help));
        }
    }
    table
}

impl Key {
    /// The key of an event; `None` for a release and for keys with other modifiers.
    fn of(event: &KeyEvent) -> Option<Self> {
        let odd = KeyModifiers::ALT | KeyModifiers::SUPER | KeyModifiers::HYPER | KeyModifiers::META;
        if event.kind == KeyEventKind::Release || event.modifiers.intersects(odd) {
            return None;
        }
        let shift = event.modifiers.contains(KeyModifiers::SHIFT);
        let code = match event.code {
            // Some terminals send the shift beside a lower-case letter.
            KeyCode::Char(c) if shift => KeyCode::Char(c.to_ascii_uppercase()),
            KeyCode::Tab if shift => KeyCode::BackTab,
            code => code,
        };
        Some(Self { code, ctrl: event.modifiers.contains(KeyModifiers::CONTROL) })
    }

    /// The key as an event, as a terminal would send it.
    #[cfg(test)]
    pub fn event(&self) -> KeyEvent {
        KeyEvent::new(self.code, if self.ctrl { KeyModifiers::CONTROL } else { KeyModifiers::NONE })
    }

    /// The name as it is shown.
    pub fn name(&self) -> String {
        let name = match self.code {
            KeyCode::Char(' ') => "space".into(),
            KeyCode::Char(c) => c.to_string(),
            KeyCode::Enter => "Enter".into(),
            KeyCode::Esc => "Esc".into(),
            KeyCode::Tab => "Tab".into(),
            KeyCode::BackTab => "Shift-Tab".into(),
            KeyCode::PageUp => "PgUp".into(),
            KeyCode::PageDown => "PgDn".into(),
            code => format!("{code:?}"),
        };
        if self.ctrl { format!("Ctrl-{name}") } else { name }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const CONTEXTS: [Context; 8] = [
        Context::Queues,
        Context::Tasks,
        Context::Detail,
        Context::Workers,
        Context::Log,
        Context::Help,
        Context::Confirm,
        Context::Typing,
    ];

    #[test]
    fn no_key_means_two_things_in_one_context() {
        for context in CONTEXTS {
            let mut seen = HashSet::new();
            for binding in BINDINGS.iter().filter(|binding| context.layers().contains(&binding.context)) {
                for key in binding.keys {
                    assert!(seen.insert(*key), "{} twice in {context:?}", key.name());
                }
            }
        }
    }

    #[test]
    fn every_binding_is_reachable_named_and_on_the_help_page() {
        for binding in BINDINGS {
            assert!(!binding.label.is_empty() && !binding.help.is_empty() && !binding.keys.is_empty());
            assert!(SECTIONS.iter().any(|(context, _)| *context == binding.context), "{binding:?}");
            let reached = CONTEXTS.into_iter().filter(|context| context.layers().contains(&binding.context));
            let mut any = false;
            for context in reached {
                any = true;
                for key in binding.keys {
                    assert_eq!(resolve(context, &key.event()), Some(binding.deed));
                }
            }
            assert!(any, "{binding:?} holds nowhere");
        }
    }

    #[test]
    fn what_is_dangerous_takes_a_capital() {
        for binding in BINDINGS {
            let changes = matches!(binding.deed, Deed::Requeue | Deed::Drop | Deed::Purge);
            assert_eq!(changes, binding.danger, "{binding:?}");
            if binding.danger {
                assert!(binding.keys.iter().all(|key| matches!(key.code, KeyCode::Char(c) if c.is_ascii_uppercase())));
            }
        }
        // Enter alone never says yes.
        assert_eq!(resolve(Context::Confirm, &KeyEvent::from(KeyCode::Enter)), None);
    }

    #[test]
    fn releases_and_repeats() {
        let mut event = KeyEvent::from(KeyCode::Char('j'));
        event.kind = KeyEventKind::Repeat;
        assert_eq!(resolve(Context::Tasks, &event), Some(Deed::Down));
        event.code = KeyCode::Char('R');
        assert_eq!(resolve(Context::Tasks, &event), None);
        event.kind = KeyEventKind::Release;
        assert_eq!(resolve(Context::Tasks, &event), None);
        let shifted = KeyEvent::new(KeyCode::Char('r'), KeyModifiers::SHIFT);
        assert_eq!(resolve(Context::Tasks, &shifted), Some(Deed::Requeue));
        assert_eq!(resolve(Context::Tasks, &KeyEvent::new(KeyCode::Char('R'), KeyModifiers::ALT)), None);
    }

    #[test]
    fn the_table_lists_every_binding() {
        assert_eq!(markdown().lines().count(), BINDINGS.len() + 2);
    }
}
