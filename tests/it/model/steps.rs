//! How each operation is carried out, and how its answer accounts for what it changed.

use super::Op;
use super::foreign;
use super::state::{Account, At, QUEUES, Spot, State};
use super::world::{Held, Sent, World, segment_of};
use chrono::{TimeDelta, Utc};
use std::time::Duration;
use threadmill::backend::codec::{Attempt, decode, encode, encode_error, failure, next_attempt, success};
use threadmill::backend::{
    AcknowledgeOutcome, Acknowledgement, AcquireAnswer, AcquireRequest, Cursor, DropOutcome, EnqueueOutcome,
    GiveBackOutcome, MoveOutcome, Outcome, PurgeScope, QuarantineOutcome, RequeueOutcome, RescheduleOutcome, Retried,
    RetryRequest, Seen, SetAsideReason, TakenOver, Token, Unstarted, When,
};
use threadmill::task::{RawJson, Segment, TaskRecord};

type Step = Result<Account, String>;

fn attempt(worker: &str) -> Attempt {
    Attempt { worker: worker.to_owned(), started_at: Utc::now(), finished_at: Utc::now() }
}

fn record(data: &[u8]) -> TaskRecord {
    decode(data).expect("a record of ours")
}

fn tomorrow() -> When {
    // The same moment in each replay.
    When::At(Utc::now().date_naive().and_hms_opt(0, 0, 0).expect("midnight").and_utc() + TimeDelta::days(2))
}

impl World {
    pub async fn act(&mut self, op: Op) -> Step {
        match op {
            Op::Enqueue { queue, count, due } => {
                let tasks = self.new_tasks(usize::from(queue), count, due);
                self.send(Sent::Enqueue(tasks), true).await
            }
            Op::Acquire { worker, queue, count, start } => self.acquire(worker, queue, count, start).await,
            Op::Acknowledge { lease, good } => {
                let Some(held) = self.pick_held(lease) else { return Ok(Account::default()) };
                let made = attempt(&held.worker);
                let (outcome, result) = match good {
                    true => (Outcome::Successful, success(&record(&held.data), &made, RawJson::new("1"))),
                    false => {
                        let error = encode_error("builtins.ValueError", "no\n");
                        (Outcome::Failed, failure(&record(&held.data), &made, error))
                    }
                };
                let queue = QUEUES[held.queue].to_owned();
                let (id, token, result) = (held.id.into(), held.token, encode(&result));
                let sent = Sent::Acknowledge(Acknowledgement { id, queue, token, outcome, result }, held.worker);
                self.send(sent, true).await
            }
            Op::Retry { lease, later } => {
                let Some(held) = self.pick_held(lease) else { return Ok(Account::default()) };
                let error = encode_error("builtins.ValueError", "no\n");
                let request = RetryRequest {
                    record: next_attempt(&record(&held.data), &attempt(&held.worker), error),
                    id: held.id.into(),
                    queue: QUEUES[held.queue].to_owned(),
                    token: held.token,
                    delay: Duration::from_secs(if later { 1000 } else { 0 }),
                };
                self.send(Sent::Retry(Box::new(request)), true).await
            }
            Op::GiveBack { lease } => {
                let Some(held) = self.pick_held(lease) else { return Ok(Account::default()) };
                let queue = QUEUES[held.queue].to_owned();
                self.send(Sent::GiveBack(Unstarted { id: held.id.into(), queue, token: held.token }), true).await
            }
            Op::SetAside { lease } => self.set_aside(lease).await,
            Op::Requeue { pick, later, stale } => {
                let Some((id, (queue, spot), score)) = self.pick(pick, Spot::is_finished) else {
                    return Ok(Account::default());
                };
                let Some(data) = self.read_result(&id).or(self.stale.get(&id).cloned()) else {
                    return Ok(Account::default());
                };
                let segment = segment_of(spot).expect("finished ones are segments");
                let seen = if stale { score - 1.0 } else { score };
                self.send(Sent::Requeue(Box::new(record(&data)), queue, segment, seen, later), true).await
            }
            Op::Drop { pick, running, stale } => {
                let wanted = |spot| spot != Spot::Quarantine && (running || spot != Spot::Running);
                let Some((id, (queue, spot), score)) = self.pick(pick, wanted) else { return Ok(Account::default()) };
                let score = if stale { score - 1.0 } else { score };
                let segment = segment_of(spot).expect("not in quarantine");
                self.send(Sent::Drop(queue, segment, Seen { id: id.into(), score }), true).await
            }
            Op::Move { pick, stale } => {
                let wanted = |spot| matches!(spot, Spot::Ready | Spot::Scheduled);
                let Some((id, (queue, spot), score)) = self.pick(pick, wanted) else { return Ok(Account::default()) };
                let score = if stale { score - 1.0 } else { score };
                let segment = segment_of(spot).expect("a waiting one");
                self.send(Sent::Move(queue, segment, Seen { id: id.into(), score }), true).await
            }
            Op::Reschedule { pick, now, stale } => {
                let Some((id, (queue, _), score)) = self.pick(pick, |spot| spot == Spot::Scheduled) else {
                    return Ok(Account::default());
                };
                let score = if stale { score - 1.0 } else { score };
                self.send(Sent::Reschedule(queue, Seen { id: id.into(), score }, now), true).await
            }
            Op::Replay { request } => {
                let latest = self.sent.len().clamp(1, 16);
                let Some(at) = self.sent.len().checked_sub(1 + usize::from(request) % latest) else {
                    return Ok(Account::default());
                };
                self.send(self.sent[at].clone(), false).await
            }
            _ => self.maintain(op).await,
        }
    }

