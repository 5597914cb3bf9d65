//! `completions`: what a shell needs to complete this command line.

use crate::cli::args;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::Out;
use clap::Args;
use clap_complete::Shell;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill completions bash > ~/.local/share/bash-completion/completions/threadmill
  threadmill completions zsh > ~/.zfunc/_threadmill
  threadmill completions fish > ~/.config/fish/completions/threadmill.fish";

/// Print the completions for a shell
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Runs the verb. `name` is what the binary is called.
pub fn run(out: &mut Out, name: &str, args: &CompletionsArgs) -> Result<Exit, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), name, &mut script);
    out.bytes(&script)?;
    Ok(Exit::Done)
}
