//! Finding: filters, incidents, commands, the detail's folds and search.

use crate::inspector::keymap::Context;
use crate::inspector::model::sift::SiftState;
use crate::inspector::model::tasks::Sort;
use crate::inspector::model::{Focus, Overlay, Screen};
use crate::inspector::msg::{Effect, Lane, Msg, Query};
use crate::inspector::options::{Options, Unfocused};
use crate::inspector::source::{Body, PurgeScope};
use crate::inspector::tests::fake::task;
use crate::inspector::tests::stage::Stage;
use crate::inspector::update::context;
use crate::task::{RawJson, Segment};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_filter_lists_what_it_means_of_the_whole_segment() {
    let mut stage = Stage::new(100, 24);
    stage.keys("5/func:shop.tasks.invoice -attempt>5<enter>");
    let sift = stage.model.sift.as_ref().unwrap();
    assert_eq!((sift.matched, sift.total, sift.state.clone()), (137, 412, SiftState::Done));
    let text = stage.text();
    assert!(text.contains("filter func:shop.tasks.invoice -attempt>5"), "{text}");
    assert!(text.contains("137 of 412"), "{text}");
    assert!(!text.contains("welcome_email"), "{text}");
    // All that were found are marked at once.
    stage.keys("a");
    assert_eq!(stage.model.ui.tasks.marks.len(), 137);
    // Esc takes one thing away at a time.
    stage.keys("<esc>");
    assert!(stage.model.ui.tasks.marks.is_empty() && stage.model.sift.is_some());
    stage.keys("<esc>");
    assert!(stage.model.sift.is_none() && stage.model.ui.focus == Focus::Tasks);
    assert!(stage.text().contains("of 412"));
}

#[test]
fn a_filter_is_stopped_and_goes_on_within_its_budget() {
    let options = Options { queue: Some("emails".into()), records_per_second: 100, ..Options::default() };
    let mut stage = Stage::with(100, 24, options);
    stage.answers = false;
    stage.keys("5/error:SMTP*<enter>");
    let Some((_, _, Query::Sift { .. })) = stage.open.iter().find(|(lane, ..)| *lane == Lane::Sift) else {
        panic!("nothing was asked: {:?}", stage.open)
    };
    assert!(stage.text().contains("0 found"), "{}", stage.text());
    stage.keys("<esc>");
    assert_eq!(stage.model.sift.as_ref().unwrap().state, SiftState::Stopped);
    stage.answers = true;
    stage.keys("r");
    assert_eq!(stage.model.sift.as_ref().unwrap().state, SiftState::Done);
    // 412 were looked at where 100 a second are allowed: the next filter waits.
    stage.keys("r");
    assert_eq!(stage.model.sift.as_ref().unwrap().state, SiftState::UnderWay);
    for _ in 0..6 {
        stage.pass(SECOND);
    }
    assert_eq!(stage.model.sift.as_ref().unwrap().state, SiftState::Done);
}

#[test]
fn the_line_offers_and_says_what_is_wrong_and_where() {
    let mut stage = Stage::new(80, 24);
    stage.keys("5/er");
    assert_eq!(context(&stage.model), Context::Prompt);
    assert!(stage.text().contains("class of the last error"), "{}", stage.text());
    stage.keys("<tab>SM<tab>");
    let Some(Overlay::Prompt(prompt)) = &stage.model.ui.overlay else { panic!("no line") };
    assert_eq!(prompt.input.value(), "error:SMTPServerDisconnected");
    stage.keys(" eror:X y");
    assert!(stage.text().contains("unknown field `eror`; did you mean `error`?"), "{}", stage.text());
    stage.keys("<enter>");
    assert!(stage.model.sift.is_none() && stage.model.ui.overlay.is_some());
    stage.keys("<esc>");
    assert!(stage.model.ui.overlay.is_none());
}

#[test]
fn an_incident_leads_to_its_tasks_and_is_dealt_with_as_a_group() {
    let mut stage = Stage::new(100, 24);
    stage.keys("i");
    assert_eq!(stage.model.ui.screen, Screen::Incidents);
    let text = stage.text();
    assert!(text.contains("mail.py:88") && text.contains("SMTP refused user"), "{text}");
    assert!(text.contains("all of 415"), "{text}");
    stage.keys("R");
    let question = stage.question().unwrap();
    assert_eq!(question.action.size(), 415);
    stage.keys("<esc><enter>");
    assert_eq!((stage.model.ui.screen, stage.model.ui.focus), (Screen::Main, Focus::Tasks));
    let sift = stage.model.sift.as_ref().unwrap();
    assert!(sift.filter.as_str().starts_with("incident:"));
    assert_eq!((sift.matched, sift.queue.as_str()), (412, "emails"));
    assert!(stage.notice().contains("default"));
}

