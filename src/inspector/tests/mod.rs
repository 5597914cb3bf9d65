//! The inspector without a terminal and without a server.

mod acting;
mod fake;
mod finding;
mod hostile;
mod keys;
mod looped;
mod random;
mod screens;
mod stage;
