//! A small Django site with the Python package `threadmill` 0.8.4, on a Redis of the test: what the tests of
//! interoperation talk to. `tests/it/site` holds its files.

use super::process;
use super::wait::{LIMIT, eventually};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, mpsc};
use tempfile::TempDir;

const FILES: [(&str, &str); 5] = [
    ("heard.py", include_str!("../site/heard.py")),
    ("manage.py", include_str!("../site/manage.py")),
    ("myretry.py", include_str!("../site/myretry.py")),
    ("shell.py", include_str!("../site/shell.py")),
    ("tasks.py", include_str!("../site/tasks.py")),
];

/// The Python with Django and the package: the one that `script/test` names, else the one that it left in the cache.
#[track_caller]
pub fn python() -> PathBuf {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = FOUND.get_or_init(|| match std::env::var_os("THREADMILL_TEST_PYTHON") {
        Some(path) if !path.is_empty() => Some(path.into()),
        _ => {
            let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()).map(PathBuf::from);
            let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
            Some(cache.join("threadmill/python/venv/bin/python"))
        }
    });
    match found {
        Some(path) if path.exists() => path.clone(),
        found => panic!(
            "no Python with Django and threadmill 0.8.4 (looked for {}): run script/test, which gets it, or name one \
             by THREADMILL_TEST_PYTHON",
            found.as_deref().unwrap_or(Path::new("a cache folder")).display()
        ),
    }
}

/// The five counts of a queue, as the inspector of the Python package sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    pub ready: u64,
    pub scheduled: u64,
    pub running: u64,
    pub successful: u64,
    pub failed: u64,
}

/// How a site is to be set up.
#[derive(Clone, Debug)]
pub struct Site {
    queues: Vec<String>,
    options: Vec<(String, String)>,
}

impl Site {
    /// Further queues beside those of [`Django::QUEUES`].
    pub fn queue(mut self, name: &str) -> Self {
        self.queues.push(name.into());
        self
    }

    /// An entry of OPTIONS, the value as Python: `("lease_ttl", "datetime.timedelta(seconds=1)")`.
    pub fn option(mut self, name: &str, python: &str) -> Self {
        self.options.push((name.into(), python.into()));
        self
    }

    /// Writes the site into a temporary folder.
    pub fn on(self, redis_url: &str) -> Django {
        let dir = tempfile::Builder::new().prefix("threadmill-site-").tempdir().expect("a temporary folder");
        for (name, text) in FILES {
            std::fs::write(dir.path().join(name), text).expect("the folder can be written");
        }
        // A JSON string or list of strings is one of Python, too.
        let literal = |value: Value| value.to_string();
        let options: String =
            self.options.iter().map(|(name, value)| format!("{}: {value}, ", literal(name.clone().into()))).collect();
        let settings = format!(
            "import datetime\n\nSECRET_KEY = 'only for tests'\nUSE_TZ = True\nTIME_ZONE = 'UTC'\n\
             INSTALLED_APPS = ['threadmill']\nTASKS = {{'default': {{\n    \
             'BACKEND': 'threadmill.backends.redis.RedisTaskBackend',\n    'REDIS_URL': {},\n    'QUEUES': {},\n    \
             'OPTIONS': {{{options}}},\n}}}}\n",
            literal(redis_url.into()),
            literal(self.queues.into()),
        );
        std::fs::write(dir.path().join("settings.py"), settings).expect("the folder can be written");
        Django { shell: Mutex::new(None), workers: AtomicU32::new(0), dir }
    }
}

/// The site. It is removed on drop, and the interpreter that answers its snippets ends.
pub struct Django {
    shell: Mutex<Option<Shell>>,
    workers: AtomicU32,
    dir: TempDir,
}

impl Django {
    /// The queues that every site has: plain ones, and names that only just are names.
    pub const QUEUES: [&str; 5] = ["default", "emails", "a:b", "two words", "größe"];

    /// The site with the package's own defaults.
    pub fn on(redis_url: &str) -> Self {
        Self::site().on(redis_url)
    }

    pub fn site() -> Site {
        Site { queues: Self::QUEUES.map(str::to_owned).into(), options: Vec::new() }
    }

    /// The folder with `manage.py`, `settings.py` and `tasks.py`; also the DJANGO_SETTINGS_MODULE's place.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Runs statements in the site and returns what they left in `out`. There are `tasks`, `backend`, `Status`,
    /// `result(id)`, `counts()`, `peek(queue, status)`, `view(result)`, and `run(coroutine)`. What JSON lacks, such as `NaN` or
    /// a lone surrogate, is to be returned as its `repr()`.
    #[track_caller]
    pub fn run(&self, snippet: &str) -> Value {
        self.try_run(snippet).unwrap_or_else(|traceback| panic!("in Python: {snippet}\n{traceback}"))
    }

    /// As [`Self::run`], for what may raise; the error is the traceback.
    pub fn try_run(&self, snippet: &str) -> Result<Value, String> {
        let mut shell = self.shell.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let answer = shell.get_or_insert_with(|| Shell::start(self)).ask(snippet);
        if answer.is_none() {
            // It ended or hangs; the next snippet gets a new one.
            *shell = None;
        }
        let answer = answer.unwrap_or_else(|| panic!("the Python of the site gave no answer to: {snippet}"));
        match answer.get("error") {
            Some(error) => Err(error.as_str().unwrap_or_default().to_owned()),
            None => Ok(answer["out"].clone()),
        }
    }

