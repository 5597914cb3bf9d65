//! How a queue fares: since when its oldest task waits, how many failed of late.

use crate::backend::answer::Answer;
use crate::backend::scripts::OLDEST;
use crate::backend::{Backend, BackendError};
use crate::task::{PRIORITY_STEP, Segment};
use redis::Cmd;

/// Priorities of one queue that are looked at for its oldest task.
const PRIORITIES: u32 = 64;

/// How a queue fares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pulse {
    /// Since when the oldest READY task waits, in milliseconds since 1970: the queue's latency. None where nothing waits.
    pub oldest_ms: Option<f64>,
    /// How many FAILED tasks finished since the moment that was asked for.
    pub failed: u64,
    /// When the last SCHEDULED task is due.
    pub last_due_ms: Option<f64>,
}

impl Backend {
    /// How each of these queues fares, in one round trip; `since_ms` is where failures are counted from, in milliseconds
    /// since 1970 by the server's clock. A key of another type makes no error: what it would tell is missing.
    ///
    /// # Errors
    /// Why the server could not be asked.
    pub async fn pulse(&self, queues: &[String], since_ms: f64) -> Result<Vec<Pulse>, BackendError> {
        let mut cmds = Vec::with_capacity(queues.len() * 3);
        for queue in queues {
            cmds.extend(self.questions(queue, since_ms));
        }
        let mut answers = self.call_all("pulse", cmds).await?.into_iter();
        let mut next = || match answers.next() {
            Some(Ok(answer)) => Ok(Some(answer)),
            Some(Err(BackendError::Refused { code, .. })) if code == "WRONGTYPE" => Ok(None),
            Some(Err(error)) => Err(error),
            None => Err(BackendError::Unexpected { what: "pulse" }),
        };
        let mut pulses = Vec::with_capacity(queues.len());
        for _ in queues {
            let oldest_ms = match next()? {
                Some(answer) => {
                    let [at, _whole] = answer.array()?;
                    at.text_or_none()?.and_then(|text| text.parse().ok())
                }
                None => None,
            };
            let failed = next()?.map_or(Ok(0), Answer::count)?;
            let last = next()?.map_or(Ok(Vec::new()), Answer::list)?;
            let last_due_ms = last.into_iter().nth(1).map(Answer::number).transpose()?;
            pulses.push(Pulse { oldest_ms, failed, last_due_ms });
        }
        Ok(pulses)
    }

    fn questions(&self, queue: &str, since_ms: f64) -> [Cmd; 3] {
        let keys = self.keys();
        let mut oldest = OLDEST.call(&[keys.segment(queue, Segment::Ready)]);
        oldest.arg(format!("{PRIORITY_STEP:.0}")).arg(PRIORITIES);
        let mut failed = redis::cmd("ZCOUNT");
        failed.arg(keys.segment(queue, Segment::Failed)).arg(format!("{since_ms:.0}")).arg("+inf");
        let mut last = redis::cmd("ZRANGE");
        last.arg(keys.segment(queue, Segment::Scheduled)).arg(-1).arg(-1).arg("WITHSCORES");
        [oldest, failed, last]
    }
}
