//! Working off actions, one after the other.

use crate::inspector::msg::{Action, Msg, Part, Tally, Target};
use crate::inspector::source::{Acted, Deal, PurgeScope, Seen, Source};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::HashMap;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// How long one step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Tasks of one step: each step holds the server up for little.
const BATCH: usize = 100;
/// Steps that are under way at the same time, so that a distant Redis does not make many tasks take minutes.
const AT_ONCE: usize = 4;
/// Failures without a success between them after which the rest is not tried.
const FAILURES_MAX: u32 = 3;
/// How often the screen is told how far it is.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// One action's run: its number, who may stop it, whom it tells.
struct Run<'a> {
    id: u64,
    stopped: &'a watch::Receiver<u64>,
    out: &'a mpsc::Sender<Msg>,
    told: Instant,
    tally: Tally,
}

/// Works off actions until there can be no more.
pub async fn work<S: Source>(
    source: &S,
    mut waiting: mpsc::Receiver<(u64, Action)>,
    stopped: watch::Receiver<u64>,
    out: &mpsc::Sender<Msg>,
) {
    while let Some((id, action)) = waiting.recv().await {
        let mut run = Run { id, stopped: &stopped, out, told: Instant::now(), tally: Tally::default() };
        match action {
            Action::Requeue(targets, after) => run.each(source, Deal::Requeue(after), targets).await,
            Action::Promote(targets) => run.each(source, Deal::Promote, targets).await,
            Action::Drop(targets) => run.each(source, Deal::Drop, targets).await,
            Action::Purge { queue, parts } => run.purge(source, &queue, parts).await,
        }
        if out.send(Msg::Acted(id, run.tally)).await.is_err() {
            return;
        }
    }
}

/// Targets of one queue and one place that are dealt with in one step.
struct Batch {
    queue: String,
    scope: PurgeScope,
    seen: Vec<Seen>,
}

/// The targets by their places, in steps of a bounded size.
fn batches(targets: Vec<Target>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    // The last batch of each place is the one that may have room.
    let mut open: HashMap<(String, PurgeScope), usize> = HashMap::new();
    for target in targets {
        let scope = if target.quarantined { PurgeScope::Quarantine } else { PurgeScope::Segment(target.segment) };
        let key = (target.queue, scope);
        let at = open.get(&key).copied().filter(|at| batches[*at].seen.len() < BATCH).unwrap_or_else(|| {
            batches.push(Batch { queue: key.0.clone(), scope, seen: Vec::new() });
            batches.len() - 1
        });
        batches[at].seen.push(Seen { id: target.id, score: target.seen });
        open.insert(key, at);
    }
    batches
}

/// Why a step was not done.
enum Failure {
    /// There was no answer in time: it may have been done.
    Late(String),
    /// It was refused, or could not be asked.
    Refused(String),
}

/// A step with its time-out.
async fn bounded<T>(step: impl Future<Output = Result<T, String>>) -> Result<T, Failure> {
    match timeout(STEP_TIMEOUT, step).await {
        Ok(result) => result.map_err(Failure::Refused),
        Err(_) => Err(Failure::Late(format!("no answer within {} s", STEP_TIMEOUT.as_secs()))),
    }
}

impl Run<'_> {
    /// Does the same to each target, a batch at a time. A task that is refused does not hold up the others; when nothing
    /// but failures come, the rest is not tried.
    async fn each<S: Source>(&mut self, source: &S, deal: Deal, targets: Vec<Target>) {
        let mut batches = batches(targets).into_iter();
        let mut under_way = FuturesUnordered::new();
        let mut in_a_row = 0;
        loop {
            while under_way.len() < AT_ONCE && self.goes_on() && in_a_row < FAILURES_MAX {
                let Some(batch) = batches.next() else { break };
                under_way.push(async move {
                    let ended = bounded(source.deal(deal, &batch.queue, batch.scope, &batch.seen)).await;
                    (batch.seen.len() as u64, ended)
                });
            }
            match under_way.next().await {
                None => break,
                Some((_, Ok(ended))) => {
                    in_a_row = 0;
                    ended.into_iter().for_each(|ended| self.count(ended));
                }
                Some((size, Err(Failure::Refused(why)))) => {
                    in_a_row += 1;
                    self.tally.failed += size;
                    self.tally.error.get_or_insert(why);
                }
                Some((size, Err(Failure::Late(why)))) => {
                    in_a_row = FAILURES_MAX;
                    self.tally.unknown += size;
                    self.tally.error.get_or_insert(why);
                }
            }
            self.tell().await;
        }
        self.tally.untried = batches.map(|batch| batch.seen.len() as u64).sum();
    }

    fn count(&mut self, ended: Result<Acted, String>) {
        match ended {
            Ok(acted) => self.tally.count(acted),
            Err(why) => {
                self.tally.failed += 1;
                self.tally.error.get_or_insert(why);
            }
        }
    }

    /// Purges slice by slice, no more of a part than it listed when it was asked for.
    async fn purge<S: Source>(&mut self, source: &S, queue: &str, parts: Vec<Part>) {
        for part in parts {
            let mut gone = 0;
            while gone < part.count && self.goes_on() {
                let step = source.purge_slice(queue, part.scope, part.max_score, part.count - gone);
                match bounded(step).await {
                    Ok((went, left)) => {
                        gone += went;
                        self.tally.done += went;
                        if left == 0 || went == 0 {
                            break;
                        }
                    }
                    // How many went with a slice that was not answered is not known, and the next would meet the same.
                    Err(Failure::Late(why) | Failure::Refused(why)) => {
                        self.tally.error = Some(why);
                        return;
                    }
                }
                self.tell().await;
            }
        }
    }

    fn goes_on(&mut self) -> bool {
        self.tally.stopped |= *self.stopped.borrow() == self.id;
        !self.tally.stopped
    }

    async fn tell(&mut self) {
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            // When nobody listens any more, the end of the action will notice.
            let _ = self.out.send(Msg::Progress(self.id, self.tally.clone())).await;
        }
    }
}