    fn read_result(&mut self, id: &str) -> Option<Vec<u8>> {
        let key = format!("threadmill:{{default}}:result:{id}");
        redis::cmd("GET").arg(key).query(&mut self.connection).expect("a string or nothing")
    }

    async fn acquire(&mut self, worker: u8, queue: Option<bool>, count: u8, start: u8) -> Step {
        let at = self.registered(worker).await;
        let worker = &mut self.workers[at];
        worker.number += 1;
        worker.sequence += 10;
        let queues = match queue {
            Some(queue) => vec![QUEUES[usize::from(queue)].to_owned()],
            None => QUEUES.map(str::to_owned).to_vec(),
        };
        let (token, count) = (Token::new(), usize::from(count));
        let (number, sequence, worker) = (worker.number, worker.sequence, worker.id.clone());
        let _ = start;
        self.send(Sent::Acquire { worker, token, number, queues, count, sequence }, true).await
    }

    async fn set_aside(&mut self, lease: u16) -> Step {
        let mut account = Account::default();
        let Some(held) = self.pick_held(lease) else { return Ok(account) };
        let owned = self.owns(&held.id, held.queue, &held.token);
        let id = held.id.clone().into();
        match self.backend.quarantine(&id, QUEUES[held.queue], &held.token).await.expect("an answer") {
            QuarantineOutcome::SetAside if owned => {
                account.name(&held.id, &[(held.queue, Spot::Running)], &[(held.queue, Spot::Quarantine)]);
                self.owners.remove(&held.id);
                Ok(account)
            }
            QuarantineOutcome::SetAside => Err(format!("{} was set aside by one who did not hold it", held.id)),
            _ if owned => Err(format!("the holder of {} was refused", held.id)),
            _ => Ok(account),
        }
    }

