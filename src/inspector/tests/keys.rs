//! What keys and answers change: no terminal, no server, no waiting.

use crate::inspector::keymap::{BINDINGS, Context, Deed};
use crate::inspector::model::confirm::Reply;
use crate::inspector::model::{Focus, Lock, Model, Overlay, Screen, Standing};
use crate::inspector::msg::{Action, Answer, Effect, Lane, Msg, Query, Tally};
use crate::inspector::options::Options;
use crate::inspector::source::{Acted, PurgeScope};
use crate::inspector::tests::fake::{NOW, task};
use crate::inspector::tests::stage::Stage;
use crate::inspector::update::{context, update};
use crate::task::Segment;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn targets(action: &Action) -> Vec<String> {
    action.targets().iter().map(|target| target.id.to_string()).collect()
}

#[test]
fn a_new_failure_does_not_move_the_selection() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter>jj");
    let selected = stage.selected();
    let line = |stage: &Stage| stage.text().lines().position(|line| line.starts_with("\"▌")).unwrap();
    stage.shop.list("emails", Segment::Failed).insert(0, task("new-1", "f", "emails", Segment::Failed, 0.0));
    stage.pass(SECOND);
    assert_eq!(stage.selected(), selected);
    // Scrolled down, what comes in above does not push the rows about.
    stage.keys("<pgdn><pgdn>");
    let (selected, before) = (stage.selected(), line(&stage));
    stage.shop.list("emails", Segment::Failed).insert(0, task("new-2", "f", "emails", Segment::Failed, 0.0));
    stage.pass(SECOND);
    assert_eq!((stage.selected(), line(&stage)), (selected, before));
}

#[test]
fn a_task_that_leaves_stays_under_the_cursor_until_the_cursor_leaves() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter>jj");
    let selected = stage.selected();
    stage.shop.list("emails", Segment::Failed).remove(2);
    stage.pass(SECOND);
    assert_eq!(stage.selected(), selected);
    assert!(stage.text().contains("no longer in FAILED"));
    stage.keys("D");
    assert_eq!(targets(&stage.question().unwrap().action), [selected.as_str()]);
    stage.keys("n");
    stage.keys("j");
    assert!(!stage.text().contains("no longer in FAILED"));
    let next = stage.shop.list("emails", Segment::Failed)[2].id.to_string();
    assert_eq!(stage.selected(), next);
}

#[test]
fn pages_follow_to_the_end_and_back() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter>");
    for n in 0..411 {
        assert_eq!(stage.selected(), stage.shop.list("emails", Segment::Failed)[n].id.to_string());
        stage.keys("j");
    }
    let last = stage.shop.list("emails", Segment::Failed)[411].id.to_string();
    stage.keys("jj");
    assert_eq!(stage.selected(), last);
    assert!(stage.text().contains("of 412"));
    stage.keys("g");
    assert_eq!(stage.selected(), stage.shop.list("emails", Segment::Failed)[0].id.to_string());
    stage.keys("G");
    assert_eq!(stage.selected(), last);
    assert!(stage.text().contains("400-412 of 412"));
    let loaded = stage.model.page.value.as_ref().unwrap().rows.len();
    assert!(loaded <= 200, "{loaded}");
    // The segment is emptied behind our back.
    stage.shop.list("emails", Segment::Failed).clear();
    stage.pass(SECOND);
    stage.pass(SECOND);
    stage.keys("kkG");
    assert!(stage.text().contains("nothing has failed"));
}

#[test]
fn each_dangerous_key_asks_and_acts_only_on_yes() {
    let mut asked = 0;
    for binding in BINDINGS.iter().filter(|binding| binding.danger) {
        let mut stage = Stage::new(160, 50);
        stage.keys(match binding.context {
            Context::Queues => "",
            Context::Tasks => "<enter>",
            Context::Incidents => "i",
            _ => "<enter><enter>",
        });
        assert_eq!(context(&stage.model), binding.context);
        stage.send(Msg::Key(binding.keys[0].event()));
        if binding.deed == Deed::Later {
            stage.keys("10m<enter>");
        }
        assert!(stage.question().is_some(), "{binding:?}");
        stage.keys("<enter>");
        assert_eq!(stage.effects, [], "Enter alone is no yes");
        asked += 1;
    }
    assert_eq!(asked, 11);
}

