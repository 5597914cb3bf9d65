//! Tasks that cannot be read, set aside.

use crate::backend::scripts::QUARANTINE;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{Segment, TaskId};

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuarantineOutcome {
    /// It was set aside, byte for byte as it was.
    SetAside,
    /// It had been set aside before.
    Replayed,
    /// The lease was no longer the caller's.
    Lost,
}

impl Backend {
    /// Sets a leased task aside that its worker cannot read. Its record stays as it is.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn quarantine(&self, id: &TaskId, queue: &str, token: &Token) -> Result<QuarantineOutcome, BackendError> {
        let keys = self.keys();
        let mut cmd =
            QUARANTINE.call(&[keys.task(id.as_str()), keys.segment(queue, Segment::Running), keys.quarantine(queue)]);
        cmd.arg(id.as_str()).arg(token.as_str());
        self.call("quarantine", cmd).await?.code(&[
            ("set_aside", QuarantineOutcome::SetAside),
            ("replayed", QuarantineOutcome::Replayed),
            ("lost", QuarantineOutcome::Lost),
        ])
    }
}
