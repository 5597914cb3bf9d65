//! The URL of a server, of sentinels or of a cluster.

use super::address::join;
use super::tls::{Tls, install_crypto_provider};
use super::{Address, Place, Sentinels};
use crate::backend::BackendError;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisConnectionInfo, RedisError};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// A link over which nothing has come for this long is asked whether it is still there: a subscription to a server that
/// has vanished would else wait for ever.
const KEEPALIVE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent bytes may stay unacknowledged by the other side's system.
#[cfg(target_os = "linux")]
const UNACKNOWLEDGED: Duration = Duration::from_secs(30);

/// What a URL may begin with.
const SCHEMES: &str =
    "redis://, rediss://, unix://, redis+sentinel://, rediss+sentinel://, redis+cluster:// or rediss+cluster://";

/// Where Redis is: `redis://`, `rediss://` and `unix://` as redis-py takes them, with their query options, and beside them
/// `redis+sentinel://host:port,host:port/master-name/db` and `redis+cluster://host:port,host:port`, each also with
/// `rediss`.
#[derive(Clone, PartialEq)]
pub struct RedisUrl {
    place: Place,
    username: Option<String>,
    password: Option<String>,
    db: i64,
    tls: Option<Tls>,
    pub(super) timeout: Option<Duration>,
    pub(super) connect_timeout: Option<Duration>,
}

