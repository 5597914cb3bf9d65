//! The Lua scripts, one atomic transition each, and how they are called.

use redis::{Cmd, ToRedisArgs};
use std::sync::LazyLock;

/// A script with the names of its keys and arguments, as its header gives them.
pub struct Script {
    /// The file's name without its ending.
    pub name: &'static str,
    /// The names of its keys; a part in parentheses with a star repeats.
    pub keys: &'static str,
    /// The names of its arguments, likewise.
    pub args: &'static str,
    source: &'static str,
    ready: LazyLock<Ready>,
}

struct Ready {
    text: String,
    sha: String,
    only_reads: bool,
}

const INCLUDES: [(&str, &str); 4] = [
    ("clock", include_str!("../../lua/include/clock.lua")),
    ("fields", include_str!("../../lua/include/fields.lua")),
    ("iso", include_str!("../../lua/include/iso.lua")),
    ("walk", include_str!("../../lua/include/walk.lua")),
];

impl Script {
    /// The text that the server runs, with the included parts in place.
    pub fn text(&self) -> &str {
        &self.ready.text
    }

    /// The script's name to the server: the SHA-1 of its text.
    pub fn sha(&self) -> &str {
        &self.ready.sha
    }

    /// The script as it stands in its file.
    pub fn source(&self) -> &str {
        self.source
    }

    /// Starts a call with these keys. The arguments follow with [`Cmd::arg`].
    pub(crate) fn call<K: ToRedisArgs>(&self, keys: &[K]) -> Cmd {
        let mut cmd = Cmd::with_capacity(3 + keys.len() + 8, 256);
        // A user who may only read may call only what the server knows to read.
        cmd.arg(if self.ready.only_reads { "EVALSHA_RO" } else { "EVALSHA" }).arg(self.sha()).arg(keys.len());
        for key in keys {
            cmd.arg(key);
        }
        cmd
    }
}

fn assemble(source: &str) -> Ready {
    let mut text = String::with_capacity(source.len() * 2);
    for line in source.lines() {
        let include = line.strip_prefix("--@include ").map(str::trim);
        match include.and_then(|name| INCLUDES.iter().find(|(known, _)| *known == name)) {
            Some((_, part)) => text.push_str(part),
            None => text.push_str(line),
        }
        text.push('\n');
    }
    let sha = redis::Script::new(&text).get_hash().to_owned();
    Ready { text, sha, only_reads: source.contains("\n-- Safe: only reads.") }
}

