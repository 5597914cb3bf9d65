//! Where Redis is and how long things live.

use crate::backend::BackendError;
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, TlsCertificates,
};
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// How one backend is reached and what its options are. The names and defaults of the options are those of the Python
/// package.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where Redis is.
    pub url: RedisUrl,
    /// The backend's alias, which is part of every key.
    pub alias: String,
    /// Queues that are known by configuration.
    pub queues: Vec<String>,
    /// How long a worker may hold a task before it counts as lost.
    pub lease_ttl: Duration,
    /// How long results are kept.
    pub result_ttl: Duration,
    /// How long an answer of the server is waited for.
    pub timeout: Duration,
    /// How long a connection attempt is waited for.
    pub connect_timeout: Duration,
    /// The largest record that is stored, in bytes.
    pub max_payload: usize,
}

impl Settings {
    /// The defaults for a server at `url`: alias `default`, leases of an hour, results of a day, 5 seconds for an answer, 64 MiB.
    pub fn new(url: RedisUrl) -> Self {
        let (timeout, connect_timeout) = (url.timeout, url.connect_timeout);
        Self {
            url,
            alias: "default".into(),
            queues: Vec::new(),
            lease_ttl: Duration::from_secs(3600),
            result_ttl: Duration::from_secs(24 * 3600),
            timeout: timeout.unwrap_or(Duration::from_secs(5)),
            connect_timeout: connect_timeout.unwrap_or(Duration::from_secs(5)),
            max_payload: 64 << 20,
        }
    }
}

/// A server's URL as redis-py takes it: `redis://`, `rediss://` or `unix://`, with its query options.
#[derive(Clone, Debug, PartialEq)]
pub struct RedisUrl {
    place: Place,
    username: Option<String>,
    password: Option<String>,
    db: i64,
    tls: Option<Tls>,
    timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq)]
enum Place {
    Tcp(String, u16),
    Unix(PathBuf),
}

