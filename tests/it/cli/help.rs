//! The whole help as snapshots, and its examples run.

use super::seed::id;
use super::{ID, Task};
use crate::common::binary::BINARY;
use crate::common::{Home, Running, TestRedis};
use std::process::{Command, Stdio};

const VERBS: [&str; 19] = [
    "queues",
    "tasks",
    "show",
    "workers",
    "watch",
    "inspector",
    "enqueue",
    "requeue",
    "drop",
    "purge",
    "move",
    "promote",
    "postpone",
    "doctor",
    "worker",
    "demo",
    "config",
    "completions",
    "man",
];

#[test]
fn the_whole_help() {
    let home = Home::empty();
    insta::assert_snapshot!("help", home.run(&["-h"]).expect(0).stdout);
    for verb in VERBS {
        let help = home.run(&[verb, "--help"]).expect(0);
        assert_eq!(help.stderr, "");
        insta::assert_snapshot!(format!("help-{verb}"), help.stdout);
    }
}

#[test]
fn the_examples_of_the_help_run() {
    let server = TestRedis::spawn();
    let home = Home::on(&server.url());
    let bin = home.path().join("bin");
    for folder in ["bin", ".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        std::fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    std::os::unix::fs::symlink(BINARY, bin.join("threadmill")).unwrap();
    let mut run = 0;
    // These need a terminal, or run until they are stopped; they have tests of their own.
    for verb in VERBS.into_iter().filter(|verb| !["inspector", "worker", "demo"].contains(verb)) {
        let help = home.run(&[verb, "--help"]).expect(0).stdout;
        let examples = help.split("Examples:\n").nth(1).expect("each verb has examples");
        for example in examples.lines().map(str::trim).filter(|line| !line.is_empty()) {
            fill(&server, verb);
            run_example(&home, example);
            run += 1;
        }
    }
    assert!(run >= 25, "{run}");
}

/// Tasks for every example: a queue `emails` with failed tasks, and the one with the known id where the verb acts.
fn fill(server: &TestRedis, verb: &str) {
    server.cli::<()>(&["FLUSHALL"]);
    for number in 0..11 {
        Task::new(&id(number), "emails", "failed").put(server);
    }
    let waits = ["move", "promote", "postpone"].contains(&verb);
    let (queue, segment) = if waits { ("default", "deferred") } else { ("emails", "failed") };
    Task::new(ID, queue, segment).put(server);
    Task::new(&id(50), "emails", "ready").put(server);
    Task::new(&id(60), "default", "ready").put(server);
}

fn run_example(home: &Home, example: &str) {
    // Nobody waits for a minute in a test, and no event comes to be counted.
    let line = example.replace("--for 10s", "--for 50ms").replace("--for 1m", "--for 50ms");
    // What stands behind a pipe may not be installed; what it shows is that the output can be piped.
    let line = match line.split_once(" | ") {
        Some((ours, theirs)) if !is_installed(theirs.split(' ').next().unwrap_or_default()) => ours.to_owned(),
        _ => line,
    };
    let mut command = Command::new("bash");
    command.args(["-c", &format!("set -o pipefail; PATH=$HOME/bin:$PATH; {line}")]);
    command.env_clear().envs(home.environment()).current_dir(home.path());
    let output = Running::start(command, Stdio::null()).wait();
    // A private server without persistence is a finding, and findings have a code of their own.
    let is_fine = output.code == 0 || (example.contains(" doctor") && output.code == 1);
    assert!(is_fine, "{example}: {}\n{}\n{}", output.code, output.stdout, output.stderr);
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
