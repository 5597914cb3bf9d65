//! `config`: each setting and where it comes from. Nothing is asked of Redis.

use crate::cli::args::JsonOnly;
use crate::cli::config::{Config, FILE_NAME, Origin, Setting};
use crate::cli::error::{CliError, Exit};
use crate::cli::output::json::Versioned;
use crate::cli::output::{Out, Paint, Table, talk};
use crate::cli::time;
use crate::task::visible;
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

/// Examples of the help, which a test runs.
pub const EXAMPLES: &str = "\
Examples:
  threadmill config
  threadmill config --json | jq -r '.settings[] | select(.name == \"redis_url\").value'";

/// Show each setting and where it comes from
///
/// Passwords are masked. Nothing is asked of Redis.
#[derive(Args, Debug)]
pub struct ConfigArgs {
    #[command(flatten)]
    pub format: JsonOnly,
}

#[derive(Serialize)]
struct Document {
    settings: Vec<Row>,
    files: Vec<String>,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    value: Value,
    from: String,
}

/// Runs the verb.
pub fn run(config: &Config, out: &mut Out, args: &ConfigArgs) -> Result<Exit, CliError> {
    let rows = rows(config);
    if args.format.json {
        let files = config.files.iter().map(|path| path.display().to_string()).collect();
        out.json(&Versioned::new(Document { settings: rows, files }))?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&["SETTING", "VALUE", "FROM"]).whole(0).whole(1);
    for row in rows {
        let paint = if row.from == Origin::Default.to_string() { Paint::Faint } else { Paint::Plain };
        let value = match row.value {
            Value::String(text) => visible(&text).into_owned(),
            Value::Array(names) if names.is_empty() => out.nothing().to_owned(),
            Value::Array(names) => {
                visible(&names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")).into_owned()
            }
            other => other.to_string(),
        };
        let cells = [row.name.to_owned(), value, visible(&row.from).into_owned()];
        table.row(cells.into_iter().map(|text| (text, paint)));
    }
    out.table(table)?;
    out.flush()?;
    if config.files.is_empty() {
        talk(&format!("no {FILE_NAME} was found here, above, or in the user's config folder"));
    }
    Ok(Exit::Done)
}

fn rows(config: &Config) -> Vec<Row> {
    fn row<T>(name: &'static str, setting: &Setting<T>, value: impl Into<Value>) -> Row {
        Row { name, value: value.into(), from: setting.origin.to_string() }
    }
    let mut rows = vec![
        row("redis_url", &config.redis_url, config.redis_url.value.endpoint()),
        row("backend", &config.backend, config.backend.value.as_str()),
        row("queues", &config.queues, json!(config.queues.value)),
        row("timeout", &config.timeout, time::brief(config.timeout.value)),
        row("lease_ttl", &config.lease_ttl, time::brief(config.lease_ttl.value)),
        row("result_ttl", &config.result_ttl, time::brief(config.result_ttl.value)),
        row("read_only", &config.read_only, config.read_only.value),
        row("color", &config.color, config.color.value.word()),
    ];
    rows.extend(config.worker.said().into_iter().map(|(name, value, from)| Row { name, value, from }));
    rows
}
