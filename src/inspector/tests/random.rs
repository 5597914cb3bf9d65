//! Anything in any order at any size: nothing panics, and nothing is done without a yes.

use crate::inspector::model::tasks::MARKS_MAX;
use crate::inspector::msg::{Answer, Effect, Lane, Msg, Tally};
use crate::inspector::options::Options;
use crate::inspector::source::QueueCounts;
use crate::inspector::tests::stage::Stage;
use crate::task::Segment;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use proptest::prelude::*;
use std::time::Duration;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resize(u16, u16),
    Pass(u64),
    Silent(bool),
    /// The front of a list goes, or its order turns.
    Shrink(usize),
    Turn,
    Fail(u64),
    Odd(u64),
    Telemetry(String, u32, u32),
    Acted(u64),
}

fn key() -> impl Strategy<Value = KeyEvent> {
    let codes = prop_oneof![
        8 => "[a-zA-Z0-9?/:\\[\\] ]".prop_map(|text| KeyCode::Char(text.chars().next().unwrap_or('j'))),
        4 => prop::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Up, KeyCode::Down, KeyCode::PageUp,
            KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::Left, KeyCode::Right, KeyCode::Backspace,
            KeyCode::Delete, KeyCode::F(1), KeyCode::Null,
        ]),
        1 => any::<char>().prop_map(KeyCode::Char),
    ];
    (codes, prop::sample::select(vec![0_u8, 0, 0, 0, 1, 2, 4]))
        .prop_map(|(code, modifiers)| KeyEvent::new(code, KeyModifiers::from_bits_truncate(modifiers)))
}

fn step() -> impl Strategy<Value = Step> {
    let mouse = (0..4_u8, any::<u16>(), 0..60_u16).prop_map(|(kind, column, row)| MouseEvent {
        kind: match kind {
            0 => MouseEventKind::ScrollUp,
            1 => MouseEventKind::ScrollDown,
            2 => MouseEventKind::Moved,
            _ => MouseEventKind::Down(MouseButton::Left),
        },
        column: column % 210,
        row,
        modifiers: KeyModifiers::NONE,
    });
    prop_oneof![
        12 => key().prop_map(Step::Key),
        2 => mouse.prop_map(Step::Mouse),
        1 => any::<String>().prop_map(Step::Paste),
        2 => (0..200_u16, 0..60_u16).prop_map(|(width, height)| Step::Resize(width, height)),
        3 => (0..5_000_u64).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Silent),
        1 => (0..500_usize).prop_map(Step::Shrink),
        1 => Just(Step::Turn),
        1 => (0..400_u64).prop_map(Step::Fail),
        1 => (0..400_u64).prop_map(Step::Odd),
        1 => (any::<String>(), any::<u32>(), any::<u32>()).prop_map(|(queue, a, b)| Step::Telemetry(queue, a, b)),
        1 => (0..400_u64).prop_map(Step::Acted),
    ]
}

fn perform(stage: &mut Stage, step: Step) {
    let took = Duration::from_millis(1);
    match step {
        Step::Key(event) => stage.send(Msg::Key(event)),
        Step::Mouse(event) => stage.send(Msg::Mouse(event)),
        Step::Paste(text) => stage.send(Msg::Paste(text)),
        Step::Resize(width, height) => stage.send(Msg::Resized(width, height)),
        Step::Pass(millis) => stage.pass(Duration::from_millis(millis)),
        Step::Silent(silent) => stage.answers = !silent,
        Step::Shrink(by) => {
            for (lists, _) in stage.shop.queues.values_mut() {
                lists.iter_mut().for_each(|list| drop(list.drain(..by.min(list.len()))));
            }
        }
        Step::Turn => {
            let queues = &mut stage.shop.queues;
            queues.values_mut().for_each(|(lists, _)| lists.iter_mut().for_each(|list| list.reverse()));
            let first = queues.keys().next().cloned();
            first.and_then(|first| queues.remove(&first));
        }
        Step::Fail(id) => {
            let ids: Vec<_> = stage.open.drain(..).map(|(lane, id, _)| (lane, id)).collect();
            for (lane, id) in ids.into_iter().chain([(Lane::Page, id)]) {
                stage.send(Msg::Answer { lane, id, took, result: Err("gone\x1b".into()) });
            }
        }
        Step::Odd(id) => {
            let odd =
                QueueCounts { segments: [None, Some(u64::MAX), None, Some(0), Some(u64::MAX)], ..Default::default() };
            stage.send(Msg::Answer { lane: Lane::Queues, id, took, result: Ok(Answer::Queues(vec![odd])) });
        }
        Step::Telemetry(queue, entered, left) => stage.send(Msg::Telemetry(vec![(queue, entered, left)])),
        Step::Acted(id) => stage.send(Msg::Acted(id, Tally { done: id, ..Tally::default() })),
    }
}

fn check(steps: Vec<Step>, size: (u16, u16)) {
    let mut stage = Stage::with(size.0, size.1, Options { mouse: true, ..Options::default() });
    for step in steps {
        let could_act = stage.question().is_some() && stage.model.lock().is_none();
        perform(&mut stage, step);
        let acted = stage.effects.drain(..).any(|effect| matches!(effect, Effect::Act(..)));
        assert!(!acted || could_act, "nothing is done without a question");
        stage.picture();
        let ui = &stage.model.ui;
        let shown = ui.tasks.shown(stage.model.page.value.as_ref());
        assert!(shown.is_empty() || ui.tasks.top < shown.len());
        if let Some(selected) = &ui.tasks.selected {
            assert!(stage.model.page.value.is_none() || shown.iter().any(|row| row.row.id == *selected));
        }
        assert!(ui.tasks.marks.len() <= MARKS_MAX);
        assert!(shown.iter().filter(|row| row.gone).count() <= 1);
        assert!(Segment::ALL.contains(&ui.tasks.segment));
        assert!(stage.model.log.len() <= 1_000 && stage.model.actions.len() <= 8);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_anything(
        steps in prop::collection::vec(step(), 1..60),
        size in prop::sample::select(vec![(0, 0), (1, 1), (20, 5), (40, 12), (80, 24), (160, 50)]),
    ) {
        check(steps, size);
    }
}

#[test]
fn every_small_size_can_be_drawn() {
    let mut stage = Stage::new(80, 24);
    for keys in [
        "",
        "<enter>",
        "<enter>",
        "?",
        "<esc>R",
        "n<esc><esc>P",
        "<esc>w",
        "e",
        "i",
        "<esc>5/er",
        "ror:X OR <enter>",
        "<esc>:",
    ] {
        stage.keys(keys);
        for width in (0..40).chain([60, 119, 120, 121, 400]) {
            for height in 0..16 {
                stage.send(Msg::Resized(width, height));
                stage.picture();
            }
        }
        stage.send(Msg::Resized(80, 24));
    }
}
