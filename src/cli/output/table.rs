//! Tables that fit the terminal, and are plain and complete where there is none.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, presets};
use std::fmt::Display;

/// What a text is, for its colour. Meaning never rests on the colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// Nothing special.
    Plain,
    /// The head of a column or part.
    Heading,
    /// What went well.
    Good,
    /// What failed.
    Bad,
    /// What deserves a look.
    Warning,
    /// What matters less.
    Faint,
}

impl Paint {
    fn style(self) -> clap::builder::styling::Style {
        use clap::builder::styling::{AnsiColor, Style};
        match self {
            Paint::Plain => Style::new(),
            Paint::Heading => Style::new().bold(),
            Paint::Good => AnsiColor::Green.on_default(),
            Paint::Bad => AnsiColor::Red.on_default(),
            Paint::Warning => AnsiColor::Yellow.on_default(),
            Paint::Faint => Style::new().dimmed(),
        }
    }
}

/// A text in its colour; the stream takes the colour away where none is wanted.
pub fn painted(paint: Paint, text: impl Display) -> String {
    let style = paint.style();
    format!("{style}{text}{style:#}")
}

/// A table under construction. Texts must have been made visible.
pub struct Table {
    inner: comfy_table::Table,
}

impl Table {
    /// A table with these columns; the name of one that holds numbers begins with `>`.
    pub fn new(columns: &[&str]) -> Self {
        let mut inner = comfy_table::Table::new();
        inner.load_style(presets::NOTHING).force_no_tty().enforce_styling().style_text_only();
        let bold = |name: &&str| Cell::new(name.trim_start_matches('>')).add_attribute(Attribute::Bold);
        inner.set_header(columns.iter().map(bold).collect::<Vec<_>>());
        for (index, name) in columns.iter().enumerate() {
            // A column of the header just set.
            let column = inner.column_mut(index).expect("the header has this column");
            column.set_padding((0, if index + 1 == columns.len() { 0 } else { 2 }));
            if name.starts_with('>') {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        Self { inner }
    }

    /// A column that is never cut: what a person copies.
    pub fn whole(mut self, index: usize) -> Self {
        if let Some(column) = self.inner.column_mut(index) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        self
    }

    /// A row of texts.
    pub fn row(&mut self, cells: impl IntoIterator<Item = (String, Paint)>) {
        let cell = |(text, paint): (String, Paint)| match paint {
            Paint::Plain => Cell::new(text),
            Paint::Heading => Cell::new(text).add_attribute(Attribute::Bold),
            Paint::Good => Cell::new(text).fg(Color::DarkGreen),
            Paint::Bad => Cell::new(text).fg(Color::DarkRed),
            Paint::Warning => Cell::new(text).fg(Color::DarkYellow),
            Paint::Faint => Cell::new(text).add_attribute(Attribute::Dim),
        };
        let mut row = comfy_table::Row::from(cells.into_iter().map(cell).collect::<Vec<_>>());
        row.max_height(1);
        self.inner.add_row(row);
    }

    /// Its lines: no wider than `width`, where there is one.
    pub(super) fn lines(mut self, width: Option<u16>, ascii: bool) -> Vec<String> {
        self.inner.set_truncation_indicator(if ascii { "..." } else { "…" });
        match width {
            Some(width) => self.inner.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
            None => self.inner.set_content_arrangement(ContentArrangement::Disabled),
        };
        self.inner.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(lines: &[String]) -> Vec<String> {
        lines.iter().map(|line| anstream::adapter::strip_str(line).to_string().trim_end().to_owned()).collect()
    }

    fn table() -> Table {
        let mut table = Table::new(&["ID", ">COUNT", "TEXT"]).whole(0);
        table.row([
            ("0123456789".into(), Paint::Plain),
            ("7".into(), Paint::Bad),
            ("some words that go on and on".into(), Paint::Plain),
        ]);
        table
    }

    #[test]
    fn a_table_is_whole_where_nothing_bounds_it() {
        let lines = plain(&table().lines(None, false));
        assert_eq!(lines, ["ID          COUNT  TEXT", "0123456789      7  some words that go on and on"]);
    }

    #[test]
    fn a_table_fits_its_width_on_one_line_a_row_and_keeps_what_is_copied() {
        for (ascii, end) in [(false, "…"), (true, "...")] {
            let lines = plain(&table().lines(Some(36), ascii));
            assert_eq!(lines.len(), 2, "{lines:?}");
            assert!(lines[1].starts_with("0123456789 ") && lines[1].contains(end), "{lines:?}");
            assert!(lines.iter().all(|line| line.chars().count() <= 36), "{lines:?}");
        }
    }
}
