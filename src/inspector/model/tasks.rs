//! The list of a segment's tasks: which page is loaded, which task is selected, which are marked.
//!
//! The selection is an id. When a refresh no longer lists it, its row stays where it was until the selection leaves
//! it, so that a key never meets another task than the one that was under the cursor.

use crate::inspector::msg::Target;
use crate::inspector::source::{Page, PurgeScope, Summary, TaskRow};
use crate::task::{Segment, TaskId};
use std::collections::BTreeMap;

/// Rows that are loaded at a time.
pub const PAGE_LIMIT: u64 = 200;
/// Tasks that can be marked at a time.
pub const MARKS_MAX: usize = 50_000;

/// The state of the list.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskList {
    /// The segment that is listed, or that was before the quarantine.
    pub segment: Segment,
    /// Whether the quarantine is listed instead.
    pub quarantine: bool,
    /// Whether it is listed from its other end.
    pub reversed: bool,
    /// What the loaded rows are sorted by.
    pub sort: Sort,
    /// The rank of the first row that should be loaded.
    pub offset: u64,
    /// The selected task.
    pub selected: Option<TaskId>,
    /// The first row on the screen, counted in the loaded ones.
    pub top: usize,
    /// The selected row, where the segment no longer lists it: its place and what it was.
    pub gone: Option<(usize, TaskRow)>,
    /// Marked tasks, as they were when they were marked.
    pub marks: BTreeMap<TaskId, Target>,
    /// Where the selection goes when the page that was asked for comes.
    pub jump: Option<Jump>,
}

/// What loaded rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sort {
    /// As the segment lists them, which is the order of all of it.
    #[default]
    Listed,
    /// By function.
    Function,
    /// By attempts, most first.
    Attempts,
    /// By how long they took, longest first.
    Took,
    /// By error.
    Error,
    /// By the bytes of their records, largest first.
    Size,
}

impl Sort {
    /// The next one.
    pub const fn next(self) -> Self {
        match self {
            Sort::Listed => Sort::Function,
            Sort::Function => Sort::Attempts,
            Sort::Attempts => Sort::Took,
            Sort::Took => Sort::Error,
            Sort::Error => Sort::Size,
            Sort::Size => Sort::Listed,
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            Sort::Listed => "as listed",
            Sort::Function => "function",
            Sort::Attempts => "attempts",
            Sort::Took => "took",
            Sort::Error => "error",
            Sort::Size => "size",
        }
    }

    /// Sorts rows; those that are equal stay in the order of the segment.
    pub fn apply(self, rows: &mut [TaskRow]) {
        let readable = |row: &TaskRow| match &row.summary {
            Summary::Readable(readable) => Some((**readable).clone()),
            _ => None,
        };
        match self {
            Sort::Listed => {}
            Sort::Function => rows.sort_by_cached_key(|row| readable(row).map(|read| read.func)),
            Sort::Attempts => {
                rows.sort_by_cached_key(|row| std::cmp::Reverse(readable(row).and_then(|read| read.attempts)));
            }
            Sort::Took => rows.sort_by_cached_key(|row| {
                let read = readable(row);
                let stamps = read.and_then(|read| read.started_at.zip(read.finished_at));
                // A run time in whole microseconds is far within the range.
                std::cmp::Reverse(stamps.map(|(from, to)| ((to.millis() - from.millis()) * 1_000.0) as i64))
            }),
            Sort::Error => rows.sort_by_cached_key(|row| {
                readable(row).and_then(|read| read.last_error).map(|error| error.summary().to_owned())
            }),
            Sort::Size => rows.sort_by_key(|row| std::cmp::Reverse(row.length)),
        }
    }
}

/// An end of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// The first row.
    First,
    /// The last row.
    Last,
}

/// A row as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShownRow<'a> {
    /// The row.
    pub row: &'a TaskRow,
    /// Whether the segment no longer lists it.
    pub gone: bool,
}

/// A row as something to aim at.
pub fn aim(row: &TaskRow, quarantined: bool) -> Target {
    Target { id: row.id.clone(), queue: row.queue.clone(), segment: row.segment, quarantined, seen: row.score }
}

