//! Every screen is a command: the shell line that shows or does the same.

use crate::inspector::model::{Focus, Model, Overlay, Screen};
use crate::inspector::msg::{Action, Effect, Part};
use crate::inspector::source::PurgeScope;
use crate::inspector::theme::Role;
use crate::task::{Segment, visible};
use std::fmt::Write;

/// Bytes that are put on the clipboard at most; terminals refuse more.
const COPY_MAX: usize = 64 * 1_024;

/// Copies the id of the task, or the name of the queue or the worker.
pub fn copy_id(model: &mut Model, effects: &mut Vec<Effect>) {
    let task = model.ui.tasks.selected.as_ref().map(|id| id.as_str().to_owned());
    let text = match (model.ui.screen, model.ui.focus) {
        (Screen::Workers, _) => model.ui.worker.clone(),
        (Screen::Log, _) => model.log.back().map(|line| line.text.clone()),
        (Screen::Incidents, _) => model.ui.incident.clone(),
        (Screen::Main, Focus::Queues) => model.ui.queue.clone(),
        (Screen::Main, _) => task,
    };
    copy(model, text, effects);
}

/// Copies the command.
pub fn copy_command(model: &mut Model, effects: &mut Vec<Effect>) {
    let command = command(model);
    copy(model, command, effects);
}

fn copy(model: &mut Model, text: Option<String>, effects: &mut Vec<Effect>) {
    match text {
        None => model.say(Role::Soon, "there is nothing to copy"),
        Some(text) if text.len() > COPY_MAX => {
            model.say(Role::Soon, format!("{} bytes are more than a terminal takes as a copy", text.len()));
        }
        Some(text) => {
            model.say(Role::Text, format!("copied  {}", visible(&text)));
            effects.push(Effect::Copy(text));
        }
    }
}

/// A command in its parts.
struct Command {
    verb: &'static str,
    /// What comes from Redis.
    names: Vec<String>,
    segments: Vec<Segment>,
    /// Flags that have to be said.
    flags: Vec<String>,
}

/// The command for what is on top.
pub fn command(model: &Model) -> Option<String> {
    let command =
        if let Some(Overlay::Confirm(confirm)) = &model.ui.overlay { action(&confirm.action) } else { screen(model)? };
    Some(command.line(&model.options.shell))
}

fn plain(verb: &'static str) -> Command {
    Command { verb, names: Vec::new(), segments: Vec::new(), flags: Vec::new() }
}

fn screen(model: &Model) -> Option<Command> {
    let list = &model.ui.tasks;
    Some(match (model.ui.screen, model.ui.focus) {
        (Screen::Workers, _) => plain("workers"),
        (Screen::Log, _) => return None,
        (Screen::Incidents, _) => plain("errors"),
        (Screen::Main, Focus::Queues) => plain("queues"),
        (Screen::Main, Focus::Tasks) if list.quarantine => return None,
        (Screen::Main, Focus::Tasks) => Command {
            names: vec![model.ui.queue.clone()?],
            segments: vec![list.segment],
            flags: model.sift.iter().map(|sift| format!("--where {}", quoted(sift.filter.as_str()))).collect(),
            ..plain("tasks")
        },
        (Screen::Main, Focus::Detail) => Command { names: vec![list.selected.as_ref()?.to_string()], ..plain("show") },
    })
}

fn action(action: &Action) -> Command {
    let names = action.targets().iter().map(|target| target.id.to_string()).collect();
    match action {
        Action::Requeue(targets, after) => {
            let mut flags: Vec<String> = after.iter().map(|after| format!("--in {}s", after.as_secs_f64())).collect();
            if targets.iter().any(|target| target.segment == Segment::Successful) {
                flags.push("--again".into());
            }
            Command { names, flags, ..plain("requeue") }
        }
        Action::Promote(_) => Command { names, ..plain("promote") },
        Action::Drop(targets) => {
            let running = targets.iter().any(|target| target.segment == Segment::Running);
            let flags = running.then(|| "--running".to_owned()).into_iter().collect();
            Command { names, flags, ..plain("drop") }
        }
        Action::Purge { queue, parts } => {
            let of = |part: &Part| match part.scope {
                PurgeScope::Segment(segment) => Some(segment),
                PurgeScope::Quarantine => None,
            };
            let quarantine = parts.iter().any(|part| part.scope == PurgeScope::Quarantine);
            let flags = quarantine.then(|| "--quarantine".to_owned()).into_iter().collect();
            let segments = parts.iter().filter_map(of).collect();
            Command { names: vec![queue.clone()], segments, flags, ..plain("purge") }
        }
    }
}

impl Command {
    /// The line for a shell; names that look like flags come last, behind `--`.
    fn line(&self, shell: &str) -> String {
        let names: String = self.names.iter().map(|name| format!(" {}", quoted(name))).collect();
        let segments: Vec<_> = self.segments.iter().map(|segment| segment.word()).collect();
        let segments = if segments.is_empty() { String::new() } else { format!(" --segment {}", segments.join(",")) };
        let flags: String = self.flags.iter().map(|flag| format!(" {flag}")).collect();
        let flags = format!("{segments}{flags}");
        if self.names.iter().any(|name| name.starts_with('-')) {
            return format!("{shell} {}{flags} --{names}", self.verb);
        }
        format!("{shell} {}{names}{flags}", self.verb)
    }
}

/// A word as a shell takes it. What a terminal would obey on pasting is written as an escape of `$'…'`.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if visible(word) == word {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let mut out = String::from("$'");
    for c in word.chars() {
        match c {
            '\'' | '\\' => out.extend(['\\', c]),
            c if c == ' ' || c.is_ascii_graphic() => out.push(c),
            c => {
                let mut buffer = [0; 4];
                for byte in c.encode_utf8(&mut buffer).bytes() {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "\\x{byte:02x}");
                }
            }
        }
    }
    out.push('\'');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_safe_for_a_shell_and_a_terminal() {
        let check = |word: &str, expected: &str| assert_eq!(quoted(word), expected);
        check("emails", "emails");
        check("a:b", "a:b");
        check("two words", "'two words'");
        check("it's", r"'it'\''s'");
        check("größe", "'größe'");
        check("-x", "-x");
        check("", "''");
        let flag = Command {
            verb: "tasks",
            names: vec!["-x".into()],
            segments: vec![Segment::Failed, Segment::Ready],
            flags: Vec::new(),
        };
        assert_eq!(flag.line("threadmill"), "threadmill tasks --segment failed,ready -- -x");
        check("a\x1b[2J'", r"$'a\x1b[2J\''");
    }
}
