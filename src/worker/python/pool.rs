//! The pool: keeps children, gives them tasks, and accounts for each task whatever becomes of its child.
//!
//! One actor owns all state. It takes commands from outside and reports from children, and answers with events.

use super::answer::{ChildVerdict, Described, Hello, Times};
use super::member::attempt_text;
use super::questions::{Asker, Question};
use super::{PythonError, PythonOptions, actor, charge};
use crate::task::{ErrorRecord, RawJson, Stamp, Status, TaskRecord, Verdict};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// One attempt of a task.
#[derive(Clone, Debug)]
pub struct Job {
    /// Chosen by who submits it; comes back with its end.
    pub ticket: u64,
    /// The stored record.
    pub record: Arc<TaskRecord>,
    /// The worker's id, as the record of this attempt will name it.
    pub worker: Arc<str>,
}

impl Job {
    /// The number of this attempt.
    pub fn attempt(&self) -> u32 {
        self.record.attempts() + 1
    }
}

/// An attempt that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The attempt.
    pub job: Job,
    /// When it began, by this machine's clock.
    pub started_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: DateTime<Utc>,
    /// How.
    pub end: PythonEnd,
}

impl Ended {
    /// Sets the verdict that was not known.
    pub(crate) fn decide(&mut self, verdict: Option<Duration>) {
        if let PythonEnd::Failed { retry, .. } = &mut self.end {
            *retry = verdict;
        }
    }
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum PythonEnd {
    /// With a value, as it is to be stored.
    Returned(RawJson),
    /// With an error; another attempt is to follow after that long, where there is a number.
    Failed {
        /// The error.
        error: ErrorRecord,
        /// The verdict of the task's retry policy.
        retry: Option<Duration>,
    },
}

/// What the pool tells.
#[derive(Clone, Debug)]
pub enum PoolEvent {
    /// An attempt has ended.
    Ended(Ended),
    /// An attempt did not begin, and will not: it is not to be charged.
    Unstarted(Job),
}

/// What the actor is told.
pub(super) enum Command {
    Submit(Vec<Job>),
    Ask(Question),
    Recall,
    CutOff(ErrorRecord),
    Stop,
    Kill,
}

/// A handle to the pool; clones are handles to the same one. Its children end when the last handle goes.
#[derive(Clone, Debug)]
pub struct Pool {
    // Bounded by what is submitted: a lease each.
    commands: mpsc::UnboundedSender<Command>,
    places: Arc<AtomicUsize>,
}

impl Pool {
    /// Starts the children. Returns once the first has loaded the site.
    ///
    /// # Errors
    /// Where there is no interpreter, or the site cannot be loaded; then with Python's own traceback.
    pub async fn start(
        options: PythonOptions,
    ) -> Result<(Self, Hello, mpsc::UnboundedReceiver<Vec<PoolEvent>>), PythonError> {
        let (commands, commanded) = mpsc::unbounded_channel();
        let (events, happened) = mpsc::unbounded_channel();
        let (first, hello) = oneshot::channel();
        let places = Arc::new(AtomicUsize::new(options.workers.max(1) * options.threads.max(1)));
        let actor = actor::Actor::new(options, events, places.clone(), first)?;
        tokio::spawn(actor.run(commanded));
        let hello = hello.await.unwrap_or_else(|_| Err(PythonError::Ended("ended".into())))?;
        Ok((Self { commands, places }, hello, happened))
    }

    /// How many tasks the pool has use for at a time: one for each thread, more where they are short.
    pub fn places(&self) -> usize {
        self.places.load(Ordering::Relaxed)
    }

    /// Runs these. Each is answered by one event.
    pub fn submit(&self, jobs: Vec<Job>) {
        self.tell(Command::Submit(jobs));
    }

    /// Gives back what has not begun; what is submitted from now on too.
    pub fn recall(&self) {
        self.tell(Command::Recall);
    }

    /// Ends what runs with this error, through its retry policies, and gives back what has not begun. The children are
    /// killed once the policies are asked.
    pub fn cut_off(&self, error: ErrorRecord) {
        self.tell(Command::CutOff(error));
    }