    /// Sends a request, perhaps one that was sent before; `first` remembers it.
    pub async fn send(&mut self, sent: Sent, first: bool) -> Step {
        if first {
            self.sent.push(sent.clone());
        }
        match sent {
            Sent::Enqueue(tasks) => {
                let mut account = Account::default();
                for (task, answer) in tasks.iter().zip(self.backend.enqueue(&tasks).await.expect("an answer")) {
                    if answer.outcome == EnqueueOutcome::Stored {
                        let queue = usize::from(task.queue != QUEUES[0]);
                        let spot = if task.run_after.is_some() { Spot::Scheduled } else { Spot::Ready };
                        account.name(task.id.as_str(), &[], &[(queue, spot)]);
                        self.stale.entry(task.id.to_string()).or_default();
                    } else if first {
                        return Err(format!("a new task was not stored: {answer:?}"));
                    }
                }
                Ok(account)
            }
            Sent::Acquire { worker, token, number, queues, count, sequence } => {
                let request = AcquireRequest {
                    worker: &worker,
                    token: &token,
                    number,
                    queues: &queues,
                    count,
                    start_now: 1,
                    sequence,
                    byte_budget: 1 << 20,
                };
                let answer = self.backend.acquire(&request).await.expect("an answer");
                // A request that found nothing leaves no trace: arriving late, it is served as if it were new.
                let fresh = first || self.empty.contains(&token);
                if matches!(&answer, AcquireAnswer::Granted(acquired) if acquired.leases.is_empty() && acquired.set_aside.is_empty())
                {
                    self.empty.insert(token);
                } else {
                    self.empty.remove(&token);
                }
                self.granted(answer, &worker, first, fresh)
            }
            Sent::Acknowledge(finished, worker) => self.acknowledge(finished, &worker).await,
            Sent::Retry(request) => {
                let queue = usize::from(request.queue != QUEUES[0]);
                let owned = self.owns(request.id.as_str(), queue, &request.token);
                let answers = self.backend.retry(std::slice::from_ref(&*request)).await.expect("an answer");
                let retried = match answers.into_iter().next().expect("one answer").expect("no refusal") {
                    Retried::Scheduled(_) => true,
                    Retried::Replayed | Retried::Lost => false,
                };
                let to = if request.delay.is_zero() { Spot::Ready } else { Spot::Scheduled };
                self.ended_lease(request.id.as_str(), queue, owned, retried, to)
            }
            Sent::GiveBack(unstarted) => {
                let queue = usize::from(unstarted.queue != QUEUES[0]);
                let owned = self.owns(unstarted.id.as_str(), queue, &unstarted.token);
                let answers = self.backend.give_back(std::slice::from_ref(&unstarted)).await.expect("an answer");
                let given = answers[0] == GiveBackOutcome::GivenBack;
                self.ended_lease(unstarted.id.as_str(), queue, owned, given, Spot::Ready)
            }
            other => self.repeatable(other).await,
        }
    }

    /// The lease of a task ended, if its holder asked for it and only then.
    fn ended_lease(&mut self, id: &str, queue: usize, owned: bool, done: bool, to: Spot) -> Step {
        let mut account = Account::default();
        if done != owned {
            return Err(format!("{id}: asked by its holder: {owned}; done: {done}"));
        }
        if done {
            account.name(id, &[(queue, Spot::Running)], &[(queue, to)]);
            self.owners.remove(id);
        }
        Ok(account)
    }

    async fn acknowledge(&mut self, finished: Acknowledgement, worker: &str) -> Step {
        let queue = usize::from(finished.queue != QUEUES[0]);
        let owned = self.owns(finished.id.as_str(), queue, &finished.token);
        let outcomes =
            self.backend.acknowledge(worker, None, std::slice::from_ref(&finished)).await.expect("an answer");
        let stored = outcomes[0] == AcknowledgeOutcome::Stored;
        let to = if finished.outcome == Outcome::Successful { Spot::Successful } else { Spot::Failed };
        self.stale.insert(finished.id.to_string(), finished.result.clone().into_bytes());
        self.ended_lease(finished.id.as_str(), queue, owned, stored, to)
    }

    fn granted(&mut self, answer: AcquireAnswer, worker: &str, first: bool, fresh: bool) -> Step {
        let mut account = Account::default();
        let AcquireAnswer::Granted(acquired) = answer else {
            return if first { Err(format!("{worker} was refused: {answer:?}")) } else { Ok(account) };
        };
        for lease in acquired.leases {
            let (id, queue) = (lease.id.to_string(), usize::from(lease.queue != QUEUES[0]));
            if fresh {
                account.name(&id, &[(queue, Spot::Ready)], &[(queue, Spot::Running)]);
                self.owners.insert(id.clone(), lease.token.clone());
            } else if !self.owns(&id, queue, &lease.token) && !self.touched.contains(&id) {
                return Err(format!("{id} was granted again, and {worker} does not hold it"));
            }
            self.stale.insert(id.clone(), lease.data.clone());
            self.held.push(Held { id, queue, token: lease.token, worker: worker.to_owned(), data: lease.data });
        }
        for note in acquired.set_aside {
            let queue = usize::from(note.queue != QUEUES[0]);
            let id = note.id.ok_or("a note without an id")?.to_string();
            let to: &[At] = match note.reason {
                SetAsideReason::Duplicate => &[],
                _ => &[(queue, Spot::Quarantine)],
            };
            account.name(id, &[(queue, Spot::Ready)], to);
        }
        Ok(account)
    }

