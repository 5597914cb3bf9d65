//! How an inspector is started.

use crate::inspector::theme::ThemeName;
use std::time::Duration;

/// What the inspector is told when it starts.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The alias of the backend, shown first on the truth line.
    pub alias: String,
    /// Where Redis is, for a person; its password must already be masked.
    pub endpoint: String,
    /// The queue that is selected at first, where it exists.
    pub queue: Option<String>,
    /// Whether keys that change anything are locked.
    pub read_only: bool,
    /// Which colours.
    pub theme: ThemeName,
    /// Whether there are colours at all; `NO_COLOR` means not.
    pub color: bool,
    /// Whether nothing but ASCII is drawn.
    pub ascii: bool,
    /// Whether the mouse scrolls and selects. Off, the terminal selects text as ever.
    pub mouse: bool,
    /// The start of the commands that `Y` copies, such as `threadmill --backend default`.
    pub shell: String,
    /// How often what is on the screen is asked for.
    pub refresh: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            alias: "default".into(),
            endpoint: String::new(),
            queue: None,
            read_only: false,
            theme: ThemeName::Dark,
            color: true,
            ascii: false,
            mouse: false,
            shell: "threadmill".into(),
            refresh: Duration::from_secs(1),
        }
    }
}
