//! The harness itself: each part does what the other tests rely on.

use crate::common::wait::eventually_async;
use crate::common::{Django, Home, Lose, Proxy, Running, Screen, TestRedis, Value, eventually, process};
use portable_pty::CommandBuilder;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn a_server_keeps_its_data_over_a_stop_and_a_crash() {
    let mut server = TestRedis::setup().append_only().start();
    server.cli::<()>(&["SET", "a", "1"]);
    let before = server.snapshot();
    let url = server.url();
    server.stop();
    assert!(server.client().get_connection().is_err());
    server.start();
    assert_eq!(server.url(), url);
    before.assert_same(&server.snapshot());
    server.cli::<()>(&["SET", "b", "2"]);
    let before = server.snapshot();
    server.crash();
    server.start();
    before.assert_same(&server.snapshot());
}

#[test]
fn a_server_goes_with_its_handle_even_when_frozen() {
    let server = TestRedis::spawn();
    let (pid, dir) = (server.pid(), server.dir().to_owned());
    server.freeze();
    drop(server);
    assert!(!process::is_alive(pid));
    assert!(!dir.exists());
}

#[tokio::test]
async fn a_frozen_server_answers_once_thawed() {
    let server = TestRedis::spawn();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
    let client = server.client();
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await.unwrap();
    server.freeze();
    let mut ping = tokio::spawn(async move { redis::cmd("PING").query_async::<String>(&mut connection).await });
    assert!(tokio::time::timeout(Duration::from_millis(100), &mut ping).await.is_err());
    server.thaw();
    assert_eq!(ping.await.unwrap().unwrap(), "PONG");
}

#[test]
fn a_snapshot_tells_every_difference() {
    let server = TestRedis::spawn();
    server.cli::<()>(&["SET", "text", "1"]);
    server.cli::<()>(&["HSET", "hash", "f", "1", "g", "2"]);
    server.cli::<()>(&["ZADD", "sorted", "1796067571426.5872", "b", "-5", "a"]);
    server.cli::<()>(&["RPUSH", "list", "x", "y"]);
    server.cli::<()>(&["SADD", "set", "x"]);
    let before = server.snapshot();
    before.assert_same(&server.snapshot());
    assert_eq!(before.len(), 5);
    assert_eq!(before.members("sorted"), ["a", "b"]);
    assert_eq!(before.field("hash", "g"), Some("2"));
    for change in [
        &["EXPIRE", "text", "100"] as &[&str],
        &["HSET", "hash", "f", "3"],
        &["ZADD", "sorted", "1796067571426.5874", "b"],
        &["LPUSH", "list", "z"],
        &["SREM", "set", "x"],
        &["SET", "new", ""],
    ] {
        let before = server.snapshot();
        server.cli::<()>(change);
        let difference = before.difference(&server.snapshot());
        assert!(difference.contains(change[1]), "{change:?}: {difference}");
    }
}

#[test]
fn a_recorded_state_is_filled_in() {
    let server = TestRedis::spawn();
    let state = json!({"keys": {
        "h": {"type": "hash", "ttl": 100, "value": {"data": "{\"a\": NaN}", "score": "1"}},
        "z": {"type": "zset", "ttl": -1, "value": [["a", "-48203932428572.242", "-48203932428572.24"]]},
        "s": {"type": "string", "ttl": -1, "value": "\\ud800"},
    }});
    server.load_state(&state.to_string());
    let snapshot = server.snapshot();
    assert_eq!(snapshot.field("h", "data"), Some("{\"a\": NaN}"));
    assert!(snapshot["h"].expires && !snapshot["z"].expires);
    assert_eq!(snapshot.value("z"), Some(&Value::Sorted(vec![("a".into(), "-48203932428572.242".into())])));
    assert_eq!(snapshot.value("s"), Some(&Value::Text("\\ud800".into())));
}

#[test]
fn commands_are_counted() {
    let server = TestRedis::spawn();
    server.reset_stats();
    server.cli::<()>(&["SET", "a", "1"]);
    server.cli::<()>(&["SET", "a", "2"]);
    assert_eq!(server.commandstats().get("set"), Some(&2));
}

#[tokio::test]
async fn a_proxy_loses_exactly_one_reply() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    let client = redis::Client::open(proxy.url()).unwrap();
    proxy.lose_reply(2, Lose::ByCut, |command| command.name == "INCR" && command.has("n"));
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let incr = |key| {
        let mut command = redis::cmd("INCR");
        command.arg(key);
        command
    };
    assert_eq!(incr("n").query_async::<i64>(&mut connection).await.unwrap(), 1);
    assert_eq!(incr("other").query_async::<i64>(&mut connection).await.unwrap(), 1);
    assert!(incr("n").query_async::<i64>(&mut connection).await.is_err());
    assert_eq!(proxy.lost(), 1);
    // It was carried out all the same, and the next connection is served in full.
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    assert_eq!(incr("n").query_async::<i64>(&mut connection).await.unwrap(), 3);
    assert_eq!((proxy.count("incr"), proxy.lost()), (4, 1));
}