    async fn repeatable(&mut self, sent: Sent) -> Step {
        let mut account = Account::default();
        match sent {
            Sent::Requeue(record, queue, segment, seen, later) => {
                let when = if later { tomorrow() } else { When::Now };
                let name = QUEUES[queue];
                let outcome = self.backend.requeue(&record, name, segment, seen, when).await.expect("an answer");
                if outcome == RequeueOutcome::Requeued {
                    let from = if segment == Segment::Successful { Spot::Successful } else { Spot::Failed };
                    let to = if later { Spot::Scheduled } else { Spot::Ready };
                    account.name(record.id.as_str(), &[(queue, from)], &[(queue, to)]);
                }
            }
            Sent::Drop(queue, segment, seen) => {
                let places = self.places_in(seen.id.as_str(), queue);
                let outcomes = self.backend.drop_many(QUEUES[queue], segment, std::slice::from_ref(&seen)).await;
                if let DropOutcome::Dropped(_) = outcomes.expect("an answer")[0] {
                    account.name(seen.id.as_str(), &places, &[]);
                }
            }
            Sent::Move(queue, segment, seen) => {
                let (from, to) = (QUEUES[queue], QUEUES[1 - queue]);
                let outcomes = self.backend.move_many(from, to, segment, std::slice::from_ref(&seen)).await;
                if outcomes.expect("an answer")[0] == Ok(MoveOutcome::Moved) {
                    let spot = if segment == Segment::Ready { Spot::Ready } else { Spot::Scheduled };
                    account.name(seen.id.as_str(), &[(queue, spot)], &[(1 - queue, spot)]);
                }
            }
            Sent::Reschedule(queue, seen, now) => {
                let when = if now { When::Now } else { tomorrow() };
                let outcomes = self.backend.reschedule_many(QUEUES[queue], std::slice::from_ref(&seen), when).await;
                if outcomes.expect("an answer")[0] == RescheduleOutcome::Rescheduled && now {
                    account.name(seen.id.as_str(), &[(queue, Spot::Scheduled)], &[(queue, Spot::Ready)]);
                }
            }
            _ => {}
        }
        Ok(account)
    }

    async fn maintain(&mut self, op: Op) -> Step {
        let mut account = Account::default();
        match op {
            Op::Mover { queue } => {
                let q = usize::from(queue);
                let moved = self.backend.move_due(QUEUES[q], 50).await.expect("an answer");
                account.counted.push(((q, Spot::Scheduled), Some((q, Spot::Ready)), moved.moved));
                account.unless_in = Some(((q, Spot::Scheduled), (q, Spot::Running)));
                for id in moved.ghosts {
                    account.name(id.as_str(), &[(q, Spot::Scheduled)], &[(q, Spot::Quarantine)]);
                }
            }
            Op::Reap { queue } => {
                let q = usize::from(queue);
                let reaped = self.backend.reap(QUEUES[q]).await.expect("an answer");
                account.counted.push(((q, Spot::Running), None, reaped.finished));
                for id in reaped.ghosts {
                    account.name(id.as_str(), &[(q, Spot::Running)], &[(q, Spot::Quarantine)]);
                }
                for claim in reaped.claimed {
                    self.claim(claim.id.to_string(), q, claim.token, claim.worker, claim.data);
                }
            }
            Op::TakeOver { worker } => {
                let worker = self.workers[usize::from(worker) % self.workers.len()].id.clone();
                for (q, name) in QUEUES.iter().enumerate() {
                    let answer = self
                        .backend
                        .take_over(&worker, name, Duration::ZERO, &Cursor::default())
                        .await
                        .expect("an answer");
                    let TakenOver::Taken { claimed, given_back, .. } = answer else { continue };
                    account.counted.push(((q, Spot::Running), Some((q, Spot::Ready)), given_back));
                    for claim in claimed {
                        self.claim(claim.id.to_string(), q, claim.token, claim.worker, claim.data);
                    }
                }
            }
            Op::Purge { queue, place } => {
                let (q, spot) = (usize::from(queue), Spot::ALL[usize::from(place)]);
                let scope = segment_of(spot).map_or(PurgeScope::Quarantine, PurgeScope::Segment);
                let purged = self.backend.purge_slice(QUEUES[q], scope, None).await.expect("an answer");
                account.counted.push(((q, spot), None, purged.removed));
            }
            Op::Persist { queue } => {
                let name = QUEUES[usize::from(queue)];
                self.backend.persist(name, Segment::Ready, &Cursor::default(), 100).await.expect("an answer");
            }
            Op::Tidy => {
                let queues = QUEUES.map(str::to_owned);
                let tidied = self.backend.tidy_slice(&queues, Duration::ZERO).await.expect("an answer");
                for repair in tidied.repairs {
                    let queue = usize::from(repair.queue != QUEUES[0]);
                    self.account_repair(&mut account, queue, repair.id.as_str(), &repair.outcome);
                    if !self.touched.contains(repair.id.as_str()) {
                        return Err(format!("what only ours touched had to be repaired: {repair:?}"));
                    }
                }
            }
            Op::Overrun { pick } => {
                if let Some((id, (queue, _), _)) = self.pick(pick, |spot| spot == Spot::Running) {
                    foreign::overrun(&mut self.connection, queue, &id);
                }
            }
            _ => return self.foreign(op),
        }
        Ok(account)
    }

