//! Where a walk through a sorted set has come to, while tasks come and go in it.

use crate::backend::BackendError;
use crate::backend::answer::Answer;

/// The entry behind which a walk goes on. A rank would shift under it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// Its score, as the server writes it; empty at the beginning.
    pub(super) score: String,
    /// Its id.
    pub(super) id: String,
}

impl Cursor {
    /// The place that a script answered; none at the end.
    pub(super) fn read(score: Answer, id: Answer) -> Result<Option<Self>, BackendError> {
        let place = Cursor { score: score.text()?, id: id.text()? };
        Ok((!place.score.is_empty()).then_some(place))
    }
}