#[test]
fn requeue_is_frozen_when_it_is_asked() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter>j");
    let (id, seen) = (stage.selected(), stage.shop.list("emails", Segment::Failed)[1].places[0].1);
    stage.keys("R");
    // While the question stands, the task runs again and fails anew, and others come in.
    stage.shop.list("emails", Segment::Failed)[1].places[0].1 = NOW + 5.0;
    stage.shop.list("emails", Segment::Failed).insert(0, task("new", "f", "emails", Segment::Failed, 0.0));
    stage.pass(SECOND);
    stage.keys("y");
    let Some(Effect::Act(_, Action::Requeue(targets, None))) = stage.effects.pop() else { panic!("no requeue") };
    assert_eq!(targets.len(), 1);
    assert_eq!((targets[0].id.as_str(), targets[0].seen), (id.as_str(), seen));
    assert_eq!((targets[0].queue.as_str(), targets[0].segment), ("emails", Segment::Failed));
}

#[test]
fn marks_are_aimed_at_together_and_many_are_typed() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<enter><space>j<space>");
    stage.keys("D");
    let question = stage.question().unwrap();
    assert_eq!(targets(&question.action).len(), 2);
    assert!(matches!(question.answer, Reply::Key));
    stage.keys("nuaD");
    let question = stage.question().unwrap();
    assert!(matches!(&question.answer, Reply::Typed { word, .. } if word == "200"));
    stage.keys("20<enter>");
    assert!(stage.effects.is_empty() && stage.question().is_some());
    stage.keys("0<enter>");
    assert!(matches!(stage.effects.as_slice(), [Effect::Act(_, Action::Drop(targets))] if targets.len() == 200));
    assert!(stage.model.ui.tasks.marks.is_empty());
}

#[test]
fn requeue_elsewhere_than_in_failed_is_refused_with_a_hint() {
    for (key, hint) in [("1", "already wait"), ("3", "runs now"), ("6", "set aside")] {
        let mut stage = Stage::new(80, 24);
        stage.model.ui.queue = Some(if key == "6" { "default" } else { "emails" }.into());
        stage.keys(key).keys("R");
        assert!(stage.question().is_none());
        assert!(stage.notice().contains(hint), "{key}: {}", stage.notice());
    }
}

#[test]
fn purge_takes_the_queue_s_name() {
    let mut stage = Stage::new(80, 24);
    stage.keys("Pemail<enter>");
    assert!(stage.effects.is_empty());
    stage.keys("s<enter>");
    let Some(Effect::Act(id, Action::Purge { queue, parts })) = stage.effects.pop() else { panic!("no purge") };
    assert_eq!(queue, "emails");
    assert!(!parts.iter().any(|part| part.scope == PurgeScope::Segment(Segment::Running)));
    stage.send(Msg::Progress(id, Tally { done: 300, ..Tally::default() }));
    assert!(stage.text().contains("300 of 673"), "{}", stage.text());
    stage.keys("h");
    assert!(stage.effects.is_empty(), "only Esc stops");
    stage.keys("<esc>");
    assert_eq!(stage.effects, [Effect::Stop(id)]);
    stage.send(Msg::Acted(id, Tally { done: 400, stopped: true, ..Tally::default() }));
    assert_eq!(stage.notice(), "400 purged, stopped");
    assert!(stage.model.actions.is_empty());
    // In the tasks it is the segment that is listed.
    stage.keys("<enter>P");
    let Action::Purge { parts, .. } = &stage.question().unwrap().action else { panic!("no purge") };
    let [part] = parts.as_slice() else { panic!("{parts:?}") };
    assert_eq!((part.scope, part.count), (PurgeScope::Segment(Segment::Failed), 412));
    // What fails from now on has a higher score.
    assert_eq!(part.max_score, Some(stage.model.clock.wall_ms));
}

#[test]
fn a_paste_is_text_where_text_is_asked_and_nothing_elsewhere() {
    let mut stage = Stage::new(80, 24);
    stage.send(Msg::Paste("PqDR\x03y".into()));
    assert!(stage.effects.is_empty() && stage.question().is_none());
    stage.keys("P");
    stage.send(Msg::Paste("emails".into()));
    stage.keys("<enter>");
    assert_eq!(stage.effects.len(), 1);
    stage.keys("P");
    stage.send(Msg::Paste("x".repeat(1_000_000)));
    assert!(stage.question().is_some());
}

