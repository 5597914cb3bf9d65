//! Acting on what was found: again, later, now, and by segment.

use crate::inspector::model::confirm::Reply;
use crate::inspector::msg::{Action, Effect};
use crate::inspector::source::PurgeScope;
use crate::inspector::tests::stage::Stage;
use crate::task::Segment;
use std::time::Duration;

fn act(stage: &mut Stage) -> Action {
    match stage.effects.pop() {
        Some(Effect::Act(_, action)) => action,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_scheduled_task_runs_now() {
    let mut stage = Stage::new(80, 24);
    stage.keys("2Ry");
    let Action::Promote(targets) = act(&mut stage) else { panic!("not that") };
    assert_eq!((targets.len(), targets[0].segment), (1, Segment::Scheduled));
}

#[test]
fn a_requeue_can_wait() {
    let mut stage = Stage::new(80, 24);
    stage.keys("5Lsoon<enter>");
    assert!(stage.text().contains("`soon` is no duration"), "{}", stage.text());
    stage.keys("<esc>L10m<enter>");
    assert!(stage.question().unwrap().question.contains("in 10m00s"));
    stage.keys("y");
    let Action::Requeue(targets, after) = act(&mut stage) else { panic!("not that") };
    assert_eq!((targets.len(), after), (1, Some(Duration::from_secs(600))));
}

#[test]
fn what_has_returned_runs_again_only_behind_a_word() {
    let mut stage = Stage::new(80, 24);
    stage.keys("4R");
    assert!(matches!(&stage.question().unwrap().answer, Reply::Typed { word, .. } if word == "again"));
    stage.keys("Y<enter>");
    assert!(stage.effects.is_empty());
    stage.keys("<esc>Ragain<enter>");
    assert!(matches!(act(&mut stage), Action::Requeue(targets, None) if targets[0].segment == Segment::Successful));
}

#[test]
fn what_was_set_aside_is_dropped_where_it_is() {
    let mut stage = Stage::new(80, 24);
    stage.model.ui.queue = Some("default".into());
    stage.keys("6Dy");
    assert!(matches!(act(&mut stage), Action::Drop(targets) if targets[0].quarantined));
    stage.keys("P");
    let Action::Purge { parts, .. } = &stage.question().unwrap().action else { panic!("not that") };
    assert_eq!((parts[0].scope, parts[0].count), (PurgeScope::Quarantine, 2));
}

#[test]
fn a_purge_of_scheduled_tasks_takes_none_that_comes_later() {
    let mut stage = Stage::new(80, 24);
    stage.keys("2P");
    let Action::Purge { parts, .. } = &stage.question().unwrap().action else { panic!("not that") };
    let last = stage.model.pulse.value.as_ref().unwrap()["emails"].last_due_ms;
    assert!(last.is_some() && parts[0].max_score == last);
}
