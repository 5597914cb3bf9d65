//! The command line from the outside: output, JSON, exit codes, prompts.

mod act;
mod docs;
mod enqueue;
mod errors;
mod help;
mod hostile;
mod look;
mod purge;
mod run;
mod seed;
mod setup;
mod site;

use crate::common::{Home, TestRedis};
pub use seed::{ID, Task};

/// A server and a home that knows it.
fn shop() -> (TestRedis, Home) {
    let server = TestRedis::spawn();
    let home = Home::on(&server.url());
    (server, home)
}
