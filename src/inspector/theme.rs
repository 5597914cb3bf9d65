//! Colours and signs. A colour means something or is not there, and each meaning has a sign as well.

use ratatui::style::{Color, Modifier, Style};
use std::str::FromStr;

/// The colour schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ThemeName {
    /// For a dark background.
    #[default]
    Dark,
    /// For a light background.
    Light,
    /// Only the sixteen colours that the terminal itself defines.
    Ansi,
}

impl FromStr for ThemeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "dark" => Ok(Self::Dark),
            "light" => Ok(Self::Light),
            "ansi" | "16" => Ok(Self::Ansi),
            _ => Err(format!("`{text}` is no theme; the themes are dark, light and ansi")),
        }
    }
}

/// What a piece of the screen means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// What matters less: units, headings, rules, zeros.
    Dim,
    /// A name or a title that the eye should find.
    Bright,
    /// Wrong now.
    Wrong,
    /// Soon wrong, or to be careful with.
    Soon,
    /// Moving, live.
    Good,
    /// What is selected, and the keys.
    Accent,
}

/// Styles and signs together.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    name: ThemeName,
    color: bool,
    /// The characters that stand for something.
    pub signs: &'static Signs,
}

/// The characters that stand for something.
#[derive(Debug)]
pub struct Signs {
    /// Whether only ASCII may be drawn, task text included.
    pub ascii: bool,
    /// Where a text was cut.
    pub ellipsis: &'static str,
    /// Before the selected row of the pane that has the keys.
    pub cursor: &'static str,
    /// Before the selected row of another pane.
    pub anchor: &'static str,
    /// Wrong, or needs attention.
    pub alert: &'static str,
    /// Live.
    pub live: &'static str,
    /// Not live.
    pub hollow: &'static str,
    /// Marked.
    pub mark: &'static str,
    /// Locked.
    pub lock: &'static str,
    /// A horizontal rule.
    pub rule: &'static str,
    /// A vertical rule.
    pub wall: &'static str,
    /// Where a vertical rule leaves a horizontal one: below, to the right, above.
    pub joints: [&'static str; 3],
    /// The corners of a box: top left, top right, bottom left, bottom right.
    pub corners: [&'static str; 4],
    /// The steps of a sparkline, lowest first; empty where there are none.
    pub bars: &'static [&'static str],
}

static UNICODE: Signs = Signs {
    ascii: false,
    ellipsis: "…",
    cursor: "▌",
    anchor: "▏",
    alert: "▲",
    live: "●",
    hollow: "○",
    mark: "*",
    lock: "⊘",
    rule: "─",
    wall: "│",
    joints: ["┬", "├", "┴"],
    corners: ["┌", "┐", "└", "┘"],
    bars: &["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"],
};

static ASCII: Signs = Signs {
    ascii: true,
    ellipsis: "~",
    cursor: ">",
    anchor: ":",
    alert: "!",
    live: "*",
    hollow: "o",
    mark: "*",
    lock: "x",
    rule: "-",
    wall: "|",
    joints: ["+", "+", "+"],
    corners: ["+", "+", "+", "+"],
    bars: &[],
};

impl Theme {
    /// A scheme, with or without colours, with signs of Unicode or ASCII.
    pub fn new(name: ThemeName, color: bool, ascii: bool) -> Self {
        Self { name, color, signs: if ascii { &ASCII } else { &UNICODE } }
    }

    /// How a meaning looks.
    pub fn style(&self, role: Role) -> Style {
        let plain = Style::new();
        if !self.color {
            return match role {
                Role::Text | Role::Good => plain,
                Role::Dim => plain.add_modifier(Modifier::DIM),
                Role::Bright | Role::Wrong | Role::Soon | Role::Accent => plain.add_modifier(Modifier::BOLD),
            };
        }
        match (role, self.name) {
            (Role::Text, _) => plain,
            (Role::Bright, _) => plain.add_modifier(Modifier::BOLD),
            (Role::Dim, ThemeName::Dark) => plain.fg(Color::Indexed(245)),
            (Role::Dim, ThemeName::Light) => plain.fg(Color::Indexed(243)),
            (Role::Dim, ThemeName::Ansi) => plain.fg(Color::DarkGray),
            (Role::Wrong, ThemeName::Dark) => plain.fg(Color::LightRed),
            (Role::Wrong, _) => plain.fg(Color::Red),
            (Role::Soon, ThemeName::Light) => plain.fg(Color::Indexed(130)),
            (Role::Soon, _) => plain.fg(Color::Yellow),
            (Role::Good, ThemeName::Light) => plain.fg(Color::Indexed(28)),
            (Role::Good, _) => plain.fg(Color::Green),
            (Role::Accent, ThemeName::Light) => plain.fg(Color::Indexed(25)),
            (Role::Accent, _) => plain.fg(Color::Cyan),
        }
    }

    /// What the selected row of the pane that has the keys gets on top of its own colours.
    pub fn selected(&self) -> Style {
        match (self.color, self.name) {
            (true, ThemeName::Dark) => Style::new().bg(Color::Indexed(237)).add_modifier(Modifier::BOLD),
            (true, ThemeName::Light) => Style::new().bg(Color::Indexed(254)).add_modifier(Modifier::BOLD),
            _ => Style::new().add_modifier(Modifier::REVERSED),
        }
    }

    /// How everything looks that is no longer sure, or lies behind a question.
    pub fn faded(&self) -> Style {
        match self.name {
            ThemeName::Dark if self.color => Style::new().fg(Color::Indexed(241)),
            ThemeName::Light if self.color => Style::new().fg(Color::Indexed(247)),
            _ if self.color => Style::new().fg(Color::DarkGray),
            _ => Style::new().add_modifier(Modifier::DIM),
        }
    }
}
