//! The actor of the pool: its children and their lives.

use super::answer::{self, Hello, Times};
use super::child::{Death, Link, Reports, Said};
use super::frame::{Frame, Kind, encode};
use super::member::{Member, Stage};
use super::output::{Line, write, write_record};
use super::pool::{Command, Ended, Job, PoolEvent, PythonEnd, crashed, failed};
use super::process::{Launch, how_it_ended};
use super::questions::{Question, Questions};
use super::site::reports;
use super::{PythonError, PythonOptions, charge};
use crate::task::ErrorRecord;
use bytes::BytesMut;
use chrono::Utc;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// A child that was told to end has this long; it runs nothing then.
const END_LIMIT: Duration = Duration::from_secs(10);
/// Pauses between children that die before they have loaded the site.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// What has not begun goes back.
    Recalling,
    /// And the children end with their last task.
    Stopping,
    /// What runs was cut off; the policies are asked.
    CuttingOff,
}

pub(super) struct Actor {
    options: PythonOptions,
    launch: Launch,
    phase: Phase,
    members: BTreeMap<u32, Member>,
    opening: JoinSet<(u32, Result<Link, PythonError>)>,
    waiting: VecDeque<Job>,
    questions: Questions,
    reports: Reports,
    said: Option<mpsc::UnboundedReceiver<(u32, Said)>>,
    lines: Option<mpsc::Receiver<(u32, Line)>>,
    events: mpsc::UnboundedSender<Vec<PoolEvent>>,
    told: Vec<PoolEvent>,
    places: Arc<AtomicUsize>,
    first: Option<oneshot::Sender<Result<Hello, PythonError>>>,
    next_child: u32,
    next_number: u64,
    /// Children in a row that did not load the site, and when the next may be started.
    failures: u32,
    not_before: Option<Instant>,
    look_at: Instant,
}

impl Actor {
    pub fn new(
        options: PythonOptions,
        events: mpsc::UnboundedSender<Vec<PoolEvent>>,
        places: Arc<AtomicUsize>,
        first: oneshot::Sender<Result<Hello, PythonError>>,
    ) -> Result<Self, PythonError> {
        let launch = options.launch()?;
        let (reports, said, lines) = reports();
        Ok(Self {
            options,
            launch,
            phase: Phase::Running,
            members: BTreeMap::new(),
            opening: JoinSet::new(),
            waiting: VecDeque::new(),
            questions: Questions::default(),
            reports,
            said: Some(said),
            lines: Some(lines),
            events,
            told: Vec::new(),
            places,
            first: Some(first),
            next_child: 0,
            next_number: 0,
            failures: 0,
            not_before: None,
            look_at: Instant::now(),
        })
    }

    /// Runs until stopped or killed, or until nobody holds the pool any more.
    pub async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        let (Some(mut said), Some(mut lines)) = (self.said.take(), self.lines.take()) else { return };
        let mut is_held = true;
        // One child first: what is wrong with the site is said once.
        self.open();
        loop {
            let wake = self.wakes_at();
            tokio::select! {
                command = commands.recv(), if is_held => match command {
                    Some(Command::Kill) => return,
                    Some(command) => self.command(command),
                    None if self.first.is_some() => is_held = false,
                    None => return,
                },
                Some((child, said)) = said.recv() => self.heard(child, said),
                Some((child, line)) = lines.recv() => self.line(child, line),
                Some(opened) = self.opening.join_next() => if let Ok((child, link)) = opened {
                    self.opened(child, link);
                },
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            if self.first.as_ref().is_some_and(oneshot::Sender::is_closed) {
                return;
            }
            self.look();
            self.keep_number();
            self.assign();
            self.wind_down();
            self.tell();
            if self.is_over() {
                return;
            }
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Submit(jobs) if self.phase == Phase::Running => self.waiting.extend(jobs),
            Command::Submit(jobs) => self.told.extend(jobs.into_iter().map(PoolEvent::Unstarted)),
            Command::Ask(question) => self.questions.push(question),
            Command::Recall => self.recall(),
            Command::CutOff(error) => self.cut_off(&error),
            Command::Stop => self.phase = Phase::Stopping,
            Command::Kill => {}
        }
    }

    fn recall(&mut self) {
        if self.phase == Phase::Running {
            self.phase = Phase::Recalling;
        }
        self.told.extend(self.waiting.drain(..).map(PoolEvent::Unstarted));
        for member in self.members.values_mut().filter(|member| !member.given.is_empty()) {
            ask_back(member);
        }
    }

