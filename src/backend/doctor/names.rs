//! Names of queues that the Python package confuses.

use crate::backend::doctor::finding::Severity;
use crate::backend::doctor::{FindingKind, Run};

impl Run<'_> {
    /// Looks at the names of all queues.
    pub(super) fn names(&mut self) {
        let names: Vec<String> = self.counts.iter().map(|counts| counts.queue.clone()).collect();
        for name in &names {
            for (severity, why) in confusions(name, &names) {
                self.tally.add_as(FindingKind::QueueName, severity, format!("{name}: {why}"));
            }
        }
    }
}

/// What its purge of `P:<name>:*` takes that is not the queue's, and what else the name means.
fn confusions(name: &str, names: &[String]) -> Vec<(Severity, String)> {
    let mut found = Vec::new();
    if name == "task" || name == "result" {
        found.push((Severity::Error, format!("its purge deletes every {name} of all queues")));
    }
    if name.contains(['*', '?', '[', '\\']) {
        found.push((Severity::Warning, "its purge takes the name for a pattern".to_owned()));
    }
    if name.starts_with("task:") || name.starts_with("result:") {
        found.push((Severity::Warning, "its keys look like those of single tasks".to_owned()));
    }
    let prefix = format!("{name}:");
    for other in names.iter().filter(|other| other.starts_with(&prefix)) {
        found.push((Severity::Warning, format!("its purge takes the queue {other} as well")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_its_patterns_confuse() {
        let check = |name: &str, others: &[&str], expected: usize| {
            let others: Vec<String> = others.iter().map(|other| (*other).to_owned()).collect();
            assert_eq!(confusions(name, &others).len(), expected, "{name} among {others:?}");
        };
        check("default", &["default", "emails", "default2"], 0);
        check("a", &["a", "a:b", "a:c", "ab"], 2);
        check("a:b", &["a", "a:b"], 0);
        check("task", &[], 1);
        check("x*", &[], 1);
        check("task:1", &[], 1);
        check("größe ü", &[], 0);
        assert_eq!(confusions("result", &[])[0].0, Severity::Error);
    }
}
