//! `worker`: tasks, run.

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill worker
  threadmill worker --queues emails,default";

/// Run tasks
#[derive(Args, Debug)]
pub struct WorkerArgs {
    /// Serve these queues, in rotation
    #[arg(long, short, value_name = "QUEUES", value_delimiter = ',')]
    pub queues: Vec<String>,
}

/// Runs the verb.
pub async fn run(_cx: &mut Context, _args: &WorkerArgs) -> Result<Exit, CliError> {
    Err(CliError::new(Exit::Partial, "the worker is not part of this build"))
}
