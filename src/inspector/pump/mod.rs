//! The one task that asks Redis. It owns the source; everything it learns goes back as messages.
//!
//! Each kind of read has a slot that holds the newest question; a newer one takes the place of the one under way.
//! Actions wait in a bounded queue and are worked off in order. Nothing here is waited for by a key.

mod act;
mod hear;

use crate::inspector::msg::{Action, Answer, Lane, Msg, Query, Tally};
use crate::inspector::source::Source;
use crate::inspector::update::ACTIONS_MAX;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

/// How long a read may take.
pub const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a selection must stand before its task is read, so that a key held down does not read every task it passes.
const DETAIL_PAUSE: Duration = Duration::from_millis(40);
/// Messages that wait for the screen at most; beyond, the pump waits.
const INBOX_MAX: usize = 256;

/// The newest question of a lane.
type Slot = Option<(u64, Query)>;

/// The way to the pump. When it is dropped, the pump ends.
pub struct Pump {
    slots: [watch::Sender<Slot>; Lane::ALL.len()],
    actions: mpsc::Sender<(u64, Action)>,
    stop: watch::Sender<u64>,
    task: JoinHandle<()>,
}

impl Drop for Pump {
    fn drop(&mut self) {
        // A question may never be answered; nobody waits for it here.
        self.task.abort();
    }
}

impl Pump {
    /// Starts a pump on this source; its messages come out of the receiver.
    pub fn start<S: Source>(source: S) -> (Self, mpsc::Receiver<Msg>) {
        let (out, inbox) = mpsc::channel(INBOX_MAX);
        let slots = Lane::ALL.map(|_| watch::channel(None).0);
        let readers = Lane::ALL.map(|lane| slots[lane as usize].subscribe());
        let (actions, waiting) = mpsc::channel(ACTIONS_MAX);
        let (stop, stopped) = watch::channel(0);
        let task = tokio::spawn(async move {
            let [queues, page, detail, workers, facts, pulse, sift, survey] = readers;
            tokio::join!(
                read(&source, Lane::Queues, queues, &out),
                read(&source, Lane::Page, page, &out),
                read(&source, Lane::Detail, detail, &out),
                read(&source, Lane::Workers, workers, &out),
                read(&source, Lane::Facts, facts, &out),
                read(&source, Lane::Pulse, pulse, &out),
                read(&source, Lane::Sift, sift, &out),
                read(&source, Lane::Survey, survey, &out),
                act::work(&source, waiting, stopped, &out),
                hear::listen(&source, &out),
            );
        });
        (Self { slots, actions, stop, task }, inbox)
    }

    /// Puts a question into its slot.
    pub fn read(&self, lane: Lane, id: u64, query: Query) {
        self.slots[lane as usize].send_replace(Some((id, query)));
    }

    /// Queues an action; gives back a report where that cannot be.
    pub fn act(&self, id: u64, action: Action) -> Option<Msg> {
        let size = action.size();
        self.actions.try_send((id, action)).err().map(|_| {
            let error = Some("too many actions are under way".to_owned());
            Msg::Acted(id, Tally { untried: size, error, ..Tally::default() })
        })
    }

    /// Asks the action `id` to end after its current step.
    pub fn stop(&self, id: u64) {
        self.stop.send_replace(id);
    }
}

/// Answers the questions of one lane, the newest only.
async fn read<S: Source>(source: &S, lane: Lane, mut slot: watch::Receiver<Slot>, out: &mpsc::Sender<Msg>) {
    while slot.changed().await.is_ok() {
        while let Some((id, query)) = newest(&mut slot) {
            let started = Instant::now();
            let asking = async {
                if lane == Lane::Detail {
                    tokio::time::sleep(DETAIL_PAUSE).await;
                }
                timeout(READ_TIMEOUT, ask(source, &query)).await
            };
            let answer = tokio::select! {
                biased;
                changed = slot.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                answer = asking => answer,
            };
            let late = || Err(format!("no answer within {} s", READ_TIMEOUT.as_secs()));
            let result = answer.unwrap_or_else(|_| late());
            if out.send(Msg::Answer { lane, id, took: started.elapsed(), result }).await.is_err() {
                return;
            }
            break;
        }
    }
}

/// The question in the slot, which counts as seen.
fn newest(slot: &mut watch::Receiver<Slot>) -> Slot {
    slot.borrow_and_update().clone()
}

async fn ask<S: Source>(source: &S, query: &Query) -> Result<Answer, String> {
    match query {
        Query::Queues => source.queues().await.map(Answer::Queues),
        Query::Page { queue, scope, reversed, offset, limit } => {
            source.page(queue, *scope, *reversed, *offset, *limit).await.map(Answer::Page)
        }
        Query::Pulse(queues, since_ms) => source.pulse(queues, *since_ms).await.map(Answer::Pulse),
        Query::Sift { queue, segment, after, filter, now_ms } => {
            source.sift(queue, *segment, after.as_ref(), filter, *now_ms).await.map(Answer::Sift)
        }
        Query::Survey { queue, after, since_ms } => {
            let surveyed = source.survey(queue, after.as_ref(), *since_ms).await;
            surveyed.map(|surveyed| Answer::Survey(Box::new(surveyed)))
        }
        Query::Detail(id) => source.detail(id).await.map(|found| Answer::Detail(found.map(Box::new))),
        Query::Workers => source.workers().await.map(Answer::Workers),
        Query::Facts => source.facts().await.map(Answer::Facts),
    }
}
