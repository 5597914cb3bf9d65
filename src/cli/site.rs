//! A Django site around the command: its settings say where Redis is, and its tasks can be run.

use crate::backend::{Backend, RedisUrl};
use crate::cli::args::GlobalArgs;
use crate::cli::config::Origin;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::output::warn;
use crate::worker::python::{PythonOptions, has_site, site_settings};
use std::time::Duration;

/// Takes the connection, the queues and the lifetimes from the site's settings, where nothing stronger named a Redis.
/// Answers how the site's tasks are run, where there is a site.
///
/// # Errors
/// Python's own traceback, where settings were named and cannot be loaded; where only a `manage.py` is there, a reader
/// goes on without it.
pub async fn join(cx: &mut Context, flags: &GlobalArgs, is_worker: bool) -> Result<Option<PythonOptions>, CliError> {
    let folder = std::env::current_dir().unwrap_or_default();
    let named = flags.settings.as_deref();
    let weak = matches!(cx.config.redis_url.origin, Origin::Default | Origin::Env("REDIS_URL"));
    if !has_site(named, &folder) || !(weak || is_worker) {
        return Ok(None);
    }
    let options =
        PythonOptions { python: flags.python.clone(), settings: flags.settings.clone(), ..PythonOptions::new(folder) };
    if !weak {
        return Ok(Some(options));
    }
    let hello = match site_settings(&options).await {
        Ok(hello) => hello,
        Err(error) if is_worker || named.is_some() => return Err(CliError::caused(Exit::Usage, &error)),
        Err(_) => {
            warn(
                "the Django site beside manage.py cannot be loaded; its settings are left out (threadmill worker says why)",
            );
            return Ok(None);
        }
    };
    let alias = cx.config.backend.value.clone();
    let Some(entry) = hello.aliases.get(&alias) else {
        let known = hello.aliases.keys().cloned().collect::<Vec<_>>().join(", ");
        return Err(CliError::usage(format!("the site's TASKS has no backend `{alias}`; it has: {known}")));
    };
    let Some(url) = &entry.redis_url else {
        return Err(CliError::usage(format!("the backend `{alias}` of the site's TASKS has no REDIS_URL")));
    };
    let url = RedisUrl::parse(url)?;
    let config = &mut cx.config;
    config.redis_url.value = url;
    config.redis_url.origin = Origin::Site;
    if config.queues.origin == Origin::Default {
        config.queues.value.clone_from(&entry.queues);
        config.queues.origin = Origin::Site;
    }
    let seconds = |name: &str| {
        let value = entry.options.get(name).and_then(serde_json::Value::as_f64);
        value.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    for (setting, name) in [(&mut config.lease_ttl, "lease_ttl"), (&mut config.result_ttl, "result_ttl")] {
        if let Some(value) = seconds(name).filter(|_| setting.origin == Origin::Default) {
            setting.value = value;
            setting.origin = Origin::Site;
        }
    }
    let backend = Backend::new(cx.config.settings())?;
    cx.use_backend(backend);
    Ok(Some(options))
}
