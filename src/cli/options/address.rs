//! `HOST:PORT`: an address to listen on.

use std::fmt;

/// An address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// A name or an IP address, without brackets; empty for all addresses of this machine.
    pub host: String,
    /// The port; 0 is any free port.
    pub port: u16,
}

impl Address {
    /// Reads `HOST:PORT`, `[IPV6]:PORT` or `:PORT`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok()?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        // A bare IPv6 address could include the port.
        let is_plain = !host.contains([':', '/', '[', ']']);
        bare.or(is_plain.then_some(host)).map(|it| Address { host: it.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}
