//! Converts the connection info of a script to a configuration, by way of the equivalent kubeconfig.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderName, HeaderValue, header};
use kube::Config;
use kube::config::KubeConfigOptions;
use serde_json::{Value, json};

use super::{
    kubeconfig::{chain, from_value},
    refusal::refuse,
};
use crate::logic::access::login::ConnectionInfo;
use crate::ports::ApiError;

/// The beginning of PEM texts. Other data is assumed to be base64 of such a text.
const PEM: &str = "-----BEGIN";

/// Returns the configuration. Its proxy is chosen later.
pub(super) async fn configuration(info: &ConnectionInfo) -> Result<Config, ApiError> {
    let kubeconfig = from_value(kubeconfig(info)).map_err(|it| unusable(&it))?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|it| unusable(&chain(&it)))?;
    if let Some(authorization) = authorization(info) {
        config.headers.push((header::AUTHORIZATION, secret("the token", &authorization)?));
    }
    for (name, value) in &info.headers {
        let what = format!("the header '{name}'");
        let name = HeaderName::try_from(name)
            .map_err(|it| refuse(format!("{what} cannot be sent: {it}"), None))?;
        config.headers.push((name, secret(&what, value)?));
    }
    Ok(config)
}

/// Returns the value of a header that is never printed, not even by libraries.
fn secret(what: &str, text: &str) -> Result<HeaderValue, ApiError> {
    let mut value = HeaderValue::from_str(text)
        .map_err(|it| refuse(format!("{what} cannot be sent: {it}"), None))?;
    value.set_sensitive(true);
    Ok(value)
}

fn kubeconfig(info: &ConnectionInfo) -> Value {
    let basic = info.basic();
    let token = if basic.is_none() && info.scheme.is_none() { info.token.as_ref() } else { None };
    json!({
        "current-context": "login",
        "contexts": [{"name": "login", "context": {"cluster": "login", "user": "login"}}],
        "clusters": [{"name": "login", "cluster": {
            "server": info.server,
            "certificate-authority": info.ca_path,
            "certificate-authority-data": info.ca_data.as_deref().map(encoded),
            "insecure-skip-tls-verify": info.insecure,
        }}],
        "users": [{"name": "login", "user": {
            "username": basic.map(|it| it.0),
            "password": basic.map(|it| it.1),
            "token": token,
            "client-certificate": info.certificate_path,
            "client-certificate-data": info.certificate_data.as_deref().map(encoded),
            "client-key": info.private_key_path,
            "client-key-data": info.private_key_data.as_deref().map(encoded),
        }}],
    })
}

/// Returns the header that a kubeconfig cannot express: a scheme other than `Bearer`.
fn authorization(info: &ConnectionInfo) -> Option<String> {
    let scheme = info.scheme.as_deref().filter(|_| info.basic().is_none())?;
    let token = info.token.as_deref().unwrap_or_default();
    Some(format!("{scheme} {token}").trim_end().to_owned())
}

fn unusable(reason: &str) -> ApiError {
    refuse(format!("the connection info cannot be used: {reason}"), None)
}

/// Encodes data as in a kubeconfig.
fn encoded(data: &str) -> String {
    if data.trim_start().starts_with(PEM) { STANDARD.encode(data) } else { data.to_owned() }
}
