//! Where each setting comes from. Strongest first: flags, `THREADMILL_*`, `threadmill.toml` (here or above, then the
//! user's config folder), a bare `REDIS_URL` (on a shared host it may be another program's), defaults.

mod file;
mod worker;

use crate::backend::{RedisUrl, Settings};
use crate::cli::args::{ColorWhen, GlobalArgs};
use crate::cli::error::CliError;
use crate::cli::time;
pub use file::InspectorPart;
pub use file::LogForm;
use file::{File, Part};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
pub use worker::{WorkerPart, WorkerSettings};

/// What is used where nobody says anything.
const DEFAULT_URL: &str = "redis://localhost:6379/0";
/// How long an answer is waited for where neither a setting nor the URL says it.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// Where a setting was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A flag of this call.
    Flag(&'static str),
    /// A variable of the environment.
    Env(&'static str),
    /// A file.
    File(PathBuf),
    /// An option of the Redis URL.
    Url,
    /// The settings of a Django site.
    Site,
    /// Nobody said anything.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Flag(name) | Origin::Env(name) => f.write_str(name),
            Origin::File(path) => write!(f, "{}", path.display()),
            Origin::Url => f.write_str("the Redis URL"),
            Origin::Site => f.write_str("the Django settings"),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A value and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it was found.
    pub origin: Origin,
}

/// Every setting of a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where Redis is. Its text may hold a password; [`RedisUrl::endpoint`] does not.
    pub redis_url: Setting<RedisUrl>,
    /// The alias of the backend.
    pub backend: Setting<String>,
    /// Queues that are known by name.
    pub queues: Setting<Vec<String>>,
    /// How long an answer of the server is waited for.
    pub timeout: Setting<Duration>,
    /// How long a worker may hold a task.
    pub lease_ttl: Setting<Duration>,
    /// How long results are kept.
    pub result_ttl: Setting<Duration>,
    /// Whether everything that changes something is refused.
    pub read_only: Setting<bool>,
    /// Whether output is coloured.
    pub color: Setting<ColorWhen>,
    /// What was said of the worker.
    pub worker: WorkerSettings,
    /// What the files say of the inspector.
    pub inspector: InspectorPart,
    /// The files that were read, the nearest first.
    pub files: Vec<PathBuf>,
}

/// The world that settings are read from; tests bring their own.
pub struct World<'a> {
    /// A variable of the environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The user's config folder, where there is one.
    pub user: Option<PathBuf>,
}

impl World<'static> {
    /// A world that says nothing: for what has a Redis of its own.
    pub fn silent() -> Self {
        World { env: &|_| None, folder: PathBuf::new(), user: None }
    }

    /// The process's own.
    pub fn real() -> Self {
        use etcetera::BaseStrategy;
        let user = etcetera::choose_base_strategy().ok().map(|base| base.config_dir().join("threadmill"));
        // A working folder that is gone has no file above it.
        let folder = std::env::current_dir().unwrap_or_default();
        World { env: &|name| std::env::var(name).ok(), folder, user }
    }
}

impl Config {
    /// Finds every setting.
    ///
    /// # Errors
    /// Says which setting of which place cannot be used.
    pub fn load(flags: &GlobalArgs, worker: &WorkerPart, world: &World<'_>) -> Result<Self, CliError> {
        let env = |name: &'static str| (world.env)(name).filter(|value| !value.trim().is_empty());
        let named = flags.config.clone().or_else(|| env("THREADMILL_CONFIG").map(PathBuf::from));
        let files = match named {
            Some(path) => vec![file::read(&path)?],
            None => file::find(&world.folder, world.user.as_deref())?,
        };
        let mut layers = Layers { env: &env, files: &files, alias: String::new() };
        let alias = |text: &str| Ok(text.to_owned());
        let backend = layers
            .pick(&flags.backend, "--backend", "THREADMILL_BACKEND", alias, |f, _| f.backend.clone())?
            .unwrap_or_else(|| default("default".to_owned()));
        layers.alias.clone_from(&backend.value);
        let redis_url = layers.redis_url(flags)?;
        let timeout = layers.duration(&flags.timeout, "--timeout", "THREADMILL_TIMEOUT", |part| part.timeout)?;
        let in_url = Settings::new(redis_url.value.clone()).timeout;
        let of_url =
            || Setting { value: in_url, origin: if in_url == DEFAULT_TIMEOUT { Origin::Default } else { Origin::Url } };
        let (lease, result) = Self::lifetimes(worker);
        let lease = layers.duration(&lease, "--lease-ttl", "THREADMILL_LEASE_TTL", |part| part.lease_ttl)?;
        let result = layers.duration(&result, "--result-ttl", "THREADMILL_RESULT_TTL", |part| part.result_ttl)?;
        let read_only = flags.read_only.then_some(true);
        Ok(Self {
            queues: layers
                .pick(&None, "", "THREADMILL_QUEUES", names, |f, part| {
                    part.and_then(|part| part.queues.clone()).or_else(|| f.part.queues.clone())
                })?
                .unwrap_or_else(|| default(Vec::new())),
            timeout: timeout.unwrap_or_else(of_url),
            lease_ttl: lease.unwrap_or_else(|| default(Duration::from_secs(3600))),
            result_ttl: result.unwrap_or_else(|| default(Duration::from_secs(24 * 3600))),
            read_only: layers
                .pick(&read_only, "--read-only", "THREADMILL_READ_ONLY", yes_or_no, |f, _| f.read_only)?
                .unwrap_or_else(|| default(false)),
            color: layers
                .pick(&flags.color, "--color", "THREADMILL_COLOR", color_when, |f, _| f.color)?
                .unwrap_or_else(|| default(ColorWhen::Auto)),
            backend,
            redis_url,
            worker: WorkerSettings::load(&layers, worker)?,
            inspector: files
                .iter()
                .fold(InspectorPart::default(), |nearer, (_, file)| nearer.or(file.inspector.clone())),
            files: files.into_iter().map(|(path, _)| path).collect(),
        })
    }

