//! Leases: how a worker gets its tasks.

use crate::backend::answer::Answer;
use crate::backend::scripts::ACQUIRE;
use crate::backend::{Backend, BackendError, Token};
use crate::task::{Segment, Stamp, TaskId};

/// What a worker asks for.
#[derive(Clone, Debug)]
pub struct AcquireRequest<'a> {
    /// The worker's id.
    pub worker: &'a str,
    /// The fence of all leases that this request grants.
    pub token: &'a Token,
    /// The number of this request, rising with each; the same number again is the same request.
    pub number: u64,
    /// The queues, in the order of this turn.
    pub queues: &'a [String],
    /// How many tasks at most; at least 1.
    pub count: usize,
    /// How many of the granted begin at once.
    pub start_now: usize,
    /// The first sequence number to give out, above all that were given to this worker.
    pub sequence: u64,
    /// Stops granting once the records exceed this many bytes; one is always granted.
    pub byte_budget: usize,
}

/// What was granted.
#[derive(Clone, Debug, Default)]
pub struct Acquired {
    /// The leases, in the order in which they are to start.
    pub leases: Vec<Leased>,
    /// What was found in the way.
    pub set_aside: Vec<SetAside>,
}

/// One task, leased.
#[derive(Clone, Debug)]
pub struct Leased {
    /// The task's id.
    pub id: TaskId,
    /// The queue that it came from.
    pub queue: String,
    /// Its place among the leases of this worker.
    pub sequence: u64,
    /// The fence.
    pub token: Token,
    /// When the lease began, by the server's clock.
    pub started_at: Option<Stamp>,
    /// The stored record.
    pub data: Vec<u8>,
    /// The enqueuer's trace context.
    pub trace: Option<String>,
}

/// Something in READY that could not be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetAside {
    /// The queue.
    pub queue: String,
    /// The id, where there is one.
    pub id: Option<TaskId>,
    /// What is wrong with it.
    pub reason: SetAsideReason,
}

/// Why something in READY was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAsideReason {
    /// The id has no record; it went to quarantine.
    Ghost,
    /// The record's key holds another type; the id went to quarantine.
    NotAHash,
    /// The task runs at the same time; only its READY entry was removed.
    Duplicate,
    /// The queue's own key holds another type; it was left alone.
    WrongType,
}

/// The answer to an acquire.
#[derive(Clone, Debug)]
pub enum AcquireAnswer {
    /// These leases, perhaps none.
    Granted(Acquired),
    /// A later request of this worker was served already; this one changed nothing.
    Superseded,
    /// The worker is not registered, or was declared dead: what it held is no longer its own.
    Unregistered,
}

impl Backend {
    /// Leases READY tasks, one from each queue in rotation.
    ///
    /// # Errors
    /// Where the answer was lost, the same request must be sent again: it answers the leases that it granted.
    pub async fn acquire(&self, request: &AcquireRequest<'_>) -> Result<AcquireAnswer, BackendError> {
        let keys = self.keys();
        let mut names = Vec::with_capacity(1 + request.queues.len() * 3);
        names.push(keys.worker(request.worker));
        for queue in request.queues {
            names.push(keys.segment(queue, Segment::Ready));
            names.push(keys.segment(queue, Segment::Running));
            names.push(keys.quarantine(queue));
        }
        let mut cmd = ACQUIRE.call(&names);
        cmd.arg(request.worker).arg(request.token.as_str()).arg(request.number);
        cmd.arg(request.count.max(1)).arg(request.start_now).arg(request.sequence);
        cmd.arg(self.settings().lease_ttl.as_millis() as u64).arg(request.byte_budget).arg(keys.task_prefix());
        let [code, started_at, granted, notes] = self.call("acquire", cmd).await?.array()?;
        match code.text()?.as_str() {
            "superseded" => return Ok(AcquireAnswer::Superseded),
            "unregistered" => return Ok(AcquireAnswer::Unregistered),
            "granted" => {}
            _ => return Err(BackendError::Unexpected { what: "acquire" }),
        }
        let started_at = Stamp::parse(&started_at.text()?);
        let lease = |[queue, id, sequence, data, trace]: [Answer; 5]| -> Result<Leased, BackendError> {
            Ok(Leased {
                queue: queue_named(request.queues, queue)?,
                id: TaskId::new(id.text()?),
                sequence: sequence.count()?,
                token: request.token.clone(),
                started_at: started_at.clone(),
                data: data.bytes()?,
                trace: trace.text_or_none()?,
            })
        };
        Ok(AcquireAnswer::Granted(Acquired {
            leases: granted.groups()?.into_iter().map(lease).collect::<Result<_, _>>()?,
            set_aside: notes.list()?.into_iter().map(|note| note_of(request.queues, note)).collect::<Result<_, _>>()?,
        }))
    }
}

fn note_of(queues: &[String], answer: Answer) -> Result<SetAside, BackendError> {
    const REASONS: [(&str, SetAsideReason); 4] = [
        ("ghost", SetAsideReason::Ghost),
        ("not_a_hash", SetAsideReason::NotAHash),
        ("duplicate", SetAsideReason::Duplicate),
        ("wrong_type", SetAsideReason::WrongType),
    ];
    let [queue, reason, id] = answer.array()?;
    Ok(SetAside {
        queue: queue_named(queues, queue)?,
        reason: reason.code(&REASONS)?,
        id: id.text_or_none()?.map(TaskId::from),
    })
}

/// The queue of a number that a script answered; they count from 1.
fn queue_named(queues: &[String], number: Answer) -> Result<String, BackendError> {
    let number = usize::try_from(number.count()?).unwrap_or(0);
    number
        .checked_sub(1)
        .and_then(|index| queues.get(index))
        .cloned()
        .ok_or(BackendError::Unexpected { what: "acquire" })
}