#[tokio::test]
async fn a_proxy_cuts_refuses_silences_and_heals() {
    let server = TestRedis::spawn();
    let proxy = Proxy::before(&server);
    let client = redis::Client::open(proxy.url()).unwrap();
    let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_millis(200)));
    let connect = || client.get_multiplexed_async_connection_with_config(&config);
    let ping = redis::cmd("PING");
    let mut connection = connect().await.unwrap();
    proxy.cut();
    eventually_async("the cut is seen", async || proxy.connections() == 0).await;
    assert!(ping.query_async::<String>(&mut connection).await.is_err());
    proxy.refuse();
    assert!(connect().await.is_err());
    proxy.heal();
    let mut connection = connect().await.unwrap();
    proxy.half_open();
    assert!(ping.query_async::<String>(&mut connection).await.is_err());
    assert_eq!(proxy.connections(), 1, "nothing was closed");
    proxy.heal();
    let mut connection = connect().await.unwrap();
    proxy.lose_reply(1, Lose::InSilence, |command| command.name == "PING");
    assert!(ping.query_async::<String>(&mut connection).await.unwrap_err().is_timeout());
    let mut connection = connect().await.unwrap();
    proxy.delay(Duration::from_millis(1));
    assert_eq!(ping.query_async::<String>(&mut connection).await.unwrap(), "PONG");
}

#[test]
fn a_site_enqueues_and_its_worker_runs() {
    let server = TestRedis::spawn();
    let site = Django::on(&server.url());
    let add = site.enqueue("tasks.add.enqueue(1, 2)");
    let boom = site.enqueue("tasks.boom.using(queue_name='a:b').enqueue('why')");
    let flaky = site.enqueue("tasks.flaky.enqueue(2)");
    let later = site.enqueue("tasks.later.enqueue('ö')");
    let mark = site.enqueue("tasks.mark.using(priority=7).enqueue('one')");
    site.enqueue("tasks.echo.using(run_after=datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)).enqueue({})");
    let counts = site.counts();
    assert_eq!((counts["default"].ready, counts["default"].scheduled, counts["a:b"].ready), (4, 1, 1));
    assert_eq!(site.peek("default", "READY")[0]["id"], json!(mark));
    assert_eq!(site.result(&add), json!(null), "a waiting task has no result");
    let worker = site.worker(&["default", "a:b"], &["--threads", "2"]);
    assert_eq!(site.finished(&add)["value"], json!(3));
    assert_eq!(site.finished(&later)["value"], json!("ö"));
    let failed = site.finished(&boom);
    assert_eq!(failed["errors"][0]["class"], json!("builtins.RuntimeError"));
    let second = site.finished(&flaky);
    assert_eq!((&second["value"], &second["attempts"]), (&json!(2), &json!(2)));
    site.finished(&mark);
    assert_eq!(site.marks(), ["one"]);
    let held = site.enqueue("tasks.hold.enqueue('x')");
    eventually("the task runs", || site.holds("x"));
    assert_eq!(site.counts()["default"].running, 1);
    site.release("x");
    assert_eq!(site.finished(&held)["value"], json!("x"));
    assert_eq!(site.counts()["default"].successful, 5);
    assert!(site.try_run("1 / 0").unwrap_err().contains("ZeroDivisionError"));
    let log = worker.log();
    assert!(worker.stop().success(), "{log}");
}

#[test]
fn a_run_is_captured() {
    let mut command = Command::new("sh");
    command.args(["-c", "read word; echo \"got $word\"; echo talk >&2; exit 3"]);
    let output = Running::start(command, Stdio::null()).wait();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str(), output.code), ("got \n", "talk\n", 3));
    let mut command = Command::new("sh");
    command.args(["-c", "echo ready >&2; exec sleep 1000"]);
    let running = Running::start(command, Stdio::null());
    running.wait_for_stderr("ready");
    assert_eq!(running.stop().code, 128 + 15);
}

#[test]
fn the_binary_sees_only_its_own_home() {
    let home = Home::on("redis://127.0.0.1:1/0").env("NO_COLOR", "1");
    let names: Vec<_> = home.environment().into_iter().map(|(name, _)| name).collect();
    assert!(names.contains(&"NO_COLOR".into()) && names.contains(&"THREADMILL_REDIS_URL".into()));
    assert!(!names.contains(&"USER".into()));
    assert_eq!(home.run(&["--version"]).stderr, "");
}

#[test]
fn a_screen_shows_types_resizes_and_ends() {
    let mut command = CommandBuilder::new("sh");
    command.args(["-c", "stty size; read word; stty size; printf '\\033[31mgot %s\\033[0m\\n' \"$word\"; exit 4"]);
    let mut screen = Screen::start(&Home::empty(), command, 60, 10);
    screen.wait_for_text("10 60");
    assert!(screen.is_cooked());
    screen.resize(100, 30);
    screen.send("it\r");
    let text = screen.wait_for_text("got it");
    assert!(text.contains("30 100"), "{text}");
    assert_eq!(screen.wait_exit(), 4);
    assert!(screen.raw().windows(5).any(|bytes| bytes == b"\x1b[31m"));
}
