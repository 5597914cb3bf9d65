//! What a Rust program says: its tasks, how they are enqueued, and the handlers that run them.
//!
//! A [`Task`] is one value that names a function, its argument and its output types; the same value enqueues and
//! registers. Plain functions, async or blocking, become handlers; a [`Registry`] holds them. Absent on purpose: who
//! takes tasks from Redis and when (that is the `worker` room), command lines, screens. May use `task`, `backend`,
//! serde, tokio and tracing.

mod arguments;
mod backtrace;
mod context;
mod enqueue;
mod error;
mod handler;
mod json;
mod panics;
mod policy;
mod registry;
mod task;

pub(crate) use context::Circumstances;
pub use context::{Extract, State, States, TaskContext};
pub use enqueue::{Handle, WaitError};
pub use error::{IntoTaskError, TaskError};
pub use handler::{BlockingHandler, Handler};
pub use policy::{Decision, Failure, RetryPolicy, decide};
pub use registry::{Ended, Entry, Input, Kind, Registry};
pub use task::{Backoff, Call, Task};