    fn claim(&mut self, id: String, queue: usize, token: Token, worker: String, data: Vec<u8>) {
        self.owners.insert(id.clone(), token.clone());
        self.held.push(Held { id, queue, token, worker, data });
    }

    /// What 0.8.4 does is not reported by anybody: the account is what can be seen.
    fn foreign(&mut self, op: Op) -> Step {
        match op {
            Op::ForeignRequeue { pick } => {
                let ids: Vec<&String> =
                    self.stale.iter().filter(|(_, data)| !data.is_empty()).map(|(id, _)| id).collect();
                let Some(id) = ids.get(usize::from(pick) % ids.len().max(1)).map(|id| (*id).clone()) else {
                    return Ok(Account::default());
                };
                let data = self.stale[&id].clone();
                // It goes by the queue that its record names, as it read it.
                let queue = usize::from(record(&data).spec.queue_name != QUEUES[0]);
                foreign::requeue(&mut self.connection, queue, &id, &data);
                self.touch(&id);
                self.owners.remove(&id);
            }
            Op::ForeignAcquire { queue } => {
                let q = usize::from(queue);
                let token = format!("{:024x}", self.foreign.len());
                if let Some((id, leased)) = foreign::acquire(&mut self.connection, q, &token) {
                    self.touch(&id);
                    self.owners.remove(&id);
                    if leased {
                        self.foreign.push((id, q, token));
                    } else {
                        self.taken.insert(id);
                    }
                }
            }
            Op::ForeignAcknowledge { lease, good } => {
                let at = usize::from(lease) % self.foreign.len().max(1);
                let Some((id, queue, token)) = self.foreign.get(at).cloned() else { return Ok(Account::default()) };
                let Some(data) = self.stale.get(&id).filter(|data| !data.is_empty()).cloned() else {
                    return Ok(Account::default());
                };
                let mut done = success(&record(&data), &attempt("django:1-0"), RawJson::new("2"));
                QUEUES[queue].clone_into(&mut done.spec.queue_name);
                if !good {
                    done.status = threadmill::task::Status::Failed;
                }
                foreign::acknowledge(&mut self.connection, queue, &id, &token, &encode(&done), good);
                self.touch(&id);
            }
            Op::ForeignMover { queue } => foreign::mover(&mut self.connection, usize::from(queue)),
            Op::ForeignReaper { queue } => foreign::reaper(&mut self.connection, usize::from(queue)),
            Op::ForeignDrop { pick } => {
                if let Some((id, (queue, spot), _)) = self.pick(pick, |spot| spot != Spot::Quarantine) {
                    foreign::dequeue(&mut self.connection, queue, spot, &id);
                    self.touch(&id);
                }
            }
            Op::Expire { pick } => {
                let wanted = |spot| matches!(spot, Spot::Ready | Spot::Scheduled | Spot::Running);
                if let Some((id, _, _)) = self.pick(pick, wanted) {
                    foreign::expire(&mut self.connection, &id);
                    self.touch(&id);
                    // What knew the holder is gone.
                    self.owners.remove(&id);
                }
            }
            _ => {}
        }
        let after = State::read(&mut self.connection);
        let mut account = Account::default();
        let ids: Vec<String> = self.state.places.keys().chain(after.places.keys()).cloned().collect();
        for id in ids {
            let (was, is) = (self.state.of(&id), after.of(&id));
            if was != is {
                self.touch(&id);
                let left: Vec<At> = was.difference(&is).copied().collect();
                let entered: Vec<At> = is.difference(&was).copied().collect();
                account.name(&id, &left, &entered);
                if is.is_empty() {
                    self.taken.insert(id);
                }
            }
        }
        Ok(account)
    }
}
