//! The users of docs/acl.md: each can do all that its role does, and nothing of what it is given is too much.

use super::table::{QUEUE, Transition, WORKER, backend, registration, task};
use crate::common::TestRedis;
use std::ops::ControlFlow;
use std::time::Duration;
use threadmill::backend::doctor::Checkup;
use threadmill::backend::{
    Backend, BackendError, Durability, PurgeScope, RescheduleOutcome, Seen, TelemetryEvent, When,
};
use threadmill::task::Segment;

const LONG: Duration = Duration::from_secs(20);
const DOC: &str = include_str!("../../../docs/acl.md");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Worker,
    Enqueuer,
    Waiter,
    Reader,
    Operator,
}

use Role::*;

const ROLES: [Role; 5] = [Worker, Enqueuer, Waiter, Reader, Operator];

impl Role {
    fn heading(self) -> &'static str {
        match self {
            Worker => "## Worker",
            Enqueuer => "## Enqueuer",
            Waiter => "## Waiter",
            Reader => "## Read-only",
            Operator => "## Operator",
        }
    }

    /// The user's name and the rules that the page gives it.
    fn rules(self) -> (String, Vec<String>) {
        let section = DOC.split(&format!("{}\n", self.heading())).nth(1).expect("the page has the section");
        let section = section.split("\n## ").next().unwrap();
        let lines = section.lines().filter_map(|line| line.strip_prefix("ACL SETUSER "));
        let mut words = lines.map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>()).collect::<Vec<_>>();
        let name = words[0][0].clone();
        for line in &mut words {
            assert_eq!(line.remove(0), name, "one user in {}", self.heading());
        }
        (name, words.concat())
    }

    fn commands(self) -> Vec<String> {
        self.rules().1.into_iter().filter(|rule| rule.starts_with('+')).collect()
    }

    /// Makes the user, without one of its rules, and answers a backend of it.
    fn user(self, server: &TestRedis, without: Option<&str>, with: &[&str]) -> Backend {
        let (name, mut rules) = self.rules();
        rules.retain(|rule| Some(rule.as_str()) != without);
        let mut words = vec!["ACL", "SETUSER", &name];
        words.extend(rules.iter().map(String::as_str));
        words.extend(with);
        server.cli::<()>(&words);
        backend(&format!("redis://{name}:PASSWORD@127.0.0.1:{}", server.port()), LONG)
    }

    fn transitions(self) -> &'static [Transition] {
        use Transition::*;
        match self {
            Worker => &[
                Acquire,
                Acknowledge,
                Retry,
                GiveBack,
                Mover,
                Reap,
                TakeOver,
                Register,
                Beat,
                Leave,
                Watch,
                Quarantine,
                Persist,
            ],
            Enqueuer => &[Enqueue],
            Waiter => &[Enqueue],
            Reader => &[Peek],
            Operator => &[Requeue, Drop, Purge, Peek],
        }
    }

    /// Does all that the role does. The first thing that it may not is the error.
    async fn work(self, server: &TestRedis, user: &Backend) -> Result<(), BackendError> {
        for transition in self.transitions() {
            server.cli::<()>(&["FLUSHALL"]);
            // A user that may not load scripts would else live on what others have loaded.
            server.cli::<()>(&["SCRIPT", "FLUSH"]);
            let seeded = transition.seed(server).await;
            server.cli::<()>(&["SCRIPT", "FLUSH"]);
            assert!(transition.run(user, &seeded).await?, "{self:?}: {transition:?}");
        }
        user.ping().await?;
        let queues = [QUEUE.to_owned()];
        match self {
            Worker => {
                seed_ghosts(server).await;
                user.register(&registration(WORKER)).await?;
                super::table::acquire(user, &threadmill::backend::Token::new(), 1, 3, 3).await?;
                user.record_queues(&queues).await?;
                user.known_queues().await?;
                user.search_queues(LONG).await?;
                user.now().await?;
                for _ in 0..6 {
                    user.tidy_slice(&queues, Duration::ZERO).await?;
                }
                hears(server, user).await?;
            }
            Enqueuer => {}
            Waiter => {
                let next = task(QUEUE);
                user.enqueue(std::slice::from_ref(&next)).await?;
                user.find(&next.id, Some(QUEUE)).await?;
                hears(server, user).await?;
            }
            Reader => reads(server, user).await?,
            Operator => {
                reads(server, user).await?;
                seed_ghosts(server).await;
                user.record_queues(&queues).await?;
                user.search_queues(LONG).await?;
                user.purge_slice(QUEUE, PurgeScope::Quarantine, None).await?;
                let direct = backend(&server.unix_url(), LONG);
                let mut due = task(QUEUE);
                due.run_after = Some("2090-01-01T00:00:00Z".parse().unwrap());
                direct.enqueue(std::slice::from_ref(&due)).await.unwrap();
                let row = direct.page(QUEUE, Segment::Scheduled, 0, 1).await.unwrap().rows.remove(0);
                let seen = [Seen { id: row.id, score: row.score }];
                assert_eq!(user.reschedule_many(QUEUE, &seen, When::Now).await?, [RescheduleOutcome::Rescheduled]);
                let row = direct.page(QUEUE, Segment::Ready, 0, 1).await.unwrap().rows.remove(0);
                user.move_many(QUEUE, "other", Segment::Ready, &[Seen { id: row.id, score: row.score }]).await?;
                let checkup = Checkup { fix: true, ..Checkup::default() };
                user.doctor(&checkup, &mut |_| ControlFlow::Continue(())).await?;
            }
        }
        Ok(())
    }
}