#[derive(Clone, Debug, PartialEq, Default)]
struct Tls {
    insecure: bool,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl RedisUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`BackendError::Settings`] says which part is wrong; the text never holds the password.
    pub fn parse(text: &str) -> Result<Self, BackendError> {
        let wrong = |what: String| BackendError::Settings(what);
        let url = Url::parse(text.trim()).map_err(|e| {
            wrong(format!("the Redis URL cannot be read ({e}); it looks like redis://localhost:6379/0"))
        })?;
        let place = match url.scheme() {
            "redis" | "rediss" => Place::Tcp(host_of(&url), url.port().unwrap_or(6379)),
            "unix" => Place::Unix(PathBuf::from(decode(url.path()))),
            "redis+sentinel" | "redis+cluster" => {
                return Err(wrong(format!(
                    "{}:// is not supported yet; use redis://, rediss:// or unix://",
                    url.scheme()
                )));
            }
            other => {
                return Err(wrong(format!("the Redis URL begins with {other}://; use redis://, rediss:// or unix://")));
            }
        };
        let mut parsed = RedisUrl {
            username: Some(decode(url.username())).filter(|name| !name.is_empty()),
            password: url.password().map(decode).filter(|password| !password.is_empty()),
            db: 0,
            tls: (url.scheme() == "rediss").then(Tls::default),
            place,
            timeout: None,
            connect_timeout: None,
        };
        if matches!(parsed.place, Place::Tcp(..)) {
            let path = decode(url.path());
            let path = path.trim_matches('/');
            if !path.is_empty() {
                parsed.db = number(path, "the database in the Redis URL")?;
            }
        } else if matches!(&parsed.place, Place::Unix(path) if path.as_os_str().is_empty()) {
            return Err(wrong("the Redis URL names no socket; it looks like unix:///run/redis/redis.sock".into()));
        }
        for (key, value) in url.query_pairs() {
            parsed.option(&key, &value)?;
        }
        Ok(parsed)
    }

    /// Takes one query option; those that only matter to redis-py pass.
    fn option(&mut self, key: &str, value: &str) -> Result<(), BackendError> {
        let path = || Some(PathBuf::from(value));
        match key {
            "db" => self.db = number(value, "the option db of the Redis URL")?,
            "username" => self.username = Some(value.to_owned()),
            "password" => self.password = Some(value.to_owned()),
            "socket_timeout" => self.timeout = Some(seconds(value, key)?),
            "socket_connect_timeout" => self.connect_timeout = Some(seconds(value, key)?),
            _ => {
                let Some(tls) = &mut self.tls else { return Ok(()) };
                match key {
                    "ssl_cert_reqs" => tls.insecure = matches!(value, "none" | "CERT_NONE" | "0"),
                    "ssl_check_hostname" => {}
                    "ssl_ca_certs" => tls.ca = path(),
                    "ssl_certfile" => tls.certificate = path(),
                    "ssl_keyfile" => tls.key = path(),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Where the server is, for a person: without the password.
    pub fn endpoint(&self) -> String {
        let user = match (&self.username, &self.password) {
            (Some(name), Some(_)) => format!("{name}:***@"),
            (Some(name), None) => format!("{name}@"),
            (None, Some(_)) => ":***@".to_owned(),
            (None, None) => String::new(),
        };
        match &self.place {
            Place::Tcp(host, port) => {
                let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
                let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                format!("{scheme}://{user}{host}:{port}/{}", self.db)
            }
            Place::Unix(path) => format!("unix://{user}{}?db={}", path.display(), self.db),
        }
    }

    /// A client for it.
    pub(crate) fn client(&self) -> Result<Client, BackendError> {
        let addr = match &self.place {
            Place::Tcp(host, port) => match &self.tls {
                None => ConnectionAddr::Tcp(host.clone(), *port),
                Some(tls) => {
                    ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: tls.insecure, tls_params: None }
                }
            },
            Place::Unix(path) => ConnectionAddr::Unix(path.clone()),
        };
        let mut redis =
            RedisConnectionInfo::default().set_db(self.db).set_lib_name("threadmill", env!("CARGO_PKG_VERSION"));
        if let Some(username) = &self.username {
            redis = redis.set_username(username);
        }
        if let Some(password) = &self.password {
            redis = redis.set_password(password);
        }
        let failed = |e: redis::RedisError| BackendError::Settings(format!("the Redis URL cannot be used: {e}"));
        let tcp = redis::io::tcp::TcpSettings::default().set_nodelay(true);
        let info: ConnectionInfo = addr.into_connection_info().map_err(failed)?;
        let info = info.set_redis_settings(redis).set_tcp_settings(tcp);
        match &self.tls {
            None => Client::open(info).map_err(failed),
            Some(tls) => {
                install_crypto_provider();
                Client::build_with_tls(info, tls.certificates()?).map_err(failed)
            }
        }
    }
}

impl Tls {
    fn certificates(&self) -> Result<TlsCertificates, BackendError> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|e| BackendError::Settings(format!("cannot read {} of the Redis URL: {e}", path.display())))
        };
        let client_tls = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
            }
            (None, None) => None,
            _ => {
                return Err(BackendError::Settings(
                    "the Redis URL names one of ssl_certfile and ssl_keyfile; a client certificate needs both".into(),
                ));
            }
        };
        Ok(TlsCertificates { client_tls, root_cert: self.ca.as_ref().map(read).transpose()? })
    }
}

/// The redis crate brings no crypto provider; the first connection with TLS installs ring's.
fn install_crypto_provider() {
    // An error means that the program has chosen one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn host_of(url: &Url) -> String {
    match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        Some(host) => decode(&host.to_string()),
        None => "localhost".into(),
    }
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn number(text: &str, what: &str) -> Result<i64, BackendError> {
    text.parse::<i64>()
        .ok()
        .filter(|n| *n >= 0)
        .ok_or_else(|| BackendError::Settings(format!("{what} is `{text}`; it must be a whole number from 0 up")))
}

fn seconds(text: &str, option: &str) -> Result<Duration, BackendError> {
    text.parse::<f64>().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()).filter(|d| !d.is_zero()).ok_or_else(
        || {
            BackendError::Settings(format!(
                "the option {option} of the Redis URL is `{text}`; it must be seconds above 0"
            ))
        },
    )
}

#[cfg(test)]
mod tests {
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
    fn what_is_wrong_is_named_and_no_password_told() {
        for (text, part) in [
            ("localhost:6379", "redis://"),
            ("http://h", "http://"),
            ("redis://:secret@h/abc", "database"),
            ("redis://:secret@h?db=-1", "db"),
            ("redis://:secret@h?socket_timeout=soon", "socket_timeout"),
            ("redis://:secret@h:99999", "port"),
            ("unix://", "socket"),
        ] {
            let error = RedisUrl::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
