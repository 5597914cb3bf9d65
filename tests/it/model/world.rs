//! The clients, what they remember, and what is known of each id.

use super::state::{Account, At, Places, QUEUES, Spot, State};
use super::{Due, Op};
use crate::common::TestRedis;
use chrono::{TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;
use threadmill::backend::doctor::{Place, Settled};
use threadmill::backend::{
    Acknowledgement, Backend, RedisUrl, Registration, RetryRequest, Seen, Settings, Token, Unstarted, new_id,
};
use threadmill::task::{NewTask, Segment, TaskRecord};

/// A lease that a client of ours believes it has; perhaps it ended long ago.
#[derive(Clone, Debug)]
pub struct Held {
    pub id: String,
    pub queue: usize,
    pub token: Token,
    pub worker: String,
    pub data: Vec<u8>,
}

/// A request as it was sent, to be sent again.
#[derive(Clone, Debug)]
pub enum Sent {
    Enqueue(Vec<NewTask>),
    Acquire { worker: String, token: Token, number: u64, queues: Vec<String>, count: usize, sequence: u64 },
    Acknowledge(Acknowledgement, String),
    Retry(Box<RetryRequest>),
    GiveBack(Unstarted),
    Requeue(Box<TaskRecord>, usize, Segment, f64, bool),
    Drop(usize, Segment, Seen),
    Move(usize, Segment, Seen),
    Reschedule(usize, Seen, bool),
}

/// A worker of ours.
#[derive(Clone, Debug)]
pub struct Worker {
    pub id: String,
    pub number: u64,
    pub sequence: u64,
}

pub struct World {
    pub backend: Backend,
    pub connection: redis::Connection,
    pub state: State,
    pub workers: Vec<Worker>,
    pub held: Vec<Held>,
    /// Leases of 0.8.4: id, queue, token, record.
    pub foreign: Vec<(String, usize, String)>,
    pub sent: Vec<Sent>,
    /// The tokens of requests that found nothing.
    pub empty: HashSet<Token>,
    /// Who may end each running task: the token of the last lease or claim that was reported.
    pub owners: BTreeMap<String, Token>,
    /// Records as they were last seen, for late actors.
    pub stale: BTreeMap<String, Vec<u8>>,
    /// Ids that 0.8.4 or an expiry has touched: it may have broken the rules for them.
    pub touched: BTreeSet<String>,
    /// Ids whose end was reported by an answer of ours.
    pub ended: BTreeSet<String>,
    /// Ids that 0.8.4 removed without a word.
    pub taken: BTreeSet<String>,
    generation: u64,
}

impl World {
    pub fn new(redis: &TestRedis) -> Self {
        redis.cli::<()>(&["FLUSHALL"]);
        let backend = Backend::new(Settings::new(RedisUrl::parse(&redis.url()).expect("a URL"))).expect("a backend");
        let worker = |n: u64| Worker { id: format!("host:{n}"), number: 0, sequence: 1 };
        World {
            backend,
            connection: redis.connection(),
            state: State::default(),
            workers: (0..3).map(worker).collect(),
            held: Vec::new(),
            foreign: Vec::new(),
            sent: Vec::new(),
            empty: HashSet::new(),
            owners: BTreeMap::new(),
            stale: BTreeMap::new(),
            touched: BTreeSet::new(),
            ended: BTreeSet::new(),
            taken: BTreeSet::new(),
            generation: 10,
        }
    }

    /// Does one operation and checks what it changed against what it answered.
    pub async fn step(&mut self, op: Op) -> Result<(), String> {
        let account = self.act(op).await?;
        let after = State::read(&mut self.connection);
        account.check(&self.state, &after)?;
        self.note_ends(&after);
        self.state = after;
        self.check_rules()
    }

    /// Ids that are listed nowhere now: an answer said so, since the account was checked.
    fn note_ends(&mut self, after: &State) {
        for id in self.state.places.keys().filter(|id| !after.places.contains_key(*id)) {
            if !self.taken.contains(id) {
                self.ended.insert(id.clone());
            }
        }
        self.ended.retain(|id| !after.places.contains_key(id));
    }

    fn check_rules(&self) -> Result<(), String> {
        let ids = self.state.places.keys().chain(self.state.records.keys()).chain(&self.state.results);
        for id in ids.filter(|id| !self.touched.contains(*id)) {
            let places = self.state.of(id);
            let (record, result) = (self.state.records.get(id), self.state.results.contains(id));
            let one: Vec<At> = places.iter().copied().collect();
            let fine = match one[..] {
                [(_, spot)] if spot.is_finished() => record.is_none() && result,
                [_] => record == Some(&false) && !result,
                _ => false,
            };
            if !fine {
                return Err(format!("{id} is in {places:?}, record {record:?} (expires?), result {result}"));
            }
        }
        Ok(())
    }

    /// Lets the sweep come round, after which nothing is in two places, whatever was done.
    pub async fn settle(&mut self) -> Result<(), String> {
        let mut quiet = 0;
        for _ in 0..200 {
            let account = self.act(Op::Tidy).await?;
            let after = State::read(&mut self.connection);
            account.check(&self.state, &after)?;
            quiet = if account.named.is_empty() { quiet + 1 } else { 0 };
            self.note_ends(&after);
            self.state = after;
            if quiet > QUEUES.len() * Spot::ALL.len() {
                break;
            }
        }
        for (id, places) in &self.state.places {
            let runs = places.iter().any(|(_, spot)| *spot == Spot::Running);
            let spots: Vec<At> = places.iter().copied().collect();
            // A result beside a run is left to the holder.
            let finished_too = runs && self.state.results.contains(id);
            let elsewhere = spots.iter().map(|(queue, _)| queue).collect::<BTreeSet<_>>().len() > 1;
            if places.len() != 1 && !finished_too && !elsewhere {
                return Err(format!("{id} stays in {places:?}"));
            }
        }
        for id in self.stale.keys().filter(|id| !self.state.places.contains_key(*id)) {
            if !self.ended.contains(id) && !self.taken.contains(id) {
                return Err(format!("{id} is gone and nobody said so"));
            }
        }
        Ok(())
    }

    pub fn account_repair(&self, account: &mut Account, queue: usize, id: &str, outcome: &Settled) {
        let was: Vec<At> = self.state.of(id).into_iter().filter(|(there, _)| *there == queue).collect();
        let at = |place: &Place| (queue, spot_of(place));
        match outcome {
            Settled::Kept(_, removed) => {
                account.name(id, &removed.iter().map(at).collect::<Vec<_>>(), &[]);
            }
            Settled::SetAside(removed) => {
                let removed: Vec<At> = removed.iter().map(at).collect();
                account.name(id, &removed, &[(queue, Spot::Quarantine)]);
            }
            Settled::Forgotten => account.name(id, &[(queue, Spot::Successful), (queue, Spot::Failed)], &[]),
            Settled::Restored(place) => account.name(id, &was, &[at(place)]),
            _ => {}
        }
    }

    /// A task that is somewhere, of those for which this holds.
    pub fn pick(&self, pick: u16, wanted: impl Fn(Spot) -> bool) -> Option<(String, At, f64)> {
        let found: Vec<_> = self.state.scores.iter().filter(|(((_, spot), _), _)| wanted(*spot)).collect();
        let ((at, id), score) = found.get(usize::from(pick) % found.len().max(1))?;
        Some((id.clone(), *at, **score))
    }

    pub fn pick_held(&self, pick: u16) -> Option<Held> {
        // The latest ones are more likely to be alive; the others are late.
        let at = self.held.len().checked_sub(1 + usize::from(pick) % (self.held.len().clamp(1, 12)))?;
        Some(self.held[at].clone())
    }

    /// Whether this token is the one that may end the task now.
    pub fn owns(&self, id: &str, queue: usize, token: &Token) -> bool {
        self.owners.get(id) == Some(token)
            && self.state.of(id).contains(&(queue, Spot::Running))
            && self.state.records.contains_key(id)
    }

    pub fn new_tasks(&self, queue: usize, count: u8, due: Due) -> Vec<NewTask> {
        let task = |_| {
            let mut task = NewTask::new(new_id(), "tasks.echo");
            QUEUES[queue].clone_into(&mut task.queue);
            task.run_after = match due {
                Due::Now => None,
                Due::Past => Some(Utc::now() - TimeDelta::seconds(10)),
                Due::Future => Some(Utc::now() + TimeDelta::days(1)),
            };
            task
        };
        (0..count).map(task).collect()
    }

    /// The worker, registered; one that was declared dead comes back under another id.
    pub async fn registered(&mut self, worker: u8) -> usize {
        let at = usize::from(worker) % self.workers.len();
        loop {
            let registration = Registration {
                worker: self.workers[at].id.clone(),
                ttl: Duration::from_secs(600),
                ..Registration::default()
            };
            match self.backend.register(&registration).await.expect("the server answers") {
                threadmill::backend::Beat::Alive(_) => return at,
                threadmill::backend::Beat::Unregistered => {
                    self.generation += 1;
                    self.workers[at] = Worker { id: format!("host:{}", self.generation), number: 0, sequence: 1 };
                }
            }
        }
    }

    pub fn touch(&mut self, id: &str) {
        self.touched.insert(id.to_owned());
    }

    /// Everywhere in one queue.
    pub fn places_in(&self, id: &str, queue: usize) -> Vec<At> {
        let places: Places = self.state.of(id);
        places.into_iter().filter(|(there, _)| *there == queue).collect()
    }
}

pub fn spot_of(place: &Place) -> Spot {
    match place {
        Place::Segment(Segment::Ready) => Spot::Ready,
        Place::Segment(Segment::Scheduled) => Spot::Scheduled,
        Place::Segment(Segment::Running) => Spot::Running,
        Place::Segment(Segment::Successful) => Spot::Successful,
        Place::Segment(Segment::Failed) => Spot::Failed,
        Place::Quarantine => Spot::Quarantine,
    }
}

pub fn segment_of(spot: Spot) -> Option<Segment> {
    Some(match spot {
        Spot::Ready => Segment::Ready,
        Spot::Scheduled => Segment::Scheduled,
        Spot::Running => Segment::Running,
        Spot::Successful => Segment::Successful,
        Spot::Failed => Segment::Failed,
        Spot::Quarantine => return None,
    })
}
