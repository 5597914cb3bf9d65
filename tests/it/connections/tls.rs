//! TLS with an authority of one's own, client certificates, and what is refused; and the socket of the same machine.

use super::table::{QUEUE, backend, task};
use crate::common::TestRedis;
use crate::common::server::Setup;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;
use threadmill::backend::{BackendError, TelemetryEvent};

const LONG: Duration = Duration::from_secs(20);

/// An authority, and what it has signed, as files in PEM.
struct Authority {
    dir: TempDir,
}

impl Authority {
    fn new() -> Self {
        let authority = Self { dir: tempfile::Builder::new().prefix("threadmill-tls-").tempdir().unwrap() };
        authority.openssl(
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
             -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign",
        );
        authority
    }

    fn openssl(&self, words: &str) {
        let output = Command::new("openssl").args(words.split_whitespace()).current_dir(self.dir.path()).output();
        let output = output.expect("openssl is on PATH; script/test installs it");
        assert!(output.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Signs a certificate for a host name or address (`DNS:name`, `IP:address`).
    fn sign(&self, name: &str, host: &str) {
        self.openssl(&format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN={name} -keyout {name}.key -out {name}.csr"
        ));
        std::fs::write(self.file("ext"), format!("subjectAltName={host}\n")).unwrap();
        self.openssl(&format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out {name}.pem"
        ));
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A server with this certificate; `clients` says whether it wants theirs.
    fn server(&self, name: &str, clients: &str) -> TestRedis {
        let path = |file: &str| self.file(file).display().to_string();
        Setup::default()
            .tls()
            .set("tls-cert-file", &path(&format!("{name}.pem")))
            .set("tls-key-file", &path(&format!("{name}.key")))
            .set("tls-ca-cert-file", &path("ca.pem"))
            .set("tls-auth-clients", clients)
            .start()
    }
}

fn url(server: &TestRedis, host: &str, options: &str) -> String {
    format!("rediss://{host}:{}/0?{options}", server.port())
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

async fn connects(url: &str) -> Result<(), BackendError> {
    backend(url, LONG).enqueue(&[task(QUEUE)]).await.map(drop)
}

#[track_caller]
fn assert_refused(answer: Result<(), BackendError>, part: &str) {
    let error = answer.expect_err("it must not connect");
    let mut text = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(next) = source {
        text += &format!(": {next}");
        source = next.source();
    }
    assert!(text.contains(part), "{text}");
    assert!(!error.is_uncertain(), "{text}");
}

#[tokio::test]
async fn the_server_s_certificate_is_checked_as_the_url_says() {
    let authority = Authority::new();
    authority.sign("right", "DNS:localhost,IP:127.0.0.1");
    authority.sign("wrong", "DNS:elsewhere.example");
    let ca = option("ssl_ca_certs", &authority.file("ca.pem"));
    let right = authority.server("right", "no");
    for host in ["localhost", "127.0.0.1"] {
        connects(&url(&right, host, &ca)).await.unwrap();
        connects(&url(&right, host, &format!("{ca}&ssl_cert_reqs=optional"))).await.unwrap();
    }
    assert_refused(connects(&url(&right, "localhost", "")).await, "certificate");
    connects(&url(&right, "localhost", "ssl_cert_reqs=none")).await.unwrap();
    let wrong = authority.server("wrong", "no");
    assert_refused(connects(&url(&wrong, "localhost", &ca)).await, "certificate");
    connects(&url(&wrong, "localhost", &format!("{ca}&ssl_check_hostname=false"))).await.unwrap();
    // Another authority's certificate is none, whatever its name.
    let other = Authority::new();
    let ca = option("ssl_ca_certs", &other.file("ca.pem"));
    assert_refused(connects(&url(&wrong, "localhost", &format!("{ca}&ssl_check_hostname=false"))).await, "certificate");
    assert_refused(connects(&format!("redis://localhost:{}", right.port())).await, "cannot connect");
}

#[tokio::test]
async fn a_server_may_want_the_client_s_certificate() {
    let authority = Authority::new();
    authority.sign("server", "DNS:localhost");
    authority.sign("client", "DNS:client");
    let server = authority.server("server", "yes");
    let ca = option("ssl_ca_certs", &authority.file("ca.pem"));
    let certificate = option("ssl_certfile", &authority.file("client.pem"));
    let key = option("ssl_keyfile", &authority.file("client.key"));
    let whole = url(&server, "localhost", &format!("{ca}&{certificate}&{key}"));
    connects(&whole).await.unwrap();
    let backend = backend(&whole, LONG);
    let mut events = backend.telemetry().await.unwrap();
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())), "subscriptions use TLS too");
    assert!(connects(&url(&server, "localhost", &ca)).await.is_err(), "no certificate");
    let stranger = Authority::new();
    stranger.sign("client", "DNS:client");
    let certificate = option("ssl_certfile", &stranger.file("client.pem"));
    let key = option("ssl_keyfile", &stranger.file("client.key"));
    let foreign = url(&server, "localhost", &format!("{ca}&{certificate}&{key}"));
    assert!(connects(&foreign).await.is_err(), "another authority's certificate");
}

#[tokio::test]
async fn sentinels_and_clusters_by_tls() {
    let authority = Authority::new();
    authority.sign("right", "DNS:localhost,IP:127.0.0.1");
    let server = authority.server("right", "no");
    let ca = option("ssl_ca_certs", &authority.file("ca.pem"));
    // A plain server cannot play a sentinel or a node; it shows how far the way to it led.
    let sentinel = format!("rediss+sentinel://localhost:{}/m?{ca}", server.port());
    assert_refused(connects(&sentinel).await, "SENTINEL");
    let node = format!("rediss+cluster://localhost:{}?{ca}", server.port());
    assert_refused(connects(&node).await, "cluster support disabled");
}

#[tokio::test]
async fn the_socket_of_the_same_machine() {
    let server = TestRedis::spawn();
    let backend = backend(&server.unix_url(), LONG);
    let mut events = backend.telemetry().await.unwrap();
    backend.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(events.next().await, Some(TelemetryEvent::Ingress(QUEUE.into())));
    let elsewhere = super::table::backend(&format!("{}?db=3", server.unix_url()), LONG);
    elsewhere.enqueue(&[task(QUEUE)]).await.unwrap();
    assert_eq!(server.cli::<u64>(&["DBSIZE"]), 2, "the record and its list; the other task is in database 3");
    assert_refused(connects("unix:///nowhere/redis.sock").await, "/nowhere/redis.sock");
}

#[tokio::test]
async fn a_wrong_password_is_told_without_it() {
    let server = TestRedis::spawn();
    // The helpers' own connections are of no use from here on.
    server.cli::<()>(&["CONFIG", "SET", "requirepass", "right-one"]);
    let place = format!("127.0.0.1:{}", server.port());
    connects(&format!("redis://:right-one@{place}")).await.unwrap();
    connects(&format!("redis://{place}?password=right-one")).await.unwrap();
    for (url, code) in [
        (format!("redis://:wrong-one@{place}"), "authentication failed"),
        (format!("redis://{place}"), "NOAUTH"),
        (format!("redis+cluster://:wrong-one@{place}"), "authentication failed"),
    ] {
        let error = connects(&url).await.unwrap_err();
        assert!(!error.is_passing() && error.hint().is_some(), "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("wrong-one"), "{error:?}");
        assert_refused(Err(error), code);
    }
}
