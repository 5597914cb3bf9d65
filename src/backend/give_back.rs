//! Leases that are returned unused.

use crate::backend::scripts::GIVE_BACK;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{Segment, TaskId};

/// A lease whose work has not begun.
#[derive(Clone, Debug)]
pub struct Unstarted {
    /// The task's id.
    pub id: TaskId,
    /// Its queue.
    pub queue: String,
    /// The lease.
    pub token: Token,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveBackOutcome {
    /// It is READY again, uncharged.
    GivenBack,
    /// It had been given back before.
    Replayed,
    /// The lease was no longer the caller's.
    Lost,
}

impl Backend {
    /// Returns leases to READY with no attempt spent. The answers are in the order of `leases`.
    ///
    /// # Errors
    /// Where the answer was lost, the same call can be sent again.
    pub async fn give_back(&self, leases: &[Unstarted]) -> Result<Vec<GiveBackOutcome>, BackendError> {
        const CODES: [(&str, GiveBackOutcome); 3] = [
            ("given_back", GiveBackOutcome::GivenBack),
            ("replayed", GiveBackOutcome::Replayed),
            ("lost", GiveBackOutcome::Lost),
        ];
        let keys = self.keys();
        let mut outcomes = vec![GiveBackOutcome::Lost; leases.len()];
        let mut queues: Vec<&str> = leases.iter().map(|lease| lease.queue.as_str()).collect();
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            let mine: Vec<usize> = (0..leases.len()).filter(|i| leases[*i].queue == queue).collect();
            let mut names =
                vec![keys.wake(), keys.segment(queue, Segment::Running), keys.segment(queue, Segment::Ready)];
            names.extend(mine.iter().map(|i| keys.task(leases[*i].id.as_str())));
            let mut cmd = GIVE_BACK.call(&names);
            cmd.arg(queue);
            for i in &mine {
                // A hash without a score is of no program that we know; it then goes to the head of its queue.
                cmd.arg(leases[*i].id.as_str()).arg(leases[*i].token.as_str()).arg("0");
            }
            let answers = self.call("give_back", cmd).await?.list()?;
            for (i, answer) in mine.into_iter().zip(answers) {
                outcomes[i] = answer.code(&CODES)?;
            }
        }
        Ok(outcomes)
    }
}
