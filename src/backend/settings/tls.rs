//! TLS as the options of a redis-py URL ask for it.

use crate::backend::BackendError;
use redis::{ClientTlsConfig, ConnectionAddr, TlsCertificates};
use std::path::PathBuf;

/// What is checked, and with what.
#[derive(Clone, Debug, PartialEq, Default)]
pub(super) struct Tls {
    /// The server's certificate is not checked at all.
    insecure: bool,
    /// The certificate is checked, but not whether it is for this host.
    any_host: bool,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl Tls {
    /// Takes one `ssl_` option.
    pub fn option(&mut self, key: &str, value: &str) -> Result<(), BackendError> {
        let wrong = |what: String| Err(BackendError::Settings(what));
        let path = || Some(PathBuf::from(value));
        match key {
            // For a client, Python's "optional" checks as "required" does.
            "ssl_cert_reqs" => match value {
                "none" | "CERT_NONE" | "0" => self.insecure = true,
                "optional" | "required" | "CERT_OPTIONAL" | "CERT_REQUIRED" | "1" | "2" => self.insecure = false,
                _ => {
                    return wrong(format!(
                        "the option ssl_cert_reqs of the Redis URL is `{value}`; it must be none, optional or required"
                    ));
                }
            },
            "ssl_check_hostname" => match value.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => self.any_host = false,
                "false" | "0" | "no" | "off" => self.any_host = true,
                _ => {
                    return wrong(format!(
                        "the option ssl_check_hostname of the Redis URL is `{value}`; it must be true or false"
                    ));
                }
            },
            "ssl_ca_certs" => self.ca = path(),
            "ssl_certfile" => self.certificate = path(),
            "ssl_keyfile" => self.key = path(),
            // What is asked for and not done would be less secure than it looks.
            _ => return wrong(format!("the option {key} of the Redis URL is not supported; {SUPPORTED}")),
        }
        Ok(())
    }

    /// The address with TLS, its certificates read.
    pub fn apply(&self, host: String, port: u16) -> Result<(ConnectionAddr, TlsCertificates), BackendError> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .map_err(|e| BackendError::Settings(format!("cannot read {} of the Redis URL: {e}", path.display())))
        };
        let client_tls = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read(certificate)?, client_key: read(key)? })
            }
            // One file may hold both, as in Python.
            (Some(both), None) => Some(ClientTlsConfig { client_cert: read(both)?, client_key: read(both)? }),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(BackendError::Settings(
                    "the Redis URL names ssl_keyfile without ssl_certfile; a client certificate needs both".into(),
                ));
            }
        };
        let addr = ConnectionAddr::TcpTls { host, port, insecure: self.insecure, tls_params: None };
        Ok((addr, TlsCertificates { client_tls, root_cert: self.ca.as_ref().map(read).transpose()? }))
    }

    /// Whether any valid certificate will do.
    pub fn any_host(&self) -> bool {
        self.any_host
    }
}

/// The options that there are.
const SUPPORTED: &str =
    "there are ssl_cert_reqs, ssl_check_hostname, ssl_ca_certs, ssl_certfile and ssl_keyfile (files in PEM)";

/// The redis crate brings no crypto provider; the first connection with TLS installs ring's.
pub(super) fn install_crypto_provider() {
    // An error means that the program has chosen one already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
