//! Credentials that a script gives: `on_login` handlers return a connection info instead of a kubeconfig.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, header};
use kube::Config;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde::Deserialize;
use serde_json::{Value, json};

use super::connect::{chain, refuse};
use crate::ports::ApiError;

/// How PEM texts begin. Other data is taken for base64 of such a text.
const PEM: &str = "-----BEGIN";

/// The address of a cluster and the credentials for it, in the words of Kopf.
///
/// There is one login at a time, repeated when the server rejects it: priorities and expirations have no place here.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConnectionInfo {
    /// The base URL.
    pub server: String,
    /// A file with the CA bundle.
    pub ca_path: Option<String>,
    /// The CA bundle.
    pub ca_data: Option<String>,
    /// Accept any certificate of the server.
    #[serde(default)]
    pub insecure: bool,
    /// HTTP Basic, together with the password; wins over a token.
    pub username: Option<String>,
    /// The password of the user.
    pub password: Option<String>,
    /// The scheme of the token; `Bearer` if there is none.
    pub scheme: Option<String>,
    /// The token.
    pub token: Option<String>,
    /// A file with the client certificate.
    pub certificate_path: Option<String>,
    /// The client certificate.
    pub certificate_data: Option<String>,
    /// A file with the private key.
    pub private_key_path: Option<String>,
    /// The private key.
    pub private_key_data: Option<String>,
    /// The namespace of events of cluster-scoped objects.
    pub default_namespace: Option<String>,
    /// An HTTP proxy.
    pub proxy_url: Option<String>,
}

impl ConnectionInfo {
    /// Reads what a script returned.
    ///
    /// # Errors
    /// When fields are missing, unknown, or contradict each other.
    pub fn parse(value: Value) -> Result<Self, ApiError> {
        let info: ConnectionInfo =
            serde_json::from_value(value).map_err(|it| unusable(&it.to_string()))?;
        for (what, path, data) in [
            ("CA", &info.ca_path, &info.ca_data),
            ("certificate", &info.certificate_path, &info.certificate_data),
            ("private key", &info.private_key_path, &info.private_key_data),
        ] {
            if path.is_some() && data.is_some() {
                return Err(refuse(
                    format!("Both {what} path & data are set. Need only one."),
                    None,
                ));
            }
        }
        Ok(info)
    }

    /// The same as a configuration, by way of the kubeconfig it stands for.
    pub(super) async fn configuration(&self) -> Result<Config, ApiError> {
        let kubeconfig: Kubeconfig =
            serde_json::from_value(self.kubeconfig()).map_err(|it| unusable(&it.to_string()))?;
        let options = KubeConfigOptions::default();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|it| unusable(&chain(&it)))?;
        if let Some(authorization) = self.authorization() {
            let mut value = HeaderValue::from_str(&authorization)
                .map_err(|it| refuse(format!("the token cannot be sent: {it}"), None))?;
            value.set_sensitive(true);
            config.headers.push((header::AUTHORIZATION, value));
        }
        Ok(config)
    }

    fn kubeconfig(&self) -> Value {
        let basic = self.basic();
        let token =
            if basic.is_none() && self.scheme.is_none() { self.token.as_ref() } else { None };
        json!({
            "current-context": "login",
            "contexts": [{"name": "login", "context": {
                "cluster": "login", "user": "login", "namespace": self.default_namespace,
            }}],
            "clusters": [{"name": "login", "cluster": {
                "server": self.server,
                "certificate-authority": self.ca_path,
                "certificate-authority-data": self.ca_data.as_deref().map(encoded),
                "insecure-skip-tls-verify": self.insecure,
                "proxy-url": self.proxy_url,
            }}],
            "users": [{"name": "login", "user": {
                "username": basic.map(|it| it.0),
                "password": basic.map(|it| it.1),
                "token": token,
                "client-certificate": self.certificate_path,
                "client-certificate-data": self.certificate_data.as_deref().map(encoded),
                "client-key": self.private_key_path,
                "client-key-data": self.private_key_data.as_deref().map(encoded),
            }}],
        })
    }

    fn basic(&self) -> Option<(&str, &str)> {
        let username = self.username.as_deref().filter(|it| !it.is_empty())?;
        Some((username, self.password.as_deref().filter(|it| !it.is_empty())?))
    }

    /// The header that a kubeconfig cannot express: a scheme other than `Bearer`.
    fn authorization(&self) -> Option<String> {
        let scheme = self.scheme.as_deref().filter(|_| self.basic().is_none())?;
        let token = self.token.as_deref().unwrap_or_default();
        Some(format!("{scheme} {token}").trim_end().to_owned())
    }
}

fn unusable(reason: &str) -> ApiError {
    refuse(format!("the connection info cannot be used: {reason}"), None)
}

/// Data as a kubeconfig has it.
fn encoded(data: &str) -> String {
    if data.trim_start().starts_with(PEM) { STANDARD.encode(data) } else { data.to_owned() }
}
