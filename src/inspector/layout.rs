//! Where everything is, at any size. Update asks it for heights, view for places, the mouse for what it hit.

use crate::inspector::model::{Focus, Screen, Ui};
use ratatui::layout::Rect;

/// From this many columns on there are two columns of panes.
pub const WIDE: u16 = 120;
/// The columns of the queues in the wide layout, at least and at most.
const SIDE: (u16, u16) = (52, 66);
/// Rows of what is known of one incident.
const ABOUT: u16 = 8;
/// Rows of the short list of incidents at least, its rule included.
const SIDE_MIN: u16 = 5;
/// Below this many rows only the pane with the keys is shown.
const SHORT: u16 = 12;

/// The places of the parts of the screen; what is not shown has no height.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Areas {
    /// The truth line.
    pub truth: Rect,
    /// The rule above the queues, where there is one.
    pub queues_head: Rect,
    /// The queues: a heading and their rows.
    pub queues: Rect,
    /// The rule with the segments.
    pub tasks_head: Rect,
    /// The tasks: a heading and their rows.
    pub tasks: Rect,
    /// The rule above the detail.
    pub detail_head: Rect,
    /// The detail.
    pub detail: Rect,
    /// The rule above the workers or the log.
    pub other_head: Rect,
    /// The workers or the log.
    pub other: Rect,
    /// The line that says which filter is on the list.
    pub filter: Rect,
    /// The rule above the short list of incidents.
    pub incidents_head: Rect,
    /// The incidents: beside the queues, or on a screen of their own below a heading.
    pub incidents: Rect,
    /// What is known of the selected incident.
    pub about: Rect,
    /// The column between the two columns of panes.
    pub wall: Rect,
    /// The rule above the keys, where reports are said.
    pub notice: Rect,
    /// The keys.
    pub keys: Rect,
    /// Whether there are two columns of panes.
    pub wide: bool,
    /// Whether the incidents have a screen of their own.
    pub on_screen: bool,
}

impl Areas {
    /// The places at this size.
    pub fn new((width, height): (u16, u16), ui: &Ui, queues: usize, is_filtered: bool) -> Self {
        let mut areas = Areas { on_screen: ui.screen == Screen::Incidents, ..Areas::default() };
        let mut rest = Rect::new(0, 0, width, height);
        areas.truth = top(&mut rest, u16::from(height >= 3));
        areas.keys = bottom(&mut rest, u16::from(height >= 4));
        areas.notice = bottom(&mut rest, u16::from(height >= 7));
        areas.wide = width >= WIDE && height >= SHORT && !ui.zoom;
        if areas.wide {
            areas.two_columns(rest, ui, queues)
        } else {
            areas.one_column(rest, ui, queues)
        }
        if is_filtered && areas.tasks.height > 2 {
            areas.filter = top(&mut areas.tasks, 1);
        }
        if ui.screen == Screen::Incidents {
            let mut rest = areas.other;
            let about = if rest.height >= ABOUT * 2 { ABOUT } else { 0 };
            areas.about = bottom(&mut rest, about);
            areas.incidents = rest;
        }
        areas
    }

    fn two_columns(&mut self, mut rest: Rect, ui: &Ui, queues: usize) {
        let side = (rest.width / 3).clamp(SIDE.0, SIDE.1);
        let mut left = Rect { width: side, ..rest };
        self.wall = Rect { x: rest.x + side, width: 1, ..rest };
        rest = Rect { x: rest.x + side + 1, width: rest.width - side - 1, ..rest };
        self.queues_head = top(&mut left, 1);
        let wanted = u16::try_from(queues.max(1) * 2 + 2).unwrap_or(u16::MAX).min(left.height * 3 / 5);
        if ui.screen != Screen::Incidents && left.height >= wanted + SIDE_MIN {
            let rows = wanted.max(left.height / 3);
            self.queues = top(&mut left, rows);
            self.incidents_head = top(&mut left, 1);
            self.incidents = left;
        } else {
            self.queues = left;
        }
        if ui.screen != Screen::Main {
            self.other_head = top(&mut rest, 1);
            self.other = rest;
            return;
        }
        self.tasks_head = top(&mut rest, 1);
        let rows = rest.height * 2 / 5;
        self.tasks = top(&mut rest, rows);
        self.detail_head = top(&mut rest, 1);
        self.detail = rest;
    }

    fn one_column(&mut self, mut rest: Rect, ui: &Ui, queues: usize) {
        if ui.screen != Screen::Main {
            self.other_head = top(&mut rest, 1);
            self.other = rest;
            return;
        }
        let alone = rest.height < SHORT - 3 || ui.zoom;
        match ui.focus {
            Focus::Detail => {
                self.detail_head = top(&mut rest, 1);
                self.detail = rest;
            }
            Focus::Queues if alone => self.queues = rest,
            _ => {
                if !alone {
                    let wanted = u16::try_from(queues.max(1)).unwrap_or(u16::MAX).saturating_add(1);
                    let most = (rest.height * 2 / 5).max(4);
                    self.queues = top(&mut rest, wanted.min(most));
                }
                self.tasks_head = top(&mut rest, 1);
                self.tasks = rest;
            }
        }
    }

    /// Incidents that are on the screen at a time.
    pub fn incidents_shown(&self) -> usize {
        usize::from(self.incidents.height.saturating_sub(u16::from(self.on_screen)))
    }

    /// Rows that one queue takes.
    pub const fn queue_rows(&self) -> u16 {
        if self.wide { 2 } else { 1 }
    }

    /// Queues that are on the screen at a time.
    pub fn queues_shown(&self) -> usize {
        usize::from(self.queues.height.saturating_sub(1) / self.queue_rows())
    }

    /// Tasks that are on the screen at a time.
    pub fn tasks_shown(&self) -> usize {
        usize::from(self.tasks.height.saturating_sub(1))
    }

    /// Rows of the workers or the log that are on the screen at a time, below a heading.
    pub fn others_shown(&self) -> usize {
        usize::from(self.other.height.saturating_sub(1))
    }
}

/// Cuts rows off at the top.
fn top(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    let cut = Rect { height: rows, ..*rest };
    rest.y += rows;
    rest.height -= rows;
    cut
}

/// Cuts rows off at the bottom.
fn bottom(rest: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(rest.height);
    rest.height -= rows;
    Rect { y: rest.y + rest.height, height: rows, ..*rest }
}
