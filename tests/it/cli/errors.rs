//! What goes wrong, told with what to do about it, and never with a password.

use super::{ID, Task, shop};
use crate::common::{Home, TestRedis};

const VERBS: [&[&str]; 7] = [
    &["queues"],
    &["tasks", "emails"],
    &["show", ID],
    &["requeue", ID],
    &["purge", "emails"],
    &["workers"],
    &["enqueue", "f.g"],
];

#[test]
fn no_server_is_said_so_by_every_verb() {
    // Port 1 is nobody's.
    let home = Home::on("redis://user:s3cret@127.0.0.1:1/0");
    for verb in VERBS.into_iter().chain([&["watch"] as &[&str], &["drop", ID]]) {
        let output = home.run(verb).expect(5);
        assert!(output.stderr.contains("cannot connect to Redis at redis://user:***@127.0.0.1:1/0"), "{output:?}");
        assert!(output.stderr.contains("Suggestion: is the server running there?"), "{output:?}");
        assert!(!output.stderr.contains("s3cret"), "{output:?}");
        assert!(!output.stderr.contains("src/"), "no place in the source where nobody asks: {output:?}");
        assert_eq!(output.stdout, "");
    }
}

#[test]
fn a_wrong_url_is_a_matter_of_usage_and_says_where_it_came_from() {
    for url in [
        "http://u:s3cret@h",
        "redis://u:s3cret@h:port",
        "s3cret",
        "redis://u:s3cret@h/x",
        "redis+sentinel://u:s3cret@h",
    ] {
        let output = Home::on(url).run(&["queues"]).expect(2);
        assert!(output.stderr.contains("it comes from THREADMILL_REDIS_URL"), "{output:?}");
        assert!(!output.stderr.contains("s3cret"), "{output:?}");
    }
    let output = Home::empty().run(&["queues", "--redis-url", "ftp://h"]).expect(2);
    assert!(output.stderr.contains("it comes from --redis-url"), "{output:?}");
}

#[test]
fn a_frozen_server_is_waited_for_and_not_for_ever() {
    let (server, home) = shop();
    server.freeze();
    let output = home.run(&["queues", "--timeout", "100ms"]).expect(5);
    server.thaw();
    assert!(output.stderr.contains("Redis at redis://127.0.0.1"), "{output:?}");
}

#[test]
fn a_server_that_wants_a_password_or_refuses_one() {
    let server = TestRedis::spawn();
    server.cli::<()>(&["CONFIG", "SET", "requirepass", "right"]);
    let output = Home::on(&server.url()).run(&["queues"]).expect(5);
    assert!(output.stderr.contains("the server wants a password"), "{output:?}");
    let wrong = server.url().replace("redis://", "redis://:wr0ng@");
    let output = Home::on(&wrong).run(&["queues"]).expect(5);
    assert!(output.stderr.contains("check the user name and the password"), "{output:?}");
    assert!(!output.stderr.contains("wr0ng"), "{output:?}");
    let right = server.url().replace("redis://", "redis://:right@");
    Home::on(&right).run(&["queues"]).expect(0);
}

#[test]
fn a_missing_permission_is_named() {
    let server = TestRedis::spawn();
    Task::new(ID, "emails", "failed").put(&server);
    server.cli::<()>(&[
        "ACL",
        "SETUSER",
        "reader",
        "on",
        ">pw",
        "~*",
        "&*",
        "+@read",
        "+@connection",
        "-scan",
        "+time",
    ]);
    let home = Home::on(&server.url().replace("redis://", "redis://reader:pw@"));
    // What the user may not do is left out where the answer is good without it.
    home.run(&["queues", "emails"]).expect(0);
    let output = home.run(&["purge", "emails"]).expect(5);
    assert!(output.stderr.contains("NOPERM"), "{output:?}");
    assert!(output.stderr.contains("the ACL of this user lacks a permission"), "{output:?}");
}

#[test]
fn a_key_of_the_wrong_type_is_told_as_what_it_is() {
    let (server, home) = shop();
    Task::new(ID, "emails", "failed").put(&server);
    server.cli::<()>(&["DEL", &format!("threadmill:{{default}}:result:{ID}")]);
    server.cli::<()>(&["RPUSH", &format!("threadmill:{{default}}:result:{ID}"), "x"]);
    home.run(&["queues"]).expect(0);
    let output = home.run(&["show", ID]).expect(0);
    assert!(output.stdout.contains("its key holds another type"), "{output:?}");
    home.run(&["requeue", ID]).expect(4);
    server.cli::<()>(&["SET", "threadmill:{default}:default:ready", "x"]);
    let output = home.run(&["enqueue", "f.g"]).expect(5);
    assert!(output.stderr.contains("Suggestion: a key of this queue holds another type"), "{output:?}");
}

#[test]
fn a_backtrace_comes_only_where_it_is_asked_for() {
    let home = Home::on("redis://127.0.0.1:1").env("RUST_BACKTRACE", "1");
    let output = home.run(&["queues"]).expect(5);
    assert!(output.stderr.contains("BACKTRACE"), "{output:?}");
}

#[test]
fn usage_is_told_with_what_was_meant() {
    let home = Home::empty();
    let output = home.run(&["purg", "emails"]).expect(2);
    assert!(output.stderr.contains("purge"), "{output:?}");
    home.run(&[]).expect(2);
    home.run(&["requeue"]).expect(2);
    home.run(&["tasks", "x", "--json", "--jsonl"]).expect(2);
    let output = home.run(&["tasks", "x", "--segment", "lost"]).expect(2);
    assert!(output.stderr.contains("the segments are ready, scheduled"), "{output:?}");
    home.run(&["queues", "--timeout", "0s"]).expect(2);
    assert!(home.run(&["--version"]).expect(0).stdout.starts_with("threadmill "));
}
