//! Questions to a site by a program that runs no tasks: what its settings say, what a decorator says.

use super::answer::{Described, Hello, answer};
use super::child::{Link, Reports, Said};
use super::frame::{Frame, Kind, encode};
use super::output::write_record;
use super::process::how_it_ended;
use super::{PythonError, PythonOptions, discover, output};
use bytes::BytesMut;
use std::path::Path;
use tokio::sync::mpsc;

/// Whether anything says that a Django site is meant: a settings module that is named here or in the environment, or a
/// `manage.py` in the folder.
pub fn has_site(settings: Option<&str>, directory: &Path) -> bool {
    discover::has_site(settings, directory)
}

/// What the settings of a site say: its TASKS, by alias, and the versions of what it runs on.
///
/// # Errors
/// Where there is no interpreter, or the site cannot be loaded; then with Python's own traceback.
pub async fn site_settings(options: &PythonOptions) -> Result<Hello, PythonError> {
    Ok(SiteSession::open(options).await?.hello)
}

/// A site that was loaded to be asked about.
pub struct SiteSession {
    /// What its settings say.
    pub hello: Hello,
    link: Link,
    said: mpsc::UnboundedReceiver<(u32, Said)>,
}

impl SiteSession {
    /// Loads the site.
    ///
    /// # Errors
    /// As [`site_settings`].
    pub async fn open(options: &PythonOptions) -> Result<Self, PythonError> {
        let (reports, mut said, mut lines) = reports();
        // What the site prints while it loads is talk, not an answer.
        tokio::spawn(async move {
            while let Some((_, line)) = lines.recv().await {
                output::write(&line, 0);
            }
        });
        let link = Link::open(options.launch()?, 0, reports).await?;
        let hello = first_words(&mut said).await?;
        Ok(Self { hello, link, said })
    }

    /// What the decorator says of the function that a dotted path names.
    ///
    /// # Errors
    /// Python's traceback, where it is no task.
    pub async fn describe(&mut self, path: &str) -> Result<Described, PythonError> {
        let mut frame = BytesMut::new();
        encode(&mut frame, b'Q', 1, path.as_bytes());
        self.link.send(frame);
        match next_of(&mut self.said, Kind::Answer).await? {
            Some(frame) => answer(&frame.payload).map_err(PythonError::Site),
            None => Err(PythonError::Ended("ended".into())),
        }
    }
}

/// Channels for what children report.
pub(crate) type Heard = (Reports, mpsc::UnboundedReceiver<(u32, Said)>, mpsc::Receiver<(u32, output::Line)>);

/// The channels, empty.
pub(crate) fn reports() -> Heard {
    /// Lines of output that wait for the log; then those who write wait.
    const LINES: usize = 256;
    let (said, heard) = mpsc::unbounded_channel();
    let (lines, written) = mpsc::channel(LINES);
    (Reports { said, lines }, heard, written)
}

/// Waits for a child's hello.
async fn first_words(said: &mut mpsc::UnboundedReceiver<(u32, Said)>) -> Result<Hello, PythonError> {
    match next_of(said, Kind::Hello).await? {
        Some(frame) => answer(&frame.payload).map_err(PythonError::Site),
        None => Err(PythonError::Ended("ended".into())),
    }
}

async fn next_of(said: &mut mpsc::UnboundedReceiver<(u32, Said)>, kind: Kind) -> Result<Option<Frame>, PythonError> {
    while let Some((_, said)) = said.recv().await {
        let (frames, status) = match said {
            Said::Frames(frames) => (frames, None),
            Said::Gone(death) => (death.frames, Some(death.status)),
        };
        for frame in frames {
            if frame.kind == kind {
                return Ok(Some(frame));
            }
            if let (Kind::Log, Ok(logged)) = (frame.kind, serde_json::from_slice(&frame.payload)) {
                write_record(&logged, 0);
            }
        }
        if let Some(status) = status {
            return Err(PythonError::Ended(status.map_or("ended".into(), how_it_ended)));
        }
    }
    Ok(None)
}
