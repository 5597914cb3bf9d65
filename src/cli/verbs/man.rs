//! `man`: the manual pages.

use crate::cli::args;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::{Out, count, talk};
use clap::{Args, Command, ValueHint};
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill man | man -l -
  threadmill man purge | man -l -
  threadmill man --dir ~/.local/share/man/man1";

/// Print a manual page, or write them all
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The page of this verb
    #[arg(value_name = "VERB")]
    pub verb: Option<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "verb", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// Runs the verb. `name` is what the binary is called.
pub fn run(out: &mut Out, name: &str, args: &ManArgs) -> Result<Exit, CliError> {
    let mut command = args::command().name(name.to_owned()).bin_name(name);
    // Gives each verb the flags that hold for all of them.
    command.build();
    if let Some(dir) = &args.dir {
        return write_all(&command, name, dir);
    }
    let page = match &args.verb {
        None => page(name, command)?,
        Some(verb) => match command.find_subcommand(verb) {
            Some(found) => page(&format!("{name}-{verb}"), found.clone())?,
            None => return Err(CliError::not_found(format!("there is no verb `{verb}`"))),
        },
    };
    out.bytes(&page)?;
    Ok(Exit::Done)
}

fn write_all(command: &Command, name: &str, dir: &Path) -> Result<Exit, CliError> {
    let mut pages = vec![(name.to_owned(), command.clone())];
    pages.extend(command.get_subcommands().map(|verb| (format!("{name}-{}", verb.get_name()), verb.clone())));
    let failed = |e: std::io::Error| CliError::failed(format!("cannot write the pages to {}", dir.display()), &e);
    std::fs::create_dir_all(dir).map_err(failed)?;
    let number = pages.len() as u64;
    for (title, command) in pages {
        std::fs::write(dir.join(format!("{title}.1")), page(&title, command)?).map_err(failed)?;
    }
    talk(&format!("wrote {} to {}", count(number, "page", "pages"), dir.display()));
    Ok(Exit::Done)
}

fn page(title: &str, command: Command) -> Result<Vec<u8>, CliError> {
    let mut text = Vec::new();
    // The name decides the title and what other pages are called.
    Man::new(command.name(title.to_owned())).render(&mut text)?;
    Ok(text)
}
