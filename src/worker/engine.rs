//! The loop around the dispatcher: it turns what happens into events, and commands into what is done.

use crate::backend::{Backend, BackendError};
use crate::task::{Segment, TaskId};
use crate::worker::bridge::Bridge;
use crate::worker::dispatcher::Dispatcher;
use crate::worker::fetch::{Fetch, Fetched, fetch};
use crate::worker::heartbeat::Pulse;
use crate::worker::lease::{Finished, Lease};
use crate::worker::moves::{Command, Event, Limits};
use crate::worker::native::{Native, Shop};
use crate::worker::options::WorkerOptions;
use crate::worker::settle::{Gathered, Report, Settlement, Tally, send};
use crate::worker::wake::Waker;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Tasks that one request takes at most.
const FETCH_MAX: usize = 250;
/// Ends that one turn of the loop takes from the executors at most.
const TURN_MAX: usize = 1024;

/// What others tell the loop.
#[derive(Debug)]
pub(crate) enum Signal {
    /// The server does not know the worker of this id.
    Unregistered(Arc<str>),
    Listening(bool),
    Woken,
    /// Stop taking tasks and finish.
    Stop,
    /// End now.
    Force,
    /// Of the retries that were asked after, these do not wait any more.
    Elsewhere(Vec<TaskId>),
}

/// Everything that the loop holds.
pub(crate) struct Engine {
    backend: Backend,
    byte_budget: usize,
    dispatcher: Dispatcher,
    shop: Arc<Shop>,
    native: Native,
    python: Option<Bridge>,
    concurrency: usize,
    pulse: Arc<Pulse>,
    waker: Waker,
    signals: UnboundedSender<Signal>,
    worker: Arc<str>,
    requests: u64,
    gathered: Gathered,
    fetch: Option<BoxFuture<'static, Fetched>>,
    settle: Option<BoxFuture<'static, Report>>,
    register: Option<BoxFuture<'static, bool>>,
    tally: Tally,
    commands: Vec<Command>,
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) struct Ending {
    pub worker: Arc<str>,
    pub tally: Tally,
    /// Whether Redis has taken the end of everything that this worker held.
    pub is_settled: bool,
}

impl Engine {
    pub fn new(
        backend: Backend,
        options: &WorkerOptions,
        native: Native,
        python: Option<Bridge>,
        pulse: Arc<Pulse>,
        waker: Waker,
        signals: UnboundedSender<Signal>,
    ) -> Self {
        let limits = Limits {
            queues: options.queues.clone(),
            threads: options.thread_count(),
            concurrency: options.concurrency.max(1),
            fetch_max: FETCH_MAX,
            prefetch: options.prefetch_count,
            byte_budget: options.byte_budget,
            max_tasks: options.task_limit(),
            exit_empty: options.exit_empty,
            poll: options.poll_interval,
            poll_max: options.poll_max_interval.max(options.poll_interval),
            grace: options.grace,
        };
        Self {
            shop: native.shop().clone(),
            byte_budget: options.byte_budget,
            dispatcher: Dispatcher::new(limits),
            native,
            python,
            concurrency: options.concurrency.max(1),
            waker,
            signals,
            worker: pulse.fresh_id(),
            pulse,
            requests: 0,
            gathered: Gathered::default(),
            fetch: None,
            settle: None,
            register: None,
            tally: Tally::default(),
            commands: Vec::new(),
            backend,
        }
    }

