//! The inspector.
pub mod live;
pub mod source;
