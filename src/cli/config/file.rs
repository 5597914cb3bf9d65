//! `threadmill.toml`.

use super::{FILE_NAME, WorkerPart, user_file};
use crate::cli::args::ColorWhen;
use crate::cli::error::CliError;
use crate::cli::time;
use crate::inspector::{ThemeName, Unfocused};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// A file, as it stands.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "Flat")]
pub struct File {
    pub backend: Option<String>,
    pub read_only: Option<bool>,
    pub color: Option<ColorWhen>,
    /// What holds for every backend that does not say otherwise.
    pub part: Part,
    pub backends: BTreeMap<String, Part>,
    pub worker: WorkerPart,
    pub inspector: InspectorPart,
}

/// What a file says of one backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Part {
    pub redis_url: Option<String>,
    pub queues: Option<Vec<String>>,
    pub timeout: Option<Lasting>,
    pub lease_ttl: Option<Lasting>,
    pub result_ttl: Option<Lasting>,
}

/// What a file says of the inspector.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InspectorPart {
    /// Which colours.
    pub theme: Option<Spelled<ThemeName>>,
    /// Whether nothing but ASCII is drawn.
    pub ascii: Option<bool>,
    /// Whether the mouse is taken.
    pub mouse: Option<bool>,
    /// How often what is on the screen is asked for.
    pub refresh: Option<Lasting>,
    /// What is done while the terminal is not in the fore.
    pub unfocused: Option<Spelled<Unfocused>>,
    /// Records that filters and incidents may look at in a second.
    pub records_per_second: Option<u64>,
    /// Bytes that they may read in a second.
    pub bytes_per_second: Option<u64>,
}

impl InspectorPart {
    /// What this file says, and where it says nothing, what another does.
    pub fn or(self, other: Self) -> Self {
        Self {
            theme: self.theme.or(other.theme),
            ascii: self.ascii.or(other.ascii),
            mouse: self.mouse.or(other.mouse),
            refresh: self.refresh.or(other.refresh),
            unfocused: self.unfocused.or(other.unfocused),
            records_per_second: self.records_per_second.or(other.records_per_second),
            bytes_per_second: self.bytes_per_second.or(other.bytes_per_second),
        }
    }
}

/// A word in a file, spelled as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr<Err = String>")]
pub struct Spelled<T>(pub T);

impl<T: FromStr<Err = String>> TryFrom<String> for Spelled<T> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Spelled)
    }
}

/// How a worker writes its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// One JSON object a line.
    Json,
    /// Lines for a person.
    Text,
}

impl LogForm {
    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            LogForm::Json => "json",
            LogForm::Text => "text",
        }
    }
}

/// The keys at the top of a file, before they are sorted; serde cannot refuse unknown keys of a flattened struct.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Flat {
    backend: Option<String>,
    read_only: Option<bool>,
    color: Option<ColorWhen>,
    redis_url: Option<String>,
    queues: Option<Vec<String>>,
    timeout: Option<Lasting>,
    lease_ttl: Option<Lasting>,
    result_ttl: Option<Lasting>,
    backends: BTreeMap<String, Part>,
    worker: WorkerPart,
    inspector: InspectorPart,
}

impl From<Flat> for File {
    fn from(flat: Flat) -> Self {
        let Flat { redis_url, queues, timeout, lease_ttl, result_ttl, .. } = flat;
        File {
            backend: flat.backend,
            read_only: flat.read_only,
            color: flat.color,
            part: Part { redis_url, queues, timeout, lease_ttl, result_ttl },
            backends: flat.backends,
            worker: flat.worker,
            inspector: flat.inspector,
        }
    }
}

/// A duration in a file, written as everywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Lasting(pub Duration);

impl TryFrom<String> for Lasting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        time::parse_positive(&text).map(Lasting)
    }
}

/// Reads a file that must be there.
pub fn read(path: &Path) -> Result<(PathBuf, File), CliError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| CliError::usage(format!("cannot read the settings file {}: {e}", path.display())))?;
    Ok((path.to_owned(), parse(path, &text)?))
}

/// The files that hold without being named: the nearest from the working folder upwards, and the user's.
pub fn find(folder: &Path, user: Option<&Path>) -> Result<Vec<(PathBuf, File)>, CliError> {
    let near = folder.ancestors().map(|above| above.join(FILE_NAME)).find(|path| path.is_file());
    let user = user.map(user_file).filter(|path| path.is_file() && Some(path) != near.as_ref());
    near.iter().chain(user.iter()).map(|path| read(path)).collect()
}

fn parse(path: &Path, text: &str) -> Result<File, CliError> {
    toml::from_str(text).map_err(|e| {
        // The error's own text quotes the line, and a password may stand in it.
        let place = e.span().map(|span| place_of(text, span.start)).unwrap_or_default();
        CliError::usage(format!("{}{place}: {}", path.display(), e.message()))
    })
}

/// Where a byte of a text stands, for a person.
fn place_of(text: &str, at: usize) -> String {
    let before = &text[..text.floor_char_boundary(at)];
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!(", line {line}, column {column}")
}
