//! A question before something is changed: what will happen, to how many, and how it is answered.

use crate::inspector::format::{exact, whole_span};
use crate::inspector::msg::{Action, Part};
use crate::inspector::source::PurgeScope;
use crate::task::{Segment, visible};
use tui_input::Input;

/// From this many tasks on, the number has to be typed.
pub const MANY: usize = 50;
/// Characters that can be typed.
pub const TYPED_MAX: usize = 512;

/// The question.
#[derive(Clone, Debug)]
pub struct Confirm {
    /// What happens on yes, with everything fixed when it was asked.
    pub action: Action,
    /// The question, one line.
    pub question: String,
    /// What else there is to know, a line each.
    pub facts: Vec<String>,
    /// How it is answered.
    pub answer: Reply,
}

/// How a question is answered.
#[derive(Clone, Debug)]
pub enum Reply {
    /// By one key.
    Key,
    /// By typing this word.
    Typed {
        /// The word.
        word: String,
        /// What has been typed.
        input: Input,
    },
}

impl Reply {
    fn typed(word: String) -> Self {
        Reply::Typed { word, input: Input::default() }
    }

    /// Whether what was typed is the word. A word that cannot be typed may be typed as it is shown.
    pub fn is_complete(&self) -> bool {
        match self {
            Reply::Key => false,
            Reply::Typed { word, input } => input.value() == word || input.value() == visible(word),
        }
    }
}

impl Confirm {
    /// Asks before something is done to tasks; `example` is the function of the first, or what they have in common, `note`
    /// what else is to be known.
    pub fn tasks(action: Action, example: Option<&str>, note: String) -> Self {
        let targets = action.targets();
        let running = targets.iter().filter(|target| target.segment == Segment::Running).count();
        let again = targets.iter().filter(|target| target.segment == Segment::Successful).count();
        let after = match &action {
            Action::Requeue(_, Some(after)) => format!(" in {}", whole_span(after.as_secs_f64() * 1_000.0)),
            _ => String::new(),
        };
        let verb = capital(action.verb().0);
        let question = match targets {
            [one] => format!("{verb} …{} {}{after}?", one.id.tail(), example.unwrap_or("")),
            many => format!("{verb} {} tasks{after}?", exact(many.len() as u64)),
        };
        let mut facts = Vec::new();
        if let ([first, _, ..], Some(example)) = (targets, example) {
            facts.push(format!("…{} {example} and {} more", first.id.tail(), exact(targets.len() as u64 - 1)));
        }
        facts.push(match &action {
            Action::Requeue(_, None) => "Back to READY, its errors kept; it will run again.".into(),
            Action::Requeue(_, Some(_)) => "To SCHEDULED, its errors kept; it will run again then.".into(),
            Action::Promote(_) => "To READY, before its time.".into(),
            _ => "The record and the result go too. This cannot be undone.".into(),
        });
        if running > 0 {
            let those = if running == 1 {
                "It runs now: its worker loses".into()
            } else {
                format!("{running} run now: their workers lose")
            };
            facts.push(format!("{those} the lease, and the result is discarded."));
        }
        let requeues = matches!(action, Action::Requeue(..));
        if requeues && again > 0 {
            let those =
                if again == 1 { "It has returned".into() } else { format!("{} have returned", exact(again as u64)) };
            facts.push(format!("{those} already: what it does, it does a second time, and the result is lost."));
        }
        facts.extend(Some(note).filter(|note| !note.is_empty()));
        facts.push("What changes before the answer is left alone.".into());
        let answer = if targets.len() >= MANY {
            Reply::typed(targets.len().to_string())
        } else if requeues && again > 0 {
            Reply::typed("again".into())
        } else {
            Reply::Key
        };
        Self { action, question, facts, answer }
    }

    /// Asks before parts of a queue are purged. `left` is how many run and are not meant.
    pub fn purge(queue: &str, parts: Vec<Part>, left: u64) -> Self {
        let total: u64 = parts.iter().map(|part| part.count).sum();
        let what = match parts.as_slice() {
            [part] => format!("Purge {} of {queue}?", part.name()),
            _ => format!("Purge the queue {queue}?"),
        };
        let listed = parts.iter().map(|part| format!("{} {}", exact(part.count), part.name()));
        let mut facts = vec![format!("{} tasks: {}", exact(total), listed.collect::<Vec<_>>().join(", "))];
        facts.push("Records and results go too. This cannot be undone.".into());
        if parts.iter().any(|part| part.scope == PurgeScope::Segment(Segment::Running)) {
            facts.push("Those run now: their workers lose the leases, and results are discarded.".into());
        } else if left > 0 {
            facts.push(format!("{} running are left alone.", exact(left)));
        }
        facts.push("What comes from now on is left alone.".into());
        let action = Action::Purge { queue: queue.to_owned(), parts };
        Self { action, question: what, facts, answer: Reply::typed(queue.to_owned()) }
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