impl RedisUrl {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`BackendError::Settings`] says which part is wrong; the text never holds the password.
    pub fn parse(text: &str) -> Result<Self, BackendError> {
        let text = text.trim();
        let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let parsed = match scheme.as_deref() {
            Some("redis" | "rediss" | "unix") => Self::of_one(text)?,
            Some(kind @ ("redis+sentinel" | "rediss+sentinel" | "redis+cluster" | "rediss+cluster")) => {
                Self::of_several(kind, text)?
            }
            // Beyond a scheme of letters anything could stand here, a password too.
            Some(other) if other.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'+') => {
                return Err(wrong(format!("the Redis URL begins with {other}://; use {SCHEMES}")));
            }
            _ => return Err(wrong(format!("the Redis URL cannot be read; it begins with {SCHEMES}"))),
        };
        if let Place::Cluster(_) = parsed.place
            && parsed.db != 0
        {
            return Err(wrong("a Redis Cluster has no database but 0; leave it out of the URL".into()));
        }
        Ok(parsed)
    }

    fn of_one(text: &str) -> Result<Self, BackendError> {
        let url = Url::parse(text).map_err(unreadable)?;
        let tls = (url.scheme() == "rediss").then(Tls::default);
        let mut parsed = match url.scheme() {
            "unix" => {
                let path = PathBuf::from(decode(url.path()));
                if path.as_os_str().is_empty() {
                    let text = "the Redis URL names no socket; it looks like unix:///run/redis/redis.sock";
                    return Err(wrong(text.into()));
                }
                Self::new(Place::Unix(path), &url, tls)
            }
            _ => Self::new(Place::Tcp(address_of(&url, 6379)), &url, tls),
        };
        if matches!(parsed.place, Place::Tcp(_)) {
            parsed.path_db(decode(url.path()).trim_matches('/'))?;
        }
        parsed.options(&url)?;
        Ok(parsed)
    }

    /// A URL with several hosts, which the URL standard does not know: they are taken out and read one by one.
    fn of_several(scheme: &str, text: &str) -> Result<Self, BackendError> {
        let rest = text.split_once("://").map_or("", |(_, rest)| rest);
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
        let at = if user.is_empty() { "" } else { "@" };
        let url = Url::parse(&format!("redis://{user}{at}host{tail}")).map_err(unreadable)?;
        let is_sentinel = scheme.ends_with("sentinel");
        let addresses = addresses_of(hosts, if is_sentinel { 26379 } else { 6379 })?;
        let tls = scheme.starts_with("rediss").then(Tls::default);
        let path = decode(url.path());
        let path = path.trim_matches('/');
        let mut parsed;
        if is_sentinel {
            let (master, db) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                return Err(wrong(
                    "the Redis URL names no master; it looks like redis+sentinel://host:26379,host2:26379/mymaster/0"
                        .into(),
                ));
            }
            let sentinels = Sentinels { addresses, master: master.to_owned(), username: None, password: None };
            parsed = Self::new(Place::Sentinel(sentinels), &url, tls);
            parsed.path_db(db)?;
        } else {
            parsed = Self::new(Place::Cluster(addresses), &url, tls);
            parsed.path_db(path)?;
        }
        parsed.options(&url)?;
        Ok(parsed)
    }

    fn new(place: Place, url: &Url, tls: Option<Tls>) -> Self {
        Self {
            place,
            username: Some(decode(url.username())).filter(|name| !name.is_empty()),
            password: url.password().map(decode).filter(|password| !password.is_empty()),
            db: 0,
            tls,
            timeout: None,
            connect_timeout: None,
        }
    }

    fn path_db(&mut self, path: &str) -> Result<(), BackendError> {
        if !path.is_empty() {
            self.db = number(path, "the database in the Redis URL")?;
        }
        Ok(())
    }

    /// Takes the query options; those that only matter to redis-py pass.
    fn options(&mut self, url: &Url) -> Result<(), BackendError> {
        for (key, value) in url.query_pairs() {
            let text = || Some(value.clone().into_owned()).filter(|text| !text.is_empty());
            match (&*key, &mut self.place) {
                ("db", _) => self.db = number(&value, "the option db of the Redis URL")?,
                ("username", _) => self.username = text(),
                ("password", _) => self.password = text(),
                ("sentinel_username", Place::Sentinel(sentinels)) => sentinels.username = text(),
                ("sentinel_password", Place::Sentinel(sentinels)) => sentinels.password = text(),
                ("socket_timeout", _) => self.timeout = Some(seconds(&value, &key)?),
                ("socket_connect_timeout", _) => self.connect_timeout = Some(seconds(&value, &key)?),
                (ssl, _) if ssl.starts_with("ssl_") => match &mut self.tls {
                    Some(tls) => tls.option(ssl, &value)?,
                    None => {
                        return Err(wrong(format!(
                            "the Redis URL has the option {ssl} but no TLS; it must begin with rediss"
                        )));
                    }
                },
                _ => {}
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
        let scheme = if self.tls.is_some() { "rediss" } else { "redis" };
        match &self.place {
            Place::Tcp(address) => format!("{scheme}://{user}{address}/{}", self.db),
            Place::Unix(path) => format!("unix://{user}{}?db={}", path.display(), self.db),
            Place::Sentinel(sentinels) => {
                let (hosts, master) = (join(&sentinels.addresses), &sentinels.master);
                format!("{scheme}+sentinel://{user}{hosts}/{master}/{}", self.db)
            }
            Place::Cluster(addresses) => format!("{scheme}+cluster://{user}{}", join(addresses)),
        }
    }

    /// What it points at.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// A client for one server of it.
    pub(crate) fn client(&self, address: &Address) -> Result<Client, BackendError> {
        self.client_as(address, self.username.as_deref(), self.password.as_deref(), self.db)
    }

    /// A client for the server behind a socket of this machine.
    pub(crate) fn unix_client(&self, path: PathBuf) -> Result<Client, BackendError> {
        let redis = redis_info(self.username.as_deref(), self.password.as_deref(), self.db);
        let info = ConnectionAddr::Unix(path).into_connection_info().map_err(unusable)?;
        Client::open(info.set_redis_settings(redis)).map_err(unusable)
    }

    /// A client for one sentinel.
    pub(crate) fn sentinel_client(&self, sentinels: &Sentinels, address: &Address) -> Result<Client, BackendError> {
        self.client_as(address, sentinels.username.as_deref(), sentinels.password.as_deref(), 0)
    }

    fn client_as(
        &self,
        address: &Address,
        username: Option<&str>,
        password: Option<&str>,
        db: i64,
    ) -> Result<Client, BackendError> {
        let dress = |info: ConnectionInfo| {
            info.set_redis_settings(redis_info(username, password, db)).set_tcp_settings(tcp_settings())
        };
        let (host, port) = (address.host.clone(), address.port);
        let Some(tls) = &self.tls else {
            let info = ConnectionAddr::Tcp(host, port).into_connection_info().map_err(unusable)?;
            return Client::open(dress(info)).map_err(unusable);
        };
        install_crypto_provider();
        let (addr, certificates) = tls.apply(host, port)?;
        let info = addr.into_connection_info().map_err(unusable)?;
        let client = Client::build_with_tls(dress(info), certificates).map_err(unusable)?;
        if !tls.any_host() {
            return Ok(client);
        }
        let info = client.get_connection_info().clone();
        let mut addr = info.addr().clone();
        addr.set_danger_accept_invalid_hostnames(true);
        Client::open(info.set_addr(addr)).map_err(unusable)
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.endpoint()).finish()
    }
}

