//! A line that is typed: a filter, a search, a command, a duration.

use crate::filter::{Filter, FilterError};
use crate::inspector::keymap::Deed;
use crate::inspector::msg::Target;
use std::ops::Range;
use tui_input::Input;

/// Characters that can be typed.
pub const TYPED_MAX: usize = 1_024;

/// The line and what is offered for it.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// What it is for.
    pub kind: Kind,
    /// What has been typed.
    pub input: Input,
    /// What is wrong with it.
    pub error: Option<FilterError>,
    /// What could be typed or done.
    pub offered: Vec<Offer>,
    /// Which of these is chosen.
    pub chosen: Option<usize>,
}

/// What a line is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A filter on the listed segment.
    Filter,
    /// A search in the detail.
    Search,
    /// A command.
    Palette,
    /// How long a requeue waits; with the tasks and an example, as they were when it was asked for.
    Later(Vec<Target>, Option<String>),
}

/// Something that is offered.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// What it is.
    pub text: String,
    /// What it means.
    pub help: String,
    /// What happens when it is taken.
    pub does: Does,
}

/// What happens when an offer is taken.
#[derive(Clone, Debug, PartialEq)]
pub enum Does {
    /// This part of the line is replaced, in bytes.
    Replace(Range<usize>, String),
    /// A command.
    Deed(Deed),
    /// This queue is selected.
    Queue(String),
}

impl Prompt {
    /// An empty line, or one that was typed before.
    pub fn new(kind: Kind, text: &str) -> Self {
        Self { kind, input: Input::new(text.to_owned()), error: None, offered: Vec::new(), chosen: None }
    }

    /// The sign before the line.
    pub const fn sign(&self) -> &'static str {
        match self.kind {
            Kind::Filter => "filter",
            Kind::Search => "search",
            Kind::Palette => ":",
            Kind::Later(..) => "requeue in",
        }
    }

    /// The byte at which the cursor is.
    pub fn cursor(&self) -> usize {
        let value = self.input.value();
        value.char_indices().nth(self.input.cursor()).map_or(value.len(), |(at, _)| at)
    }

    /// Chooses another offer.
    pub fn choose(&mut self, by: isize) {
        let Some(last) = self.offered.len().checked_sub(1) else { return };
        self.chosen = Some(match self.chosen {
            None if by < 0 => last,
            None => 0,
            Some(at) => at.saturating_add_signed(by).min(last),
        });
    }

    /// Puts an offer's text in its place.
    pub fn replace(&mut self, at: Range<usize>, with: &str) {
        let value = self.input.value();
        let Some((before, after)) = value.get(..at.start).zip(value.get(at.end..)) else { return };
        let text = format!("{before}{with}{after}");
        let cursor = before.chars().count() + with.chars().count();
        self.input = Input::new(text).with_cursor(cursor);
    }

    /// The filter that was typed.
    pub fn filter(&self) -> Result<Filter, FilterError> {
        Filter::parse(self.input.value())
    }
}