    /// Runs an expression that enqueues, such as `tasks.add.using(priority=5).enqueue(1, 2)`, and returns the id.
    #[track_caller]
    pub fn enqueue(&self, expression: &str) -> String {
        let id = self.run(&format!("out = ({expression}).id"));
        id.as_str().expect("an id is a text").to_owned()
    }

    /// What `get_result` says of a task, as JSON (`status`, `value`, `errors`, `worker_ids`, ...); null where it knows none.
    #[track_caller]
    pub fn result(&self, id: &str) -> Value {
        self.run(&format!("out = result('{id}')"))
    }

    /// Waits until `get_result` has a finished task.
    #[track_caller]
    pub fn finished(&self, id: &str) -> Value {
        let mut result = Value::Null;
        eventually(&format!("{id} is finished for get_result"), || {
            result = self.result(id);
            matches!(result["status"].as_str(), Some("SUCCESSFUL" | "FAILED"))
        });
        result
    }

    /// The counts of every queue, as the inspector of the Python package shows them.
    #[track_caller]
    pub fn counts(&self) -> BTreeMap<String, Counts> {
        serde_json::from_value(self.run("out = counts()")).expect("counts by queue")
    }

    /// The tasks that the inspector of the Python package lists under READY, RUNNING, SUCCESSFUL or FAILED.
    #[track_caller]
    pub fn peek(&self, queue: &str, status: &str) -> Vec<Value> {
        let listed = self.run(&format!("out = peek({}, '{status}')", Value::from(queue)));
        listed.as_array().cloned().unwrap_or_default()
    }

    /// Starts a worker of the Python package with one process, for these queues, with further flags.
    pub fn worker(&self, queues: &[&str], flags: &[&str]) -> PythonWorker {
        let number = self.workers.fetch_add(1, Ordering::Relaxed);
        let log = self.dir().join(format!("worker-{number}.log"));
        let output = std::fs::File::create(&log).expect("the folder can be written");
        let mut command = self.python("manage.py");
        command
            .args(["threadmill", "worker", "--workers", "1"])
            .args(flags)
            .arg("--queues")
            .args(queues)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file can be had twice"))
            .stderr(output)
            .process_group(0);
        // Its own child processes end in good order only on SIGTERM.
        let child = process::spawn(command, Signal::TERM).expect("python can be started");
        PythonWorker { child, log, ended: None }
    }

    /// Whether a `tasks.hold(name)` runs.
    pub fn holds(&self, name: &str) -> bool {
        self.dir().join(format!("started-{name}")).exists()
    }

    /// Lets `tasks.hold(name)` end.
    pub fn release(&self, name: &str) {
        std::fs::write(self.dir().join(format!("release-{name}")), "").expect("the folder can be written");
    }

    /// The texts of the `tasks.mark(text)` that ran, in their order.
    pub fn marks(&self) -> Vec<String> {
        let marks = std::fs::read_to_string(self.dir().join("marks")).unwrap_or_default();
        marks.lines().map(str::to_owned).collect()
    }

    /// The Python of the site, about to run a file of it, in a clean environment.
    pub fn python(&self, file: &str) -> Command {
        let mut command = Command::new(python());
        command
            .arg(file)
            .current_dir(self.dir())
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.dir())
            .env("LANG", "C.UTF-8")
            .env("DJANGO_SETTINGS_MODULE", "settings");
        command
    }
}

/// An interpreter that answers one snippet after the other: Django is imported once.
struct Shell {
    child: Child,
    stdin: ChildStdin,
    answers: mpsc::Receiver<String>,
}

impl Shell {
    fn start(site: &Django) -> Self {
        let mut command = site.python("shell.py");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = process::spawn(command, Signal::KILL).expect("python can be started");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Shell { child, stdin, answers }
    }

    fn ask(&mut self, snippet: &str) -> Option<Value> {
        writeln!(self.stdin, "{}", Value::from(snippet)).ok()?;
        let answer = self.answers.recv_timeout(LIMIT).ok()?;
        Some(serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error} in the answer: {answer}")))
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        process::kill(&mut self.child);
    }
}

/// A running worker of the Python package. It and all its processes are killed on drop.
pub struct PythonWorker {
    child: Child,
    log: PathBuf,
    ended: Option<ExitStatus>,
}

impl PythonWorker {
    /// Asks it to end, as an operator does, and waits for that; it finishes what it has taken.
    #[track_caller]
    pub fn stop(mut self) -> ExitStatus {
        process::signal(&self.child, Signal::TERM);
        self.wait()
    }

    /// Waits until it ends by itself, as with `--exit-empty`.
    #[track_caller]
    pub fn wait(&mut self) -> ExitStatus {
        if self.ended.is_none() {
            self.ended = process::wait_bounded(&mut self.child, LIMIT);
        }
        self.ended.unwrap_or_else(|| panic!("the Python worker does not end:\n{}", self.log()))
    }

    /// Kills it and all its processes.
    pub fn kill(&mut self) {
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        process::kill(&mut self.child);
    }

    /// What it has written so far: one JSON object a line, unless a flag says otherwise.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for PythonWorker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the log of the Python worker:\n{}", self.log());
        }
        self.kill();
    }
}