#[test]
fn silence_is_told_and_locks_and_ends_by_itself() {
    let mut stage = Stage::new(80, 24);
    stage.answers = false;
    for _ in 0..8 {
        stage.pass(SECOND);
    }
    assert!(matches!(stage.model.standing(), Standing::Silent(..)));
    assert_eq!(stage.model.lock(), Some(Lock::Stale));
    assert!(stage.text().contains("no answer for 7 s, trying"), "{}", stage.text());
    stage.keys("<enter>R");
    assert!(stage.question().is_none());
    let before = stage.selected();
    stage.keys("jjj");
    assert_ne!(stage.selected(), before, "scrolling goes on");
    stage.keys("q");
    assert_eq!(stage.effects.pop(), Some(Effect::Quit));
    stage.answers = true;
    let (lane, id, _) = stage.open.iter().find(|(lane, ..)| *lane == Lane::Queues).cloned().unwrap();
    let result = Ok(stage.shop.answer(&Query::Queues));
    stage.send(Msg::Answer { lane, id, took: SECOND, result });
    assert_eq!(stage.model.standing(), Standing::Live);
    stage.pass(SECOND);
}

#[test]
fn a_refused_connection_is_told_with_its_reason_and_asked_again_with_pauses() {
    let mut stage = Stage::new(80, 24);
    stage.answers = false;
    let mut asked = 0;
    for _ in 0..60 {
        stage.pass(SECOND);
        for (lane, id, _) in std::mem::take(&mut stage.open) {
            asked += usize::from(lane == Lane::Queues);
            stage.send(Msg::Answer { lane, id, took: SECOND, result: Err("connection refused".into()) });
        }
    }
    assert!((15..50).contains(&asked), "{asked}");
    assert!(stage.text().contains("connection refused"));
    let told = stage.model.log.iter().filter(|line| line.text.contains("no answer")).count();
    assert_eq!(told, 1);
}

#[test]
fn one_lane_that_fails_for_its_own_reason_is_no_lost_connection() {
    let mut stage = Stage::new(80, 24);
    stage.answers = false;
    for _ in 0..6 {
        stage.pass(SECOND);
        for (lane, id, query) in std::mem::take(&mut stage.open) {
            let result = match lane {
                Lane::Page => Err("WRONGTYPE the key holds another type".to_owned()),
                _ => Ok(stage.shop.answer(&query)),
            };
            stage.send(Msg::Answer { lane, id, took: SECOND, result });
        }
    }
    assert_eq!(stage.model.standing(), Standing::Live);
    assert!(stage.text().contains("WRONGTYPE"));
}

#[test]
fn late_answers_change_nothing() {
    let mut stage = Stage::new(160, 50);
    stage.answers = false;
    stage.keys("<enter>j");
    let open = stage.open.clone();
    let (lane, id, query) = open.iter().find(|(lane, ..)| *lane == Lane::Detail).unwrap();
    let late = Msg::Answer { lane: *lane, id: *id, took: SECOND, result: Ok(stage.shop.answer(query)) };
    stage.keys("j");
    let before = stage.model.ui.doc_of.clone();
    stage.send(late);
    assert_eq!(stage.model.ui.doc_of, before);
    // Another kind of answer, or a number that was never given, is no trouble either.
    stage.send(Msg::Answer { lane: Lane::Page, id: 9_999, took: SECOND, result: Ok(Answer::Detail(None)) });
}

#[test]
fn nothing_changed_is_nothing_to_draw() {
    let mut stage = Stage::new(160, 50);
    stage.model.changed = false;
    stage.pass(Duration::from_millis(250));
    stage.pass(Duration::from_millis(250));
    assert!(!stage.model.changed, "an idle tick within a second");
    let clock = stage.model.clock;
    let effects = update(&mut stage.model, Msg::Tick(clock));
    assert!(effects.is_empty(), "nothing is due: {effects:?}");
}

