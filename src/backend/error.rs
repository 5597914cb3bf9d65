//! What can go wrong between this program and Redis.

use redis::{ErrorKind, RedisError, ServerErrorKind};

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
}

impl BackendError {
    /// Whether the request may have been carried out although no answer came.
    pub fn is_uncertain(&self) -> bool {
        matches!(self, BackendError::Lost { .. })
    }

    /// Whether the same request may well succeed later, without anybody changing anything.
    pub fn is_passing(&self) -> bool {
        match self {
            BackendError::Connect { source, .. } => source.kind() != ErrorKind::AuthenticationFailed,
            BackendError::Lost { .. } => true,
            BackendError::Refused { code, .. } => matches!(
                code.as_str(),
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
            ),
            _ => false,
        }
    }

    /// What a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            BackendError::Settings(_) | BackendError::Invalid(_) | BackendError::Unexpected { .. } => None,
            BackendError::Connect { source, .. } if source.kind() == ErrorKind::AuthenticationFailed => {
                Some("check the user name and the password of the URL")
            }
            BackendError::Connect { .. } => {
                Some("is the server running there? give its URL with --redis-url or THREADMILL_REDIS_URL")
            }
            BackendError::Lost { .. } => Some("look at the task before you repeat it; the same line can be sent again"),
            BackendError::Refused { code, .. } => match code.as_str() {
                "OOM" => Some("the server's memory is full: raise maxmemory, or purge finished tasks"),
                "NOPERM" => Some("the ACL of this user lacks a permission: grant the command or key that is named"),
                "WRONGTYPE" => Some("a key of this queue holds another type: something else writes under this name"),
                "READONLY" => Some("this is a replica: connect to its master"),
                "LOADING" => Some("the server is still reading its data: wait for it"),
                "BUSY" => Some("a script is blocking the server: wait, or end it with SCRIPT KILL"),
                "MISCONF" => Some("the server cannot write to its disk: look at its log"),
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

/// The code of an error that the server itself answered.
pub(crate) fn server_code(error: &RedisError) -> Option<String> {
    match error.kind() {
        ErrorKind::Server(_) | ErrorKind::Extension => error.code().map(str::to_owned),
        _ => None,
    }
}

/// Whether the server does not know the script that was asked for; nothing has run then.
pub(crate) fn is_noscript(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
