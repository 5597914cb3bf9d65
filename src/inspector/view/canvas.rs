//! The one way onto the screen: every text is sanitised, measured and cut here.

use crate::inspector::text::{fit, fit_tail, width};
use crate::inspector::theme::{Role, Signs, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A buffer to draw into; what lies outside of it is left out.
pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    theme: Theme,
}

/// Part of a line of text.
pub type Span = (Role, String);

impl<'a> Canvas<'a> {
    /// Draws into `buffer` with these styles and signs.
    pub fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    /// The signs.
    pub fn signs(&self) -> &'static Signs {
        self.theme.signs
    }

    /// Text from the left, in at most `columns`. The columns that it took.
    pub fn left(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) -> u16 {
        let shown = fit(text, usize::from(columns), self.signs().ellipsis, self.signs().ascii);
        self.put(x, y, columns, &shown, self.theme.style(role))
    }

    /// Text from the left, cut at its beginning.
    pub fn tail(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) -> u16 {
        let shown = fit_tail(text, usize::from(columns), self.signs().ellipsis, self.signs().ascii);
        self.put(x, y, columns, &shown, self.theme.style(role))
    }

    /// Text that ends at the right of `columns`.
    pub fn right(&mut self, x: u16, y: u16, columns: u16, text: &str, role: Role) {
        let shown = fit(text, usize::from(columns), self.signs().ellipsis, self.signs().ascii);
        let used = u16::try_from(width(&shown)).unwrap_or(columns).min(columns);
        self.put(x + (columns - used), y, used, &shown, self.theme.style(role));
    }

    /// Parts one after the other; those that do not fit are cut or left out. The columns that they took.
    pub fn spans(&mut self, x: u16, y: u16, columns: u16, spans: &[Span]) -> u16 {
        spans.iter().fold(0, |used, (role, text)| used + self.left(x + used, y, columns - used, text, *role))
    }

    /// A horizontal rule.
    pub fn rule(&mut self, area: Rect) {
        for x in area.x..area.right() {
            self.put(x, area.y, 1, self.signs().rule, self.theme.style(Role::Dim));
        }
    }

    /// A box with a border and nothing in it; the place inside.
    pub fn frame(&mut self, area: Rect) -> Rect {
        self.clear(area);
        let area = area.intersection(self.buffer.area);
        if area.width < 2 || area.height < 2 {
            return area;
        }
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        self.rule(Rect { height: 1, ..area });
        self.rule(Rect { y: bottom, height: 1, ..area });
        for y in area.y..=bottom {
            self.sign(area.x, y, self.signs().wall, Role::Dim);
            self.sign(right, y, self.signs().wall, Role::Dim);
        }
        let corners = [(area.x, area.y), (right, area.y), (area.x, bottom), (right, bottom)];
        for ((x, y), corner) in corners.into_iter().zip(self.signs().corners) {
            self.sign(x, y, corner, Role::Dim);
        }
        Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 }
    }

    /// One sign of ours.
    pub fn sign(&mut self, x: u16, y: u16, sign: &str, role: Role) {
        self.put(x, y, 1, sign, self.theme.style(role));
    }

    /// Lays the look of the selected row over an area.
    pub fn select(&mut self, area: Rect) {
        self.buffer.set_style(area.intersection(self.buffer.area), self.theme.selected());
    }

    /// Takes colour and weight out of an area.
    pub fn fade(&mut self, area: Rect) {
        let faded = self.theme.faded();
        let area = area.intersection(self.buffer.area);
        for position in area.positions() {
            if let Some(cell) = self.buffer.cell_mut(position) {
                cell.set_style(Style::reset());
                cell.set_style(faded);
            }
        }
    }

    /// Empties an area.
    pub fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for position in area.positions() {
            if let Some(cell) = self.buffer.cell_mut(position) {
                cell.reset();
            }
        }
    }

    /// Writes what is already safe and fits; the columns that it took.
    fn put(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        if columns == 0 || x < area.x || x >= area.right() || y < area.y || y >= area.bottom() {
            return 0;
        }
        let (end, _) = self.buffer.set_stringn(x, y, text, usize::from(columns), style);
        end - x
    }
}
