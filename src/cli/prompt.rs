//! Questions to a person. In a script (stdin is no terminal) nobody is asked: naming the target is the confirmation.

use crate::cli::error::CliError;
use crate::cli::output::{Paint, painted};
use crate::task::visible;
use std::io::{BufRead, IsTerminal, Write};

/// Whether a person can be asked.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal()
}

/// Asks a question that is answered by yes or no; anything but yes is no.
///
/// # Errors
/// Where the answer cannot be read.
pub fn confirm(question: &str) -> Result<bool, CliError> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a name to be typed; answers whether it was.
///
/// # Errors
/// Where the answer cannot be read.
pub fn confirm_by_name(question: &str, name: &str) -> Result<bool, CliError> {
    // A name with characters that cannot be seen is typed as it is shown.
    let answer = ask(&format!("{question} "))?;
    Ok(answer == name || answer == visible(name))
}

fn ask(question: &str) -> Result<String, CliError> {
    let mut stderr = anstream::stderr();
    write!(stderr, "{}", painted(Paint::Warning, question))?;
    stderr.flush()?;
    let mut answer = String::new();
    if std::io::stdin().lock().read_line(&mut answer)? == 0 {
        // The terminal was closed: the line that the question stands on is ended for whoever comes next.
        writeln!(stderr)?;
    }
    Ok(answer.trim_end_matches(['\n', '\r']).to_owned())
}
