//! `inspector`: the queues in the terminal.

use crate::backend::Backend;
use crate::cli::config::Origin;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::time::parse_positive;
use crate::inspector::live::Live;
use crate::inspector::{self, InspectorError, Options, ThemeName};
use clap::Args;
use std::time::Duration;

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill inspector
  threadmill inspector --queue emails
  threadmill --read-only inspector --theme light";

/// Watch and repair the queues in the terminal
///
/// `?` shows the keys. With --read-only those that change anything are locked.
#[derive(Args, Debug)]
pub struct InspectorArgs {
    /// Select this queue at first
    #[arg(long, short, value_name = "QUEUE")]
    pub queue: Option<String>,
    #[command(flatten)]
    pub looks: Looks,
    /// Ask for what is on the screen this often [default: 1s]
    #[arg(long, value_name = "DURATION", value_parser = parse_positive)]
    pub refresh: Option<Duration>,
}

/// How the screen looks.
#[derive(Args, Debug)]
pub struct Looks {
    /// Colours: dark, light, or ansi for the terminal's own [default: dark]
    #[arg(long, value_name = "THEME")]
    pub theme: Option<ThemeName>,
    /// Draw with nothing but ASCII
    #[arg(long)]
    pub ascii: bool,
    /// Take the mouse for scrolling and selecting
    #[arg(long)]
    pub mouse: bool,
}

/// Runs the verb.
pub async fn run(cx: &mut Context, args: &InspectorArgs) -> Result<Exit, CliError> {
    let mut options = options(cx, cx.backend(), &args.looks);
    options.queue.clone_from(&args.queue);
    options.refresh = args.refresh.unwrap_or(options.refresh);
    show(cx.backend().clone(), options).await
}

/// Shows the inspector until it is quit. A server that is away is shown as that, and waited for.
pub async fn show(backend: Backend, options: Options) -> Result<Exit, CliError> {
    match inspector::run(Live::new(backend, options.read_only), options).await {
        Ok(()) => Ok(Exit::Done),
        Err(error @ InspectorError::NotATerminal) => Err(CliError::caused(Exit::Usage, &error)
            .hint("`threadmill queues` and `threadmill tasks` print what there is")),
        Err(error) => Err(CliError::caused(Exit::Partial, &error)),
    }
}

/// The options that the flags and the settings of this run come to.
pub fn options(cx: &Context, backend: &Backend, looks: &Looks) -> Options {
    let file = &cx.config.inspector;
    let by_itself = Options::default();
    Options {
        alias: backend.alias().to_owned(),
        endpoint: backend.endpoint().to_owned(),
        read_only: cx.is_read_only(),
        theme: looks.theme.or(file.theme.map(|theme| theme.0)).unwrap_or(by_itself.theme),
        color: cx.out.is_coloured(),
        ascii: looks.ascii || file.ascii.unwrap_or(false) || cx.out.is_ascii(),
        mouse: looks.mouse || file.mouse.unwrap_or(false),
        shell: shell(cx, backend),
        refresh: file.refresh.map_or(by_itself.refresh, |refresh| refresh.0),
        unfocused: file.unfocused.map_or(by_itself.unfocused, |unfocused| unfocused.0),
        records_per_second: file.records_per_second.unwrap_or(by_itself.records_per_second),
        bytes_per_second: file.bytes_per_second.unwrap_or(by_itself.bytes_per_second),
        ..by_itself
    }
}

/// How a command for this backend begins: with what this one was given by flags, and never with a password.
fn shell(cx: &Context, backend: &Backend) -> String {
    let mut shell = cx.name.clone();
    let endpoint = backend.endpoint();
    if cx.config.redis_url.origin == Origin::Flag("--redis-url") && !endpoint.contains("***") {
        shell.push_str(&format!(" --redis-url '{endpoint}'"));
    }
    if backend.alias() != "default" {
        shell.push_str(&format!(" --backend '{}'", backend.alias()));
    }
    shell
}
