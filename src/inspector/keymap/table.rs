//! The table itself.

use crate::inspector::keymap::{Binding, Context, Deed, bind, ctrl, key, named};
use crate::task::Segment;
use crossterm::event::KeyCode;

/// Every key. The footer shows its keys in this order.
pub const BINDINGS: &[Binding] = {
    use Context::{
        Always, Confirm, Detail, Global, Help, HelpSearch, Incidents, Log, Move, Prompt, Queues, Tasks, Typing, Workers,
    };
    use KeyCode::{BackTab, Down, End, Enter, Esc, Home, Left, PageDown, PageUp, Right, Tab, Up};
    &[
        bind(Queues, &[named(Enter), key('l'), named(Right)], Deed::Open, "tasks", "Go to the tasks of the queue")
            .bar(),
        bind(Queues, &[key('P')], Deed::Purge, "purge", "Purge the selected queue; what runs is left alone")
            .bar()
            .danger(),
        bind(
            Tasks,
            &[key('R')],
            Deed::Requeue,
            "run again",
            "Requeue the marked tasks, else this one; SCHEDULED run now",
        )
        .bar()
        .danger(),
        bind(Tasks, &[key('D')], Deed::Drop, "drop", "Drop the marked tasks, else this one").bar().danger(),
        bind(Tasks, &[key('/')], Deed::Filter, "filter", "List only what a filter means, of the whole segment").bar(),
        bind(Tasks, &[key(' ')], Deed::Mark, "mark", "Mark or unmark the selected task, and go down").bar(),
        bind(Tasks, &[named(Enter), key('l'), named(Right)], Deed::Open, "detail", "Open the selected task").bar(),
        bind(Tasks, &[key('a')], Deed::MarkLoaded, "mark all", "Mark all that the filter found, else the loaded page"),
        bind(Tasks, &[key('u')], Deed::Unmark, "unmark", "Take every mark away"),
        bind(Tasks, &[key('L')], Deed::Later, "later", "Requeue after a while, such as 10m").danger(),
        bind(Tasks, &[key('P')], Deed::Purge, "purge", "Purge the segment that is listed").danger(),
        bind(Tasks, &[key('s')], Deed::Sort, "sort", "Sort what is loaded by the next column"),
        bind(Tasks, &[key('o')], Deed::Reverse, "order", "List from the other end: oldest or newest first"),
        bind(Detail, &[key('R')], Deed::Requeue, "run again", "Requeue this task; a SCHEDULED one runs now")
            .bar()
            .danger(),
        bind(Detail, &[key('D')], Deed::Drop, "drop", "Drop this task").bar().danger(),
        bind(Detail, &[key('/')], Deed::Search, "search", "Search in this task").bar(),
        bind(Detail, &[named(Enter), key(' ')], Deed::Fold, "fold", "Open or close what is under the cursor").bar(),
        bind(Detail, &[key('f')], Deed::Frames, "frames", "Open or close the frames of libraries").bar(),
        bind(Detail, &[key('v')], Deed::Raw, "raw", "User data as it is stored, or as a tree").bar(),
        bind(Detail, &[key('n')], Deed::SearchNext, "next", "The next place that was searched for"),
        bind(Detail, &[key('N')], Deed::SearchPrev, "before", "The place before"),
        bind(Detail, &[key('L')], Deed::Later, "later", "Requeue this task after a while, such as 10m").danger(),
        bind(
            Incidents,
            &[named(Enter), key('l'), named(Right)],
            Deed::Open,
            "tasks",
            "List the tasks of this incident",
        )
        .bar(),
        bind(Incidents, &[key('R')], Deed::Requeue, "run again", "Requeue the tasks of this incident").bar().danger(),
        bind(Incidents, &[key('D')], Deed::Drop, "drop", "Drop the tasks of this incident").bar().danger(),
        bind(Incidents, &[key('L')], Deed::Later, "later", "Requeue them after a while, such as 10m").danger(),
        bind(Move, &[named(Up), key('k')], Deed::Up, "up", "One up"),
        bind(Move, &[named(Down), key('j')], Deed::Down, "down", "One down"),
        bind(Move, &[named(PageUp), ctrl('b'), ctrl('u')], Deed::PageUp, "page up", "A screenful up"),
        bind(Move, &[named(PageDown), ctrl('f'), ctrl('d')], Deed::PageDown, "page down", "A screenful down"),
        bind(Move, &[named(Home), key('g')], Deed::First, "first", "To the first"),
        bind(Move, &[named(End), key('G')], Deed::Last, "last", "To the last"),
        bind(Global, &[named(Esc)], Deed::Back, "back", "Stop what is under way; else unmark, unfilter, go back").bar(),
        bind(Global, &[key('?')], Deed::Help, "help", "Show the keys").bar(),
        bind(Global, &[key(':')], Deed::Palette, "commands", "Choose from every command, queue and segment").bar(),
        bind(Global, &[key('h'), named(Left)], Deed::Leave, "back", "Go back"),
        bind(Global, &[key('i')], Deed::Incidents, "incidents", "Failures that belong together, and back").bar(),
        bind(Global, &[key('1')], Deed::Segment(Segment::Ready), "ready", "List READY"),
        bind(Global, &[key('2')], Deed::Segment(Segment::Scheduled), "scheduled", "List SCHEDULED"),
        bind(Global, &[key('3')], Deed::Segment(Segment::Running), "running", "List RUNNING"),
        bind(Global, &[key('4')], Deed::Segment(Segment::Successful), "successful", "List SUCCESSFUL"),
        bind(Global, &[key('5')], Deed::Segment(Segment::Failed), "failed", "List FAILED"),
        bind(Global, &[key('6')], Deed::Quarantine, "quarantine", "List what was set aside, since it cannot be run"),
        bind(Global, &[key('[')], Deed::PrevSegment, "segment", "List the segment before"),
        bind(Global, &[key(']')], Deed::NextSegment, "segment", "List the next segment"),
        bind(Global, &[named(Tab)], Deed::NextPane, "pane", "To the next pane"),
        bind(Global, &[named(BackTab)], Deed::PrevPane, "pane", "To the pane before"),
        bind(Global, &[key('z')], Deed::Zoom, "zoom", "This pane on the whole screen, and back"),
        bind(Global, &[key('w')], Deed::Workers, "workers", "The workers, and back").bar(),
        bind(Global, &[key('e')], Deed::Log, "log", "What this session did, and back").bar(),
        bind(Global, &[key('t')], Deed::Times, "times", "Ages, moments in UTC, moments in the local zone"),
        bind(Global, &[key('r')], Deed::Refresh, "refresh", "Ask for what is on the screen now; filter anew"),
        bind(Global, &[key('y')], Deed::CopyId, "copy id", "Copy the id, or the name"),
        bind(Global, &[key('Y')], Deed::CopyCommand, "copy", "Copy the shell command that shows this").bar(),
        bind(Global, &[key('q')], Deed::Quit, "quit", "Quit").bar(),
        bind(Workers, &[named(Enter)], Deed::Back, "back", "Back to the queues"),
        bind(Log, &[named(Enter)], Deed::Back, "back", "Back to the queues"),
        bind(Help, &[named(Esc), key('?'), key('q'), named(Enter)], Deed::Back, "close", "Close this page").bar(),
        bind(Help, &[key('/')], Deed::Filter, "search", "Show only lines that hold a word").bar(),
        bind(HelpSearch, &[named(Enter)], Deed::Submit, "show", "Show what was found").bar(),
        bind(HelpSearch, &[named(Esc)], Deed::No, "cancel", "Show everything again").bar(),
        bind(Prompt, &[named(Enter)], Deed::Submit, "do it", "Do it").bar(),
        bind(Prompt, &[named(Tab)], Deed::Complete, "complete", "Take what is offered").bar(),
        bind(Prompt, &[named(Down), ctrl('n')], Deed::Down, "next", "The next that is offered").bar(),
        bind(Prompt, &[named(Up), ctrl('p')], Deed::Up, "before", "The one before"),
        bind(Prompt, &[named(Esc)], Deed::No, "cancel", "Do not").bar(),
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
    (Context::Incidents, "Incidents"),
    (Context::Move, "Moving"),
    (Context::Global, "Everywhere"),
    (Context::Workers, "Workers"),
    (Context::Log, "Log"),
    (Context::Help, "This page"),
    (Context::HelpSearch, "Searching this page"),
    (Context::Prompt, "Where a line is typed"),
    (Context::Confirm, "Questions"),
    (Context::Typing, "Questions with a word to type"),
    (Context::Always, "At any time"),
];