    /// Runs until the worker has ended.
    pub async fn run(
        mut self,
        mut results: UnboundedReceiver<Finished>,
        mut signals: UnboundedReceiver<Signal>,
    ) -> Ending {
        self.begin_registration();
        let mut ended = Vec::with_capacity(TURN_MAX);
        let timer = tokio::time::sleep(std::time::Duration::ZERO);
        tokio::pin!(timer);
        loop {
            let tick = self.dispatcher.next_tick();
            if let Some(at) = tick.filter(|at| timer.deadline().into_std() != *at) {
                timer.as_mut().reset(at.into());
            }
            tokio::select! {
                count = results.recv_many(&mut ended, TURN_MAX) => {
                    if count > 0 {
                        self.finished(ended.drain(..));
                    }
                }
                fetched = pending(&mut self.fetch) => {
                    self.fetch = None;
                    self.fetched(fetched);
                }
                report = pending(&mut self.settle) => {
                    self.settle = None;
                    self.settled(report);
                }
                registered = pending(&mut self.register) => {
                    self.register = None;
                    self.registered(registered);
                }
                Some(signal) = signals.recv() => self.signalled(signal),
                () = &mut timer, if tick.is_some() => self.event(Event::Tick),
            }
            if let Some(python) = &self.python {
                // What runs in this process takes no place from the children.
                let native = self.native.running_async().min(self.concurrency);
                self.dispatcher.set_concurrency(python.places() + native);
            }
            self.dispatcher.proceed(Instant::now(), &mut self.commands);
            if self.obey() {
                let is_settled = self.settle.is_none() && self.gathered.is_empty();
                return Ending { worker: self.worker, tally: self.tally, is_settled };
            }
            self.begin_settling();
            self.pulse.running.store(self.dispatcher.running() as u64, Ordering::Relaxed);
        }
    }

    fn event(&mut self, event: Event) {
        self.dispatcher.handle(event, Instant::now(), &mut self.commands);
    }

    fn finished(&mut self, ended: impl Iterator<Item = Finished>) {
        let ttl = self.backend.settings().lease_ttl;
        for finished in ended {
            let sequence = finished.lease.sequence;
            self.native.forget(sequence);
            if !self.python.as_mut().is_some_and(|python| python.was_cut_off(sequence)) {
                self.event(Event::Finished { sequence, took: finished.took });
            }
            let until = finished.lease.since + ttl;
            self.gathered.push(Settlement::new(finished, until));
        }
    }

    fn fetched(&mut self, fetched: Fetched) {
        match fetched {
            Fetched::Leases(leases) => self.event(Event::Granted(leases)),
            Fetched::Unregistered(worker) => self.signalled(Signal::Unregistered(worker)),
        }
    }

    fn settled(&mut self, report: Report) {
        self.tally.add(report.tally);
        report.retried.into_iter().for_each(|id| self.event(Event::Retried(id)));
        if let Some(mark) = report.marked {
            self.event(Event::Marked(mark));
        }
        self.event(Event::Settled(report.settled));
        if let Some(worker) = report.unregistered {
            self.signalled(Signal::Unregistered(worker));
        }
    }

    fn registered(&mut self, registered: bool) {
        if !registered {
            self.worker = self.pulse.fresh_id();
            return self.begin_registration();
        }
        tracing::info!(worker = &*self.worker, "the worker is registered and takes tasks");
        self.pulse.set_worker(Some(self.worker.clone()));
        self.requests = 0;
        self.event(Event::Registered);
    }

    fn signalled(&mut self, signal: Signal) {
        match signal {
            // Word of an earlier id of this process comes late.
            Signal::Unregistered(worker) if worker != self.worker || self.register.is_some() => {}
            Signal::Unregistered(worker) => {
                tracing::error!(
                    worker = &*worker,
                    "the server does not know this worker any more: it counted as gone, and others take its tasks over"
                );
                self.pulse.set_worker(None);
                self.fetch = None;
                self.gathered.forget_mark();
                self.event(Event::Unregistered);
            }
            Signal::Listening(listening) => self.event(Event::Listening(listening)),
            Signal::Woken => {
                self.waker.seen();
                self.event(Event::Woken);
            }
            Signal::Stop => self.event(Event::Stop),
            Signal::Force => self.event(Event::Force),
            Signal::Elsewhere(ids) => self.event(Event::Elsewhere(ids)),
        }
    }

