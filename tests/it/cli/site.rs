//! In a Django site: the settings say where Redis is, and the worker runs the site's tasks.

use crate::common::binary::BINARY;
use crate::common::python::python;
use crate::common::{Django, TestRedis};
use std::process::{Command, Output};

/// Runs the binary in the site's folder, told of nothing but the interpreter.
fn run(site: &Django, words: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["--python", python().to_str().unwrap()]).args(words).current_dir(site.dir());
    command.env_clear().env("PATH", std::env::var("PATH").unwrap_or_default()).env("HOME", site.dir());
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_worker_and_the_verbs_find_everything_in_the_site() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let (good, bad) = (site.enqueue("tasks.add.enqueue(40, 2)"), site.enqueue("tasks.boom.enqueue('it broke')"));
    let retried = site.enqueue("tasks.flaky.enqueue(2)");
    let ended = run(&site, &["worker", "--exit-empty"]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(site.result(&good)["value"], 42);
    assert_eq!(site.result(&bad)["status"], "FAILED");
    assert_eq!(
        (site.result(&retried)["value"].clone(), site.result(&retried)["attempts"].clone()),
        (2.into(), 2.into())
    );
    let listed = run(&site, &["queues", "--json"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<_> = listed["queues"].as_array().unwrap().iter().map(|queue| queue["name"].clone()).collect();
    assert!(Django::QUEUES.iter().all(|queue| names.contains(&(*queue).into())), "{names:?}");
    let shown = run(&site, &["show", &bad]);
    assert!(text(&shown.stdout).contains("RuntimeError: it broke"), "{}", text(&shown.stdout));
}

#[test]
fn a_site_that_cannot_be_loaded_is_reported_with_python_s_own_traceback() {
    let redis = TestRedis::spawn();
    let site = Django::on(&redis.url());
    let id = site.enqueue("tasks.add.enqueue(1, 2)");
    std::fs::write(site.dir().join("settings.py"), "import nothing_of_that_name\n").unwrap();
    let ended = run(&site, &["worker", "--exit-empty"]);
    assert_eq!(ended.status.code(), Some(2));
    assert!(text(&ended.stderr).contains("nothing_of_that_name"), "{}", text(&ended.stderr));
    let ready: Vec<String> = redis.cli(&["ZRANGE", "threadmill:{default}:default:ready", "0", "-1"]);
    assert_eq!(ready, [id], "nothing was taken");
}
