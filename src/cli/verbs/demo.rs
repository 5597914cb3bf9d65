//! `demo`: all of it at work, on a private Redis.

use crate::cli::error::{CliError, Exit};
use clap::Args;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill demo
  threadmill demo --headless";

/// Show it all at work on a private Redis
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Run for ten seconds without a screen and print what there is then
    #[arg(long)]
    pub headless: bool,
}

/// Runs the verb.
pub async fn run(_args: &DemoArgs) -> Result<Exit, CliError> {
    Err(CliError::new(Exit::Partial, "the demo is not part of this build"))
}
