//! The inspector without a terminal and without a server.

mod fake;
mod hostile;
mod keys;
mod looped;
mod random;
mod screens;
mod stage;
