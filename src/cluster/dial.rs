//! Creates a client with its own connections from a configuration.

use std::time::Duration;

use http::{Request, Uri};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, Layer as _, ServiceExt as _, util::option_layer};

use super::http_client::HttpClient;

/// Time after which idle connections are closed. A burst opens dozens, each with its buffers, and they would stay open; under load, each is
/// used many times a second.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// A peer that acknowledges nothing for this long is considered dead: HTTP/1.1 has no pings.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(30);

/// The interval of TCP keep-alive probes to a silent peer, after [`DEAD_AFTER`].
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// Maximum number of unanswered probes.
const PROBES: u32 = 3;

/// Enables keep-alive, so that the system detects dead connections, for example if a node or a load balancer is gone.
fn watch_over(http: &mut HttpConnector) {
    http.set_keepalive(Some(DEAD_AFTER));
    http.set_keepalive_interval(Some(PROBE_EVERY));
    http.set_keepalive_retries(Some(PROBES));
    // Keep-alive does not cover data that was sent but not acknowledged.
    #[cfg(target_os = "linux")]
    http.set_tcp_user_timeout(Some(DEAD_AFTER));
}

/// Creates a client over the network.
///
/// # Errors
/// Fails if certificates or keys cannot be used, or an exec plugin fails.
pub fn dial(config: Config) -> kube::Result<HttpClient> {
    if config.proxy_url.is_some() {
        // With the pool of `kube`, which supports proxies.
        return ClientBuilder::try_from(config).map(|it| it.build().into());
    }
    let mut http = HttpConnector::new();
    // TLS is added on top.
    http.enforce_http(false);
    watch_over(&mut http);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(http)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut pool = legacy::Client::builder(TokioExecutor::new());
    // Without a timer, the pool checks idle connections only when one is requested.
    pool.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    let client = pool.build(connector).map_err(BoxError::from);
    let service = config.extra_headers_layer()?.layer(client);
    let service = option_layer(config.auth_layer()?).layer(service);
    let server = config.cluster_url;
    let service = service.map_request(move |it| at(&server, it));
    Ok(HttpClient::new(service, &config.default_namespace))
}

/// Returns the request with the address of the server, which may have a path itself. Unlike the layer of `kube`, this parses text only
/// then.
fn at<B>(server: &Uri, request: Request<B>) -> Request<B> {
    let (mut parts, body) = request.into_parts();
    let mut address = server.clone().into_parts();
    let base = server.path().trim_end_matches('/');
    address.path_and_query = match parts.uri.path_and_query() {
        Some(path) if base.is_empty() => Some(path.clone()),
        Some(path) => format!("{base}{path}").parse().ok(),
        None => address.path_and_query,
    };
    // Parts of valid addresses are always valid together.
    parts.uri = Uri::from_parts(address).unwrap_or(parts.uri);
    Request::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::at;

    #[test]
    fn requests_get_the_address_of_the_server_and_its_path() {
        for (server, path, expected) in [
            ("https://a:6443", "/api?x=/", "https://a:6443/api?x=/"),
            ("https://a:6443/", "/api", "https://a:6443/api"),
            (
                "http://[::1]/k8s/c/1/",
                "/api/v1?watch=true",
                "http://[::1]/k8s/c/1/api/v1?watch=true",
            ),
            ("https://a/k8s?ignored=1", "/", "https://a/k8s/"),
        ] {
            let request = at(&server.parse().unwrap(), Request::get(path).body(()).unwrap());
            assert_eq!(request.uri().to_string(), expected);
        }
    }
}
