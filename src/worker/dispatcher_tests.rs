use super::*;
use crate::backend::{Token, codec};
use crate::task::NewTask;
use crate::worker::lease::Leasehold;
use std::sync::Arc;

/// A dispatcher with a clock that only the test moves.
struct Bench {
    dispatcher: Dispatcher,
    start: Instant,
    now: Instant,
    token: Token,
}

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> Limits {
    Limits {
        queues: vec!["a".into()],
        concurrency: 4,
        threads: 2,
        fetch_max: 100,
        prefetch: 10,
        byte_budget: 1 << 20,
        max_tasks: None,
        exit_empty: false,
        poll: Duration::from_millis(10),
        poll_max: SECOND,
        grace: None,
    }
}

impl Bench {
    fn new(limits: Limits) -> Self {
        let dispatcher = Dispatcher::new(limits);
        let start = dispatcher.born;
        Self { dispatcher, start, now: start, token: Token::new() }
    }

    fn registered(limits: Limits) -> (Self, Plan) {
        let mut bench = Self::new(limits);
        let plan = bench.say(Event::Registered).plan();
        (bench, plan)
    }

    fn say(&mut self, event: Event) -> Said {
        let mut out = Vec::new();
        self.dispatcher.handle(event, self.now, &mut out);
        self.dispatcher.proceed(self.now, &mut out);
        Said(out)
    }

    fn lease(&self, queue: &str, sequence: u64, is_blocking: bool) -> Lease {
        let mut task = NewTask::new(TaskId::from(format!("task-{sequence}")), "f");
        task.queue = queue.to_owned();
        Arc::new(Leasehold {
            id: task.id.clone(),
            queue: queue.to_owned(),
            sequence,
            token: self.token.clone(),
            started_at: None,
            record: Ok(codec::queued(&task, "default", chrono::DateTime::UNIX_EPOCH)),
            bytes: 100,
            is_blocking,
            worker: "w".into(),
            since: self.now,
        })
    }

    fn grant(&mut self, sequences: std::ops::Range<u64>) -> Said {
        let leases = sequences.map(|sequence| self.lease("a", sequence, false)).collect();
        self.say(Event::Granted(leases))
    }

    fn finish(&mut self, sequence: u64, took: Duration) -> Said {
        self.say(Event::Finished { sequence, took })
    }

    /// Four run, each as long as the last tasks took, and three wait.
    fn with_waiting() -> Self {
        let (mut bench, _) = Self::registered(limits());
        bench.grant(1..5);
        let millisecond = Duration::from_millis(1);
        bench.finish(1, millisecond);
        bench.say(Event::Settled(1));
        let plan = bench.dispatcher.fetch.clone().expect("a free place is asked for");
        assert_eq!((plan.count, plan.start_now, plan.sequence), (1, 1, 5));
        let plan = bench.grant(5..6).plan();
        assert_eq!((plan.start_now, plan.sequence), (0, 6));
        assert!(plan.count >= 3, "{plan:?}");
        assert_eq!(bench.grant(6..9).started(), [0; 0]);
        bench
    }
}

struct Said(Vec<Command>);

impl Said {
    fn plan(&self) -> Plan {
        let plan = self.0.iter().find_map(|command| match command {
            Command::Fetch(plan) => Some(plan.clone()),
            _ => None,
        });
        plan.unwrap_or_else(|| panic!("no request: {:?}", self.0))
    }

    fn started(&self) -> Vec<u64> {
        let start = |command: &Command| match command {
            Command::Start(lease) => Some(lease.sequence),
            _ => None,
        };
        self.0.iter().filter_map(start).collect()
    }

    fn returned(&self) -> Vec<u64> {
        let returned = |command: &Command| match command {
            Command::GiveBack(leases) => leases.iter().map(|lease| lease.sequence).collect(),
            _ => Vec::new(),
        };
        self.0.iter().flat_map(returned).collect()
    }

    fn has(&self, is: fn(&Command) -> bool) -> bool {
        self.0.iter().any(is)
    }

    fn mark(&self) -> Option<u64> {
        self.0.iter().find_map(|command| match command {
            Command::Mark(mark) => Some(*mark),
            _ => None,
        })
    }

    fn exits(&self) -> bool {
        self.has(|command| matches!(command, Command::Exit))
    }
}

#[test]
fn nothing_is_asked_for_before_it_is_registered_and_then_all_places() {
    let mut bench = Bench::new(limits());
    assert!(bench.say(Event::Woken).0.is_empty());
    let plan = bench.say(Event::Registered).plan();
    assert_eq!(plan, Plan { queues: vec!["a".into()], count: 4, start_now: 4, sequence: 1 });
    let said = bench.grant(1..5);
    assert_eq!(said.started(), [1, 2, 3, 4]);
    assert_eq!(bench.dispatcher.running(), 4);
    assert!(!said.has(|command| matches!(command, Command::Fetch(_))), "nothing is known of durations yet");
}

