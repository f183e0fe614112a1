//! The handlers that find the URL of the webhook server.

use std::sync::Arc;

use kopf::logic::{
    admission::configuration::{ClientConfig, WebhookEndpoint},
    handlers::handler::Kind,
};
use kopf::telemetry::Health;
use serde_json::json;

use super::{cluster::in_both, probes::repeated_activity};

/// Calls the handlers of a script that find the URL.
fn found(lua: &str, rhai: &str) -> Result<ClientConfig, String> {
    in_both(lua, rhai, |_, source| async {
        let activity = repeated_activity(source, Kind::Tunnel, &Health::default()).await;
        let server =
            json!({ "port": 9443, "path": "/hooks", "insecure": false, "ca": "-----BEGIN" });
        activity.into_tunnel()(Arc::new(server)).await
    })
}

#[test]
fn a_tunnel_handler_sees_the_server_and_returns_its_url() {
    let config = found(
        "kopf.on_tunnel(function(ctx) return `https://{ctx.activity}-{ctx.server.port}.example.com{ctx.server.path}` end)",
        "kopf::on_tunnel(|ctx| `https://${ctx.activity}-${ctx.server.port}.example.com${ctx.server.path}`);",
    );
    let endpoint = WebhookEndpoint::Url("https://tunnel-9443.example.com/hooks".to_owned());
    assert_eq!(config, Ok(ClientConfig { endpoint, ca: None }));
    let config = found(
        "kopf.on.tunnel(function(ctx) return { url = 'https://a', caBundle = ctx.server.ca } end)",
        "kopf::on::tunnel(|ctx| #{ url: \"https://a\", caBundle: ctx.server.ca });",
    );
    let endpoint = WebhookEndpoint::Url("https://a".to_owned());
    assert_eq!(config, Ok(ClientConfig { endpoint, ca: Some("-----BEGIN".to_owned()) }));
}

#[test]
fn a_tunnel_handler_that_fails_or_returns_something_else_is_reported() {
    let problem = found(
        "kopf.on_tunnel(function(ctx) return { host = 'a' } end)",
        "kopf::on_tunnel(|ctx| #{ host: \"a\" });",
    );
    let problem = problem.expect_err("no URL");
    assert!(
        problem.starts_with("the tunnel handler 'tunnel': unknown field `host`: return the URL"),
        "{problem}"
    );
    let problem = found("kopf.on_tunnel(function(ctx) end)", "kopf::on_tunnel(|ctx| ());")
        .expect_err("nothing");
    assert_eq!(problem, "the tunnel handlers return no URL");
    let problem = found(
        "kopf.on_tunnel(function(ctx) kopf.fail('no agent') end)",
        "kopf::on_tunnel(|ctx| { kopf::fail(\"no agent\"); });",
    );
    assert_eq!(problem.expect_err("it fails"), "tunnel failed: 'tunnel': no agent");
}
