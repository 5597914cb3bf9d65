//! The keys, once. Matching, the footer, the help page and the table in the README all read [`BINDINGS`].

mod table;
#[cfg(test)]
mod tests;

pub use table::{BINDINGS, SECTIONS};

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
    /// Where a line is typed: a filter, a search, a command.
    Prompt,
    /// Where the help page is searched.
    HelpSearch,
    /// In the incidents.
    Incidents,
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
    /// Requeue; run a SCHEDULED task now.
    Requeue,
    /// Requeue after a while.
    Later,
    /// Drop.
    Drop,
    /// Purge.
    Purge,
    /// Show only what a filter means; on the help page, what holds a word.
    Filter,
    /// Search in the detail.
    Search,
    /// The next place that was searched for.
    SearchNext,
    /// The place before.
    SearchPrev,
    /// Choose from every command.
    Palette,
    /// The incidents, and back.
    Incidents,
    /// List what was set aside.
    Quarantine,
    /// Sort what is loaded by the next column.
    Sort,
    /// List from the other end.
    Reverse,
    /// Open or close what is under the cursor.
    Fold,
    /// Open or close the frames of libraries.
    Frames,
    /// User data as it is stored, or as a tree.
    Raw,
    /// Take what is offered.
    Complete,
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
            Context::Incidents => &[Context::Incidents, Context::Move, Context::Global, Context::Always],
            Context::Prompt => &[Context::Prompt, Context::Always],
            Context::HelpSearch => &[Context::HelpSearch, Context::Always],
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