#[test]
fn what_waits_starts_in_order_and_only_under_the_mark() {
    let mut bench = Bench::with_waiting();
    let said = bench.finish(2, Duration::from_millis(1));
    assert_eq!((said.mark(), said.started()), (Some(6), vec![]));
    let said = bench.finish(3, Duration::from_millis(1));
    assert_eq!((said.mark(), said.started()), (Some(7), vec![]));
    assert_eq!(bench.say(Event::Marked(6)).started(), [6]);
    assert_eq!(bench.say(Event::Marked(7)).started(), [7]);
    assert_eq!(bench.say(Event::Marked(8)).started(), [8], "the server has counted it as started");
}

#[test]
fn what_waits_too_long_is_given_back_and_long_running_ones_prefetch_nothing() {
    let mut bench = Bench::with_waiting();
    bench.now += WAIT_MAX;
    assert_eq!(bench.dispatcher.next_tick(), Some(bench.start + WAIT_MAX));
    assert_eq!(bench.say(Event::Tick).returned(), [6, 7, 8]);
    assert_eq!(bench.dispatcher.pools[0].ends_soon(0.0), 200, "by the last durations alone");
    assert_eq!(bench.dispatcher.room(false, bench.now + 60 * SECOND), 0, "their age tells that they are slow");
}

#[test]
fn sequence_numbers_never_come_twice() {
    let (mut bench, first) = Bench::registered(limits());
    bench.grant(first.sequence..first.sequence + 2);
    // Two of the four were granted; all four numbers are used up.
    assert_eq!(bench.dispatcher.next_sequence, 5 + bench.dispatcher.fetch.as_ref().map_or(0, |plan| plan.count as u64));
    bench.say(Event::Unregistered);
    assert!(bench.say(Event::Registered).plan().sequence >= 5);
}

#[test]
fn a_worker_that_is_not_known_drops_all_and_registers_anew() {
    let mut bench = Bench::with_waiting();
    let said = bench.say(Event::Unregistered);
    assert!(
        said.has(|command| matches!(command, Command::Cancel(leases) if leases.len() == 4)),
        "{said:?}",
        said = said.0
    );
    assert!(said.has(|command| matches!(command, Command::Register)));
    assert!(said.returned().is_empty(), "what waited is not its own any more");
    assert_eq!(bench.dispatcher.running(), 0);
    assert!(bench.say(Event::Unregistered).0.is_empty(), "once is enough");
    assert!(bench.say(Event::Marked(99)).started().is_empty());
    assert_eq!(bench.say(Event::Registered).plan().count, 4);
}

#[test]
fn a_stop_gives_back_what_waits_and_what_is_still_granted_and_then_ends() {
    let mut bench = Bench::with_waiting();
    let said = bench.say(Event::Stop);
    assert_eq!(said.returned(), [6, 7, 8]);
    assert!(said.has(|command| matches!(command, Command::Drain)) && !said.exits());
    let asked = bench.dispatcher.fetch.clone();
    if let Some(plan) = asked {
        let sequence = plan.sequence;
        assert_eq!(bench.grant(sequence..sequence + 1).returned(), [sequence]);
        bench.say(Event::Settled(1));
    }
    for sequence in 2..6 {
        assert!(!bench.finish(sequence, SECOND).exits());
    }
    assert!(!bench.say(Event::Settled(6)).exits());
    assert!(bench.say(Event::Settled(1)).exits());
}

#[test]
fn a_second_signal_or_the_end_of_grace_cuts_off_what_runs() {
    for by_grace in [false, true] {
        let (mut bench, _) = Bench::registered(Limits { grace: Some(SECOND), ..limits() });
        bench.grant(1..5);
        assert!(bench.say(Event::Stop).0.iter().all(|command| !matches!(command, Command::CutOff(_))));
        bench.now += SECOND;
        let said = if by_grace { bench.say(Event::Tick) } else { bench.say(Event::Force) };
        assert!(said.has(|command| matches!(command, Command::CutOff(leases) if leases.len() == 4)));
        assert!(!said.exits());
        assert!(bench.say(Event::Settled(4)).exits());
    }
}

#[test]
fn a_forced_end_does_not_wait_for_redis_for_ever() {
    let (mut bench, _) = Bench::registered(limits());
    bench.grant(1..5);
    bench.say(Event::Force);
    bench.now += END_LIMIT;
    assert!(bench.say(Event::Tick).exits());
}