#[test]
fn a_failure_of_this_session_makes_a_new_incident() {
    let mut stage = Stage::new(160, 50);
    assert!(stage.text().contains("Incidents"));
    let mut new = task("new", "shop.pay.refund", "emails", Segment::Failed, -70.0);
    if let Body::Record(record) = &mut new.body {
        record.errors.iter_mut().for_each(|error| {
            error.class_path = "builtins.KeyError".into();
            error.traceback = "Traceback\n  File \"/srv/shop/pay.py\", line 31, in refund\nKeyError: 'vat_id'\n".into();
        });
    }
    stage.shop.list("emails", Segment::Failed).insert(0, new);
    for _ in 0..5 {
        stage.pass(SECOND);
    }
    stage.keys("i");
    assert!(stage.text().contains("pay.py:31"), "{}", stage.text());
    assert!(stage.text().contains("1 new since this session began"), "{}", stage.text());
}

#[test]
fn commands_are_found_by_their_letters() {
    let mut stage = Stage::new(80, 24);
    stage.keys(":wrkrs<enter>");
    assert_eq!(stage.model.ui.screen, Screen::Workers);
    stage.keys(":queue two<enter>");
    assert_eq!(stage.model.ui.queue.as_deref(), Some("two words"));
    stage.keys(":no such thing at all<enter>");
    assert!(stage.notice().contains("no command"));
    // A command that asks, asks here too.
    stage.keys("<esc>:queue emails<enter>:purge<enter>");
    assert!(stage.question().is_some());
}

#[test]
fn the_help_is_searched() {
    let mut stage = Stage::new(80, 24);
    stage.keys("?/set aside<enter>");
    let text = stage.text();
    assert!(text.contains("List what was set aside") && !text.contains("One down"), "{text}");
    stage.keys("<esc>");
    assert!(stage.model.ui.overlay.is_none());
}

#[test]
fn the_detail_folds_and_is_searched() {
    let mut stage = Stage::new(100, 30);
    let list = stage.shop.list("emails", Segment::Failed);
    if let Body::Record(record) = &mut list[0].body {
        record.kwargs = RawJson::new(format!("{{\"order\": {{\"id\": 42, \"note\": \"{}\"}}}}", "x".repeat(80)));
    }
    stage.pass(SECOND);
    stage.keys("5g<enter>");
    let text = stage.text();
    assert!(text.contains("▾ {1}") && text.contains("1 library frame: smtplib.py:760"), "{text}");
    assert!(!text.contains("raise SMTPServerDisconnected"), "{text}");
    stage.keys("f");
    assert!(stage.text().contains("raise SMTPServerDisconnected"), "{}", stage.text());
    stage.keys("/order<enter>");
    assert!(stage.text().lines().any(|line| line.contains('▌') && line.contains("order")), "{}", stage.text());
    stage.keys("<enter>");
    assert!(stage.text().contains("▸ {"), "{}", stage.text());
    stage.keys("v");
    assert!(stage.text().contains("{\"order\": {\"id\": 42"), "{}", stage.text());
}

#[test]
fn lists_are_sorted_turned_and_set_aside() {
    let mut stage = Stage::new(100, 24);
    stage.keys("5s");
    assert_eq!(stage.model.ui.tasks.sort, Sort::Function);
    let first = |stage: &Stage| stage.model.page.value.as_ref().unwrap().rows[0].id.clone();
    let text = stage.text();
    assert!(text.contains("by function") && text.contains("nightly.rebuild_everything"), "{text}");
    stage.pass(SECOND);
    assert_eq!(stage.model.ui.tasks.sort, Sort::Function);
    stage.keys("4o");
    let last = stage.shop.list("emails", Segment::Successful).last().unwrap().id.clone();
    assert_eq!(first(&stage), last);
    stage.model.ui.queue = Some("default".into());
    stage.keys("6");
    let text = stage.text();
    assert!(text.contains("[6 Quar 2]") && text.contains("SET ASIDE"), "{text}");
    assert_eq!(stage.model.ui.tasks.scope(), PurgeScope::Quarantine);
    stage.keys("5");
    assert!(!stage.model.ui.tasks.quarantine);
}

#[test]
fn out_of_focus_nothing_is_asked() {
    let mut stage = Stage::new(80, 24);
    stage.send(Msg::Focus(false));
    stage.answers = false;
    stage.open.clear();
    for _ in 0..20 {
        stage.pass(SECOND);
    }
    assert!(stage.open.is_empty(), "{:?}", stage.open);
    assert!(stage.text().contains("paused out of focus"), "{}", stage.text());
    stage.send(Msg::Focus(true));
    assert!(!stage.open.is_empty());
    let options = Options { unfocused: Unfocused::Live, queue: Some("emails".into()), ..Options::default() };
    let mut stage = Stage::with(80, 24, options);
    stage.send(Msg::Focus(false));
    stage.answers = false;
    stage.pass(SECOND * 2);
    assert!(!stage.open.is_empty());
    assert!(stage.effects.iter().all(|effect| !matches!(effect, Effect::Act(..))));
}

#[test]
fn queues_that_need_attention_come_first() {
    let stage = Stage::new(80, 24);
    let order: Vec<_> = stage.model.queue_list().iter().map(|counts| counts.queue.as_str()).collect();
    assert_eq!(order, ["default", "a:b", "emails", "größe 表", "two words"]);
    assert!(stage.text().contains("4m12s"), "{}", stage.text());
    assert!(stage.text().contains("2 workers gone 40s"), "{}", stage.text());
}