impl TaskList {
    /// An empty list of a segment.
    pub fn new(segment: Segment) -> Self {
        Self {
            segment,
            quarantine: false,
            reversed: false,
            sort: Sort::Listed,
            offset: 0,
            selected: None,
            top: 0,
            gone: None,
            marks: BTreeMap::new(),
            jump: None,
        }
    }

    /// What is listed.
    pub fn scope(&self) -> PurgeScope {
        if self.quarantine { PurgeScope::Quarantine } else { PurgeScope::Segment(self.segment) }
    }

    /// Marks these too. Whether there was room for all.
    pub fn mark_found(&mut self, found: &[Target]) -> bool {
        for target in found {
            if self.marks.len() >= MARKS_MAX && !self.marks.contains_key(&target.id) {
                return false;
            }
            self.marks.insert(target.id.clone(), target.clone());
        }
        true
    }

    /// The rows as they are shown: those of the page, and the selected one where it is no longer among them.
    pub fn shown<'a>(&'a self, page: Option<&'a Page>) -> Vec<ShownRow<'a>> {
        let rows = page.map(|page| page.rows.as_slice()).unwrap_or_default();
        let mut shown: Vec<_> = rows.iter().map(|row| ShownRow { row, gone: false }).collect();
        if let Some((at, row)) = &self.gone {
            shown.insert((*at).min(shown.len()), ShownRow { row, gone: true });
        }
        shown
    }

