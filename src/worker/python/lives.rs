//! The lives of the children: how they come, are replaced, overrun their time, and go.

use super::actor::{Actor, Phase};
use super::answer::{ChildVerdict, Times};
use super::child::{Death, Link};
use super::frame::encode;
use super::member::{Member, Stage};
use super::pool::{PoolEvent, crashed, failed};
use super::process::how_it_ended;
use super::{PythonError, PythonOptions, charge};
use bytes::BytesMut;
use chrono::Utc;
use std::time::{Duration, Instant};

/// A child that was told to end has this long; it runs nothing then.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Pauses between children that die before they have loaded the site.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Actor {
    /// Starts one more.
    pub(super) fn open(&mut self) {
        let (launch, reports, child) = (self.launch.clone(), self.reports.clone(), self.next_child);
        self.next_child += 1;
        self.opening.spawn(async move { (child, Link::open(launch, child, reports).await) });
    }

    pub(super) fn opened(&mut self, child: u32, link: Result<Link, PythonError>) {
        match link {
            Ok(link) => {
                let jitter = fastrand::u64(0..=self.options.max_tasks_jitter);
                let budget = self.options.max_tasks.filter(|most| *most > 0).map(|most| most + jitter);
                self.members.insert(child, Member::new(link, self.launch.threads, budget));
            }
            Err(error) => self.did_not_load(error),
        }
    }

    /// A child did not come to load the site.
    pub(super) fn did_not_load(&mut self, error: PythonError) {
        if let Some(first) = self.first.take() {
            let _ = first.send(Err(error));
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        tracing::error!(target: "threadmill::python", ?pause, "no new Python process: {error}");
        self.failures += 1;
        self.not_before = Some(Instant::now() + pause);
    }

    /// Starts what is missing: a child for each that was asked for, and a successor for each that has done enough.
    pub(super) fn keep_number(&mut self) {
        let may = self.first.is_none() && self.not_before.is_none_or(|at| Instant::now() >= at);
        let has_work = !self.waiting.is_empty() || !self.questions.is_empty();
        if !may || !(self.phase == Phase::Running || has_work) {
            return;
        }
        self.not_before = None;
        let (mut fresh, mut spent) = (self.opening.len(), 0);
        for member in self.members.values() {
            match member.stage {
                Stage::Starting => fresh += 1,
                Stage::Ready if member.is_done() => spent += 1,
                Stage::Ready => fresh += 1,
                Stage::Retiring | Stage::Stopping => {}
            }
        }
        for _ in fresh..self.options.workers.max(1) {
            self.open();
        }
        // Those that have done enough go as their successors are ready.
        let ready = self.members.values().filter(|m| m.stage == Stage::Ready && !m.is_done()).count();
        let surplus = (ready + spent).saturating_sub(self.options.workers.max(1));
        let leaving = self.members.values_mut().filter(|member| member.stage == Stage::Ready && member.is_done());
        for member in leaving.take(surplus) {
            member.stage = Stage::Retiring;
            ask_back(member);
        }
    }

    /// Tells those to end that have nothing more to do, and ends those that do not.
    pub(super) fn wind_down(&mut self) {
        let all_go = self.phase == Phase::Stopping && self.waiting.is_empty() && self.questions.is_empty();
        let killed = self.phase == Phase::CuttingOff && self.questions.is_empty();
        for member in self.members.values_mut() {
            if killed {
                member.stage = Stage::Stopping;
                member.link.process.kill();
                continue;
            }
            let goes = member.stage == Stage::Retiring || (all_go && member.stage != Stage::Stopping);
            if goes && member.given.is_empty() {
                member.stage = Stage::Stopping;
                member.told = Some(Instant::now());
                send_one(member, b'S', 0, b"");
            }
            if member.told.is_some_and(|at| at.elapsed() >= END_LIMIT) {
                member.link.process.kill();
            }
        }
    }

    pub(super) fn is_over(&self) -> bool {
        let ends = matches!(self.phase, Phase::Stopping | Phase::CuttingOff);
        ends && self.members.is_empty() && self.waiting.is_empty() && self.opening.is_empty()
    }

    pub(super) fn gone(&mut self, child: u32, death: Death) {
        death.frames.into_iter().for_each(|frame| self.frame(child, frame));
        let Some(mut member) = self.members.remove(&child) else { return };
        let how = match (death.fault, death.status) {
            (Some(fault), _) => format!("was ended, since it sent {fault}"),
            (None, Some(status)) => how_it_ended(status),
            (None, None) => "ended".to_owned(),
        };
        let (pid, stage) = (member.link.process.id(), member.stage);
        if stage == Stage::Starting {
            self.did_not_load(PythonError::Ended(how.clone()));
        } else if stage != Stage::Stopping {
            tracing::warn!(target: "threadmill::python", pid, "a Python process {how}");
        }
        let now = Utc::now();
        let mut unstarted = Vec::new();
        for (number, job) in std::mem::take(&mut member.given) {
            let begun = death.begun.iter().find(|begun| begun.number == number);
            let Some(begun) = begun.filter(|_| member.overran.is_none_or(|overran| overran == number)) else {
                // Not begun, or beside the one for which the process was killed.
                unstarted.push(job);
                continue;
            };
            let times = Times { started_at: begun.at, finished_at: now.max(begun.at) };
            self.end(match self.options.hard_limit.filter(|_| member.overran.is_some()) {
                Some(limit) => failed(job, times, charge::overran(limit), ChildVerdict::NotAsked),
                None => crashed(job, times, &how, self.options.max_crashes),
            });
        }
        self.put_back(unstarted);
        let given_up = self.questions.lost(child);
        self.told.extend(given_up.into_iter().map(PoolEvent::Ended));
    }

    pub(super) fn wakes_at(&self) -> Instant {
        let silent = self.members.values().filter_map(Member::asks_at);
        silent.chain(self.not_before).chain([self.look_at]).min().unwrap_or(self.look_at)
    }

    /// What follows from the time that has passed.
    pub(super) fn look(&mut self) {
        let now = Instant::now();
        for member in self.members.values_mut() {
            if member.asks_at().is_some_and(|at| now >= at) {
                ask_back(member);
            }
        }
        if now < self.look_at {
            return;
        }
        let limits = self.options.soft_limit.into_iter().chain(self.options.hard_limit).min();
        let pause = limits.map_or(Duration::from_secs(1), |limit| limit / 20);
        self.look_at = now + pause.clamp(Duration::from_millis(10), Duration::from_secs(1));
        let (max_age, max_memory) = (self.options.max_age, self.options.max_memory);
        for member in self.members.values_mut() {
            member.is_old |= member.is_spent(max_age, max_memory);
            if limits.is_some() {
                keep_limits(member, &self.options);
            }
        }
    }
}

/// Asks a child for the answers and the tasks that it holds back.
pub(super) fn ask_back(member: &mut Member) {
    member.asked();
    send_one(member, b'F', 0, b"");
}

fn send_one(member: &Member, kind: u8, number: u64, payload: &[u8]) {
    let mut frame = BytesMut::new();
    encode(&mut frame, kind, number, payload);
    member.link.send(frame);
}

/// Interrupts or kills what runs for too long.
fn keep_limits(member: &mut Member, options: &PythonOptions) {
    let now = Utc::now();
    for begun in member.link.journal.begun() {
        if !member.given.contains_key(&begun.number) {
            continue;
        }
        let took = (now - begun.at).to_std().unwrap_or_default();
        if options.hard_limit.is_some_and(|limit| took >= limit) && member.overran.is_none() {
            member.overran = Some(begun.number);
            member.link.process.kill();
        } else if let Some(limit) = options.soft_limit.filter(|limit| took >= *limit)
            && member.interrupted.insert(begun.number)
        {
            send_one(member, b'I', begun.number, charge::soft_limit(limit).as_bytes());
        }
    }
    member.interrupted.retain(|number| member.given.contains_key(number));
}