    /// Does what was commanded. Answers whether this is the end.
    fn obey(&mut self) -> bool {
        let mut commands = std::mem::take(&mut self.commands);
        let mut is_end = false;
        for command in commands.drain(..) {
            match command {
                Command::Register => {
                    self.worker = self.pulse.fresh_id();
                    self.begin_registration();
                }
                Command::Fetch(plan) => {
                    self.requests += 1;
                    let request = Fetch {
                        worker: self.worker.clone(),
                        number: self.requests,
                        queues: plan.queues.clone(),
                        plan,
                        byte_budget: self.byte_budget,
                    };
                    self.fetch = Some(Box::pin(fetch(self.backend.clone(), self.shop.clone(), request)));
                }
                Command::Start(lease) => self.start(lease),
                Command::Mark(mark) => self.gathered.mark(mark),
                Command::GiveBack(leases) => {
                    let until = self.until();
                    leases.iter().for_each(|lease| self.gathered.push(Settlement::unstarted(lease, until)));
                }
                Command::Drain => {
                    self.native.drain();
                    self.python.iter_mut().for_each(Bridge::drain);
                }
                Command::Cancel(leases) => leases.iter().for_each(|lease| self.cancel(lease.sequence)),
                Command::CutOff(leases) => {
                    leases.iter().for_each(|lease| self.cut_off(lease));
                    self.python.iter_mut().for_each(Bridge::cut_off);
                }
                Command::Listen(listen) => self.waker.listen(listen),
                Command::CheckRetries(ids) => {
                    tokio::spawn(check_retries(self.backend.clone(), ids, self.signals.clone()));
                }
                Command::Exit => is_end = true,
            }
        }
        self.python.iter_mut().for_each(Bridge::flush);
        self.commands = commands;
        is_end
    }

    /// Begins an attempt: a registered task here, another one in the children, where there are any.
    fn start(&mut self, lease: Lease) {
        match (&mut self.python, &lease.record) {
            (Some(python), Ok(record)) if !self.native.has(&record.spec.func) => python.start(&lease, record),
            _ => self.native.start(lease),
        }
    }

    fn cancel(&mut self, sequence: u64) {
        self.native.cancel(sequence);
        self.python.iter_mut().for_each(|python| python.cancel(sequence));
    }

    fn cut_off(&mut self, lease: &Lease) {
        if self.python.as_ref().is_some_and(|python| python.holds(lease.sequence)) {
            // All of them together, and after their policies were asked.
            return;
        }
        self.native.cancel(lease.sequence);
        let end = self.native.cut_off(lease);
        let finished = Finished { lease: lease.clone(), took: lease.since.elapsed(), end };
        let until = self.until();
        self.gathered.push(Settlement::new(finished, until));
    }

    /// Until when an answer matters of what was leased just now.
    fn until(&self) -> Instant {
        Instant::now() + self.backend.settings().lease_ttl
    }

    fn begin_registration(&mut self) {
        let (backend, pulse, worker) = (self.backend.clone(), self.pulse.clone(), self.worker.clone());
        self.register = Some(Box::pin(async move { pulse.register(&backend, &worker).await }));
    }

    /// While one round is under way, what ends gathers for the next.
    fn begin_settling(&mut self) {
        if self.settle.is_none() && !self.gathered.is_empty() {
            let round = self.gathered.take(self.worker.clone());
            self.settle = Some(Box::pin(send(self.backend.clone(), round)));
        }
    }
}

/// The future's output, once there is a future.
async fn pending<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// Tells which of these retries do not wait any more: finished, dropped, or taken by another worker.
async fn check_retries(backend: Backend, ids: Vec<TaskId>, signals: UnboundedSender<Signal>) {
    let mut elsewhere = Vec::new();
    for id in ids {
        let waits = match backend.find(&id, None).await {
            Ok(Some(detail)) => detail.lease.is_none() && !detail.segment().is_none_or(Segment::is_finished),
            Ok(None) => false,
            Err::<_, BackendError>(_) => true,
        };
        if !waits {
            elsewhere.push(id);
        }
    }
    // Nobody listens any more where the worker has ended.
    let _ = signals.send(Signal::Elsewhere(elsewhere));
}
