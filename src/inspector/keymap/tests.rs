//! The table holds what it promises.

use super::*;
use std::collections::HashSet;

const CONTEXTS: [Context; 11] = [
    Context::Incidents,
    Context::Prompt,
    Context::HelpSearch,
    Context::Queues,
    Context::Tasks,
    Context::Detail,
    Context::Workers,
    Context::Log,
    Context::Help,
    Context::Confirm,
    Context::Typing,
];

#[test]
fn no_key_means_two_things_in_one_context() {
    for context in CONTEXTS {
        let mut seen = HashSet::new();
        for binding in BINDINGS.iter().filter(|binding| context.layers().contains(&binding.context)) {
            for key in binding.keys {
                assert!(seen.insert(*key), "{} twice in {context:?}", key.name());
            }
        }
    }
}

#[test]
fn every_binding_is_reachable_named_and_on_the_help_page() {
    for binding in BINDINGS {
        assert!(!binding.label.is_empty() && !binding.help.is_empty() && !binding.keys.is_empty());
        assert!(SECTIONS.iter().any(|(context, _)| *context == binding.context), "{binding:?}");
        let reached = CONTEXTS.into_iter().filter(|context| context.layers().contains(&binding.context));
        let mut any = false;
        for context in reached {
            any = true;
            for key in binding.keys {
                assert_eq!(resolve(context, &key.event()), Some(binding.deed));
            }
        }
        assert!(any, "{binding:?} holds nowhere");
    }
}

#[test]
fn what_is_dangerous_takes_a_capital() {
    for binding in BINDINGS {
        let changes = matches!(binding.deed, Deed::Requeue | Deed::Later | Deed::Drop | Deed::Purge);
        assert_eq!(changes, binding.danger, "{binding:?}");
        if binding.danger {
            assert!(binding.keys.iter().all(|key| matches!(key.code, KeyCode::Char(c) if c.is_ascii_uppercase())));
        }
    }
    // Enter alone never says yes.
    assert_eq!(resolve(Context::Confirm, &KeyEvent::from(KeyCode::Enter)), None);
}

#[test]
fn releases_and_repeats() {
    let mut event = KeyEvent::from(KeyCode::Char('j'));
    event.kind = KeyEventKind::Repeat;
    assert_eq!(resolve(Context::Tasks, &event), Some(Deed::Down));
    event.code = KeyCode::Char('R');
    assert_eq!(resolve(Context::Tasks, &event), None);
    event.kind = KeyEventKind::Release;
    assert_eq!(resolve(Context::Tasks, &event), None);
    let shifted = KeyEvent::new(KeyCode::Char('r'), KeyModifiers::SHIFT);
    assert_eq!(resolve(Context::Tasks, &shifted), Some(Deed::Requeue));
    assert_eq!(resolve(Context::Tasks, &KeyEvent::new(KeyCode::Char('R'), KeyModifiers::ALT)), None);
}

#[test]
fn the_table_lists_every_binding() {
    assert_eq!(markdown().lines().count(), BINDINGS.len() + 2);
}
