//! Rules for hosts and ports.

// The same type as in `std::net`, the module of sockets.
use core::{fmt, net::IpAddr, net::Ipv6Addr, str::FromStr as _};

/// Hosts, and one or all of their ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRule {
    host: Host,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    /// `*`
    Any,
    /// Lower case, without the trailing dot.
    Name(String),
    /// `*.example.com`, stored as `.example.com`: the names below the domain, not the domain itself.
    Below(String),
    /// An IP address, which matches in any notation.
    Address(IpAddr),
}

impl HostRule {
    /// Reads `HOST:PORT`; both may be `*`, and the host may begin with `*.`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some((scheme, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            let port = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
            let meant = if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
            return Err(format!("'{text}' is a URL: pass only the host and its port: {meant}"));
        }
        if Ipv6Addr::from_str(text).is_ok() {
            return Err(format!("'{text}' has no brackets: write [{text}]:443, or [{text}]:*"));
        }
        let no_port =
            || format!("'{text}' has no port: write {text}:443, or {text}:* for all ports");
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) =
                rest.split_once(']').ok_or_else(|| format!("'{text}' has no closing bracket"))?;
            let port = rest.strip_prefix(':').ok_or_else(no_port)?;
            let address = Ipv6Addr::from_str(host)
                .map_err(|_problem| format!("'{host}' in '{text}' is not an IPv6 address"))?;
            (Host::Address(IpAddr::V6(address).to_canonical()), port)
        } else {
            let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
            (Host::parse(host, text)?, port)
        };
        let port = match port {
            "*" => None,
            number => Some(port_of(number).ok_or_else(|| {
                format!(
                    "'{number}' in '{text}' is not a port: expected a number from 1 to 65535, or *"
                )
            })?),
        };
        Ok(HostRule { host, port })
    }

    pub(super) fn matches(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|it| it == port) && self.host.matches(host)
    }
}

impl HostRule {
    /// Returns whether the rule names this address itself.
    pub(super) fn is_of_address(&self, address: IpAddr, port: u16) -> bool {
        let is_host = self.host == Host::Address(address.to_canonical());
        is_host && self.port.is_none_or(|it| it == port)
    }
}

impl Host {
    fn parse(host: &str, text: &str) -> Result<Self, String> {
        if host == "*" {
            return Ok(Host::Any);
        }
        if let Ok(address) = IpAddr::from_str(without_dot(host)) {
            return Ok(Host::Address(address));
        }
        let lower = lower(host);
        let below = lower.strip_prefix('*');
        let name = below.map_or(lower.as_str(), |it| it.strip_prefix('.').unwrap_or_default());
        if name.contains('*') || (name.is_empty() && below.is_some()) {
            return Err(format!(
                "'{text}': a star can only replace the first parts of a name, as in *.example.com:443"
            ));
        }
        if !name.is_ascii() {
            return Err(format!("'{text}' is not ASCII: write the name as the DNS has it, xn--…"));
        }
        let is_good = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
        let is_label = |it: &str| !it.is_empty() && it.bytes().all(is_good);
        if !name.split('.').all(is_label) {
            return Err(format!("'{host}' in '{text}' is not a host name"));
        }
        Ok(if below.is_some() { Host::Below(format!(".{name}")) } else { Host::Name(lower) })
    }

    fn matches(&self, host: &str) -> bool {
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host);
        let address = IpAddr::from_str(without_dot(bare)).ok().map(|it| it.to_canonical());
        match (self, address) {
            (Host::Any, _) => !host.is_empty(),
            (Host::Address(own), address) => address == Some(*own),
            // Names and patterns never match an address, whatever it looks like.
            (Host::Name(_) | Host::Below(_), Some(_)) => false,
            (Host::Name(name), None) => lower(host) == *name,
            (Host::Below(end), None) => {
                let host = lower(host);
                host.len() > end.len() && host.ends_with(end.as_str()) && !host.starts_with('.')
            }
        }
    }
}

impl fmt::Display for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Any => f.write_str("*")?,
            Host::Name(name) => f.write_str(name)?,
            Host::Below(end) => write!(f, "*{end}")?,
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}")?,
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => f.write_str(":*"),
        }
    }
}

/// Returns a host and a port in the form of the option.
pub(super) fn written(host: &str, port: u16) -> String {
    if Ipv6Addr::from_str(host).is_ok() {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Normalizes a name: case and the trailing dot do not matter.
fn lower(host: &str) -> String {
    without_dot(host).to_ascii_lowercase()
}

fn without_dot(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

/// Reads a port. Accepts digits only: no sign, unlike the parser of integers.
fn port_of(text: &str) -> Option<u16> {
    let is_number = text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_number && *it != 0)
}
