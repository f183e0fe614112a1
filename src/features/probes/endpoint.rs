//! The address of the liveness endpoint: `http://HOST:PORT/PATH`.

use std::{fmt, str::FromStr};

/// An address to listen on, and a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeEndpoint {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// The TCP port to listen on.
    pub port: u16,
    /// The path of the probe handlers; starts with a slash.
    pub path: String,
}

/// The reason why a string is not a valid endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The scheme is not `http`.
    #[error("Unsupported scheme: {0}")]
    Scheme(String),
    /// The port is missing or invalid.
    #[error("'{0}' has no valid port")]
    Port(String),
}

impl FromStr for ProbeEndpoint {
    type Err = UrlError;

    fn from_str(url: &str) -> Result<Self, UrlError> {
        let rest = url.strip_prefix("http://").ok_or_else(|| UrlError::Scheme(url.to_owned()))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        // The colons of an IPv6 address are inside brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_problem| UrlError::Port(url.to_owned()))?)
            }
            Some(_) | None => (authority, 80),
        };
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if bare.is_none() && host.contains(':') {
            return Err(UrlError::Port(url.to_owned()));
        }
        let host = bare.unwrap_or(host);
        let host = if host.is_empty() { "localhost" } else { host };
        let path = if path.is_empty() { "/" } else { path };
        Ok(ProbeEndpoint { host: host.to_owned(), port, path: path.to_owned() })
    }
}

impl fmt::Display for ProbeEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ProbeEndpoint { host, port, path } = self;
        if host.contains(':') {
            write!(f, "http://[{host}]:{port}{path}")
        } else {
            write!(f, "http://{host}:{port}{path}")
        }
    }
}