    fn cut_off(&mut self, error: &ErrorRecord) {
        self.recall();
        self.phase = Phase::CuttingOff;
        let now = Utc::now();
        let mut ends = Vec::new();
        for member in self.members.values_mut() {
            let begun = member.link.journal.begun();
            for (number, job) in std::mem::take(&mut member.given) {
                match begun.iter().find(|begun| begun.number == number) {
                    Some(begun) => {
                        let times = Times { started_at: begun.at, finished_at: now.max(begun.at) };
                        ends.push(failed(job, times, error.clone(), answer::ChildVerdict::NotAsked));
                    }
                    None => self.told.push(PoolEvent::Unstarted(job)),
                }
            }
        }
        ends.into_iter().for_each(|end| self.end(end));
    }

    // Children.

    /// Starts one more.
    fn open(&mut self) {
        let (launch, reports, child) = (self.launch.clone(), self.reports.clone(), self.next_child);
        self.next_child += 1;
        self.opening.spawn(async move { (child, Link::open(launch, child, reports).await) });
    }

    fn opened(&mut self, child: u32, link: Result<Link, PythonError>) {
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
    fn did_not_load(&mut self, error: PythonError) {
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
    fn keep_number(&mut self) {
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
    fn wind_down(&mut self) {
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

    fn is_over(&self) -> bool {
        let ends = matches!(self.phase, Phase::Stopping | Phase::CuttingOff);
        ends && self.members.is_empty() && self.waiting.is_empty() && self.opening.is_empty()
    }

    // What children say.

    fn heard(&mut self, child: u32, said: Said) {
        match said {
            Said::Frames(frames) => frames.into_iter().for_each(|frame| self.frame(child, frame)),
            Said::Gone(death) => self.gone(child, death),
        }
    }

    fn frame(&mut self, child: u32, frame: Frame) {
        let Some(member) = self.members.get_mut(&child) else { return };
        match frame.kind {
            Kind::Hello => self.hello(child, &frame),
            Kind::Done => match (answer::done(&frame.payload), member.take(frame.number)) {
                (Some((times, value)), Some(job)) => {
                    member.learn(times.took());
                    let Times { started_at, finished_at } = times;
                    let end = PythonEnd::Returned(value);
                    self.told.push(PoolEvent::Ended(Ended { job, started_at, finished_at, end }));
                }
                (None, Some(job)) => self.unreadable(child, frame.number, job),
                (_, None) => {}
            },
            Kind::Failed => match (answer::failed(&frame.payload), member.take(frame.number)) {
                (Some((times, error, verdict)), Some(job)) => {
                    member.learn(times.took());
                    self.end(failed(job, times, error, verdict));
                }
                (None, Some(job)) => self.unreadable(child, frame.number, job),
                (_, None) => {}
            },
            Kind::Unstarted => self.given_back(child, &answer::numbers(&frame.payload)),
            Kind::Answer => {
                let ended = self.questions.answered(frame.number, &frame.payload);
                self.told.extend(ended.map(PoolEvent::Ended));
            }
            Kind::Log => match serde_json::from_slice(&frame.payload) {
                Ok(logged) => write_record(&logged, member.link.process.id()),
                Err(error) => tracing::debug!(%error, "a log record of a Python process cannot be read"),
            },
        }
    }

    /// An answer that cannot be read: the child is broken, and its task is charged with that.
    fn unreadable(&mut self, child: u32, number: u64, job: Job) {
        if let Some(member) = self.members.get_mut(&child) {
            tracing::error!(target: "threadmill::python", pid = member.link.process.id(), "an answer cannot be read");
            member.given.insert(number, job);
            member.link.process.kill();
        }
    }

    fn hello(&mut self, child: u32, frame: &Frame) {
        let Some(member) = self.members.get_mut(&child) else { return };
        match answer::answer::<Hello>(&frame.payload) {
            Ok(hello) => {
                member.stage = Stage::Ready;
                self.failures = 0;
                if let Some(first) = self.first.take() {
                    let _ = first.send(Ok(hello));
                }
            }
            Err(traceback) => {
                member.stage = Stage::Stopping;
                self.did_not_load(PythonError::Site(traceback));
            }
        }
    }

    fn given_back(&mut self, child: u32, numbers: &[u64]) {
        let Some(member) = self.members.get_mut(&child) else { return };
        let jobs: Vec<Job> = numbers.iter().filter_map(|number| member.take(*number)).collect();
        if !jobs.is_empty() {
            member.slow_down();
        }
        self.put_back(jobs);
    }

    /// What has not begun is the first to be given to another child.
    fn put_back(&mut self, jobs: Vec<Job>) {
        if matches!(self.phase, Phase::Recalling | Phase::CuttingOff) {
            self.told.extend(jobs.into_iter().map(PoolEvent::Unstarted));
        } else {
            jobs.into_iter().rev().for_each(|job| self.waiting.push_front(job));
        }
    }

    fn gone(&mut self, child: u32, death: Death) {
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
                Some(limit) => failed(job, times, charge::overran(limit), answer::ChildVerdict::NotAsked),
                None => crashed(job, times, &how, self.options.max_crashes),
            });
        }
        self.put_back(unstarted);
        let given_up = self.questions.lost(child);
        self.told.extend(given_up.into_iter().map(PoolEvent::Ended));
    }

    /// Tells the end of an attempt, or asks a child for it.
    fn end(&mut self, end: Result<Ended, Box<(Ended, Question)>>) {
        match end {
            Ok(ended) => self.told.push(PoolEvent::Ended(ended)),
            Err(undecided) => self.questions.push(undecided.1),
        }
    }

    fn line(&mut self, child: u32, mut line: Line) {
        let member = self.members.get(&child);
        if line.owner.is_none() {
            // Written past Python's streams: by a library in C, or by a program that the task started.
            line.owner = member.and_then(|member| {
                let mut running = member.link.journal.begun().into_iter().filter_map(|b| member.given.get(&b.number));
                let only = running.next().filter(|_| running.next().is_none())?;
                Some((only.record.id.to_string(), only.record.spec.queue_name.clone()))
            });
        }
        write(&line, member.map_or(0, |member| member.link.process.id()));
    }

    // Giving tasks.

    fn assign(&mut self) {
        let mut frames: BTreeMap<u32, BytesMut> = BTreeMap::new();
        while !self.waiting.is_empty() {
            let free = self.members.iter_mut().filter(|(_, member)| member.has_room());
            let Some((child, member)) = free.min_by_key(|(_, member)| member.given.len()) else { break };
            let Some(job) = self.waiting.pop_front() else { break };
            self.next_number += 1;
            member.give(self.next_number, job, frames.entry(*child).or_default());
        }
        let able = self.members.iter().filter(|(_, m)| matches!(m.stage, Stage::Ready | Stage::Retiring));
        if let Some((child, _)) = able.min_by_key(|(_, member)| member.given.len()) {
            let next = &mut self.next_number;
            let number = || {
                *next += 1;
                *next
            };
            self.questions.ask(*child, number, frames.entry(*child).or_default());
        }
        for (child, frames) in frames {
            if let Some(member) = self.members.get(&child) {
                member.link.send(frames);
            }
        }
        let workers = self.options.workers.max(1);
        let ready = self.members.values().filter(|member| member.stage == Stage::Ready);
        let places: usize = ready.map(|member| member.window().max(self.launch.threads)).sum();
        self.places.store(places.max(workers * self.launch.threads), Ordering::Relaxed);
    }

    // Time.

    fn wakes_at(&self) -> Instant {
        let silent = self.members.values().filter_map(Member::asks_at);
        silent.chain(self.not_before).chain([self.look_at]).min().unwrap_or(self.look_at)
    }

    /// What follows from the time that has passed.
    fn look(&mut self) {
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

    fn tell(&mut self) {
        if !self.told.is_empty() {
            // Nobody listens any more where the worker has ended.
            let _ = self.events.send(std::mem::take(&mut self.told));
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let ended = self.questions.give_up();
        self.told.extend(ended.into_iter().map(PoolEvent::Ended));
        self.tell();
    }
}

/// Asks a child for the answers and the tasks that it holds back.
fn ask_back(member: &mut Member) {
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
        } else if let Some(limit) = options.soft_limit.filter(|limit| took >= *limit) {
            if member.interrupted.insert(begun.number) {
                send_one(member, b'I', begun.number, charge::soft_limit(limit).as_bytes());
            }
        }
    }
    member.interrupted.retain(|number| member.given.contains_key(number));
}
