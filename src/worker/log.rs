//! The worker's log: one JSON object a line, with the field names of the Python package's worker.

use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt as subscriber};

/// Sends the program's log as JSON lines to `writer`, from the level or filter that `filter` names, such as `info`.
///
/// # Errors
/// Where the filter cannot be read, or the program has a log already.
pub fn init_json<W>(writer: W, filter: &str) -> Result<(), Box<dyn std::error::Error + Send + Sync>>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = subscriber::layer().event_format(Json).with_writer(writer);
    tracing_subscriber::registry().with(EnvFilter::try_new(filter)?).with(layer).try_init()?;
    Ok(())
}

/// One JSON object an event.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut line = Line(serde_json::Map::new());
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        line.put("created_at", now);
        line.put("level", level(event.metadata().level()));
        line.put("logger", event.metadata().target());
        // Its place is before the fields; the event fills it in.
        line.put("message", "");
        line.put("process", std::process::id());
        line.put("process_name", "threadmill");
        line.put("thread", std::thread::current().name().unwrap_or_default());
        event.record(&mut line);
        let text = serde_json::to_string(&line.0).map_err(|_| fmt::Error)?;
        writeln!(writer, "{text}")
    }
}

/// The level as Python names it.
fn level(level: &tracing::Level) -> &'static str {
    match *level {
        tracing::Level::ERROR => "ERROR",
        tracing::Level::WARN => "WARNING",
        tracing::Level::INFO => "INFO",
        tracing::Level::DEBUG | tracing::Level::TRACE => "DEBUG",
    }
}

struct Line(serde_json::Map<String, serde_json::Value>);

impl Line {
    fn put(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.0.insert(name.to_owned(), value.into());
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field.name(), value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field.name(), value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field.name(), format!("{value:?}"));
    }
}
