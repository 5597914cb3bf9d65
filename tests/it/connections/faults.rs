//! The network fails at every command of every transition in turn.

use super::table::{self, Transition, backend};
use crate::common::{Lose, Proxy, TestRedis};
use std::time::Duration;

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection is cut before the command arrives.
    CutBefore,
    /// The command is carried out and the connection is cut before its answer.
    CutAfter,
    /// The command is carried out, and from its answer on nothing comes any more.
    Silence,
    /// Every answer is late, but not too late.
    Delay,
}

/// Sends one transition over a fresh connection to a server that does not know the scripts, with one fault at its nth
/// command. Answers whether there was an nth command.
async fn case(
    server: &TestRedis,
    proxy: &Proxy,
    transition: Transition,
    fault: Fault,
    nth: u64,
    wait: Duration,
) -> bool {
    let context = format!("{fault:?} at command {nth}");
    server.cli::<()>(&["FLUSHALL"]);
    let seeded = transition.seed(server).await;
    server.cli::<()>(&["SCRIPT", "FLUSH"]);
    let before = proxy.lost();
    match fault {
        Fault::CutBefore => proxy.lose_request(nth, |_| true),
        Fault::CutAfter => proxy.lose_reply(nth, Lose::ByCut, |_| true),
        Fault::Silence => proxy.lose_reply(nth, Lose::InSilence, |_| true),
        Fault::Delay => proxy.delay(Duration::from_millis(nth)),
    }
    let backend = backend(&proxy.url(), wait);
    let mut answer = transition.run(&backend, &seeded).await;
    // Where it could not even connect, it says so, and nothing has happened.
    let hit = proxy.lost() > before || matches!(fault, Fault::Delay);
    if let Err(error) = &answer {
        // Without the fault, too, where the machine is so busy that an answer comes too late.
        assert!(error.is_passing(), "{transition:?}, {context}: {error}");
        if !error.is_uncertain() {
            let counts = table::tally(&server.snapshot(), &context);
            assert!(counts != transition.after() || !changes(transition), "{transition:?}, {context}: {error}");
        }
        proxy.forget();
        proxy.heal();
        answer = transition.run(&table::backend(&proxy.url(), LONG), &seeded).await;
    }
    proxy.forget();
    proxy.heal();
    assert!(
        answer.unwrap_or_else(|e| panic!("{transition:?}, {context}: {e}")),
        "{transition:?}, {context}: the answer"
    );
    transition.assert_done(&server.snapshot(), &context);
    let patient = table::backend(&proxy.url(), LONG);
    let again = transition.run(&patient, &seeded).await.unwrap();
    assert!(again, "{transition:?}, {context}: the answer to a later try");
    transition.assert_done(&server.snapshot(), &format!("{context}, and once more"));
    hit
}

/// Whether the state before differs from the one afterwards in what is counted.
fn changes(transition: Transition) -> bool {
    use Transition::*;
    !matches!(transition, Register | Beat | Leave | Watch | Persist | Peek | Reap)
}

async fn every_command(fault: Fault, wait: Duration) {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    for transition in table::ALL {
        let mut nth = 1;
        while case(&server, &proxy, transition, fault, nth, wait).await {
            nth += 1;
            assert!(nth < 100, "{transition:?} has no end");
        }
        let scripts = threadmill::backend::scripts::ALL.len() as u64;
        assert!(
            nth > scripts + 2,
            "{transition:?}: {nth} commands are fewer than a greeting, the scripts and the call"
        );
    }
}

/// No fault here waits for a time-out, so that it may be long.
const LONG: Duration = Duration::from_secs(20);

#[tokio::test]
async fn cut_before_every_command() {
    every_command(Fault::CutBefore, LONG).await;
}

#[tokio::test]
async fn cut_after_every_command() {
    every_command(Fault::CutAfter, LONG).await;
}

#[tokio::test]
async fn silence_after_every_command_that_is_no_loading_of_a_script() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    for transition in table::ALL {
        // The greeting, a script, and the call that is carried out; the answer NOSCRIPT is never lost.
        let calls = 2 + 1 + threadmill::backend::scripts::ALL.len() as u64;
        for nth in [1, 4, calls] {
            case(&server, &proxy, transition, Fault::Silence, nth, Duration::from_millis(150)).await;
        }
    }
}

#[tokio::test]
async fn late_answers() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    for transition in table::ALL {
        case(&server, &proxy, transition, Fault::Delay, 20, LONG).await;
    }
}
