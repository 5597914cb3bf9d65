//! The actor of the pool: its children and their lives.

use super::answer::{self, Hello, Times};
use super::child::{Link, Reports, Said};
use super::frame::{Frame, Kind};
use super::lives::ask_back;
use super::member::{Member, Stage};
use super::output::{Line, write, write_record};
use super::pool::{Command, Ended, Job, PoolEvent, PythonEnd, failed};
use super::process::Launch;
use super::questions::{Question, Questions};
use super::site::reports;
use super::{PythonError, PythonOptions};
use crate::task::ErrorRecord;
use bytes::BytesMut;
use chrono::Utc;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// What has not begun goes back.
    Recalling,
    /// And the children end with their last task.
    Stopping,
    /// What runs was cut off; the policies are asked.
    CuttingOff,
}

pub(super) struct Actor {
    pub(super) options: PythonOptions,
    pub(super) launch: Launch,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<u32, Member>,
    pub(super) opening: JoinSet<(u32, Result<Link, PythonError>)>,
    pub(super) waiting: VecDeque<Job>,
    pub(super) questions: Questions,
    pub(super) reports: Reports,
    pub(super) said: Option<mpsc::UnboundedReceiver<(u32, Said)>>,
    pub(super) lines: Option<mpsc::Receiver<(u32, Line)>>,
    pub(super) events: mpsc::UnboundedSender<Vec<PoolEvent>>,
    pub(super) told: Vec<PoolEvent>,
    pub(super) places: Arc<AtomicUsize>,
    pub(super) first: Option<oneshot::Sender<Result<Hello, PythonError>>>,
    pub(super) next_child: u32,
    pub(super) next_number: u64,
    /// Children in a row that did not load the site, and when the next may be started.
    pub(super) failures: u32,
    pub(super) not_before: Option<Instant>,
    pub(super) look_at: Instant,
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

    // What children say.

    fn heard(&mut self, child: u32, said: Said) {
        match said {
            Said::Frames(frames) => frames.into_iter().for_each(|frame| self.frame(child, frame)),
            Said::Gone(death) => self.gone(child, death),
        }
    }

    pub(super) fn frame(&mut self, child: u32, frame: Frame) {
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
    pub(super) fn put_back(&mut self, jobs: Vec<Job>) {
        if matches!(self.phase, Phase::Recalling | Phase::CuttingOff) {
            self.told.extend(jobs.into_iter().map(PoolEvent::Unstarted));
        } else {
            jobs.into_iter().rev().for_each(|job| self.waiting.push_front(job));
        }
    }

    /// Tells the end of an attempt, or asks a child for it.
    pub(super) fn end(&mut self, end: Result<Ended, Box<(Ended, Question)>>) {
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

    pub(super) fn tell(&mut self) {
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
