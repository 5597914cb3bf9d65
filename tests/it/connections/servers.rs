//! Other servers than the one on PATH: each of THREADMILL_TEST_SERVERS (paths, with colons between them; script/servers gets
//! some) has to pass what tells a server apart.

use crate::common::TestRedis;
use std::process::Command;

/// What runs on every server: all transitions, what is refused and how, slots that move, failovers.
const TESTS: [&str; 7] = [
    "connections::acl::each_role",
    "connections::servers::the_server",
    "transitions::",
    "connections::outages::",
    "connections::cluster::several_aliases",
    "connections::cluster::a_slot_",
    "connections::sentinel::an_ordered_failover",
];

#[test]
fn every_server_passes() {
    let servers = std::env::var("THREADMILL_TEST_SERVERS").unwrap_or_else(|_| provision());
    if servers == "none" || std::env::var_os("THREADMILL_TEST_SERVER").is_some() {
        return;
    }
    let running: Vec<_> = servers.split(':').map(|server| (server, start(server))).collect();
    let ended: Vec<_> = running.into_iter().map(|(server, child)| (server, child.wait_with_output())).collect();
    for (server, output) in ended {
        let output = output.expect("the tests end");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "on {server}:\n{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(!text.contains(" 0 passed"), "nothing ran on {server}:\n{text}");
    }
}

/// What script/servers gets, or has got.
fn provision() -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/script/servers");
    let output = Command::new(script).output().expect("the script can be run");
    let why = "THREADMILL_TEST_SERVERS names no servers (`none` for none), and script/servers got none";
    assert!(output.status.success(), "{why}:\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().last().expect("it prints their paths").to_owned()
}

/// These tests again, in a process in which every server is that one.
fn start(server: &str) -> std::process::Child {
    use std::process::Stdio;
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(TESTS).args(["--test-threads", "4"]).env("THREADMILL_TEST_SERVER", server).env("RUST_BACKTRACE", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    crate::common::process::spawn(command, rustix::process::Signal::KILL).expect("this program can be started")
}

#[tokio::test]
async fn the_server_says_what_it_is() {
    let server = TestRedis::spawn();
    let facts = super::table::backend(&server.url(), std::time::Duration::from_secs(20)).facts().await.unwrap();
    let name = facts.name.unwrap();
    assert!(["redis", "valkey"].contains(&name.as_str()), "{name}");
    let version = facts.version.unwrap();
    let major: u32 = version.split('.').next().unwrap().parse().unwrap();
    assert!(major >= 7, "{name} {version}");
}
