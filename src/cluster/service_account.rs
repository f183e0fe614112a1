//! The service account of the pod: files that Kubernetes mounts into it.

use std::{ffi::OsString, fs, net::Ipv6Addr, path::Path};

use kube::Config;

use super::{login, refusal::refuse};
use crate::logic::access::login::ConnectionInfo;
use crate::ports::ApiError;

/// The directory of the files.
const DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The DNS name of the API server in every cluster.
const SERVER: &str = "https://kubernetes.default.svc";

/// The token of a pod.
pub(super) const TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// Returns whether this pod has a token.
pub(super) fn is_there() -> bool {
    Path::new(TOKEN).exists()
}

/// Returns the namespace of this pod; `None` outside of a cluster.
pub fn pod_namespace() -> Option<String> {
    let found = fs::read_to_string(Path::new(DIRECTORY).join("namespace")).ok()?;
    Some(found.trim().to_owned()).filter(|it| !it.is_empty())
}

/// Returns the configuration for the service account of this pod.
///
/// # Errors
/// Fails if there is no token, or the certificates cannot be used.
pub(super) async fn configuration() -> Result<Config, ApiError> {
    let server = server(|name| std::env::var_os(name));
    configuration_of(Path::new(DIRECTORY), server).await
}

/// Returns the configuration for these files. Only the token is required; it is read again when it changes.
pub(super) async fn configuration_of(directory: &Path, server: String) -> Result<Config, ApiError> {
    let [token, certificates, namespace] =
        ["token", "ca.crt", "namespace"].map(|it| directory.join(it));
    if !token.exists() {
        let message =
            format!("the service account cannot be used: there is no token at {}", token.display());
        let hint = "check that the pod has a service account and that its token is mounted (automountServiceAccountToken). \
                    Outside of a pod, use a kubeconfig";
        return Err(refuse(message, Some(hint)));
    }
    let path = |it: &Path| Some(it.to_str()?.to_owned());
    let certificates = certificates.exists().then_some(certificates);
    let info = ConnectionInfo {
        server,
        ca_path: certificates.as_deref().and_then(path),
        ..ConnectionInfo::default()
    };
    let mut config = login::configuration(&info).await?;
    config.root_cert_file = certificates;
    config.auth_info.token_file = path(&token);
    // Without the file, the default namespace is used.
    let found = fs::read_to_string(namespace).unwrap_or_default();
    if let Some(found) = Some(found.trim()).filter(|it| !it.is_empty()) {
        found.clone_into(&mut config.default_namespace);
    }
    Ok(config)
}

/// Returns the address that Kubernetes provides to every pod, which works without DNS; otherwise the DNS name.
pub(super) fn server(variable: impl Fn(&str) -> Option<OsString>) -> String {
    let variable = |name| variable(name).and_then(|it| it.into_string().ok());
    let set = |name| variable(name).filter(|it| !it.is_empty());
    match (set("KUBERNETES_SERVICE_HOST"), set("KUBERNETES_SERVICE_PORT")) {
        (Some(host), Some(port)) if host.parse::<Ipv6Addr>().is_ok() => {
            format!("https://[{host}]:{port}")
        }
        (Some(host), Some(port)) => format!("https://{host}:{port}"),
        (None, _) | (_, None) => SERVER.to_owned(),
    }
}