fn redis_info(username: Option<&str>, password: Option<&str>, db: i64) -> RedisConnectionInfo {
    let mut redis = RedisConnectionInfo::default().set_db(db).set_lib_name("threadmill", env!("CARGO_PKG_VERSION"));
    if let Some(username) = username {
        // As redis-py does: a name alone logs in as a user without a password.
        redis = redis.set_username(username).set_password(password.unwrap_or_default());
    } else if let Some(password) = password {
        redis = redis.set_password(password);
    }
    redis
}

fn tcp_settings() -> TcpSettings {
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE_INTERVAL);
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive.with_retries(KEEPALIVE_PROBES));
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(UNACKNOWLEDGED);
    settings
}

fn addresses_of(hosts: &str, port: u16) -> Result<Vec<Address>, BackendError> {
    let mut addresses = Vec::new();
    for (i, host) in hosts.split(',').enumerate() {
        // The text itself stays out of the message: a password with an unescaped sign in it would end up here.
        let unreadable = || wrong(format!("host {} of the Redis URL cannot be read; it looks like host:port", i + 1));
        let url = Url::parse(&format!("redis://{host}")).map_err(|_| unreadable())?;
        if host.is_empty() || url.host().is_none() || !url.path().is_empty() || !url.username().is_empty() {
            return Err(unreadable());
        }
        addresses.push(address_of(&url, port));
    }
    Ok(addresses)
}

fn address_of(url: &Url, port: u16) -> Address {
    let host = match url.host() {
        Some(url::Host::Ipv6(address)) => address.to_string(),
        Some(host) => decode(&host.to_string()),
        None => "localhost".into(),
    };
    Address { host, port: url.port().unwrap_or(port) }
}

fn wrong(what: String) -> BackendError {
    BackendError::Settings(what)
}

fn unreadable(error: url::ParseError) -> BackendError {
    wrong(format!("the Redis URL cannot be read ({error}); it looks like redis://localhost:6379/0"))
}

fn unusable(error: RedisError) -> BackendError {
    wrong(format!("the Redis URL cannot be used: {error}"))
}

fn decode(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn number(text: &str, what: &str) -> Result<i64, BackendError> {
    // Where an unescaped sign splits a password, a part of it stands here.
    let shown = if text.contains(['@', ':']) { "unreadable".to_owned() } else { format!("`{text}`") };
    text.parse::<i64>()
        .ok()
        .filter(|n| *n >= 0)
        .ok_or_else(|| wrong(format!("{what} is {shown}; it must be a whole number from 0 up")))
}

fn seconds(text: &str, option: &str) -> Result<Duration, BackendError> {
    text.parse::<f64>()
        .ok()
        .and_then(|s| Duration::try_from_secs_f64(s).ok())
        .filter(|d| !d.is_zero())
        .ok_or_else(|| wrong(format!("the option {option} of the Redis URL is `{text}`; it must be seconds above 0")))
}

#[cfg(test)]
#[path = "url_tests.rs"]
mod tests;