macro_rules! scripts {
    ($($(#[$doc:meta])* $ident:ident = $name:literal, keys $keys:literal, args $args:literal;)*) => {
        $($(#[$doc])* pub static $ident: Script = Script {
            name: $name,
            keys: $keys,
            args: $args,
            source: include_str!(concat!("../../lua/", $name, ".lua")),
            ready: LazyLock::new(|| assemble(include_str!(concat!("../../lua/", $name, ".lua")))),
        };)*
        /// Every script.
        pub static ALL: &[&Script] = &[$(&$ident),*];
    };
}

scripts! {
    /// Stores new tasks of one queue.
    ENQUEUE = "enqueue", keys "channel ready scheduled (task result idempotency)*",
        args "queue idempotency_ttl (id data score run_after idempotent trace)*";
    /// Leases READY tasks.
    ACQUIRE = "acquire", keys "worker (ready running quarantine)*",
        args "worker token request count start_now sequence lease_ttl byte_budget task_prefix";
    /// Stores results.
    ACKNOWLEDGE = "acknowledge", keys "channel worker (running successful failed)* (task result)*",
        args "mark result_ttl queues (queue)* (queue_number id token outcome result)*";
    /// Sends a failed task to its next attempt.
    RETRY = "retry", keys "channel task running scheduled ready", args "queue id token data score delay";
    /// Returns leases that have not started.
    GIVE_BACK = "give_back", keys "wake running ready (task)*", args "queue (id token score)*";
    /// Runs finished tasks again.
    REQUEUE = "requeue", keys "channel history ready scheduled running",
        args "queue due task_prefix result_prefix (id seen data score)*";
    /// Removes tasks.
    DROP = "drop", keys "ready scheduled running successful failed quarantine",
        args "expected task_prefix result_prefix (id seen)*";
    /// Puts waiting tasks into another queue.
    MOVE = "move", keys "wake source target running target_running", args "queue wakes task_prefix (id seen old new)*";
    /// Changes when SCHEDULED tasks run.
    RESCHEDULE = "reschedule", keys "wake scheduled ready running", args "queue due task_prefix (id seen)*";
    /// Reads records of known ids.
    FETCH = "fetch", keys "segment", args "kind prefix byte_budget (id)*";
    /// Removes a slice of a segment.
    PURGE = "purge", keys "segment (elsewhere)*", args "kind limit max_score task_prefix result_prefix";
    /// Moves what is due.
    MOVER = "mover", keys "wake (scheduled ready running quarantine)*", args "limit task_prefix (queue)*";
    /// Claims leases that are over.
    REAP = "reap", keys "(running quarantine)*", args "limit token claim_ttl task_prefix result_prefix";
    /// Settles the leases of a silent worker.
    TAKE_OVER = "take_over", keys "workers worker running ready wake",
        args "worker queue silence token claim_ttl score id limit task_prefix";
    /// Says that a worker is alive.
    HEARTBEAT = "heartbeat", keys "workers worker", args "worker mode ttl mark (field value)*";
    /// Names the workers that are silent.
    WATCH = "watch", keys "workers watch", args "silence gap";
    /// Sets a leased task aside that cannot be read.
    QUARANTINE = "quarantine", keys "task running quarantine", args "id token";
    /// Takes the TTL off listed records.
    PERSIST = "persist", keys "segment", args "score id limit task_prefix";
    /// Looks for ids that break the rules.
    INSPECT = "inspect", keys "ready scheduled running successful failed quarantine",
        args "segment score id limit task_prefix result_prefix";
    /// Brings one id back into one place.
    SETTLE = "settle", keys "task result ready scheduled running successful failed quarantine",
        args "id history finished";
    /// Reads the beginnings of records that nothing lists.
    RECORDS = "records", keys "(segment)*", args "prefix kind head (id)*";
    /// Gives records that nothing lists an end.
    EXPIRE = "expire", keys "(segment)*", args "task_prefix ttl (id)*";
    /// Lets one maintenance go on with the sweep.
    TURN = "turn", keys "sweep", args "interval";
    /// Reads a slice of a segment behind an entry.
    BROWSE = "browse", keys "segment", args "kind reverse score id limit head tail byte_budget prefix";
    /// Counts many segments in one call.
    COUNT = "count", keys "(segment)*", args "-";
    /// Tells since when the oldest READY task waits.
    OLDEST = "oldest", keys "ready", args "step limit";
    /// Reads a page of a segment.
    PEEK = "peek", keys "segment", args "kind first last reverse head tail prefix";
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after `-- WHAT:` in a header, up to the first line that is indented further or another heading.
    fn header(script: &Script, what: &str) -> String {
        let start = format!("-- {what}: ");
        let mut lines = script.source.lines().skip_while(|line| !line.starts_with(&start));
        let first = lines.next().unwrap_or_else(|| panic!("{}: no {what} in its header", script.name));
        first[start.len()..].trim().to_owned()
    }

    #[test]
    fn each_header_says_what_its_wrapper_sends() {
        for script in ALL {
            assert!(script.source.starts_with(&format!("-- {}: ", script.name)), "{}: first line", script.name);
            assert_eq!(header(script, "KEYS"), script.keys, "{}", script.name);
            assert_eq!(header(script, "ARGV"), script.args, "{}", script.name);
            assert!(script.source.contains("\n-- Answer: "), "{}: no answer in its header", script.name);
            assert!(script.source.contains("\n-- Safe: "), "{}: why is it safe?", script.name);
        }
    }

    #[test]
    fn every_file_is_a_script_and_every_include_is_in_place() {
        let mut files: Vec<_> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/lua"))
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| name.ends_with(".lua"))
            .collect();
        files.sort();
        let mut names: Vec<_> = ALL.iter().map(|script| format!("{}.lua", script.name)).collect();
        names.sort();
        assert_eq!(files, names);
        for script in ALL {
            assert!(!script.text().contains("--@include"), "{}", script.name);
        }
    }
}
