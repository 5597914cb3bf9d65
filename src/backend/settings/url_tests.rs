use super::*;

fn endpoint(text: &str) -> String {
    RedisUrl::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).endpoint()
}

#[test]
fn urls_as_redis_py_takes_them() {
    assert_eq!(endpoint("redis://"), "redis://localhost:6379/0");
    assert_eq!(endpoint("redis://h:1/2"), "redis://h:1/2");
    assert_eq!(endpoint("redis://h/2?db=5"), "redis://h:6379/5");
    assert_eq!(endpoint("redis://:p%40ss@h"), "redis://:***@h:6379/0");
    assert_eq!(endpoint("rediss://u:p@h:7?ssl_cert_reqs=none"), "rediss://u:***@h:7/0");
    assert_eq!(endpoint("unix:///run/r.sock?db=3"), "unix:///run/r.sock?db=3");
    assert_eq!(endpoint("redis://[::1]:7000"), "redis://[::1]:7000/0");
    assert_eq!(RedisUrl::parse("redis://:p%40ss@h").unwrap().password.as_deref(), Some("p@ss"));
    assert_eq!(RedisUrl::parse("redis://h?socket_timeout=2.5").unwrap().timeout, Some(Duration::from_millis(2500)));
}

#[test]
fn sentinels_and_clusters_have_several_hosts() {
    let url = "redis+sentinel://u:p%2Fw@a:1,b,[::1]:3/mymaster/2?sentinel_username=s&sentinel_password=hush";
    assert_eq!(endpoint(url), "redis+sentinel://u:***@a:1,b:26379,[::1]:3/mymaster/2");
    let parsed = RedisUrl::parse(url).unwrap();
    assert_eq!(parsed.password.as_deref(), Some("p/w"));
    let Place::Sentinel(sentinels) = parsed.place() else { panic!("{parsed:?}") };
    assert_eq!((sentinels.username.as_deref(), sentinels.password.as_deref()), (Some("s"), Some("hush")));
    assert_eq!(endpoint("rediss+sentinel://a/m"), "rediss+sentinel://a:26379/m/0");
    assert_eq!(endpoint("redis+cluster://a:1,b"), "redis+cluster://a:1,b:6379");
    assert_eq!(endpoint("rediss+cluster://:p@a:1/0?ssl_check_hostname=false"), "rediss+cluster://:***@a:1");
}

#[test]
fn what_is_wrong_is_named_and_no_password_told() {
    for (text, part) in [
        ("localhost:6379", "redis://"),
        ("http://h", "http://"),
        ("redis://:secret@h/abc", "database"),
        ("redis://:secret@h?db=-1", "db"),
        ("redis://:secret@h?socket_timeout=soon", "socket_timeout"),
        ("redis://:secret@h:99999", "port"),
        ("redis://name/secret@h", "database"),
        ("secret://:secret@h", "secret://"),
        (":secret@h://", "cannot be read"),
        ("unix://", "socket"),
        ("rediss://:secret@h?ssl_cert_reqs=maybe", "ssl_cert_reqs"),
        ("rediss://:secret@h?ssl_check_hostname=maybe", "ssl_check_hostname"),
        ("rediss://:secret@h?ssl_ca_path=/etc", "ssl_ca_path"),
        ("redis://:secret@h?ssl_ca_certs=/etc/ca.pem", "rediss"),
        ("redis+sentinel://:secret@h", "master"),
        ("redis+sentinel://:secret@h/m/x", "database"),
        ("redis+sentinel://:secret@h,,i/m", "host 2"),
        ("redis+sentinel://:secret@h,i:x/m", "host 2"),
        ("redis+sentinel://:sec/ret@h/m", "host 1"),
        ("redis+cluster://:secret@h/1", "database"),
        ("redis+cluster://", "host 1"),
    ] {
        let error = RedisUrl::parse(text).expect_err(text).to_string();
        assert!(error.contains(part), "{text}: {error}");
        assert!(text.starts_with("secret") || !error.contains("secret"), "{error}");
    }
}

#[test]
fn what_is_printed_for_a_developer_holds_no_password_either() {
    for text in [
        "redis://u:hush@h",
        "redis+sentinel://u:hush@h/m?sentinel_password=hush",
        "redis+cluster://u:hush@h",
        "redis://h?password=hush",
    ] {
        let url = RedisUrl::parse(text).unwrap();
        assert!(!format!("{url:?} {:?}", crate::backend::Settings::new(url.clone())).contains("hush"), "{text}");
        assert!(!format!("{:?}", url.place()).contains("hush"), "{text}");
    }
}

#[test]
fn a_missing_certificate_is_named() {
    let address = Address { host: "h".into(), port: 1 };
    for (query, part) in [
        ("ssl_ca_certs=/nowhere/ca.pem", "/nowhere/ca.pem"),
        ("ssl_certfile=/nowhere/c.pem", "/nowhere/c.pem"),
        ("ssl_keyfile=/nowhere/k.pem", "ssl_certfile"),
    ] {
        let url = RedisUrl::parse(&format!("rediss://h?{query}")).unwrap();
        let error = url.client(&address).expect_err(query).to_string();
        assert!(error.contains(part), "{query}: {error}");
    }
}
