//! Connects only to granted hosts and addresses.
//!
//! A granted name may resolve to any address: its owner decides. So the address of the connection is checked, too: those of the
//! machine itself, and of cloud services that provide credentials, must be granted explicitly.

use std::{
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time};

use crate::logic::access::grants::{Access, Denied};

/// Maximum time for one address, before the next one is tried.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Makes connections for an HTTP client.
#[derive(Clone)]
pub(super) struct Connector(pub(super) Arc<Access>);

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let access = Arc::clone(&self.0);
        Box::pin(async move { connect(&access, &uri).await.map(TokioIo::new) })
    }
}

async fn connect(access: &Access, uri: &Uri) -> io::Result<TcpStream> {
    let host = uri.host().unwrap_or_default();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    check_host(access, host, port).map_err(refused)?;
    let bare = bare(host);
    let mut failed = io::Error::other(format!("no address found for {bare}"));
    let found = time::timeout(CONNECT_MAX, tokio::net::lookup_host((bare, port))).await;
    let found =
        found.map_err(|_elapsed| late(&format!("DNS lookup of {bare} did not finish")))??;
    for address in found {
        if let Err(problem) = check_address(access, bare, address) {
            failed = refused(problem);
            continue;
        }
        match time::timeout(CONNECT_MAX, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Ok(Err(error)) => failed = error,
            Err(_elapsed) => failed = late(&format!("connection to {address} not established")),
        }
    }
    Err(failed)
}

fn late(what: &str) -> io::Error {
    let message = format!("{what} within {} s", CONNECT_MAX.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, message)
}

fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

/// Returns an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
}

/// Checks that the host of a URL is granted.
pub(super) fn check_host(access: &Access, host: &str, port: u16) -> Result<(), String> {
    let host = bare(host);
    if access.allows_net(host, port) { Ok(()) } else { Err(Denied::net(host, port).to_string()) }
}

/// Checks that the certificate of a host need not be checked.
pub(super) fn check_insecure(access: &Access, host: &str, port: u16) -> Result<(), String> {
    let host = bare(host);
    if access.allows_insecure(host, port) {
        return Ok(());
    }
    Err(Denied::insecure(host, port).to_string())
}

/// Checks that a granted name may mean this address.
fn check_address(access: &Access, host: &str, address: SocketAddr) -> Result<(), String> {
    let (ip, port) = (address.ip().to_canonical(), address.port());
    let is_own_name = host.eq_ignore_ascii_case("localhost") && ip.is_loopback();
    if !is_special(ip) || is_own_name || access.names_address(ip, port) {
        return Ok(());
    }
    let denied = Denied::net(&ip.to_string(), port);
    if host.parse::<IpAddr>().is_ok() {
        return Err(format!(
            "{denied}; patterns do not grant addresses of this machine or of its cloud provider"
        ));
    }
    Err(format!(
        "{host} resolves to {ip}, an address of this machine or of its cloud provider: {denied}"
    ))
}

/// Returns whether an address belongs to the machine or to its link, where no remote host is meant and credentials can be found.
fn is_special(ip: IpAddr) -> bool {
    /// Cloud services that provide credentials and are not link-local: Azure, Alibaba, AWS.
    const CLOUD: [Ipv4Addr; 2] =
        [Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
    /// The same for IPv6: Google and Oracle.
    const CLOUD_V6: [Ipv6Addr; 2] = [
        Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
        Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    ];
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            ip.is_loopback()
                || ip.is_link_local()
                || ip.is_unspecified()
                || ip.is_broadcast()
                || ip.is_multicast()
                || ip.octets().first() == Some(&0)
                || CLOUD.contains(&ip)
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_multicast()
                || ip.is_unicast_link_local()
                || CLOUD_V6.contains(&ip)
                // All of AWS.
                || ip.segments().starts_with(&[0xfd00, 0xec2])
                || embedded(ip).into_iter().flatten().any(|it| is_special(IpAddr::V4(it)))
        }
    }
}

/// Returns the IPv4 addresses that an IPv6 address may stand for: translated, tunnelled or compatible.
fn embedded(ip: Ipv6Addr) -> [Option<Ipv4Addr>; 2] {
    let of = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match ip.segments() {
        // Local translation prefixes have at least 48 bits.
        [0x64, 0xff9b, 1, first, second, third, high, low] => {
            [of(first, (second << 8) | (third >> 8)), of(high, low)]
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0 | 0xffff, 0, high, low]
        | [0x2002, high, low, ..] => [of(high, low), None],
        _ => [None, None],
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Access, check_address, is_special};
    use crate::logic::access::grants::Permission;

    #[test]
    fn addresses_of_the_machine_and_of_its_cloud_are_special() {
        for ip in [
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "168.63.129.16",
            "100.100.100.200",
            "::1",
            "::",
            "fe80::1",
            "ff02::1",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "64:ff9b:1::169.254.169.254",
            "64:ff9b:1:a9fe:a9:fe00::",
            "::ffff:0:169.254.169.254",
            "::ffff:169.254.169.254",
            "::ffff:127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "::169.254.169.254",
        ] {
            assert!(is_special(ip.parse().unwrap()), "{ip}");
        }
        for ip in [
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "8.8.8.8",
            "fd12::1",
            "2606:4700::1",
            "64:ff9b::808:808",
        ] {
            assert!(!is_special(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn a_special_address_must_be_granted_explicitly() {
        let mut access = Access::default();
        for rule in ["*:*", "127.0.0.1:8080"] {
            access.allow(Permission::Net, rule, Path::new("/")).unwrap();
        }
        let check =
            |host: &str, address: &str| check_address(&access, host, address.parse().unwrap());
        assert_eq!(check("a.example", "10.0.0.1:80"), Ok(()));
        assert_eq!(check("a.example", "127.0.0.1:8080"), Ok(()));
        assert_eq!(check("localhost", "127.0.0.1:80"), Ok(()));
        assert_eq!(
            check("a.example", "169.254.169.254:80").unwrap_err(),
            "a.example resolves to 169.254.169.254, an address of this machine or of its cloud provider: the connection to \
             169.254.169.254:80 is not granted to this script; --allow-net=169.254.169.254:80 would allow it"
        );
        assert!(check("localhost", "169.254.169.254:80").is_err());
        assert!(
            check("169.254.169.254", "169.254.169.254:80")
                .unwrap_err()
                .contains("patterns do not grant")
        );
    }
}
