//! From a configuration to a client with connections of its own.

use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{self, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Client, Config,
    client::{Body, ClientBuilder, ConfigExt as _},
};
use tower::{BoxError, Layer as _, ServiceExt as _, util::option_layer};

/// A connection that nobody has used for so long is closed. A rush opens dozens, each with its buffers, and they would stay
/// for ever; while there is work, each comes around many times a second.
pub(super) const IDLE: Duration = Duration::from_secs(5);

/// A peer that acknowledges nothing for so long is taken for dead: HTTP/1.1 has no pings.
pub(super) const DEAD_AFTER: Duration = Duration::from_secs(30);

/// How often a silent peer is asked whether it is there, after [`DEAD_AFTER`].
const PROBE_EVERY: Duration = Duration::from_secs(5);

/// How many of these may go unanswered.
const PROBES: u32 = 3;

/// Has the system notice connections that died silently, as when a node or a load balancer is gone.
fn watch_over(http: &mut HttpConnector) {
    http.set_keepalive(Some(DEAD_AFTER));
    http.set_keepalive_interval(Some(PROBE_EVERY));
    http.set_keepalive_retries(Some(PROBES));
    // Keep-alive says nothing about data that was sent and is not acknowledged.
    #[cfg(target_os = "linux")]
    http.set_tcp_user_timeout(Some(DEAD_AFTER));
}

/// Over the network.
///
/// # Errors
/// When certificates or keys cannot be used, or an exec plugin fails.
pub fn dial(config: Config) -> kube::Result<Client> {
    if config.proxy_url.is_some() {
        // With the pool of `kube`, which knows how to speak to proxies.
        return ClientBuilder::try_from(config).map(ClientBuilder::build);
    }
    let mut http = HttpConnector::new();
    // TLS comes on top of it.
    http.enforce_http(false);
    watch_over(&mut http);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(http)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut pool = legacy::Client::builder(TokioExecutor::new());
    // Without a timer, the pool notices idle connections only when it is asked for one.
    pool.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE);
    let client: legacy::Client<_, Body> = pool.build(connector);
    let service = config.extra_headers_layer()?.layer(client.map_err(BoxError::from));
    let service = option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(Client::new(service, config.default_namespace))
}
