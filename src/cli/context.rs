//! What every verb is given.

use crate::backend::{Backend, QueueCounts};
use crate::cli::config::Config;
use crate::cli::error::CliError;
use crate::cli::output::{Out, talk};
use crate::task::visible;
use std::time::Duration;

/// How long a verb looks for queues that nobody has named, unless it is told otherwise.
pub const SEARCH: Duration = Duration::from_millis(200);
/// How like a name another must be to be meant by it.
const ALIKE: f64 = 0.8;

/// The settings, the output, and the backend.
pub struct Context {
    /// Every setting with where it comes from.
    pub config: Config,
    /// The output.
    pub out: Out,
    /// What the binary is called.
    pub name: String,
    backend: Backend,
}

impl Context {
    /// Prepares a run; nothing is sent to Redis yet.
    ///
    /// # Errors
    /// Where the settings cannot be used.
    pub fn new(config: Config, out: Out, name: String) -> Result<Self, CliError> {
        let backend = Backend::new(config.settings())?;
        Ok(Self { config, out, name, backend })
    }

    /// The backend. Nothing is sent before the first request.
    pub fn backend(&self) -> &Backend {
        &self.backend
    }

    /// Asks another backend from here on.
    pub fn use_backend(&mut self, backend: Backend) {
        self.backend = backend;
    }

    /// Whether everything that changes something is refused.
    pub fn is_read_only(&self) -> bool {
        self.config.read_only.value
    }

    /// Refuses to go on where nothing may be changed.
    ///
    /// # Errors
    /// Says where that was decided.
    pub fn require_write(&self) -> Result<(), CliError> {
        if !self.is_read_only() {
            return Ok(());
        }
        let origin = &self.config.read_only.origin;
        Err(CliError::refused(format!("this would change something, and {origin} says read-only"))
            .hint("leave read-only out where you mean it"))
    }

    /// Every queue that is known or found within `budget`, sorted by name.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn queues(&self, budget: Duration) -> Result<Vec<String>, CliError> {
        let mut names = self.backend.known_queues().await?;
        // A user whose ACL forbids SCAN still sees the queues that are known by name.
        let (found, whole) = match self.backend.look_for_queues(budget).await {
            Ok(answer) => answer,
            Err(error) if !is_forbidden(&error) => return Err(error.into()),
            Err(_) => (Vec::new(), false),
        };
        let new: Vec<String> = found.into_iter().filter(|queue| !names.contains(queue)).collect();
        if !whole {
            talk("not every key was looked at: a queue that no program of ours has served may be missing");
        }
        if !self.is_read_only() {
            // So that others need not search; where that is forbidden the answer is as good.
            let _ = self.backend.record_queues(&new).await;
        }
        names.extend(new);
        names.sort_unstable();
        Ok(names)
    }

    /// The counts of a queue that must exist: it lists something, or is known by name.
    ///
    /// # Errors
    /// Exit code 3 where it does not exist, with the name that may have been meant.
    pub async fn queue(&self, name: &str) -> Result<QueueCounts, CliError> {
        let counts = self.backend.counts(&[name.to_owned()]).await?.pop().unwrap_or_default();
        if !counts.is_empty() {
            return Ok(counts);
        }
        let known = self.queues(SEARCH).await?;
        if known.iter().any(|queue| queue == name) {
            return Ok(counts);
        }
        let alias = self.backend.alias();
        let error = CliError::not_found(format!("there is no queue `{}` on backend `{alias}`", visible(name)));
        Err(match meant(name, &known) {
            Some(other) => error.hint(format!("did you mean `{}`?", visible(other))),
            None if known.is_empty() => error.hint("no queue is known there; is it the right Redis and alias?"),
            None => error.hint("`threadmill queues` lists those that exist"),
        })
    }
}

fn is_forbidden(error: &crate::backend::BackendError) -> bool {
    matches!(error, crate::backend::BackendError::Refused { code, .. } if code == "NOPERM")
}

/// The name that a mistyped one may have meant.
fn meant<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    let likeness = |other: &String| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    let best = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) >= ALIKE).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_name_is_guessed_and_another_is_not() {
        let known = ["default".to_owned(), "emails".to_owned(), "räksmörgås".to_owned()];
        assert_eq!(meant("email", &known).map(String::as_str), Some("emails"));
        assert_eq!(meant("Defualt", &known).map(String::as_str), Some("default"));
        assert_eq!(meant("raksmorgas", &known).map(String::as_str), Some("räksmörgås"));
        assert_eq!(meant("payments", &known), None);
        assert_eq!(meant("x", &[]), None);
    }
}
