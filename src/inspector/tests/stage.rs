//! A model on a stage: keys go in, questions are answered from a shop at once, pictures come out.

use crate::inspector::model::{Model, Overlay};
use crate::inspector::msg::{Clock, Effect, Lane, Msg, Query};
use crate::inspector::options::Options;
use crate::inspector::tests::fake::{NOW, Shop};
use crate::inspector::update::update;
use crate::inspector::view::view;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use std::fmt::Write;
use std::time::Duration;

pub struct Stage {
    pub model: Model,
    pub shop: Shop,
    /// Whether questions are answered.
    pub answers: bool,
    /// What was to be done, besides reading.
    pub effects: Vec<Effect>,
    /// Questions that were not answered.
    pub open: Vec<(Lane, u64, Query)>,
}

impl Stage {
    /// A running inspector on a busy shop, a minute after its start.
    pub fn new(width: u16, height: u16) -> Self {
        Self::with(width, height, Options { queue: Some("emails".into()), ..Options::default() })
    }

    pub fn with(width: u16, height: u16, options: Options) -> Self {
        let clock = Clock { mono: Duration::ZERO, wall_ms: NOW - 65_000.0 };
        let model = Model::new(options, (width, height), clock);
        let mut stage = Self { model, shop: Shop::busy(), answers: true, effects: Vec::new(), open: Vec::new() };
        stage.send(Msg::TelemetryBack);
        for second in 0..65_u32 {
            stage.pass(Duration::from_secs(1));
            let burst = second % 20;
            stage.send(Msg::Telemetry(vec![("emails".into(), burst, 9), ("default".into(), 120, 120)]));
        }
        stage
    }

    /// Takes a message in, and answers what is asked for it.
    pub fn send(&mut self, msg: Msg) {
        let mut waiting = update(&mut self.model, msg);
        while !waiting.is_empty() {
            let mut next = Vec::new();
            for effect in waiting {
                match effect {
                    Effect::Read(lane, id, query) if self.answers => {
                        let result = Ok(self.shop.answer(&query));
                        let took = Duration::from_micros(300);
                        next.extend(update(&mut self.model, Msg::Answer { lane, id, took, result }));
                    }
                    Effect::Read(lane, id, query) => self.open.push((lane, id, query)),
                    effect => self.effects.push(effect),
                }
            }
            waiting = next;
        }
    }

    /// Lets time pass.
    pub fn pass(&mut self, by: Duration) {
        let clock = self.model.clock;
        let wall_ms = clock.wall_ms + by.as_secs_f64() * 1_000.0;
        self.send(Msg::Tick(Clock { mono: clock.mono + by, wall_ms }));
    }

    /// Presses keys: characters, or names in angle brackets.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for key in parse(keys) {
            self.send(Msg::Key(key));
        }
        self
    }

    /// The picture.
    pub fn picture(&self) -> Terminal<TestBackend> {
        let (width, height) = self.model.size;
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view(&self.model, frame)).unwrap();
        terminal
    }

    /// The picture as text.
    pub fn text(&self) -> String {
        self.picture().backend().to_string()
    }

    /// The picture as text, with its colours row by row.
    pub fn in_colour(&self) -> String {
        let terminal = self.picture();
        let buffer = terminal.backend().buffer();
        format!("{}\n{}", terminal.backend(), runs(buffer))
    }

    pub fn question(&self) -> Option<&crate::inspector::model::confirm::Confirm> {
        match &self.model.ui.overlay {
            Some(Overlay::Confirm(confirm)) => Some(confirm),
            _ => None,
        }
    }

    pub fn notice(&self) -> &str {
        self.model.notice.as_ref().map_or("", |notice| &notice.text)
    }

    /// The selected task.
    pub fn selected(&self) -> String {
        self.model.ui.tasks.selected.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// Keys from text such as `jj<enter>R`.
pub fn parse(keys: &str) -> Vec<KeyEvent> {
    let mut parsed = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let named = rest.strip_prefix('<').and_then(|rest| rest.split_once('>'));
        let (event, after) = match named {
            Some((name, after)) => (named_key(name), after),
            None => (KeyEvent::from(KeyCode::Char(c)), &rest[c.len_utf8()..]),
        };
        parsed.push(event);
        rest = after;
    }
    parsed
}

fn named_key(name: &str) -> KeyEvent {
    match name {
        "enter" => KeyCode::Enter.into(),
        "esc" => KeyCode::Esc.into(),
        "tab" => KeyCode::Tab.into(),
        "up" => KeyCode::Up.into(),
        "down" => KeyCode::Down.into(),
        "space" => KeyCode::Char(' ').into(),
        "pgdn" => KeyCode::PageDown.into(),
        "pgup" => KeyCode::PageUp.into(),
        "c-c" => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
        "c-y" => KeyEvent::new(KeyCode::Char('y'), KeyModifiers::CONTROL),
        "c-z" => KeyEvent::new(KeyCode::Char('z'), KeyModifiers::CONTROL),
        other => panic!("no such key: {other}"),
    }
}

/// The colours of a picture: for each row, runs of cells that look alike and are not plain.
fn runs(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in buffer.area.rows().map(|row| row.y) {
        let mut runs: Vec<(String, u16)> = Vec::new();
        for x in 0..buffer.area.width {
            let cell = &buffer[(x, y)];
            let look = look(cell.fg, cell.bg, cell.modifier);
            match runs.last_mut() {
                Some((last, count)) if *last == look => *count += 1,
                _ => runs.push((look, 1)),
            }
        }
        let row: Vec<_> = runs.iter().map(|(look, count)| format!("{count}{look}")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{y:>2} {}", row.join(" "));
    }
    out
}

fn look(fg: Color, bg: Color, modifier: Modifier) -> String {
    let colour = |colour: Color| match colour {
        Color::Reset => String::new(),
        Color::Indexed(index) => format!("#{index}"),
        other => other.to_string().to_lowercase(),
    };
    let mut look = colour(fg);
    if bg != Color::Reset {
        look.push_str(&format!("/{}", colour(bg)));
    }
    for (flag, sign) in [(Modifier::BOLD, "+b"), (Modifier::DIM, "+d"), (Modifier::REVERSED, "+r")] {
        if modifier.contains(flag) {
            look.push_str(sign);
        }
    }
    if look.is_empty() { "-".into() } else { look }
}
