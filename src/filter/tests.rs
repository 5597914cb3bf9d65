//! What filters mean, what is wrong with them, and that the page about them is true.

use crate::backend::{Readable, Summary, TaskRow};
use crate::filter::{Candidate, FIELDS, Filter, Fingerprint, Incidents, Needs};
use crate::task::{ErrorRecord, Lease, Priority, RawJson, Segment, Stamp, Status, TaskId, TaskRecord, TaskSpec};
use chrono::DateTime;
use proptest::prelude::*;

const NOW: f64 = 1_796_067_641_000.0;

fn stamp(ms: f64) -> Stamp {
    Stamp::new(DateTime::from_timestamp_millis(ms as i64).unwrap())
}

fn error(class_path: &str, traceback: &str) -> ErrorRecord {
    ErrorRecord { class_path: class_path.into(), traceback: traceback.into(), raw: RawJson::null() }
}

/// A task that failed an hour ago, and its row.
fn failed() -> (TaskRow, TaskRecord) {
    let traceback = "Traceback (most recent call last):\n  File \"/srv/shop/mail.py\", line 88, in send\n    x()\n\
                     ConnectionError: SMTP refused user 8123\n";
    let record = TaskRecord {
        spec: TaskSpec {
            priority: Priority::new(5),
            backend: "default".into(),
            queue_name: "emails".into(),
            run_after: None,
            takes_context: false,
            func: "shop.tasks.welcome_email".into(),
            retry: None,
        },
        id: "01a22df8-34ed-7724-a9cf-37fad320e7d4".into(),
        status: Status::Failed,
        enqueued_at: Some(stamp(NOW - 7_200_000.0)),
        started_at: Some(stamp(NOW - 3_602_000.0)),
        finished_at: Some(stamp(NOW - 3_600_000.0)),
        last_attempted_at: None,
        args: RawJson::new(r#"[8123, {"user_id": 42, "tags": ["new", "gr\u00f6\u00dfe"]}]"#),
        kwargs: RawJson::new(r#"{"locale": "de", "amount": 99.5}"#),
        backend: "default".into(),
        errors: vec![error("builtins.KeyError", "KeyError: 'x'\n"), error("builtins.ConnectionError", traceback)],
        worker_ids: vec!["web1-4711-c0ffee".into(), "web2-4711-beef00".into()],
        return_value: RawJson::null(),
    };
    let readable = Readable {
        func: record.spec.func.clone(),
        priority: 5.0,
        enqueued_at: record.enqueued_at.clone(),
        started_at: record.started_at.clone(),
        finished_at: record.finished_at.clone(),
        attempts: Some(2),
        last_error: record.errors.last().cloned(),
        args_head: record.args.as_str().into(),
    };
    let row = TaskRow {
        id: record.id.clone(),
        queue: "emails".into(),
        segment: Segment::Failed,
        score: NOW - 3_600_000.0,
        length: Some(2_000),
        summary: Summary::Readable(Box::new(readable)),
        lease: None,
    };
    (row, record)
}

fn means(text: &str) -> bool {
    let (row, record) = failed();
    Filter::parse(text).unwrap().matches(&Candidate::new(&row, Some(&record), NOW))
}

#[test]
fn each_term_asks_what_it_says() {
    for text in [
        "",
        "error:ConnectionError age<2h func:shop.* args.user_id:42 worker:web1 attempt>=2 priority>0 \"smtp REFUSED\"",
        "error:builtins.connectionerror",
        "error:*Connection*",
        "message:\"refused user\"",
        "traceback:mail.py",
        "args:8123",
        "args.0:8123",
        "args.1.tags.1:größe",
        "args.1.tags.*:new",
        "args.locale:de",
        "args.locale:*",
        "kwargs.amount>99 kwargs.amount<=99.5",
        "kwargs.amount!=3",
        "worker:web2",
        "attempt:2",
        "age>59m age<1h1m",
        "finished<2h finished>2026-11-30",
        "took:2s",
        "size<100kb size>1kb",
        "id:d320e7d4",
        "queue:emails segment:failed",
        "welcome_email",
        "-error:KeyError",
        "!func:other",
        "error:KeyError OR error:ConnectionError",
        "(error:KeyError OR func:shop.*) -worker:web3",
        "größe",
        "-(error:KeyError OR attempt:1)",
        "error!=KeyError AND attempt!=1",
    ] {
        assert!(means(text), "{text}");
    }
    for text in [
        "error:Connection",
        "error:KeyError",
        "-func:shop.*",
        "worker:web",
        "worker:web3",
        "args.user_id:43",
        "args.nothing:*",
        "kwargs.user_id:42",
        "due<10m",
        "age<1h",
        "priority<5",
        "\"no such words\"",
        "segment:ready",
        "attempt!=2",
        "func:shop.* error:KeyError OR func:other",
    ] {
        assert!(!means(text), "{text}");
    }
}

#[test]
fn what_is_not_known_decides_nothing() {
    let (mut row, _) = failed();
    let matches = |row: &TaskRow, text: &str| Filter::parse(text).unwrap().matches(&Candidate::new(row, None, NOW));
    assert!(matches(&row, "error:ConnectionError") && !matches(&row, "worker:web1") && !matches(&row, "-worker:web1"));
    row.summary = Summary::Unreadable { reason: "`args` is no list".into(), head: "{\"id\"".into() };
    for text in ["error:X", "-error:X", "func:*", "-func:*", "attempt>0", "-attempt>0"] {
        assert!(!matches(&row, text), "{text}");
    }
    for text in ["age>30m", "queue:emails", "\"no list\"", "-func:a OR queue:emails"] {
        assert!(matches(&row, text), "{text}");
    }
}

#[test]
fn a_running_task_is_known_by_its_holder() {
    let (mut row, mut record) = failed();
    row.segment = Segment::Running;
    let started_at = Some(stamp(NOW - 60_000.0));
    row.lease = Some(Lease { worker: "web9-1".into(), started_at, token: "t".into(), sequence: None });
    record.worker_ids.clear();
    let candidate = Candidate::new(&row, Some(&record), NOW);
    for text in ["worker:web9", "age>59s age<61s", "started<2m", "attempt:1"] {
        assert!(Filter::parse(text).unwrap().matches(&candidate), "{text}");
    }
}

#[test]
fn needs_no_more_than_it_asks() {
    let needs = |text: &str| Filter::parse(text).unwrap().needs();
    assert_eq!(needs("error:X age<2h func:a OR attempt>2 incident:12"), Needs::Excerpt);
    for text in ["args.a:1", "words", "worker:w", "traceback:x", "error:X (func:a OR -result.a:1)"] {
        assert_eq!(needs(text), Needs::Record, "{text}");
    }
}

#[test]
fn errors_point_at_the_place_and_suggest() {
    let check = |text: &str, part: &str, expected: &str| {
        let error = Filter::parse(text).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(text.get(error.at.clone()), Some(part), "{text}");
    };
    check("func:a eror:X", "eror", "unknown field `eror`; did you mean `error`?");
    check("http://x", "http", "unknown field `http`; put it in quotes to search for it as text");
    check("attempt>=many", "many", "`many` is no number");
    check("age<soon", "soon", "`soon` is no duration; write it like 30s, 5m, 2h30m, 1d or PT5M");
    check("error:", "error:", "`error:` has no value; write it like error:ConnectionError");
    check("error>X", ">", "`error` cannot be compared; write it like error:ConnectionError");
    check("func.a:X", "func.a", "`func` has no parts; args, kwargs and result have parts");
    check("\"never closed", "\"never closed", "this quote is not closed");
    check("(func:a", "(", "this `(` is not closed");
    check("func:a)", ")", "`)` closes nothing; put it in quotes to search for it");
    check("func:a - b", "-", "there is nothing to negate; write -error:X, or put the sign in quotes to search for it");
    check("a OR", "OR", "`OR` stands between two terms; put it in quotes to search for it");
    check(
        "finished<x",
        "x",
        "`x` is neither a duration nor a moment; write 2h30m, 1d, 2026-11-30 or 2026-11-30T18:00:00Z",
    );
    check("size>big", "big", "`big` is no size; write 512, 100kb or 2mb");
    let error = Filter::parse("größe eror:X").unwrap_err();
    assert_eq!(error.pointed("größe eror:X"), "größe eror:X\n      ^^^^");
}

#[test]
fn the_page_is_true() {
    let page = include_str!("../../docs/filter.md");
    let examples = page.split("```filter\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(examples.lines().count() > 5);
    for line in examples.lines() {
        Filter::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
    for info in FIELDS {
        let names: Vec<_> = std::iter::once(&info.name).chain(info.aliases).map(|name| format!("`{name}`")).collect();
        assert!(page.contains(&format!("| {} |", names.join(", "))), "{}", info.name);
        assert!(page.contains(&format!("`{}` |", info.example)), "{}", info.example);
        Filter::parse(info.example).unwrap();
        assert_eq!(info.field.info().name, info.name);
    }
    let quoted = page.split("| write | for |").nth(1).unwrap().split("\n\n").next().unwrap();
    for row in quoted.lines().skip(2).filter(|row| !row.contains("comparison")) {
        let text = row.split('`').nth(1).unwrap();
        Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}

#[test]
fn failures_that_belong_together() {
    let of = |class: &str, text: &str| Fingerprint::of(&error(class, text));
    let at = |line: u32, message: &str| {
        let text = format!(
            "Traceback (most recent call last):\n  File \"/srv/shop/mail.py\", line {line}, in send\n    x()\n  File \
             \"/usr/lib/python3.14/smtplib.py\", line 7, in y\nConnectionError: {message}\n"
        );
        of("builtins.ConnectionError", &text)
    };
    assert_eq!(at(88, "SMTP refused user 8123"), at(91, "SMTP refused user 7"));
    assert_eq!(at(1, "no 'a b' at 0xdeadbeef"), at(1, "no 'c' at 0x1"));
    assert_eq!(at(1, "gone 01a22df8-34ed-7724-a9cf-37fad320e7d4"), at(1, "gone 11a22df8-34ed-7724-a9cf-37fad320e7d4"));
    assert_eq!(at(1, "/uploads/00cab3.tiff is no image"), at(1, "/uploads/9af5a0.tiff is no image"));
    assert_ne!(at(1, "a facade"), at(1, "a decade"));
    assert_eq!(at(1, "don't do it"), at(2, "don't do it"));
    assert_ne!(at(1, "SMTP refused"), at(1, "SMTP timed out"));
    assert_ne!(at(1, "x"), of("builtins.ConnectionError", "ConnectionError: x"));
    assert_eq!(at(1, "x").place, "mail.py:send");
    assert_eq!(at(1, "SMTP refused user 8123").message, "SMTP refused user <n>");
    assert_eq!(at(88, "SMTP refused user 8123").id(), at(1, "SMTP refused user 1").id());
    let lost = of("threadmill.exceptions.AcknowledgementTimeoutError", "Task processing lease expired.");
    assert_eq!(
        (lost.class.as_str(), lost.message.as_str()),
        ("AcknowledgementTimeoutError", "Task processing lease expired.")
    );
}

#[test]
fn incidents_count_and_name_what_they_hold() {
    let mut incidents = Incidents::new(2);
    for n in 0..3 {
        let (mut row, _) = failed();
        row.id = TaskId::from(format!("id{n}"));
        incidents.add(&row);
    }
    let (mut row, _) = failed();
    row.summary = Summary::Missing;
    incidents.add(&row);
    let sorted = incidents.sorted();
    assert_eq!((sorted.len(), incidents.looked_at, incidents.without_error), (1, 4, 1));
    let incident = sorted[0];
    assert_eq!((incident.count, incident.members.len(), incident.place.as_str()), (3, 2, "mail.py:88"));
    assert_eq!(incident.functions.get("shop.tasks.welcome_email"), Some(&3));
    assert_eq!(incident.message, "SMTP refused user 8123");
    let id = incident.fingerprint.id();
    assert!(incidents.get(&id).is_some() && id.len() == 8);
    assert!(means(&format!("incident:{id}")));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "([a-z]{1,8}[:<>=!]{0,2}|[()\"\\\\ .*?-]|OR |é|\\PC){0,24}") {
        let (row, record) = failed();
        match Filter::parse(&text) {
            Ok(filter) => {
                filter.matches(&Candidate::new(&row, Some(&record), NOW));
            }
            Err(error) => {
                error.pointed(&text);
            }
        }
        crate::filter::complete(&text, text.len() / 2, &Default::default());
        Fingerprint::of(&super::tests::error(&text, &text)).id();
    }

    #[test]
    fn what_needs_an_excerpt_decides_the_same_with_the_record(field in 0..FIELDS.len(), negated in any::<bool>()) {
        let (row, record) = failed();
        let text = format!("{}{}", if negated { "-" } else { "" }, FIELDS[field].example);
        let filter = Filter::parse(&text).unwrap();
        if filter.needs() == Needs::Excerpt {
            let with = filter.matches(&Candidate::new(&row, Some(&record), NOW));
            prop_assert_eq!(with, filter.matches(&Candidate::new(&row, None, NOW)));
        }
    }
}
