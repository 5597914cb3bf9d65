//! The command line: global flags, the verbs, and how their help is laid out.

use crate::cli::time::parse_positive;
use crate::cli::verbs;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Command, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use serde::Deserialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// A durable task queue on Redis: look at it, repair it, run it
#[derive(Debug, Parser)]
#[command(name = "threadmill", version, arg_required_else_help = true, styles = STYLES)]
#[command(max_term_width = 100, infer_subcommands = false, disable_help_subcommand = true)]
#[command(after_help = AFTER)]
pub struct Cli {
    /// What holds for every verb.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const AFTER: &str = "\
Settings come from flags, THREADMILL_* variables, threadmill.toml (here or above, then the user's
config folder) and REDIS_URL, in this order; `threadmill config` shows them all.
Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 done in part or failed, 2 usage,
3 not found, 4 refused, 5 Redis unreachable or unusable.";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// What holds for every verb.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct GlobalArgs {
    /// Where Redis is: redis://, rediss:// or unix:// [env: THREADMILL_REDIS_URL]
    ///
    /// A URL as redis-py takes it, with its query options, such as rediss://user:password@host:6380/0. A password on
    /// the command line can be seen by every user of the machine: prefer the variable or a file.
    #[arg(long, value_name = "URL", global = true)]
    pub redis_url: Option<String>,
    /// The alias of the backend [env: THREADMILL_BACKEND] [default: default]
    #[arg(short, long, value_name = "ALIAS", global = true)]
    pub backend: Option<String>,
    /// Read this file instead of threadmill.toml [env: THREADMILL_CONFIG]
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Take connection and queues from these Django settings [env: DJANGO_SETTINGS_MODULE]
    ///
    /// Without it, a manage.py in the working folder names them. A flag, a THREADMILL_* variable or a file is stronger.
    #[arg(long, value_name = "MODULE", global = true)]
    pub settings: Option<String>,
    /// Load the Django site with this interpreter [default: VIRTUAL_ENV, .venv, python3]
    #[arg(long, value_name = "FILE", global = true, value_hint = ValueHint::ExecutablePath)]
    pub python: Option<PathBuf>,
    /// Refuse everything that would change something [env: THREADMILL_READ_ONLY]
    #[arg(long, global = true)]
    pub read_only: bool,
    /// Wait this long for each answer of Redis [env: THREADMILL_TIMEOUT] [default: 5s]
    #[arg(long, value_name = "DURATION", global = true, value_parser = parse_positive)]
    pub timeout: Option<Duration>,
    /// Colour the output [env: THREADMILL_COLOR, NO_COLOR] [default: auto]
    #[arg(long, value_name = "WHEN", global = true, help_heading = "Output", hide_possible_values = false)]
    pub color: Option<ColorWhen>,
    /// Tell more on stderr; twice for everything
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Output")]
    pub verbose: u8,
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorWhen {
    /// At a terminal that can, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl ColorWhen {
    /// The word on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            ColorWhen::Auto => "auto",
            ColorWhen::Always => "always",
            ColorWhen::Never => "never",
        }
    }
}

/// What to do. What a verb's help says stands at its arguments.
#[derive(Debug, Subcommand)]
pub enum Verb {
    #[command(after_help = verbs::queues::EXAMPLES)]
    Queues(verbs::queues::QueuesArgs),
    #[command(after_help = verbs::tasks::EXAMPLES)]
    Tasks(verbs::tasks::TasksArgs),
    #[command(after_help = verbs::show::EXAMPLES)]
    Show(verbs::show::ShowArgs),
    #[command(after_help = verbs::workers::EXAMPLES)]
    Workers(verbs::workers::WorkersArgs),
    #[command(after_help = verbs::watch::EXAMPLES)]
    Watch(verbs::watch::WatchArgs),
    #[command(after_help = verbs::inspector::EXAMPLES)]
    Inspector(verbs::inspector::InspectorArgs),
    #[command(after_help = verbs::enqueue::EXAMPLES)]
    Enqueue(verbs::enqueue::EnqueueArgs),
    #[command(after_help = verbs::requeue::EXAMPLES)]
    Requeue(verbs::requeue::RequeueArgs),
    #[command(after_help = verbs::drop::EXAMPLES)]
    Drop(verbs::drop::DropArgs),
    #[command(after_help = verbs::purge::EXAMPLES)]
    Purge(verbs::purge::PurgeArgs),
    #[command(after_help = verbs::r#move::EXAMPLES)]
    Move(verbs::r#move::MoveArgs),
    #[command(after_help = verbs::promote::EXAMPLES)]
    Promote(verbs::promote::PromoteArgs),
    #[command(after_help = verbs::postpone::EXAMPLES)]
    Postpone(verbs::postpone::PostponeArgs),
    #[command(after_help = verbs::doctor::EXAMPLES)]
    Doctor(verbs::doctor::DoctorArgs),
    #[command(after_help = verbs::worker::EXAMPLES)]
    Worker(verbs::worker::WorkerArgs),
    #[command(after_help = verbs::demo::EXAMPLES)]
    Demo(verbs::demo::DemoArgs),
    #[command(after_help = verbs::config::EXAMPLES)]
    Config(verbs::config::ConfigArgs),
    #[command(after_help = verbs::completions::EXAMPLES)]
    Completions(verbs::completions::CompletionsArgs),
    #[command(after_help = verbs::man::EXAMPLES)]
    Man(verbs::man::ManArgs),
}

/// How the verbs are grouped in the help.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Look", &["queues", "tasks", "show", "workers", "watch", "inspector"]),
    ("Act", &["enqueue", "requeue", "drop", "purge", "move", "promote", "postpone", "doctor"]),
    ("Run", &["worker", "demo"]),
    ("Set up", &["config", "completions", "man"]),
];

/// The command line, as completions and manual pages describe it.
pub fn command() -> Command {
    Cli::command()
}

/// The command line, as it is parsed: its own help lists the verbs by what they are for, which clap cannot do itself.
pub fn grouped(name: &str) -> Command {
    let command = command();
    let mut groups = String::new();
    let (green, cyan) = (STYLES.get_header(), STYLES.get_literal());
    for (heading, verbs) in GROUPS {
        // Writing to a string cannot fail.
        let _ = writeln!(groups, "{green}{heading}:{green:#}");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about).cloned().unwrap_or_default();
            let _ = writeln!(groups, "  {cyan}{verb:<12}{cyan:#} {about}");
        }
        groups.push('\n');
    }
    let template = format!("{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{{all-args}}{{after-help}}");
    let usage = format!("{name} [OPTIONS] <VERB>");
    command.mut_subcommands(|verb| verb.hide(true)).override_usage(usage).help_template(template)
}

/// How lists are printed for programs.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct Format {
    /// Print one JSON document, as docs/json.md describes it
    #[arg(long)]
    pub json: bool,
    /// Print one JSON object a line
    #[arg(long, conflicts_with = "json")]
    pub jsonl: bool,
}

/// How a single answer is printed for programs.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct JsonOnly {
    /// Print one JSON document, as docs/json.md describes it
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
        grouped("threadmill").debug_assert();
    }

    #[test]
    fn each_verb_is_in_one_group_and_has_examples() {
        let command = command();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        let mut verbs: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        grouped.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(grouped, verbs);
        for verb in command.get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("Examples:\n  threadmill "), "{}: {help}", verb.get_name());
        }
    }
}