    /// Finishes what was submitted, and ends the children. The events end when all is done.
    pub fn stop(&self) {
        self.tell(Command::Stop);
    }

    /// Waits until all children have ended.
    pub async fn ended(&self) {
        self.commands.closed().await;
    }

    /// Kills the children. What was submitted is not answered any more.
    pub fn kill(&self) {
        self.tell(Command::Kill);
    }

    /// The verdict of a task's retry policy on an attempt that did not end in this pool.
    pub async fn decide(&self, job: &Job, started_at: DateTime<Utc>, error: &ErrorRecord) -> Option<Duration> {
        match policy_verdict(job, error) {
            Verdict::RetryIn(delay) => return Some(delay),
            Verdict::Fail => return None,
            Verdict::Unknown => {}
        }
        let (sender, answer) = oneshot::channel();
        self.tell(Command::Ask(verdict_question(job, started_at, error, Asker::Verdict(sender))));
        answer.await.unwrap_or(None)
    }

    /// What the decorator says of the function that a dotted path names.
    ///
    /// # Errors
    /// Python's traceback, where it is no task.
    pub async fn describe(&self, path: &str) -> Result<Described, String> {
        let (sender, answer) = oneshot::channel();
        let payload = Bytes::copy_from_slice(path.as_bytes());
        self.tell(Command::Ask(Question { kind: b'Q', payload, asker: Asker::Description(sender), tries: 0 }));
        answer.await.unwrap_or_else(|_| Err("the pool of Python processes has ended".to_owned()))
    }

    fn tell(&self, command: Command) {
        // Where the actor has ended, so has everything that it was told about.
        let _ = self.commands.send(command);
    }
}

/// An attempt that ended with an error: its end, or the question that decides it.
pub(super) fn failed(
    job: Job,
    times: Times,
    error: ErrorRecord,
    verdict: ChildVerdict,
) -> Result<Ended, Box<(Ended, Question)>> {
    let known = match verdict {
        ChildVerdict::After(delay) => Verdict::RetryIn(delay),
        ChildVerdict::No => Verdict::Fail,
        ChildVerdict::NotAsked => policy_verdict(&job, &error),
    };
    let ended = |retry| Ended {
        started_at: times.started_at,
        finished_at: times.finished_at,
        end: PythonEnd::Failed { error: error.clone(), retry },
        job: job.clone(),
    };
    match known {
        Verdict::RetryIn(delay) => Ok(ended(Some(delay))),
        Verdict::Fail => Ok(ended(None)),
        Verdict::Unknown => {
            let asker = Asker::Attempt(Box::new(ended(None)));
            Err(Box::new((ended(None), verdict_question(&job, times.started_at, &error, asker))))
        }
    }
}

/// The end of an attempt whose process died, or the question that decides it. The policy is not asked any more where the task
/// has ended too many.
pub(super) fn crashed(job: Job, times: Times, how: &str, max_crashes: u32) -> Result<Ended, Box<(Ended, Question)>> {
    let error = charge::crashed(how);
    let crashes = charge::crashes(&job.record) + 1;
    let verdict = if crashes >= max_crashes { ChildVerdict::No } else { ChildVerdict::NotAsked };
    failed(job, times, error, verdict)
}

/// What the policy says as far as no Python is needed.
fn policy_verdict(job: &Job, error: &ErrorRecord) -> Verdict {
    match &job.record.spec.retry {
        Some(retry) => retry.verdict(job.attempt(), &error.class_path),
        None => Verdict::Fail,
    }
}

fn verdict_question(job: &Job, started_at: DateTime<Utc>, error: &ErrorRecord, asker: Asker) -> Question {
    let record = TaskRecord {
        started_at: Some(Stamp::new(started_at)),
        status: Status::Running,
        ..TaskRecord::clone(&job.record)
    };
    let text = attempt_text(&record, &job.worker);
    let payload = format!("{{\"record\": {text}, \"error\": {}}}", error.raw.as_str());
    Question { kind: b'V', payload: payload.into(), asker, tries: 0 }
}
