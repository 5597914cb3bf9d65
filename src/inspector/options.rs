//! How an inspector is started.

use crate::inspector::theme::ThemeName;
use std::str::FromStr;
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
    /// What is done while the terminal is not in the fore, where it tells.
    pub unfocused: Unfocused,
    /// Records that filters and incidents may look at in a second.
    pub records_per_second: u64,
    /// Bytes that they may read in a second.
    pub bytes_per_second: u64,
}

/// What is done while the terminal is not in the fore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Unfocused {
    /// Nothing is asked.
    #[default]
    Pause,
    /// Everything is asked ten times less often.
    Slow,
    /// As if it were in the fore.
    Live,
}

impl FromStr for Unfocused {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "pause" => Ok(Self::Pause),
            "slow" => Ok(Self::Slow),
            "live" => Ok(Self::Live),
            _ => Err(format!("`{text}` is none of pause, slow and live")),
        }
    }
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
            unfocused: Unfocused::Pause,
            records_per_second: 20_000,
            bytes_per_second: 16 << 20,
        }
    }
}