/// What maintenance and doctor have to put in order: an id without a record, a record without its id, one in two segments.
async fn seed_ghosts(server: &TestRedis) {
    server.cli::<()>(&["FLUSHALL"]);
    let direct = backend(&server.unix_url(), LONG);
    let tasks: Vec<_> = (0..4).map(|_| task(QUEUE)).collect();
    direct.enqueue(&tasks).await.unwrap();
    server.cli::<()>(&["SCRIPT", "FLUSH"]);
    let key = |suffix: &str| format!("threadmill:{{default}}:q:{suffix}");
    let record = |id: &str| format!("threadmill:{{default}}:task:{id}");
    server.cli::<()>(&["DEL", &record(tasks[0].id.as_str())]);
    server.cli::<()>(&["ZREM", &key("ready"), tasks[1].id.as_str()]);
    server.cli::<()>(&["ZADD", &key("successful"), "9e15", tasks[2].id.as_str()]);
    server.cli::<()>(&["EXPIRE", &record(tasks[3].id.as_str()), "1000"]);
    server.cli::<()>(&["SET", "threadmill:{default}:result:orphan", "{}"]);
    server.cli::<()>(&["ZADD", &key("failed"), "1", "0194e8d5-0000-7000-8000-000000000000"]);
}

async fn reads(server: &TestRedis, user: &Backend) -> Result<(), BackendError> {
    seed_ghosts(server).await;
    let direct = backend(&server.unix_url(), LONG);
    direct.register(&registration(WORKER)).await.unwrap();
    direct.record_queues(&[QUEUE.to_owned()]).await.unwrap();
    user.facts().await?;
    user.now().await?;
    user.known_queues().await?;
    user.look_for_queues(LONG).await?;
    user.counts(&[QUEUE.to_owned()]).await?;
    let page = user.page(QUEUE, Segment::Ready, 0, 10).await?;
    user.page(QUEUE, Segment::Failed, 0, 10).await?;
    user.find(&page.rows[1].id, None).await?;
    user.workers().await?;
    user.doctor(&Checkup::default(), &mut |_| ControlFlow::Continue(())).await?;
    hears(server, user).await
}

/// Hears both channels.
async fn hears(server: &TestRedis, user: &Backend) -> Result<(), BackendError> {
    let mut events = user.telemetry().await?;
    server.cli::<()>(&["PUBLISH", "threadmill:{default}:telemetry", "ingress:q"]);
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
    server.cli::<()>(&["PUBLISH", "threadmill-rs:{default}:wake", "q"]);
    assert_eq!(events.next().await, Some(TelemetryEvent::Wake(QUEUE.into())));
    Ok(())
}

