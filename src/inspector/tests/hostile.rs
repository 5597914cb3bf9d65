//! Text that wants to be obeyed, in every field that a task has: it is shown, and never sent.

use crate::inspector::options::Options;
use crate::inspector::source::{Body, WorkerInfo};
use crate::inspector::tests::fake::{Shop, stamp, task};
use crate::inspector::tests::stage::Stage;
use crate::task::{ErrorRecord, RawJson, Retry, Segment};
use std::time::Duration;

const HOSTILE: &str = "\x1b[2J\x1b]52;c;aGk=\x07\u{9b}31m\u{202e}gnp\u{2066}\u{200b}\u{200f}\u{61c}\u{2028}\u{2029}\u{feff}\r\n\t\0\u{7f}e\u{301}\u{301}表\u{e0041}";

fn obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}

fn hostile_shop() -> Shop {
    let mut shop = Shop::busy();
    let bad = |label: &str| format!("{label}{HOSTILE}");
    let queue = bad("q");
    let list = |segment: Segment| {
        let mut one = task(&bad("id"), &bad("func"), &queue, segment, 5.0);
        if let Body::Record(record) = &mut one.body {
            record.args = RawJson::new(bad("args"));
            record.kwargs = RawJson::new(bad("kwargs"));
            record.return_value = RawJson::new(bad("result"));
            record.worker_ids = vec![bad("worker")];
            record.spec.backend = bad("backend");
            record.spec.priority.raw = RawJson::new(bad("5"));
            record.spec.retry = Some(Retry::Callback(bad("retry"), RawJson::new(bad("raw"))));
            record.spec.run_after = Some(stamp(0.0));
            let error = ErrorRecord { class_path: bad("class"), traceback: bad("trace\n"), raw: RawJson::null() };
            record.errors = vec![error];
        }
        if let Some(lease) = &mut one.lease {
            lease.worker = bad("holder");
        }
        let mut unreadable = one.clone();
        unreadable.id = bad("unreadable").into();
        unreadable.body = Body::Unreadable(bad("reason"));
        unreadable.stored = bad("stored").into_bytes();
        let mut missing = one.clone();
        missing.id = bad("missing").into();
        missing.body = Body::Missing;
        vec![unreadable, missing, one]
    };
    let lists = Segment::ALL.map(list);
    shop.queues.insert(queue, (lists, 1));
    shop.workers = vec![WorkerInfo {
        id: bad("w"),
        host: bad("h"),
        version: bad("v"),
        queues: vec![bad("q")],
        started_at: bad("s"),
        ..WorkerInfo::default()
    }];
    shop.facts.version = Some(bad("7"));
    shop.facts.name = Some(bad("redis"));
    shop.facts.eviction_policy = Some(bad("policy"));
    shop.facts.role = Some(bad("role"));
    shop
}

#[test]
fn nothing_of_it_reaches_the_terminal() {
    let visits = [
        "",
        "<enter>",
        "<enter>j",
        "<enter>jj",
        "<enter><enter>",
        "<enter>j<enter>",
        "<enter>jj<enter>",
        "<enter>jj<enter>G",
        "1",
        "2",
        "3",
        "4",
        "3<enter>",
        "4jj<enter>",
        "4jj<enter>G",
        "P",
        "<enter>jjR",
        "<enter>jjD",
        "w",
        "wj",
        "<enter>aDyye",
        "<enter>y",
        "<enter>Y",
        "t",
    ];
    for (width, height) in [(200, 60), (80, 24), (33, 9)] {
        for ascii in [false, true] {
            for keys in visits {
                let options = Options {
                    queue: Some(format!("q{HOSTILE}")),
                    ascii,
                    alias: HOSTILE.into(),
                    endpoint: HOSTILE.into(),
                    ..Options::default()
                };
                let mut stage = Stage::with(width, height, options);
                stage.shop = hostile_shop();
                stage.model.ui.queue = Some(format!("q{HOSTILE}"));
                stage.pass(Duration::from_secs(6));
                stage.keys(keys);
                let picture = stage.picture();
                let cells = picture.backend().buffer().content();
                let bad: Vec<_> = cells.iter().filter(|cell| cell.symbol().chars().any(obeyed)).collect();
                assert!(bad.is_empty(), "{keys:?} {bad:?}");
                if ascii {
                    assert!(cells.iter().all(|cell| cell.symbol().is_ascii()), "{keys:?}");
                }
            }
        }
    }
}
