//! Each action's effect in Redis.

use super::{count, id, inspector, quit, shop, wait_for_count};
use crate::cli::Task;
use crate::common::{Home, Screen, TestRedis, keys};

#[test]
fn one_is_requeued_now_and_one_later() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("R");
    screen.wait_for_text("Requeue …");
    // Enter alone is no yes.
    screen.send(keys::ENTER);
    screen.send("y");
    screen.wait_for_text("1 requeued");
    wait_for_count(&server, "emails", "ready", 2);
    screen.wait_for_text("of 6");
    screen.send("jL");
    screen.wait_for_text("requeue in");
    screen.send("10m");
    screen.send(keys::ENTER);
    screen.wait_for_text("in 10m00s?");
    screen.send("y");
    wait_for_count(&server, "emails", "deferred", 2);
    wait_for_count(&server, "emails", "failed", 5);
    quit(screen);
}

#[test]
fn what_is_scheduled_runs_now_and_what_has_returned_runs_again_behind_a_word() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("2");
    screen.wait_for_text("1-1 of 1");
    screen.send("R");
    screen.wait_for_text("Run now …");
    screen.send("y");
    screen.wait_for_text("1 made READY");
    wait_for_count(&server, "emails", "ready", 2);
    screen.send("4");
    screen.wait_for_text("[4");
    screen.wait_for_text("1-1 of 1");
    screen.send("R");
    screen.wait_for_text("It has returned already");
    screen.send("again");
    screen.send(keys::ENTER);
    wait_for_count(&server, "emails", "ready", 3);
    wait_for_count(&server, "emails", "successful", 0);
    quit(screen);
}

#[test]
fn what_a_filter_found_is_dropped_and_the_rest_stays() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("/func:shop.pay.*");
    screen.send(keys::ENTER);
    screen.wait_for_text("2 of 7");
    screen.send("aD");
    screen.wait_for_text("Drop 2 tasks?");
    screen.send("y");
    screen.wait_for_text("2 dropped");
    wait_for_count(&server, "emails", "failed", 5);
    assert!(!server.cli::<bool>(&["EXISTS", &format!("threadmill:{{default}}:result:{}", id(5))]));
    assert!(server.cli::<bool>(&["EXISTS", &format!("threadmill:{{default}}:result:{}", id(0))]));
    quit(screen);
}

#[test]
fn an_incident_is_requeued_as_a_group() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("i");
    screen.wait_for_text("all of 7");
    screen.send("R");
    screen.wait_for_text("Requeue 5 tasks?");
    screen.send("y");
    screen.wait_for_text("5 requeued");
    wait_for_count(&server, "emails", "ready", 6);
    wait_for_count(&server, "emails", "failed", 2);
    quit(screen);
}

#[test]
fn a_purge_takes_the_segment_that_is_listed_and_nothing_that_comes_later() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("P");
    screen.wait_for_text("Purge FAILED of emails?");
    // It fails after the question was asked.
    let late = id(99);
    Task::new(&late, "emails", "failed").put(&server);
    server.cli::<()>(&["ZADD", "threadmill:{default}:emails:failed", "9000000000000", &late]);
    screen.send("emails");
    screen.send(keys::ENTER);
    screen.wait_for_text("7 purged");
    assert_eq!(count(&server, "emails", "failed"), 1);
    assert_eq!(count(&server, "emails", "ready"), 1);
    quit(screen);
}

#[test]
fn what_was_set_aside_is_listed_and_dropped() {
    let (server, home) = shop();
    server.cli::<()>(&["ZADD", "threadmill-rs:{default}:quarantine:emails", "1796067570881", "ghost"]);
    let mut screen = inspector(&home, 100, 30);
    screen.wait_for_text("1 in quarantine");
    screen.send("6");
    screen.wait_for_text("SET ASIDE");
    screen.wait_for_text("no record");
    screen.send("D");
    screen.wait_for_text("Drop …");
    screen.send("y");
    screen.wait_for_text("1 dropped");
    assert_eq!(server.cli::<u64>(&["ZCARD", "threadmill-rs:{default}:quarantine:emails"]), 0);
    quit(screen);
}

#[test]
fn two_inspectors_requeue_the_same_tasks_and_each_runs_once() {
    const TASKS: usize = 200;
    let server = TestRedis::spawn();
    for number in 0..TASKS {
        Task::new(&id(number), "emails", "failed").put(&server);
    }
    let home = Home::on(&server.url());
    let ready = |_: usize| {
        let mut screen = Screen::threadmill(&home, &["inspector", "--queue", "emails"], 100, 30);
        screen.wait_for_text("of 200");
        screen.send("5a");
        screen.wait_for_text("200 marked");
        screen.send("R");
        screen.wait_for_text("Requeue 200 tasks?");
        screen.send("200");
        screen
    };
    let mut screens: Vec<Screen> = (0..2).map(ready).collect();
    screens.iter_mut().for_each(|screen| screen.send(keys::ENTER));
    let done: usize = screens
        .iter()
        .map(|screen| {
            screen.wait_until("a report", |screen| {
                let text = screen.contents();
                let line = text.lines().find(|line| line.contains(" requeued"))?;
                line.split(" requeued").next()?.rsplit(' ').next()?.parse::<usize>().ok()
            })
        })
        .sum();
    assert_eq!(done, TASKS, "each was requeued by one of them");
    wait_for_count(&server, "emails", "ready", TASKS as u64);
    assert_eq!(count(&server, "emails", "failed"), 0);
    screens.into_iter().for_each(quit);
}

#[test]
fn read_only_locks_what_changes_anything() {
    let (server, home) = shop();
    let before = server.snapshot();
    let mut screen = Screen::threadmill(&home, &["--read-only", "inspector", "--queue", "emails"], 120, 30);
    screen.wait_for_text("read-only");
    screen.send("5");
    screen.wait_for_text("of 7");
    for key in ["R", "D", "P", "L"] {
        screen.send(key);
        screen.wait_for_text("locked: this inspector is read-only");
        screen.send(keys::ESCAPE);
        screen.wait_for("the notice is gone", |text| !text.contains("locked: this"));
        screen.send("5");
    }
    quit(screen);
    before.assert_same(&server.snapshot());
}
