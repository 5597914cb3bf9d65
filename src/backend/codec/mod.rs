//! The stored JSON: read leniently, written as Python writes it, user data carried byte for byte.

mod decode;
mod encode;
mod excerpt;
mod heading;
mod scan;
mod text;

pub use decode::{DecodeError, decode, decode_retry};
pub use encode::{Attempt, encode, encode_backoff, encode_error, failure, next_attempt, queued, requeued, success};
pub(crate) use excerpt::{excerpt, summary_of};
pub(crate) use heading::{HEADING, Heading, heading};
pub(crate) use scan::list_items;
pub use scan::{JsonError, check_json, looks_like_a_task, object_fields};
pub use text::{decode_string, encode_string};
