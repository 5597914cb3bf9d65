//! What was found, as values.

use std::collections::BTreeMap;

/// How bad a finding is. The worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing; nothing to be done.
    Note,
    /// Something is not as it should be.
    Warning,
    /// Tasks are lost, stuck or run twice, or may be at any moment.
    Error,
}

impl Severity {
    /// The name in lower case.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// What can be done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// A repair does it safely, in these words.
    Repair(&'static str),
    /// A person can, in these words.
    Advice(&'static str),
}

impl Remedy {
    /// The words.
    pub const fn text(self) -> &'static str {
        match self {
            Remedy::Repair(text) | Remedy::Advice(text) => text,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $severity:ident, $meaning:literal, $remedy:ident $how:literal;)*) => {
        /// The kinds of findings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingKind {
            $($(#[$doc])* $name,)*
        }

        impl FindingKind {
            /// Every kind.
            pub const ALL: &[FindingKind] = &[$(FindingKind::$name),*];

            /// The name, as programs read it.
            pub const fn code(self) -> &'static str {
                match self { $(FindingKind::$name => $code,)* }
            }

            /// How bad it is, unless a case is worse or better.
            pub const fn severity(self) -> Severity {
                match self { $(FindingKind::$name => Severity::$severity,)* }
            }

            /// What it means.
            pub const fn meaning(self) -> &'static str {
                match self { $(FindingKind::$name => $meaning,)* }
            }

            /// What can be done.
            pub const fn remedy(self) -> Remedy {
                match self { $(FindingKind::$name => Remedy::$remedy($how),)* }
            }
        }
    };
}

kinds! {
    /// An id in two segments.
    TwoSegments = "two-segments", Error,
        "an id is listed in two segments: the task can run twice",
        Repair "one entry stays: a lease before one that waits, READY before SCHEDULED";
    /// A finished task that waits as well.
    RequeuedCopy = "requeued-copy", Error,
        "a finished task has a record that waits as well: a late retry of the Python package put it back",
        Repair "a result that is there stands and the copy goes; without a result the task runs and its history entry goes";
    /// Listed, without a record.
    Ghost = "ghost", Error,
        "an id is listed and has no record: its record expired or was deleted, and the task is lost",
        Repair "the id is set aside in quarantine, where it is counted and shown";
    /// The record's key holds something else.
    BadRecord = "bad-record", Error,
        "an id is listed and the key of its record holds something else",
        Repair "the id is set aside in quarantine; the key stays as it is";
    /// A record that nothing lists.
    Orphan = "orphan", Warning,
        "a record is listed in no segment and has no end: a drop or purge of the Python package left it behind",
        Repair "it gets an end, and is gone after the time that the Python package gives records";
    /// A record that nothing lists and that will end.
    EndingOrphan = "ending-orphan", Note,
        "a record is listed in no segment and will end by itself",
        Advice "nothing to do: it ends by itself";
    /// An unreadable record that nothing lists.
    UnreadableOrphan = "unreadable-orphan", Warning,
        "a record is listed in no known segment, and cannot be read to see which queue it belongs to",
        Advice "look at it with `threadmill show --raw`, then drop it";
    /// A result that no history lists.
    ResultWithoutHistory = "result-without-history", Warning,
        "a result is in no history: it is found by its id only",
        Repair "it is listed again, at the time at which it finished";
    /// A history entry without its result.
    HistoryWithoutResult = "history-without-result", Warning,
        "a history lists an id whose result is gone: the count promises more than can be shown",
        Repair "the entry is removed";
    /// Something set aside.
    Quarantined = "quarantined", Warning,
        "tasks were set aside: they had no record or could not be read",
        Advice "look at them with `threadmill show`, then drop them or purge the quarantine";
    /// Due, and still SCHEDULED.
    DueNotMoved = "due-not-moved", Error,
        "SCHEDULED tasks are due and nobody moves them",
        Advice "start a worker for this queue: each does the moving";
    /// A lease that is over, and still RUNNING.
    LeaseOver = "lease-over", Error,
        "leases are over and nobody settles them",
        Advice "start a worker for this queue: each does the reaping";
    /// A lease of a worker of ours that is gone.
    HolderGone = "holder-gone", Error,
        "tasks are leased to a worker that is silent, dead or unknown",
        Advice "start a worker of ours for this queue: it takes them over within a heartbeat interval";
    /// A worker that does not beat.
    WorkerSilent = "worker-silent", Warning,
        "a worker has not been heard of for several heartbeats",
        Advice "look at its machine; what it holds is taken over by the others";
    /// A worker that was declared dead.
    WorkerDead = "worker-dead", Note,
        "a worker was declared dead; what it held was taken over",
        Advice "nothing to do: its record ends by itself";
    /// Tasks wait, and nobody works.
    NobodyWorks = "nobody-works", Note,
        "READY tasks wait, nothing of the queue runs, and no worker of ours serves it",
        Advice "start a worker for this queue, unless one of the Python package serves it";
    /// Records that wait and will expire.
    Expiring = "expiring", Warning,
        "records of tasks that wait have an end: the Python package gives them one, and such a task is lost then",
        Repair "the end is taken off";
    /// A function that only ours have, before workers that do not have it.
    NativeOnPython = "native-on-python", Error,
        "functions that only programs of ours have wait on a queue that a worker of the Python package serves",
        Advice "put them on a queue of their own: the Python package cannot import them, and its reader stops there";
    /// A key of another type.
    BrokenKey = "broken-key", Error,
        "a key of this queue holds another type: something else writes under its name",
        Advice "find out what writes there; nothing of this queue's segment works until the key is renamed or deleted";
    /// A queue's name that the Python package confuses.
    QueueName = "queue-name", Warning,
        "the Python package purges by pattern, and the name of this queue makes it take keys of others, or others its own",
        Advice "purge with `threadmill purge`, which touches what it names; or rename the queue";
    /// What happens to keys when memory is full.
    Eviction = "eviction", Error,
        "the server evicts keys when its memory is full: tasks and results vanish without a word",
        Advice "set maxmemory-policy to noeviction";
    /// What survives a restart.
    Persistence = "persistence", Warning,
        "the server does not write every change to disk: a crash loses what came since its last snapshot",
        Advice "turn the append-only file on (appendonly yes)";
    /// Writing to disk fails.
    DiskTrouble = "disk-trouble", Error,
        "the server's last attempt to write to its disk failed",
        Advice "look at the server's log and its disk";
    /// A version that is too old.
    Version = "version", Error,
        "the server is older than what this software needs",
        Advice "use Redis 7 or later, or Valkey";
    /// Memory is short.
    Memory = "memory", Warning,
        "the server's memory is nearly full: soon it refuses new tasks",
        Advice "raise maxmemory, or purge finished tasks";
    /// Clocks differ.
    Clock = "clock", Warning,
        "the clock of this machine and the server's differ: workers of the Python package lease by the one and reap by the other",
        Advice "let both follow a time server";
    /// This is a replica.
    Replica = "replica", Error,
        "this server is a replica: what is written here is refused or lost",
        Advice "connect to its master";
    /// Nobody could take over.
    NoReplica = "no-replica", Note,
        "the server has no replica",
        Advice "nothing to do, unless it must survive the loss of its machine";
    /// The server does not say.
    Unknown = "unknown", Note,
        "the server does not say how it is set up",
        Advice "let the user run INFO to have it checked";
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// How bad it is.
    pub severity: Severity,
    /// The queue, where it is one's.
    pub queue: Option<String>,
    /// How often.
    pub count: u64,
    /// How many of them were repaired.
    pub fixed: u64,
    /// Ids, names or values, a few of them; not yet safe for a terminal.
    pub examples: Vec<String>,
}

