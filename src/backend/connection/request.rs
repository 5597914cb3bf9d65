//! One request from its first try to its answers.

use super::place::{Nowhere, Route};
use super::{Link, Live, Resend};
use crate::backend::BackendError;
use crate::backend::error::{is_passing_code, server_code};
use crate::backend::scripts::{self, Script};
use redis::{Cmd, Pipeline, RedisError, RedisResult, Value};
use std::time::Duration;
use tokio::time::Instant;

/// How often a replay-safe request is sent again after its answer was lost, where there is only one server.
const RESENDS: u32 = 2;
/// How often a lost connection to the only server is tried to be made anew for a request that was under way.
const RECONNECTS: u32 = 5;
/// How often scripts are loaded for one request: more often would mean that somebody removes them all the time.
const LOADS: u32 = 3;
/// The pause before another try, doubled with each.
const PAUSE: Duration = Duration::from_millis(25);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// What must be left of the time for another try after a refusal: one that is cut short turns what is known to have been
/// refused into something unknown. A quarter of the whole where that is less.
const WORTH_A_TRY: Duration = Duration::from_millis(200);

/// A request under way.
pub(super) struct Request {
    pipeline: Pipeline,
    /// The answers so far; none where the server has not carried the command out.
    answers: Vec<Option<RedisResult<Value>>>,
    resend: Resend,
    deadline: Instant,
    /// What must be left for another try.
    worth: Duration,
    /// The last error of a try that may have been carried out.
    lost: Option<RedisError>,
    resends: u32,
    reconnects: u32,
    reroutes: u32,
    loads: u32,
    tries: u32,
}

/// What the answers ask for, the strongest last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Done,
    /// The scripts are not known.
    Load,
    /// The same server will do it in a moment.
    Wait,
    /// Another server is the one.
    Reroute,
}

impl Request {
    pub fn new(cmds: Vec<Cmd>, resend: Resend, within: Duration) -> Self {
        let (deadline, worth) = (Instant::now() + within, WORTH_A_TRY.min(within / 4));
        let answers = cmds.iter().map(|_| None).collect();
        let pipeline = pipeline_of(cmds);
        let (lost, resends, reconnects, reroutes, loads, tries) = (None, 0, 0, 0, 0, 0);
        Self { pipeline, answers, resend, deadline, worth, lost, resends, reconnects, reroutes, loads, tries }
    }

    pub async fn run(mut self, link: &Link) -> Result<Vec<RedisResult<Value>>, BackendError> {
        loop {
            let live = match link.live(self.deadline).await {
                Ok(live) => live,
                Err(nowhere) => {
                    self.not_connected(link, nowhere).await?;
                    continue;
                }
            };
            let pending: Vec<usize> = (0..self.answers.len()).filter(|i| self.answers[*i].is_none()).collect();
            let answers = if pending.len() == self.answers.len() {
                link.exchange(&live, &self.pipeline, self.deadline).await
            } else {
                let cmds: Vec<&Cmd> = self.pipeline.cmd_iter().collect();
                let part = pipeline_of(pending.iter().map(|i| cmds[*i].clone()).collect());
                link.exchange(&live, &part, self.deadline).await
            };
            let next = match answers {
                Ok(answers) => self.take(link, &pending, answers),
                Err(error) => {
                    link.close(live.generation).await;
                    self.lost_answer(link, error).await?;
                    continue;
                }
            };
            match next {
                Next::Done => return Ok(self.finish()),
                Next::Load => self.load(link, &live).await?,
                Next::Wait => self.pause().await,
                Next::Reroute => {
                    link.close(live.generation).await;
                    self.pause().await;
                }
            }
        }
    }

    /// Waits before another try, or gives up.
    async fn not_connected(&mut self, link: &Link, nowhere: Nowhere) -> Result<(), BackendError> {
        self.reconnects += 1;
        // A first try that finds nobody is told at once; a request that was under way gets more.
        let patient = nowhere.unsettled || (self.was_sent() && self.reconnects <= RECONNECTS);
        if patient && !self.is_over() {
            self.pause().await;
            return Ok(());
        }
        Err(match self.lost.take() {
            Some(lost) => BackendError::sort(lost, link.endpoint()),
            None => link.connect_error(nowhere.error),
        })
    }

    /// Whether too little time is left for another try.
    fn is_over(&self) -> bool {
        Instant::now() + self.worth >= self.deadline
    }

    fn was_sent(&self) -> bool {
        self.lost.is_some() || self.answers.iter().any(Option::is_some) || self.reroutes > 0
    }

