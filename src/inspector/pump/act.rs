//! Working off actions, one after the other.

use crate::inspector::msg::{Action, Msg, Tally, Target};
use crate::inspector::source::{Acted, Source};
use crate::task::Segment;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};

/// How long one step may take.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// Tasks that are acted on at the same time, so that a distant Redis does not make many tasks take minutes.
const AT_ONCE: usize = 16;
/// Failures without a success between them after which the rest is not tried.
const FAILURES_MAX: u32 = 20;
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
            Action::Requeue(targets) => run.each(targets, |target| requeue(source, target)).await,
            Action::Drop(targets) => run.each(targets, |target| drop_task(source, target)).await,
            Action::Purge { queue, parts } => run.purge(source, &queue, parts).await,
        }
        if out.send(Msg::Acted(id, run.tally)).await.is_err() {
            return;
        }
    }
}

async fn requeue<S: Source>(source: &S, target: Target) -> Result<Acted, String> {
    source.requeue(&target.id, &target.queue, target.segment, target.seen).await
}

async fn drop_task<S: Source>(source: &S, target: Target) -> Result<Acted, String> {
    source.drop_task(&target.id, &target.queue, target.segment, target.seen).await
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
    /// Does the same to each target. One that is refused does not hold up the others; when nothing but failures come,
    /// the rest is not tried.
    async fn each<F: Future<Output = Result<Acted, String>>>(
        &mut self,
        targets: Vec<Target>,
        step: impl Fn(Target) -> F,
    ) {
        let mut targets = targets.into_iter();
        let mut under_way = FuturesUnordered::new();
        let mut in_a_row = 0;
        loop {
            while under_way.len() < AT_ONCE && self.goes_on() && in_a_row < FAILURES_MAX {
                let Some(target) = targets.next() else { break };
                under_way.push(bounded(step(target)));
            }
            match under_way.next().await {
                None => break,
                Some(Ok(acted)) => {
                    in_a_row = 0;
                    self.tally.count(acted);
                }
                Some(Err(Failure::Refused(why))) => {
                    in_a_row += 1;
                    self.tally.failed += 1;
                    self.tally.error.get_or_insert(why);
                }
                Some(Err(Failure::Late(why))) => {
                    in_a_row = FAILURES_MAX;
                    self.tally.unknown += 1;
                    self.tally.error.get_or_insert(why);
                }
            }
            self.tell().await;
        }
        self.tally.untried = targets.len() as u64;
    }

    /// Purges slice by slice, no more of a segment than about what it listed when it was asked for.
    async fn purge<S: Source>(&mut self, source: &S, queue: &str, parts: Vec<(Segment, u64)>) {
        for (segment, listed) in parts {
            let mut gone = 0;
            while gone < listed && self.goes_on() {
                match bounded(source.purge_slice(queue, segment)).await {
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
