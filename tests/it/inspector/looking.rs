//! What is seen, at three sizes, and found.

use super::{close, id, inspector, quit, shop};
use crate::common::keys;

#[test]
fn every_size_shows_what_matters_first() {
    let (_server, home) = shop();
    for (columns, rows) in [(40, 12), (80, 24), (160, 50)] {
        let mut screen = inspector(&home, columns, rows);
        let text = screen.wait_for_text("live");
        assert!(text.contains("threadmill") && text.contains("…00000006"), "{text}");
        // What has failed is on the screen with its error, as soon as there is room for it.
        if columns >= 80 {
            assert!(text.contains("ValueError") && text.contains("FUNCTION"), "{text}");
        }
        if columns >= 160 {
            screen.wait_for("the incidents", |text| text.contains("mail.py:88") && text.contains("pay.py:31"));
        }
        screen.send("?");
        screen.wait_for_text("Keys");
        // The list shows behind the help on a wide screen: only its end tells that the escape was heard.
        close(&mut screen, "Keys");
        for (key, expected) in [("w", "Workers"), ("e", "Log"), ("i", "Incidents")] {
            screen.send(key);
            screen.wait_for_text(expected);
        }
        quit(screen);
    }
}

#[test]
fn a_filter_goes_through_the_segment_and_an_incident_leads_to_its_tasks() {
    let (_server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("/func:shop.pay.*");
    screen.send(keys::ENTER);
    screen.wait_for_text("2 of 7");
    screen.wait_for("only those", |text| text.contains("shop.pay.refund") && !text.contains("shop.tasks.welcome"));
    screen.send("/");
    screen.wait_for_text("Filter the whole segment");
    screen.send(" eror:X y");
    screen.wait_for_text("did you mean `error`?");
    close(&mut screen, "Filter the whole segment");
    screen.send("i");
    screen.wait_for_text("all of 7");
    screen.send(keys::ENTER);
    screen.wait_for_text("5 of 7");
    screen.send(keys::ENTER);
    screen.wait_for_text("1 library frame: smtplib.py:760");
    screen.send("/refused");
    screen.send(keys::ENTER);
    screen.send("f");
    screen.wait_for_text("raise X");
    quit(screen);
}

#[test]
fn commands_are_copied_to_the_terminal_s_clipboard() {
    let (_server, home) = shop();
    let mut screen = inspector(&home, 100, 30);
    screen.send("/attempt>0");
    screen.send(keys::ENTER);
    screen.wait_for_text("7 of 7");
    screen.send("Y");
    screen.wait_for_text("threadmill tasks emails --segment failed --where 'attempt>0'");
    let raw = screen.raw();
    assert!(raw.windows(5).any(|window| window == b"\x1b]52;"), "no OSC 52");
    quit(screen);
}

#[test]
fn a_task_is_shown_whole() {
    let (_server, home) = shop();
    let mut screen = inspector(&home, 100, 40);
    screen.send("g");
    screen.send(keys::ENTER);
    let text = screen.wait_for_text("FAILED after 1 attempt");
    assert!(text.contains(&id(0)) || text.contains(&id(6)), "{text}");
    assert!(text.contains("web1.example:4242-fetch"), "{text}");
    quit(screen);
}