    /// The backend's settings.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.redis_url.value.clone());
        settings.alias.clone_from(&self.backend.value);
        settings.queues.clone_from(&self.queues.value);
        settings.lease_ttl = self.lease_ttl.value;
        settings.result_ttl = self.result_ttl.value;
        settings.timeout = self.timeout.value;
        if !matches!(self.timeout.origin, Origin::Url | Origin::Default) {
            settings.connect_timeout = self.timeout.value;
        }
        settings
    }
}

fn default<T>(value: T) -> Setting<T> {
    Setting { value, origin: Origin::Default }
}

struct Layers<'a> {
    env: &'a dyn Fn(&'static str) -> Option<String>,
    files: &'a [(PathBuf, File)],
    alias: String,
}

impl Layers<'_> {
    /// The strongest of flag, variable and files.
    fn pick<T: Clone>(
        &self,
        flag: &Option<T>,
        flag_name: &'static str,
        variable: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
        in_file: impl Fn(&File, Option<&Part>) -> Option<T>,
    ) -> Result<Option<Setting<T>>, CliError> {
        if let Some(value) = flag.clone() {
            return Ok(Some(Setting { value, origin: Origin::Flag(flag_name) }));
        }
        if let Some(text) = (self.env)(variable) {
            let value = parse(text.trim()).map_err(|why| CliError::usage(format!("{variable}: {why}")))?;
            return Ok(Some(Setting { value, origin: Origin::Env(variable) }));
        }
        let found = self.files.iter().find_map(|(path, file)| {
            let value = in_file(file, file.backends.get(&self.alias))?;
            Some(Setting { value, origin: Origin::File(path.clone()) })
        });
        Ok(found)
    }

    fn duration(
        &self,
        flag: &Option<Duration>,
        flag_name: &'static str,
        variable: &'static str,
        of: impl Fn(&Part) -> Option<file::Lasting>,
    ) -> Result<Option<Setting<Duration>>, CliError> {
        self.pick(flag, flag_name, variable, time::parse_positive, |f, part| {
            part.and_then(&of).or_else(|| of(&f.part)).map(|lasting| lasting.0)
        })
    }

    fn redis_url(&self, flags: &GlobalArgs) -> Result<Setting<RedisUrl>, CliError> {
        let text = |text: &str| Ok(text.to_owned());
        let found = self.pick(&flags.redis_url, "--redis-url", "THREADMILL_REDIS_URL", text, |f, part| {
            part.and_then(|part| part.redis_url.clone()).or_else(|| f.part.redis_url.clone())
        })?;
        let bare = || (self.env)("REDIS_URL").map(|value| Setting { value, origin: Origin::Env("REDIS_URL") });
        let Setting { value, origin } = found.or_else(bare).unwrap_or_else(|| default(DEFAULT_URL.to_owned()));
        let value = RedisUrl::parse(&value).map_err(|e| {
            CliError::from(e).hint(format!("it comes from {origin}; `threadmill config` tells of every setting"))
        })?;
        Ok(Setting { value, origin })
    }
}

fn names(text: &str) -> Result<Vec<String>, String> {
    Ok(text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect())
}

fn yes_or_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

fn color_when(text: &str) -> Result<ColorWhen, String> {
    use clap::ValueEnum;
    ColorWhen::from_str(text, true).map_err(|_| format!("`{text}` is none of auto, always, never"))
}

