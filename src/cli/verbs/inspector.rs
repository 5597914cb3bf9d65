//! `inspector`: the queues in the terminal.

use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill inspector
  threadmill inspector --queue emails
  threadmill --read-only inspector";

/// Watch and repair the queues in the terminal
#[derive(Args, Debug)]
pub struct InspectorArgs {
    /// Select this queue at first
    #[arg(long, short, value_name = "QUEUE")]
    pub queue: Option<String>,
}

/// Runs the verb.
pub async fn run(_cx: &mut Context, _args: &InspectorArgs) -> Result<Exit, CliError> {
    Err(CliError::new(Exit::Partial, "the inspector is not part of this build"))
}