#[test]
fn commands_are_copied() {
    let check = |keys: &str, expected: &str| {
        let mut stage = Stage::new(80, 24);
        stage.keys(keys);
        let copied = stage.effects.pop();
        assert_eq!(copied, Some(Effect::Copy(expected.into())), "{keys}");
    };
    check("Y", "threadmill queues");
    check("y", "emails");
    check("<enter>Y", "threadmill tasks emails --segment failed");
    check("<enter>y", "FA01a22df8-34ed-7724-a9cf-00009e3779b9");
    check("<enter><enter>Y", "threadmill show FA01a22df8-34ed-7724-a9cf-00009e3779b9");
    check("<enter>RY", "threadmill requeue FA01a22df8-34ed-7724-a9cf-00009e3779b9");
    check("wY", "threadmill workers");
    check("3DY", "threadmill drop RU01a22df8-34ed-7724-a9cf-00009e3779b9 --running");
    check("P<c-y>", "threadmill purge emails --segment ready,scheduled,successful,failed");
    check("jjY", "threadmill queues");
    check("jj<enter>Y", "threadmill tasks 'two words' --segment failed");
}

#[test]
fn read_only_locks_every_acting_key() {
    let options = Options { read_only: true, queue: Some("emails".into()), ..Options::default() };
    let mut stage = Stage::with(80, 24, options);
    stage.keys("P<enter>RDP<enter>RD");
    assert!(stage.question().is_none() && stage.effects.is_empty());
    assert!(stage.notice().contains("read-only"));
}

#[test]
fn reports_say_what_happened_to_each() {
    let mut tally = Tally::default();
    for acted in [vec![Acted::Done; 398], vec![Acted::Moved; 12], vec![Acted::Gone; 3]].concat() {
        tally.count(acted);
    }
    assert_eq!(tally.report("requeued"), "398 requeued, 12 had moved, 3 gone");
    assert!(!tally.is_clean());
}

#[test]
fn screens_and_panes() {
    let mut stage = Stage::new(80, 24);
    let at = |model: &Model| (model.ui.screen, model.ui.focus);
    stage.keys("<tab>");
    assert_eq!(at(&stage.model), (Screen::Main, Focus::Tasks));
    stage.keys("w");
    assert_eq!(stage.model.ui.screen, Screen::Workers);
    stage.keys("e<esc>");
    assert_eq!(stage.model.ui.screen, Screen::Main);
    stage.keys("?jjj");
    assert!(matches!(&stage.model.ui.overlay, Some(Overlay::Help(help)) if help.top == 3));
    stage.keys("q");
    assert!(stage.model.ui.overlay.is_none() && stage.effects.is_empty());
    stage.keys("<esc><esc>q");
    assert_eq!(stage.effects.pop(), Some(Effect::Quit));
    stage.keys("P<c-c>");
    assert_eq!(stage.effects.pop(), Some(Effect::Quit), "from anywhere");
}

#[test]
fn a_task_of_ten_megabytes_scrolls_and_is_not_read_every_second() {
    let mut stage = Stage::new(80, 24);
    let list = stage.shop.list("emails", Segment::Failed);
    if let crate::inspector::source::Body::Record(record) = &mut list[0].body {
        record.args = crate::task::RawJson::new(format!("[{}]", "\"\u{202e}表\", ".repeat(1_000_000)));
    }
    list[0].stored = vec![b' '; 10 << 20];
    stage.keys("<enter><enter>");
    stage.pass(SECOND);
    for _ in 0..50 {
        stage.keys("<pgdn>");
        stage.text();
    }
    stage.keys("G");
    stage.text();
    stage.answers = false;
    stage.pass(30 * SECOND);
    assert!(!stage.open.iter().any(|(lane, ..)| *lane == Lane::Detail));
}

#[test]
fn at_the_start_the_most_telling_segment_is_listed() {
    let check = |queue: &str, expected: Segment| {
        let options = Options { queue: Some(queue.into()), ..Options::default() };
        let mut stage = Stage::with(80, 24, options);
        assert_eq!(stage.model.ui.tasks.segment, expected, "{queue}");
        // Later it is the person who chooses.
        stage.keys("j");
        assert_eq!(stage.model.ui.tasks.segment, expected);
    };
    check("emails", Segment::Failed);
    check("a:b", Segment::Successful);
    check("größe 表", Segment::Ready);
    check("two words", Segment::Failed);
}
