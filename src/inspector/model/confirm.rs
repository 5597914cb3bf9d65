//! A question before something is changed: what will happen, to how many, and how it is answered.

use crate::inspector::format::exact;
use crate::inspector::msg::{Action, Target};
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
    /// Asks before tasks are requeued or dropped; `example` is the function of the first.
    pub fn tasks(action: Action, targets: &[Target], example: Option<&str>) -> Self {
        let verb = action.verb().0;
        let running = targets.iter().filter(|target| target.segment == Segment::Running).count();
        let question = match targets {
            [one] => format!("{} …{} {}?", capital(verb), one.id.tail(), example.unwrap_or("")),
            many => format!("{} {} tasks?", capital(verb), exact(many.len() as u64)),
        };
        let mut facts = Vec::new();
        if let ([first, _, ..], Some(func)) = (targets, example) {
            facts.push(format!("…{} {func} and {} more", first.id.tail(), exact(targets.len() as u64 - 1)));
        }
        match &action {
            Action::Requeue(_) => facts.push("Back to READY, its errors kept; it will run again.".into()),
            _ => facts.push("The record and the result go too. This cannot be undone.".into()),
        }
        if running > 0 {
            let those = if running == 1 {
                "It runs now: its worker loses".into()
            } else {
                format!("{running} run now: their workers lose")
            };
            facts.push(format!("{those} the lease, and the result is discarded."));
        }
        facts.push("What changes before the answer is left alone.".into());
        let many = targets.len() >= MANY;
        let answer = if many { Reply::typed(targets.len().to_string()) } else { Reply::Key };
        Self { action, question, facts, answer }
    }

    /// Asks before segments of a queue are purged. `left` is how many run and are not meant.
    pub fn purge(queue: &str, parts: Vec<(Segment, u64)>, left: u64) -> Self {
        let total: u64 = parts.iter().map(|(_, count)| count).sum();
        let what = match parts.as_slice() {
            [(segment, _)] => format!("Purge {segment} of {queue}?"),
            _ => format!("Purge the queue {queue}?"),
        };
        let listed = parts.iter().map(|(segment, count)| format!("{} {segment}", exact(*count)));
        let mut facts = vec![format!("{} tasks: {}", exact(total), listed.collect::<Vec<_>>().join(", "))];
        facts.push("Records and results go too. This cannot be undone.".into());
        if parts.iter().any(|(segment, _)| *segment == Segment::Running) {
            facts.push("Those run now: their workers lose the leases, and results are discarded.".into());
        } else if left > 0 {
            facts.push(format!("{} running are left alone.", exact(left)));
        }
        let action = Action::Purge { queue: queue.to_owned(), parts };
        Self { action, question: what, facts, answer: Reply::typed(queue.to_owned()) }
    }
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}
