//! The only room that knows Redis.
mod view;

pub use view::*;
