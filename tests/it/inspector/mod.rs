//! The inspector as an operator uses it: in a terminal, on a real Redis.

mod acting;
mod faults;
mod looking;

use crate::cli::Task;
use crate::common::{Home, Screen, TestRedis, eventually, keys};

/// How many tasks a segment of a queue lists.
fn count(server: &TestRedis, queue: &str, segment: &str) -> u64 {
    server.cli(&["ZCARD", &format!("threadmill:{{default}}:{queue}:{segment}")])
}

/// Waits until a segment lists so many.
#[track_caller]
fn wait_for_count(server: &TestRedis, queue: &str, segment: &str, wanted: u64) {
    eventually(&format!("{queue} lists {wanted} {segment}"), || count(server, queue, segment) == wanted);
}

/// An id that sorts and reads like its number.
fn id(number: usize) -> String {
    format!("01a22df8-34ed-7724-a9cf-{number:012}")
}

/// A shop with tasks in every segment of `emails`: seven failed ones, two kinds of failure among them.
fn shop() -> (TestRedis, Home) {
    let server = TestRedis::spawn();
    for number in 0..5 {
        let traceback = format!(
            "Traceback (most recent call last):\n  File \"/srv/shop/mail.py\", line 88, in send\n    x()\n  File \
             \"/usr/lib/python3.14/smtplib.py\", line 760, in sendmail\n    raise X\nValueError: refused user {number}\n"
        );
        Task::new(&id(number), "emails", "failed").func("shop.tasks.welcome").traceback(&traceback).put(&server);
    }
    let traceback =
        "Traceback (most recent call last):\n  File \"/srv/shop/pay.py\", line 31, in pay\nValueError: no vat\n";
    for number in 5..7 {
        Task::new(&id(number), "emails", "failed").func("shop.pay.refund").traceback(traceback).put(&server);
    }
    Task::new(&id(10), "emails", "ready").put(&server);
    Task::new(&id(11), "emails", "deferred").put(&server);
    Task::new(&id(12), "emails", "running").put(&server);
    Task::new(&id(13), "emails", "successful").put(&server);
    Task::new(&id(20), "default", "ready").put(&server);
    let home = Home::on(&server.url());
    (server, home)
}

/// An inspector on the queue `emails`, its failed tasks on the screen.
fn inspector(home: &Home, columns: u16, rows: u16) -> Screen {
    let mut screen = Screen::threadmill(home, &["inspector", "--queue", "emails"], columns, rows);
    screen.wait_for_text("emails");
    screen.send("5");
    screen.wait_for_text("of 7");
    // Keys that act are locked before the first whole answer.
    screen.wait_for_text("live,");
    screen
}

/// Closes what lies over the screen, which shows this text. A key right behind an escape would be another key.
#[track_caller]
fn close(screen: &mut Screen, text: &str) {
    screen.send(keys::ESCAPE);
    let gone = |screen: &str| ![text, "Esc close", "Esc cancel"].iter().any(|left| screen.contains(left));
    screen.wait_for("what lay over the screen is gone", gone);
}

/// Quits, and sees to it that the terminal is given back.
#[track_caller]
fn quit(mut screen: Screen) {
    screen.send("q");
    assert_eq!(screen.wait_exit(), 0);
    assert!(screen.is_cooked());
    assert!(!screen.look(vt100::Screen::alternate_screen));
}