#[test]
fn an_idle_worker_listens_and_looks_ever_more_rarely() {
    let (mut bench, _) = Bench::registered(limits());
    let said = bench.grant(1..1);
    assert!(said.has(|command| matches!(command, Command::Listen(true))));
    assert_eq!(bench.dispatcher.next_tick(), Some(bench.now + Duration::from_millis(10)));
    bench.now += Duration::from_millis(10);
    bench.say(Event::Tick).plan();
    bench.grant(1..1);
    assert_eq!(bench.dispatcher.next_tick(), Some(bench.now + Duration::from_millis(20)));
    // One more look after the subscription: something may have come just before it.
    bench.say(Event::Listening(true)).plan();
    bench.grant(1..1);
    assert_eq!(bench.dispatcher.next_tick(), Some(bench.now + 5 * SECOND));
    let sequence = bench.say(Event::Woken).plan().sequence;
    // A message that comes while a request is under way leads to another one.
    assert!(bench.say(Event::Woken).0.is_empty());
    assert_eq!(bench.grant(sequence..sequence).plan().count, 4);
}

#[test]
fn blocking_work_is_taken_as_far_as_threads_are_free() {
    let queues = vec!["cpu".to_owned(), "io".to_owned()];
    let (mut bench, plan) = Bench::registered(Limits { queues, concurrency: 10, ..limits() });
    assert_eq!(plan.count, 10);
    let leases =
        (1..7).map(|n| bench.lease("cpu", n, true)).chain((7..9).map(|n| bench.lease("io", n, false))).collect();
    let said = bench.say(Event::Granted(leases));
    assert_eq!(said.started(), [1, 2, 7, 8]);
    assert_eq!(said.returned(), [3, 4, 5, 6]);
    let plan = said.plan();
    assert_eq!((plan.queues.as_slice(), plan.count), (&["io".to_owned()][..], 8), "no thread is free");
    bench.grant(plan.sequence..plan.sequence);
    bench.finish(1, 10 * SECOND);
    // Each kind of queue has its turn.
    let mut asked = Vec::new();
    for _ in 0..2 {
        let plan = bench.say(Event::Woken).plan();
        asked.push((plan.queues[0].clone(), plan.count, plan.start_now));
        bench.grant(plan.sequence..plan.sequence);
    }
    asked.sort();
    assert_eq!(asked, [("cpu".to_owned(), 1, 1), ("io".to_owned(), 8, 8)]);
}

#[test]
fn it_ends_by_itself_when_ready_is_empty_and_its_retries_are_settled() {
    let (mut bench, _) = Bench::registered(Limits { exit_empty: true, ..limits() });
    bench.grant(1..2);
    bench.finish(1, SECOND);
    bench.say(Event::Retried(TaskId::from("task-1")));
    let said = bench.say(Event::Settled(1));
    assert!(!said.exits());
    let said = bench.grant(5..5);
    assert!(said.has(|command| matches!(command, Command::CheckRetries(ids) if ids.len() == 1)) && !said.exits());
    assert!(bench.say(Event::Elsewhere(vec![TaskId::from("task-1")])).exits());
}

#[test]
fn it_does_not_end_on_an_answer_from_before_leases_were_given_back() {
    let limits = Limits { exit_empty: true, concurrency: 2, threads: 1, prefetch: 0, ..limits() };
    let (mut bench, plan) = Bench::registered(limits);
    // Two that take a thread, of which one is free: the other goes back, and a request is under way meanwhile.
    let leases = (0..2).map(|n| bench.lease("a", plan.sequence + n, true)).collect();
    let said = bench.say(Event::Granted(leases));
    assert_eq!(said.returned(), [plan.sequence + 1]);
    let said = bench.finish(plan.sequence, SECOND);
    let next = said.plan();
    assert!(!bench.say(Event::Settled(2)).exits());
    // Its answer is older than what was given back: it is asked once more.
    let said = bench.grant(next.sequence..next.sequence);
    assert!(!said.exits());
    let again = said.plan();
    assert!(bench.grant(again.sequence..again.sequence).exits());
}

#[test]
fn it_takes_no_more_than_it_was_told() {
    let (mut bench, plan) = Bench::registered(Limits { max_tasks: Some(3), ..limits() });
    assert_eq!(plan.count, 3);
    bench.grant(1..4);
    for sequence in 1..4 {
        assert!(!bench.finish(sequence, SECOND).has(|command| matches!(command, Command::Fetch(_))));
    }
    assert!(bench.say(Event::Settled(3)).exits());
}
