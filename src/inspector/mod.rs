//! The inspector.
pub mod source;
