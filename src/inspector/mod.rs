//! The inspector: watches the queues and repairs them, in a terminal.
//!
//! `update` takes a message into the model and says what is to be done; `view` draws the model; neither waits for
//! anything. The pump asks Redis, through the narrow [`Source`], and its answers come back as messages. So a key is
//! taken at once, whatever Redis does.
//!
//! The room may use the values of `task`, the filters of `filter` and the views of `backend`. Absent on purpose: the worker, the command line
//! and the client of Redis.

mod format;
mod keymap;
mod layout;
pub mod live;
mod model;
mod msg;
mod options;
mod pump;
mod runner;
pub mod source;
mod terminal;
mod text;
mod theme;
mod update;
mod view;

#[cfg(test)]
mod tests;

pub use keymap::markdown as keys_markdown;
pub use options::{Options, Unfocused};
pub use runner::{InspectorError, run};
pub use source::{Acted, Source};
pub use theme::ThemeName;
