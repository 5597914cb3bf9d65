//! How tasks are asked for.

use crate::backend::codec::decode;
use crate::backend::{AcquireAnswer, AcquireRequest, Backend, Leased, SetAside, SetAsideReason, Token};
use crate::worker::lease::{Lease, Leasehold};
use crate::worker::moves::Plan;
use crate::worker::native::Shop;
use crate::worker::pause::Pause;
use std::sync::Arc;
use std::time::Instant;

/// One request for tasks. It is repeated under its number until it is answered, and so grants nothing twice.
pub(crate) struct Fetch {
    pub worker: Arc<str>,
    pub number: u64,
    /// In the order of this turn.
    pub queues: Vec<String>,
    pub plan: Plan,
    pub byte_budget: usize,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// These leases, perhaps none.
    Leases(Vec<Lease>),
    /// The worker of this id is not registered.
    Unregistered(Arc<str>),
}

/// Asks until there is an answer.
pub(crate) async fn fetch(backend: Backend, shop: Arc<Shop>, request: Fetch) -> Fetched {
    let token = Token::new();
    let mut pause = Pause::default();
    loop {
        let since = Instant::now();
        let acquire = AcquireRequest {
            worker: &request.worker,
            token: &token,
            number: request.number,
            queues: &request.queues,
            count: request.plan.count,
            start_now: request.plan.start_now,
            sequence: request.plan.sequence,
            byte_budget: request.byte_budget,
        };
        match backend.acquire(&acquire).await {
            Ok(AcquireAnswer::Granted(acquired)) => {
                acquired.set_aside.iter().for_each(tell);
                let hold = |leased| Arc::new(hold(leased, &shop, &request.worker, since));
                return Fetched::Leases(acquired.leases.into_iter().map(hold).collect());
            }
            // Only a request that was given up could be overtaken; it holds nothing.
            Ok(AcquireAnswer::Superseded) => return Fetched::Leases(Vec::new()),
            Ok(AcquireAnswer::Unregistered) => return Fetched::Unregistered(request.worker),
            Err(error) => {
                if pause.is_first() {
                    let source = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(error = %error, source, "Redis gives no tasks; asking again");
                }
                pause.wait().await;
            }
        }
    }
}

fn hold(leased: Leased, shop: &Shop, worker: &Arc<str>, since: Instant) -> Leasehold {
    let record = decode(&leased.data);
    Leasehold {
        is_blocking: record.as_ref().is_ok_and(|record| shop.is_blocking(&record.spec.func)),
        bytes: leased.data.len(),
        record,
        id: leased.id,
        queue: leased.queue,
        sequence: leased.sequence,
        token: leased.token,
        started_at: leased.started_at,
        worker: worker.clone(),
        since,
    }
}

fn tell(note: &SetAside) {
    let id = note.id.as_ref().map(ToString::to_string);
    let what = match note.reason {
        SetAsideReason::Ghost => "an id in READY has no record; it is set aside",
        SetAsideReason::NotAHash => "the record of an id in READY has another type; it is set aside",
        SetAsideReason::Duplicate => "a task in READY runs already; the entry is removed",
        SetAsideReason::WrongType => "the key of a queue has another type; it is left alone",
    };
    tracing::warn!(task_id = id, queue = note.queue, "{what}");
}
