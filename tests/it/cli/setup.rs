//! `config`, `completions`, `man`, and where settings come from.

use super::shop;
use crate::common::Home;
use serde_json::json;

#[test]
fn each_setting_is_shown_with_where_it_comes_from() {
    let home = Home::empty().env("THREADMILL_REDIS_URL", "redis://u:s3cret@h:7/1").env("THREADMILL_QUEUES", "a, b:c");
    std::fs::write(home.path().join("threadmill.toml"), "timeout = '2m30s'\nread_only = true\n").unwrap();
    let json = home.run(&["-b", "shop", "config", "--json"]).expect(0).json();
    let setting = |name: &str| {
        let all = json["settings"].as_array().unwrap();
        let found = all.iter().find(|setting| setting["name"] == json!(name)).unwrap();
        (found["value"].clone(), found["from"].as_str().unwrap().to_owned())
    };
    let file = home.path().join("threadmill.toml").display().to_string();
    assert_eq!(setting("redis_url"), (json!("redis://u:***@h:7/1"), "THREADMILL_REDIS_URL".into()));
    assert_eq!(setting("backend"), (json!("shop"), "--backend".into()));
    assert_eq!(setting("queues"), (json!(["a", "b:c"]), "THREADMILL_QUEUES".into()));
    assert_eq!(setting("timeout"), (json!("2m 30s"), file.clone()));
    assert_eq!(setting("read_only"), (json!(true), file.clone()));
    assert_eq!(setting("color"), (json!("auto"), "default".into()));
    let table = home.run(&["config"]).expect(0).stdout;
    assert!(table.contains("u:***@h") && !table.contains("s3cret"), "{table}");
}

#[test]
fn what_is_said_of_the_worker_is_shown_too() {
    let home = Home::empty().env("THREADMILL_WORKER_GRACE", "30");
    std::fs::write(home.path().join("threadmill.toml"), "[worker]\nqueues = ['a', 'b']\ngrace = '5m'\n").unwrap();
    let table = home.run(&["config"]).expect(0).stdout;
    assert!(table.contains("worker.queues  a, b"), "{table}");
    assert!(table.contains("30s") && table.contains("THREADMILL_WORKER_GRACE"), "{table}");
    std::fs::write(home.path().join("threadmill.toml"), "[worker]\nqueus = ['a']\n").unwrap();
    assert!(home.run(&["config"]).expect(2).stderr.contains("queus"));
}

#[test]
fn a_file_is_found_above_and_in_the_user_s_folder_and_named() {
    let (server, _) = shop();
    let home = Home::empty();
    let folder = home.path().join(".config/threadmill");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("threadmill.toml"), format!("redis_url = '{}'", server.url())).unwrap();
    home.run(&["queues"]).expect(0);
    std::fs::write(home.path().join("named.toml"), "redis_url = 'redis://127.0.0.1:1'").unwrap();
    home.run(&["queues", "--config", "named.toml"]).expect(5);
    home.run(&["queues", "--config", "missing.toml"]).expect(2);
    std::fs::write(home.path().join("named.toml"), "redis_ulr = 'redis://:s3cret@h'").unwrap();
    let wrong = home.run(&["config", "--config", "named.toml"]).expect(2);
    assert!(wrong.stderr.contains("redis_ulr") && wrong.stderr.contains("line 1"), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("s3cret"), "{}", wrong.stderr);
}

#[test]
fn a_bare_redis_url_is_the_weakest_word() {
    let (server, _) = shop();
    Home::empty().env("REDIS_URL", &server.url()).run(&["queues"]).expect(0);
    let home = Home::on(&server.url()).env("REDIS_URL", "redis://127.0.0.1:1");
    home.run(&["queues"]).expect(0);
    let socket = Home::on(&server.unix_url());
    socket.run(&["queues"]).expect(0);
}

#[test]
fn completions_and_manual_pages_come_without_a_server() {
    let home = Home::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.run(&["completions", shell]).expect(0).stdout;
        assert!(script.contains("threadmill") && script.contains("requeue"), "{shell}");
    }
    home.run(&["completions", "tcsh"]).expect(2);
    let page = home.run(&["man"]).expect(0).stdout;
    assert!(page.contains(".TH threadmill 1") && page.contains("purge"), "{page}");
    let page = home.run(&["man", "purge"]).expect(0).stdout;
    assert!(page.contains(".TH threadmill-purge 1") && page.contains("redis\\-url"), "{page}");
    home.run(&["man", "nosuch"]).expect(3);
    home.run(&["man", "--dir", "pages"]).expect(0);
    assert!(home.path().join("pages/threadmill-requeue.1").is_file());
}