    /// The place of the selected row among the shown ones.
    pub fn index(&self, page: Option<&Page>) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.shown(page).iter().position(|shown| shown.row.id == *selected)
    }

    /// Takes a new page in place of the old one, the selected task staying where it is on the screen.
    pub fn settle(&mut self, old: Option<&Page>, new: &Page, height: usize) {
        let was = self.index(old);
        match (self.jump.take(), &self.selected) {
            (Some(Jump::First), _) => self.select_at(new, 0, height),
            (Some(Jump::Last), _) => self.select_at(new, usize::MAX, height),
            (None, None) => self.select_at(new, 0, height),
            (None, Some(selected)) => {
                let screen_line = was.unwrap_or(0).saturating_sub(self.top);
                let listed = new.rows.iter().position(|row| row.id == *selected);
                let row = was.and_then(|at| self.shown(old).get(at).map(|shown| shown.row.clone()));
                match (listed, row) {
                    (Some(at), _) => {
                        self.gone = None;
                        // At the very top the news are let in above; anywhere else they must not push the rows about.
                        if new.offset > 0 || self.top > 0 {
                            self.top = at.saturating_sub(screen_line);
                        }
                    }
                    (None, Some(row)) => {
                        let rank = old.map_or(0, |page| page.offset) + was.unwrap_or(0) as u64;
                        let at = usize::try_from(rank.saturating_sub(new.offset)).unwrap_or(usize::MAX);
                        let at = at.min(new.rows.len());
                        self.gone = Some((at, row));
                        self.top = at.saturating_sub(screen_line);
                    }
                    (None, None) => self.select_at(new, 0, height),
                }
            }
        }
        self.reveal(Some(new), height);
        self.load_around(Some(new), height);
    }

    /// Moves the selection by rows; it stops at the ends of what is loaded.
    pub fn step(&mut self, page: Option<&Page>, by: isize, height: usize) {
        let shown = self.shown(page);
        let Some(last) = shown.len().checked_sub(1) else { return };
        let was_gone = self.gone.as_ref().map(|(at, _)| *at);
        let at = self.index(page).unwrap_or(0);
        let mut to = at.saturating_add_signed(by).min(last);
        self.selected = Some(shown[to].row.id.clone());
        if was_gone.is_some_and(|gone| gone != to) {
            // Without the row that was kept, those after it move up by one.
            to -= usize::from(was_gone.is_some_and(|gone| gone < to));
            self.gone = None;
            self.top = self.top.min(to);
        }
        self.reveal(page, height);
        self.load_around(page, height);
    }

    /// Goes to an end of the segment, loading it where it is not loaded.
    pub fn jump(&mut self, page: Option<&Page>, jump: Jump, height: usize) {
        let Some(page) = page else { return };
        let loaded = match jump {
            Jump::First => page.offset == 0,
            Jump::Last => page.offset + page.rows.len() as u64 >= page.total,
        };
        if loaded {
            self.jump = None;
            self.select_at(page, if jump == Jump::First { 0 } else { usize::MAX }, height);
            self.offset = page.offset;
        } else {
            self.jump = Some(jump);
            self.offset = if jump == Jump::First { 0 } else { page.total.saturating_sub(PAGE_LIMIT) };
        }
    }

    /// Selects the loaded row at `at`, or the last.
    pub fn select_at(&mut self, page: &Page, at: usize, height: usize) {
        self.gone = None;
        let at = at.min(page.rows.len().saturating_sub(1));
        self.selected = page.rows.get(at).map(|row| row.id.clone());
        self.reveal(Some(page), height);
    }

    /// Scrolls so far that the selected row is on the screen.
    pub fn reveal(&mut self, page: Option<&Page>, height: usize) {
        let count = self.shown(page).len();
        let at = self.index(page).unwrap_or(0);
        self.top = revealed(self.top, at, count, height);
    }

    /// Asks for another page where the selection comes near the end of the loaded one.
    fn load_around(&mut self, page: Option<&Page>, height: usize) {
        // What is sorted is what is loaded: another page would be another list.
        let Some(page) = page.filter(|_| self.jump.is_none() && self.sort == Sort::Listed) else { return };
        let margin = height.min(PAGE_LIMIT as usize / 4);
        let at = self.index(Some(page)).unwrap_or(0);
        let last_page = page.total.saturating_sub(PAGE_LIMIT);
        let before = at < margin && page.offset > 0;
        let after = at + margin >= page.rows.len() && page.offset + (page.rows.len() as u64) < page.total;
        let emptied = page.rows.is_empty() && page.offset > 0;
        self.offset = if before || after || emptied {
            (page.offset + at as u64).saturating_sub(PAGE_LIMIT / 2).min(last_page)
        } else {
            page.offset
        };
    }

    /// Marks or unmarks the selected row. Whether there was room for it.
    pub fn toggle_mark(&mut self, page: Option<&Page>) -> bool {
        let shown = self.shown(page);
        let Some(row) = self.index(page).and_then(|at| shown.get(at)).map(|shown| shown.row) else { return true };
        let target = aim(row, self.quarantine);
        if self.marks.remove(&target.id).is_none() {
            if self.marks.len() >= MARKS_MAX {
                return false;
            }
            self.marks.insert(target.id.clone(), target);
        }
        true
    }

    /// Marks every loaded row. Whether there was room for all.
    pub fn mark_loaded(&mut self, page: Option<&Page>) -> bool {
        for row in page.iter().flat_map(|page| &page.rows) {
            if self.marks.len() >= MARKS_MAX && !self.marks.contains_key(&row.id) {
                return false;
            }
            self.marks.insert(row.id.clone(), aim(row, self.quarantine));
        }
        true
    }

    /// What an action aims at: the marked tasks, else the selected one; each as it is on the screen, where it is.
    pub fn targets(&self, page: Option<&Page>) -> Vec<Target> {
        let shown = self.shown(page);
        if self.marks.is_empty() {
            let row = self.index(page).and_then(|at| shown.get(at));
            return row.map(|shown| aim(shown.row, self.quarantine)).into_iter().collect();
        }
        let seen: BTreeMap<_, _> = shown.iter().map(|shown| (&shown.row.id, shown.row)).collect();
        let current =
            |target: &Target| seen.get(&target.id).map_or_else(|| target.clone(), |row| aim(row, self.quarantine));
        self.marks.values().map(current).collect()
    }
}

/// The first row to show so that `at` of `count` is on a screen of `height` rows, moving as little as possible.
pub fn revealed(top: usize, at: usize, count: usize, height: usize) -> usize {
    if height == 0 {
        // What is not shown keeps its place.
        return top;
    }
    let top = top.min(count.saturating_sub(height));
    if at < top {
        at
    } else if at >= top + height {
        at + 1 - height
    } else {
        top
    }
}
