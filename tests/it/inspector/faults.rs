//! When Redis goes away, and when text wants to be obeyed.

use super::{close, inspector, quit, shop, wait_for_count};
use crate::cli::Task;
use crate::common::{Home, Screen, TestRedis, keys};

/// Text that would move the cursor, set the clipboard, turn the direction, ring.
const HOSTILE: &str = "\x1b[2J\x1b]52;c;aGk=\x07\u{9b}31m\u{202e}gnp\u{2066}\u{200b}\r\n\t\u{7f}\u{85}";

#[test]
fn redis_is_stopped_and_started() {
    let (mut server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    server.cli::<()>(&["SAVE"]);
    server.stop();
    screen.wait_for_text("no answer");
    // What was known stays, keys work, and what acts is locked.
    assert!(screen.text().contains("emails"));
    screen.send("?");
    screen.wait_for_text("Esc close");
    close(&mut screen, " Keys ");
    screen.send("R");
    screen.wait_for_text("locked until Redis answers");
    server.start();
    screen.wait_for_text("live");
    screen.wait_for_text("of 7");
    screen.send("R");
    screen.wait_for_text("Requeue …");
    screen.send("y");
    wait_for_count(&server, "emails", "ready", 2);
    screen.send("e");
    screen.wait_for_text("Redis answers again");
    quit(screen);
}

#[test]
fn redis_is_frozen_and_thawed() {
    let (server, home) = shop();
    let mut screen = inspector(&home, 80, 24);
    server.freeze();
    screen.wait_for_text("no answer for");
    screen.send("jj");
    screen.send("?");
    screen.wait_for_text("Esc close");
    close(&mut screen, " Keys ");
    server.thaw();
    screen.wait_for_text("live");
    quit(screen);
    // Frozen from the start, it still quits.
    server.freeze();
    let mut screen = Screen::threadmill(&home, &["inspector"], 80, 24);
    screen.wait_for_text("threadmill");
    screen.send("q");
    assert_eq!(screen.wait_exit(), 0);
    server.thaw();
}

#[test]
fn an_inspector_without_the_right_to_look_for_queues_or_to_ask_the_server_says_what_it_can() {
    let (server, home) = shop();
    server.cli::<()>(&["ACL", "SETUSER", "ops", "on", ">secret", "~*", "&*", "+@all", "-info", "-scan", "-@dangerous"]);
    let url = server.url().replace("redis://", "redis://ops:secret@");
    let home =
        Home::on(&url).env("THREADMILL_QUEUES", "emails,default").env("IGNORED", &home.path().display().to_string());
    let mut screen = Screen::threadmill(&home, &["inspector", "--queue", "emails"], 120, 30);
    screen.send("5");
    screen.wait_for_text("of 7");
    assert!(!screen.text().contains("secret"));
    quit(screen);
}

#[test]
fn hostile_text_is_shown_and_never_sent() {
    let server = TestRedis::spawn();
    let queue = format!("q{HOSTILE}");
    let bad = |label: &str| format!("{label}{HOSTILE}");
    let args = serde_json::Value::from(vec![bad("args")]).to_string();
    for (number, segment) in ["ready", "deferred", "running", "successful", "failed"].into_iter().enumerate() {
        let traceback = format!("Traceback\n  File \"{HOSTILE}\", line 1, in {HOSTILE}\n{}: {HOSTILE}\n", bad("E"));
        let task = Task::new(&format!("{number}{HOSTILE}"), &queue, segment);
        task.func(&bad("func")).args(&args).traceback(&traceback).worker(&bad("worker")).put(&server);
    }
    Task::new("broken", &queue, "failed").stored(&format!("{{\"id\": {HOSTILE}")).put(&server);
    let home = Home::on(&server.url());
    let mut screen = Screen::threadmill(&home, &["inspector"], 160, 50);
    screen.wait_for_text("unreadable");
    let seen = [
        ("1", "ENQUEUED"),
        ("2", "DUE"),
        ("3", "LEASE"),
        ("4", "FINISHED"),
        ("5", "1-2 of 2"),
        ("j", "FAILED after 1 attempt"),
        (keys::ENTER, "attempts"),
        ("v", "args"),
        ("f", "args"),
        ("G", "stored"),
        ("w", "WORKER"),
        ("i", "all of 2"),
        (keys::ENTER, "1 of 2"),
        ("e", "Log"),
        (":", "Commands"),
    ];
    for (key, expected) in seen {
        screen.send(key);
        screen.wait_for_text(expected);
    }
    close(&mut screen, "Commands");
    quit_whatever(&mut screen);
    check_bytes(&screen.raw());
}

fn quit_whatever(screen: &mut Screen) {
    screen.send(keys::CTRL_C);
    assert_eq!(screen.wait_exit(), 0);
}

/// Nothing but printable text and the sequences of the terminal that the program itself uses.
#[track_caller]
fn check_bytes(raw: &[u8]) {
    let text = String::from_utf8(raw.to_vec()).expect("the output is UTF-8");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' | '\n' => {}
            '\x1b' => {
                assert_eq!(rest.next(), Some('['), "a sequence that is not the program's own");
                let parameters: String =
                    std::iter::from_fn(|| rest.next_if(|c| c.is_ascii_digit() || ";:?<>=".contains(*c))).collect();
                let last = rest.next().unwrap_or_default();
                let own = match last {
                    'm' | 'H' | 'G' | 'A' | 'B' | 'C' | 'D' | 'd' => true,
                    // Clearing the screen is the program's own at its start, and it asks for nothing else.
                    'J' | 'K' => true,
                    'h' | 'l' => parameters.starts_with('?'),
                    'u' | 'c' | 'n' | 'q' => true,
                    _ => false,
                };
                assert!(own, "ESC [ {parameters} {last}");
            }
            c => assert!(
                !c.is_control()
                    && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}'),
                "{c:?} was sent"
            ),
        }
    }
}