    /// After a try without an answer: waits before another, or gives up.
    async fn lost_answer(&mut self, link: &Link, error: RedisError) -> Result<(), BackendError> {
        self.resends += 1;
        let settled = link.inner.route.is_single() && self.resends > RESENDS;
        if self.resend == Resend::Never || settled || self.is_over() {
            return Err(BackendError::sort(error, link.endpoint()));
        }
        self.lost = Some(error);
        self.pause().await;
        Ok(())
    }

    /// Keeps the answers that are final, and says what the others need.
    fn take(&mut self, link: &Link, pending: &[usize], answers: Vec<RedisResult<Value>>) -> Next {
        let over = self.is_over();
        let mut next = Next::Done;
        for (i, answer) in pending.iter().zip(answers) {
            let wanted = match &answer {
                Err(error) if !over => self.reaction(link, error),
                _ => Next::Done,
            };
            match (wanted, answer) {
                (Next::Done, Err(error)) => self.answers[*i] = Some(Err(self.certain(error))),
                (Next::Done, answer) => self.answers[*i] = Some(answer),
                (wanted, _) => next = next.max(wanted),
            }
        }
        if next == Next::Reroute {
            self.reroutes += 1;
        }
        next
    }

    /// A refusal is not the whole truth where an earlier try may have been carried out.
    fn certain(&self, error: RedisError) -> RedisError {
        match (&self.lost, server_code(&error)) {
            (Some(lost), Some(code)) if is_passing_code(&code) => lost.clone(),
            _ => error,
        }
    }

    /// What to do about an error that the server answered. All of these mean that it has changed nothing.
    fn reaction(&self, link: &Link, error: &RedisError) -> Next {
        let Some(code) = server_code(error) else { return Next::Done };
        match (&*link.inner.route, code.as_str()) {
            (_, "NOSCRIPT") if self.loads < LOADS => Next::Load,
            // Behind one name there may be another server by now.
            (Route::Single(_), "READONLY") if self.reroutes == 0 => Next::Reroute,
            (Route::Single(_), _) => Next::Done,
            (_, "READONLY" | "MASTERDOWN" | "LOADING") => Next::Reroute,
            (Route::Cluster(cluster), "MOVED") => {
                cluster.hint(error);
                Next::Reroute
            }
            (Route::Cluster(_), "CLUSTERDOWN") => Next::Reroute,
            // A slot on its way. Where it goes to is not asked: a script would find some of its keys there and take the
            // others for gone. It waits until all are in one place.
            (Route::Cluster(_), "ASK" | "TRYAGAIN") => Next::Wait,
            _ => Next::Done,
        }
    }

    async fn load(&mut self, link: &Link, live: &Live) -> Result<(), BackendError> {
        self.loads += 1;
        let loads = scripts::ALL.iter().map(|script: &&Script| {
            let mut cmd = redis::cmd("SCRIPT");
            cmd.arg("LOAD").arg(script.text());
            cmd
        });
        match link.exchange(live, &pipeline_of(loads.collect()), self.deadline).await {
            Ok(answers) => match answers.into_iter().find_map(Result::err) {
                Some(error) if self.reaction(link, &error) == Next::Done => {
                    Err(BackendError::sort(self.certain(error), link.endpoint()))
                }
                _ => Ok(()),
            },
            Err(error) => {
                link.close(live.generation).await;
                // The scripts were not known: whatever became of loading them, the request was not carried out by this.
                self.reconnects += 1;
                if self.reconnects > RECONNECTS || self.is_over() {
                    return Err(match self.lost.take() {
                        Some(lost) => BackendError::sort(lost, link.endpoint()),
                        None => link.connect_error(error),
                    });
                }
                self.pause().await;
                Ok(())
            }
        }
    }

    async fn pause(&mut self) {
        let pause = (PAUSE * 2_u32.saturating_pow(self.tries.min(8))).min(LONGEST_PAUSE);
        self.tries += 1;
        // Many who lost the same server do not come back in step.
        let pause = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        let latest = self.deadline.checked_sub(self.worth / 2).unwrap_or(self.deadline);
        tokio::time::sleep_until(latest.min(Instant::now() + pause)).await;
    }

    fn finish(self) -> Vec<RedisResult<Value>> {
        self.answers.into_iter().map(|answer| answer.unwrap_or(Ok(Value::Nil))).collect()
    }
}

fn pipeline_of(cmds: Vec<Cmd>) -> Pipeline {
    let mut pipeline = Pipeline::with_capacity(cmds.len());
    for cmd in cmds {
        pipeline.add_command(cmd);
    }
    pipeline.ignore_errors();
    pipeline
}
