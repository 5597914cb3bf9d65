//! What can go wrong between this program and Redis.

use redis::{ErrorKind, RedisError};

/// Why a request to the backend failed.
///
/// None of the texts holds a password. [`BackendError::hint`] says what a person can do.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The Redis URL or another setting cannot be used.
    #[error("{0}")]
    Settings(String),
    /// No connection could be made.
    #[error("cannot connect to Redis at {endpoint}")]
    Connect {
        /// Where, without the password.
        endpoint: String,
        /// What the attempt ended with.
        #[source]
        source: RedisError,
    },
    /// The connection was lost, or no answer came in time, while a request was under way: it may have been carried out.
    #[error("no answer from Redis at {endpoint}; the request may have been carried out")]
    Lost {
        /// Where, without the password.
        endpoint: String,
        /// What the connection ended with.
        #[source]
        source: RedisError,
    },
    /// The server answered that it will not.
    #[error("Redis refused: {message}")]
    Refused {
        /// The code that the answer begins with, such as `OOM`, `NOPERM` or `WRONGTYPE`.
        code: String,
        /// The answer.
        message: String,
    },
    /// The server's answer is not what the script or command promises.
    #[error("Redis answered something unexpected to {what}")]
    Unexpected {
        /// Which request.
        what: &'static str,
    },
    /// The task cannot be stored: it would break a reader, or is too large.
    #[error("{0}")]
    Invalid(String),
    /// Some of the tasks of an enqueue are stored: the first ones, in their order. Those of the call that failed are not,
    /// or it is not known; those after it are not.
    #[error("{stored} of {of} tasks are stored; then: {source}")]
    Partly {
        /// How many of the first tasks are stored.
        stored: usize,
        /// How many there were.
        of: usize,
        /// What happened to the next ones.
        #[source]
        source: Box<BackendError>,
    },
    /// The tasks are stored, and were not confirmed in time to be as safe as was asked for: a failover or a crash may
    /// take them.
    #[error(
        "the tasks are stored, but only {disks} of {want_disks} disks and {replicas} of {want_replicas} replicas confirmed them in time"
    )]
    NotDurable {
        /// Whether the server's own disk has them: 0 or 1.
        disks: u64,
        /// How many disks were asked for.
        want_disks: u64,
        /// How many replicas have them.
        replicas: u64,
        /// How many were asked for.
        want_replicas: u64,
    },
}

impl BackendError {
    /// Whether the request may have been carried out although no answer came.
    pub fn is_uncertain(&self) -> bool {
        match self {
            BackendError::Lost { .. } | BackendError::NotDurable { .. } => true,
            BackendError::Partly { source, .. } => source.is_uncertain(),
            _ => false,
        }
    }

    /// Whether the same request may well succeed later, without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            BackendError::Connect { source, .. } => source.kind() != ErrorKind::AuthenticationFailed,
            BackendError::Lost { .. } => true,
            BackendError::Refused { code, .. } => is_passing_code(code),
            BackendError::NotDurable { .. } => true,
            BackendError::Partly { source, .. } => source.is_passing(),
            _ => false,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BackendError::Settings(_) | BackendError::Invalid(_) | BackendError::Unexpected { .. } => None,
            BackendError::Partly { source, .. } => source.hint(),
            BackendError::NotDurable { .. } => {
                Some("send the same tasks again: what is stored stays stored once, and is waited for again")
            }
            BackendError::Connect { source, .. } if source.kind() == ErrorKind::AuthenticationFailed => {
                Some("check the user name and the password of the URL")
            }
            BackendError::Connect { .. } => {
                Some("is the server running there? give its URL with --redis-url or THREADMILL_REDIS_URL")
            }
            BackendError::Lost { .. } => Some("look at the task before you repeat it; the same line can be sent again"),
            BackendError::Refused { code, .. } => match code.as_str() {
                "OOM" => Some("the server's memory is full: raise maxmemory, or purge finished tasks"),
                "NOPERM" => Some(
                    "the ACL of this user lacks a permission: docs/acl.md lists what each role needs; ACL LOG names what was refused",
                ),
                "WRONGTYPE" => Some("a key of this queue holds another type: something else writes under this name"),
                "READONLY" => Some("this is a replica: connect to its master"),
                "LOADING" => Some("the server is still reading its data: wait for it"),
                "BUSY" => Some("a script is blocking the server: wait, or end it with SCRIPT KILL"),
                "MISCONF" => Some("the server cannot write to its disk: look at its log"),
                "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" => Some(
                    "the server is a node of a Redis Cluster: begin the URL with redis+cluster://; where it does, the cluster \
                     is being changed or lacks a node: wait for it",
                ),
                "NOREPLICAS" => Some("the server wants more replicas before it writes (min-replicas-to-write)"),
                "NOAUTH" => Some("the server wants a password: put it into the URL, redis://:password@host"),
                _ => None,
            },
        }
    }

    /// Sorts an error of an established connection.
    pub(crate) fn sort(source: RedisError, endpoint: &str) -> Self {
        if let Some(code) = server_code(&source) {
            let detail = source.detail().unwrap_or_default();
            let message = if detail.starts_with(&code) { detail.to_owned() } else { format!("{code} {detail}") };
            return BackendError::Refused { code, message: message.trim().to_owned() };
        }
        match source.kind() {
            ErrorKind::UnexpectedReturnType | ErrorKind::Parse | ErrorKind::Client => {
                BackendError::Unexpected { what: "a request" }
            }
            _ => BackendError::Lost { endpoint: endpoint.to_owned(), source },
        }
    }
}

/// Whether a refusal of this code passes without anybody changing anything, or when somebody has freed memory or disk.
pub(crate) fn is_passing_code(code: &str) -> bool {
    matches!(
        code,
        "LOADING"
            | "READONLY"
            | "BUSY"
            | "OOM"
            | "MISCONF"
            | "TRYAGAIN"
            | "CLUSTERDOWN"
            | "MASTERDOWN"
            | "NOREPLICAS"
            | "NOSCRIPT"
            | "UNBLOCKED"
            | "MOVED"
            | "ASK"
    )
}

/// The code of an error that the server itself answered.
pub(crate) fn server_code(error: &RedisError) -> Option<String> {
    let code = match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => error.code()?,
        _ => return None,
    };
    let says = |text: &str| error.detail().is_some_and(|detail| detail.contains(text));
    Some(match code {
        // A script met a key that is on its way to another node; it says so without a code, with a capital in Valkey 9, and
        // since Redis 8 in other words where it asked for several keys at once.
        "ERR" if says("ttempted to access a non local key") || says("during rehashing of the slot") => {
            "TRYAGAIN".to_owned()
        }
        "ERR" if says("while the cluster is down") => "CLUSTERDOWN".to_owned(),
        // A long command of somebody who has not logged in is not even read.
        "ERR" if says("Protocol error: unauthenticated") => "NOAUTH".to_owned(),
        // A script that may not do what it does.
        "ERR" if says("The user executing the script can't") || says("ACL failure in script") => "NOPERM".to_owned(),
        code => code.to_owned(),
    })
}
