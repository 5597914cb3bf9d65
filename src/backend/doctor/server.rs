//! How the server is set up.

use crate::backend::connection::Resend;
use crate::backend::doctor::finding::{Severity, Tally};
use crate::backend::doctor::{FindingKind, Run};
use crate::backend::{BackendError, answer::Answer};
use chrono::Utc;
use redis::{RedisResult, Value};
use std::collections::HashMap;

/// The oldest version that knows every command of ours.
const OLDEST: (u64, u64) = (6, 2);
/// From here on the server's random numbers do not repeat with each call.
const RECOMMENDED: (u64, u64) = (7, 0);
/// A difference of clocks that begins to matter, in milliseconds.
const SKEW: f64 = 1_000.0;

impl Run<'_> {
    /// Looks at the server.
    pub(super) async fn server(&mut self) -> Result<(), BackendError> {
        let cmds: Vec<_> = ["server", "memory", "persistence", "replication"]
            .map(|section| {
                let mut cmd = redis::cmd("INFO");
                cmd.arg(section);
                cmd
            })
            .to_vec();
        let before = Utc::now().timestamp_micros() as f64 / 1_000.0;
        let time = self.backend.call("time", redis::cmd("TIME")).await?;
        let after = Utc::now().timestamp_micros() as f64 / 1_000.0;
        let [seconds, micros] = time.array()?;
        let now = seconds.number()? * 1_000.0 + micros.number()? / 1_000.0;
        clock(&mut self.tally, now, before, after);
        let facts = facts(self.backend.link().commands(cmds, Resend::Safe).await?);
        judge(&mut self.tally, &facts);
        self.step("looking at the server", None, 0);
        Ok(())
    }
}

/// What the sections say; a forbidden one says nothing.
fn facts(sections: Vec<RedisResult<Value>>) -> HashMap<String, String> {
    let mut facts = HashMap::new();
    for section in sections.into_iter().flatten() {
        let Ok(text) = Answer::new("facts", section).text() else { continue };
        for (key, value) in text.lines().filter_map(|line| line.split_once(':')) {
            facts.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    facts
}

/// The server's clock lies between the two of ours, or differs.
fn clock(tally: &mut Tally, now: f64, before: f64, after: f64) {
    let difference = if now < before {
        now - before
    } else if now > after {
        now - after
    } else {
        0.0
    };
    if difference.abs() > SKEW {
        let direction = if difference > 0.0 { "ahead" } else { "behind" };
        tally.add(FindingKind::Clock, None, format!("the server is {:.1} s {direction}", difference.abs() / 1_000.0));
    }
}

fn judge(tally: &mut Tally, facts: &HashMap<String, String>) {
    let text = |key: &str| facts.get(key).map(String::as_str);
    let number = |key: &str| text(key).and_then(|text| text.parse::<u64>().ok());
    if facts.is_empty() {
        tally.add(FindingKind::Unknown, None, "INFO");
        return;
    }
    let max_memory = number("maxmemory").unwrap_or(0);
    if let Some(policy) = text("maxmemory_policy").filter(|policy| *policy != "noeviction") {
        // Without a bound nothing is evicted yet.
        let severity = if max_memory > 0 { Severity::Error } else { Severity::Warning };
        tally.add_as(FindingKind::Eviction, severity, format!("maxmemory-policy {policy}"));
    }
    if text("aof_enabled") == Some("0") {
        tally.add(FindingKind::Persistence, None, "appendonly no");
    }
    for key in ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"] {
        if let Some(status) = text(key).filter(|status| *status != "ok") {
            tally.add(FindingKind::DiskTrouble, None, format!("{key} {status}"));
        }
    }
    version(tally, text("redis_version"), text("valkey_version"));
    if let Some(used) = number("used_memory").filter(|_| max_memory > 0) {
        let percent = used.saturating_mul(100) / max_memory;
        if percent >= 80 {
            let severity = if percent >= 95 { Severity::Error } else { Severity::Warning };
            tally.add_as(FindingKind::Memory, severity, format!("{percent} % of maxmemory in use"));
        }
    }
    match text("role") {
        Some("slave") => tally.add(FindingKind::Replica, None, text("master_host").unwrap_or("its master is unknown")),
        Some("master") if number("connected_slaves") == Some(0) => tally.add(FindingKind::NoReplica, None, "master"),
        _ => {}
    }
}

fn version(tally: &mut Tally, redis: Option<&str>, valkey: Option<&str>) {
    // Valkey tells the version of Redis that it stands for beside its own.
    let Some(version) = redis else { return };
    let mut parts = version.split('.').map(|part| part.parse::<u64>().unwrap_or(0));
    let found = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    if found < OLDEST {
        tally.add(FindingKind::Version, None, version);
    } else if found < RECOMMENDED && valkey.is_none() {
        tally.add_as(FindingKind::Version, Severity::Warning, version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(pairs: &[(&str, &str)]) -> Vec<(FindingKind, Severity)> {
        let facts = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut tally = Tally::new(3);
        judge(&mut tally, &facts);
        tally.findings().into_iter().map(|finding| (finding.kind, finding.severity)).collect()
    }

    #[test]
    fn a_server_as_it_should_be_and_each_way_in_which_it_is_not() {
        use FindingKind as K;
        use Severity::{Error, Note, Warning};
        let good = [("maxmemory_policy", "noeviction"), ("aof_enabled", "1"), ("redis_version", "7.0.15")];
        assert_eq!(judged(&good), []);
        assert_eq!(judged(&[("maxmemory_policy", "allkeys-lru"), ("maxmemory", "100")]), [(K::Eviction, Error)]);
        assert_eq!(judged(&[("maxmemory_policy", "allkeys-lru"), ("maxmemory", "0")]), [(K::Eviction, Warning)]);
        assert_eq!(judged(&[("aof_enabled", "0")]), [(K::Persistence, Warning)]);
        assert_eq!(judged(&[("rdb_last_bgsave_status", "err")]), [(K::DiskTrouble, Error)]);
        assert_eq!(judged(&[("redis_version", "5.0.7")]), [(K::Version, Error)]);
        assert_eq!(judged(&[("redis_version", "6.2.1")]), [(K::Version, Warning)]);
        assert_eq!(judged(&[("maxmemory", "100"), ("used_memory", "96")]), [(K::Memory, Error)]);
        assert_eq!(judged(&[("role", "slave")]), [(K::Replica, Error)]);
        assert_eq!(judged(&[("role", "master"), ("connected_slaves", "0")]), [(K::NoReplica, Note)]);
        assert_eq!(judged(&[]), [(K::Unknown, Note)]);
    }

    #[test]
    fn clocks_differ_beyond_the_round_trip() {
        let difference = |now: f64| {
            let mut tally = Tally::new(3);
            clock(&mut tally, now, 10_000.0, 12_000.0);
            tally.findings().pop().map(|finding| finding.examples[0].clone())
        };
        assert_eq!(difference(11_000.0), None);
        assert_eq!(difference(12_900.0), None);
        assert_eq!(difference(15_000.0).as_deref(), Some("the server is 3.0 s ahead"));
        assert_eq!(difference(5_000.0).as_deref(), Some("the server is 5.0 s behind"));
    }
}
