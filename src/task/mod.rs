//! What a task is: pure values, no I/O.
//!
//! Everything here can be made and compared without a server. Absent on purpose: tokio, redis, any other room, and
//! any knowledge of how Redis stores a task (that is the `backend` room's codec).

mod duration;
mod error;
mod id;
mod new;
mod raw;
mod record;
mod retry;
mod score;
mod segment;
mod stamp;
mod text;

pub use duration::parse_duration;
pub use error::{BUILTIN_PREFIX, ErrorRecord, LEASE_LOST_CLASS, LEASE_LOST_TEXT, is_subclass};
pub use id::TaskId;
pub use new::NewTask;
pub use raw::RawJson;
pub use record::{Lease, Priority, TaskRecord, TaskSpec};
pub use retry::{ExponentialBackoff, Retry, Verdict};
pub use score::{PRIORITY_STEP, Score, ready_score};
pub use segment::{Segment, Status};
pub use stamp::Stamp;
pub use text::visible;