/// The name of the file that is looked for.
pub const FILE_NAME: &str = "threadmill.toml";

/// The user's own file in a config folder.
fn user_file(folder: &Path) -> PathBuf {
    folder.join(FILE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Check {
        dir: tempfile::TempDir,
        env: Vec<(&'static str, &'static str)>,
        flags: GlobalArgs,
    }

    impl Check {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
            std::fs::create_dir_all(dir.path().join("user")).unwrap();
            Self { dir, env: Vec::new(), flags: GlobalArgs::default() }
        }

        fn file(self, at: &str, text: &str) -> Self {
            std::fs::write(self.dir.path().join(at), text).unwrap();
            self
        }

        fn load(&self) -> Result<Config, CliError> {
            let env = |name: &str| self.env.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let world =
                World { env: &env, folder: self.dir.path().join("a/b"), user: Some(self.dir.path().join("user")) };
            Config::load(&self.flags, &WorkerPart::default(), &world)
        }

        fn url(&self) -> (String, String) {
            let url = self.load().unwrap().redis_url;
            (url.value.endpoint(), url.origin.to_string().replace(&self.dir.path().display().to_string(), ""))
        }
    }

    fn pair(url: &str, origin: &str) -> (String, String) {
        (url.to_owned(), origin.to_owned())
    }

    #[test]
    fn each_layer_gives_way_to_the_one_above() {
        let mut check = Check::new();
        assert_eq!(check.url(), pair("redis://localhost:6379/0", "default"));
        check.env.push(("REDIS_URL", "redis://bare"));
        assert_eq!(check.url(), pair("redis://bare:6379/0", "REDIS_URL"));
        check = check.file("user/threadmill.toml", "redis_url = 'redis://user'");
        assert_eq!(check.url(), pair("redis://user:6379/0", "/user/threadmill.toml"));
        check = check.file("threadmill.toml", "redis_url = 'redis://above'");
        assert_eq!(check.url(), pair("redis://above:6379/0", "/threadmill.toml"));
        check = check.file("a/b/threadmill.toml", "redis_url = 'redis://here'");
        assert_eq!(check.url(), pair("redis://here:6379/0", "/a/b/threadmill.toml"));
        check.env.push(("THREADMILL_REDIS_URL", "redis://env"));
        assert_eq!(check.url(), pair("redis://env:6379/0", "THREADMILL_REDIS_URL"));
        check.flags.redis_url = Some("redis://flag".into());
        assert_eq!(check.url(), pair("redis://flag:6379/0", "--redis-url"));
    }

    #[test]
    fn a_file_can_hold_several_backends_and_the_user_s_file_fills_the_gaps() {
        let mut check = Check::new()
            .file("a/threadmill.toml", "redis_url = 'redis://one'\n[backends.other]\nredis_url = 'redis://two'")
            .file("user/threadmill.toml", "timeout = '9s'\nqueues = ['x']\nread_only = true");
        let config = check.load().unwrap();
        assert_eq!(config.redis_url.value.endpoint(), "redis://one:6379/0");
        assert_eq!((config.timeout.value, config.read_only.value), (Duration::from_secs(9), true));
        check.flags.backend = Some("other".into());
        assert_eq!(check.load().unwrap().redis_url.value.endpoint(), "redis://two:6379/0");
    }

    #[test]
    fn what_is_wrong_is_named_without_the_password() {
        let check = |text: &str, part: &str| {
            let error = Check::new().file("a/threadmill.toml", text).load().unwrap_err();
            let told = format!("{error:?}");
            assert!(told.contains(part), "{told}");
            assert!(!told.contains("s3cret"), "{told}");
        };
        check("redis_ur = 'redis://:s3cret@h'", "redis_ur");
        check("redis_url = 'redis://:s3cret@h", "line 1");
        check("timeout = 'soon'", "soon");
        check("redis_url = 'http://:s3cret@h'", "http://");
        let mut env = Check::new();
        env.env.push(("THREADMILL_TIMEOUT", "-5s"));
        assert!(format!("{:?}", env.load().unwrap_err()).contains("THREADMILL_TIMEOUT"));
    }

    #[test]
    fn the_url_s_own_time_out_stands_where_nothing_else_is_said() {
        let mut check = Check::new();
        check.flags.redis_url = Some("redis://h?socket_timeout=2".into());
        let config = check.load().unwrap();
        assert_eq!((config.timeout.value, config.timeout.origin), (Duration::from_secs(2), Origin::Url));
        check.flags.timeout = Some(Duration::from_secs(1));
        assert_eq!(check.load().unwrap().settings().timeout, Duration::from_secs(1));
    }
}