/// Granted although these tests do without: a server that does not say what it is, and walks through segments that are
/// longer than those here.
const FOR_MORE: [&str; 3] = ["+info", "+zrank", "+zcount"];

#[tokio::test]
async fn each_role_can_do_its_work_and_has_nothing_to_spare() {
    let server = TestRedis::spawn();
    for role in ROLES {
        role.work(&server, &role.user(&server, None, &[])).await.unwrap_or_else(|e| panic!("{role:?}: {e}"));
        for command in role.commands().into_iter().filter(|command| !FOR_MORE.contains(&command.as_str())) {
            let user = role.user(&server, Some(&command), &[]);
            let error = role.work(&server, &user).await;
            let error = error.err().unwrap_or_else(|| panic!("{role:?} can do its work without {command}"));
            assert!(matches!(&error, BackendError::Refused { code, .. } if code == "NOPERM"), "{command}: {error}");
            assert!(error.hint().is_some() && !error.is_passing() && !error.is_uncertain());
        }
    }
}

#[tokio::test]
async fn no_role_can_do_more() {
    let server = TestRedis::spawn();
    for role in ROLES {
        role.user(&server, None, &[]);
        let (name, _) = role.rules();
        let may = |words: &[&str]| {
            let mut command = vec!["ACL", "DRYRUN", &name];
            command.extend(words);
            server.cli::<String>(&command) == "OK"
        };
        for words in [
            &["FLUSHALL"][..],
            &["FLUSHDB"],
            &["KEYS", "*"],
            &["CONFIG", "GET", "*"],
            &["CONFIG", "SET", "dir", "/"],
            &["SCRIPT", "FLUSH"],
            &["SCRIPT", "KILL"],
            &["EVAL", "return 1", "0"],
            &["FUNCTION", "LIST"],
            &["ACL", "LIST"],
            &["CLIENT", "KILL", "TYPE", "normal"],
            &["SHUTDOWN"],
            &["DEBUG", "SLEEP", "1"],
            &["MONITOR"],
            &["RENAME", "threadmill:{default}:q:ready", "threadmill:{default}:q:failed"],
            &["GET", "session:1"],
            &["SET", "session:1", "x"],
            &["GET", "threadmill:{other}:result:1"],
            &["SUBSCRIBE", "news"],
            &["PSUBSCRIBE", "*"],
            &["PUBLISH", "news", "x"],
        ] {
            assert!(!may(words), "{role:?} may {words:?}");
        }
        let result = "threadmill:{default}:result:1";
        assert_eq!(may(&["SET", result, "x"]), role != Reader, "{role:?}");
        if role == Reader {
            for words in [
                &["UNLINK", result][..],
                &["DEL", result],
                &["ZADD", "threadmill:{default}:q:ready", "1", "x"],
                &["HSET", "threadmill:{default}:task:1", "data", "x"],
                &["EVALSHA", "0000000000000000000000000000000000000000", "1", result],
                &["PUBLISH", "threadmill:{default}:telemetry", "ingress:q"],
            ] {
                assert!(!may(words), "the read-only user may {words:?}");
            }
        }
    }
}

#[tokio::test]
async fn what_only_some_places_need() {
    let server = TestRedis::spawn();
    let durability = Durability { disk: false, replicas: 0, within: LONG };
    let without = Enqueuer.user(&server, None, &[]);
    let error = without.enqueue_durable(&[task(QUEUE)], durability).await.unwrap_err();
    assert!(matches!(&error, BackendError::Refused { code, .. } if code == "NOPERM"), "{error}");
    Enqueuer.user(&server, None, &["+wait"]).enqueue_durable(&[task(QUEUE)], durability).await.unwrap();
    Enqueuer.user(&server, None, &["+select"]);
    let (name, _) = Enqueuer.rules();
    let elsewhere = backend(&format!("redis://{name}:PASSWORD@127.0.0.1:{}/2", server.port()), LONG);
    elsewhere.enqueue(&[task(QUEUE)]).await.unwrap();
}