impl Finding {
    /// What it means.
    pub const fn meaning(&self) -> &'static str {
        self.kind.meaning()
    }

    /// What can be done.
    pub const fn remedy(&self) -> Remedy {
        self.kind.remedy()
    }

    /// How many are left.
    pub const fn left(&self) -> u64 {
        self.count.saturating_sub(self.fixed)
    }

    /// Whether a repair would do something.
    pub const fn is_repairable(&self) -> bool {
        matches!(self.kind.remedy(), Remedy::Repair(_)) && self.left() > 0
    }
}

/// Findings as they gather: counts, and a few examples of each.
pub(super) struct Tally {
    examples: usize,
    found: BTreeMap<(FindingKind, Option<String>), Finding>,
}

impl Tally {
    pub fn new(examples: usize) -> Self {
        Self { examples, found: BTreeMap::new() }
    }

    fn entry(&mut self, kind: FindingKind, queue: Option<&str>) -> &mut Finding {
        let queue = queue.map(str::to_owned);
        self.found.entry((kind, queue.clone())).or_insert_with(|| Finding {
            kind,
            severity: kind.severity(),
            queue,
            count: 0,
            fixed: 0,
            examples: Vec::new(),
        })
    }

    /// Counts one.
    pub fn add(&mut self, kind: FindingKind, queue: Option<&str>, example: impl Into<String>) {
        self.add_many(kind, queue, 1, [example.into()]);
    }

    /// Counts many.
    pub fn add_many(
        &mut self,
        kind: FindingKind,
        queue: Option<&str>,
        count: u64,
        examples: impl IntoIterator<Item = String>,
    ) {
        let limit = self.examples;
        let finding = self.entry(kind, queue);
        finding.count += count;
        let room = limit.saturating_sub(finding.examples.len());
        finding.examples.extend(examples.into_iter().take(room));
    }

    /// One that is worse or better than its kind usually is.
    pub fn add_as(&mut self, kind: FindingKind, severity: Severity, example: impl Into<String>) {
        self.add(kind, None, example);
        self.entry(kind, None).severity = severity;
    }

    /// Some of what was counted is repaired.
    pub fn fixed(&mut self, kind: FindingKind, queue: Option<&str>, count: u64) {
        self.entry(kind, queue).fixed += count;
    }

    /// The worst first.
    pub fn findings(self) -> Vec<Finding> {
        let mut findings: Vec<_> = self.found.into_values().filter(|finding| finding.count > 0).collect();
        findings.sort_by(|a, b| b.severity.cmp(&a.severity).then(a.kind.cmp(&b.kind)).then(a.queue.cmp(&b.queue)));
        findings
    }
}
