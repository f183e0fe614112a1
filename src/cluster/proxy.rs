//! Chooses the proxy of a server: that of the login, or, if enabled, that of the environment.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;

use super::{refusal::refuse, url};
use crate::ports::ApiError;

/// Sets the proxy of a configuration, whatever `kube` has set before: `wanted` is that of the login.
///
/// # Errors
/// Fails if it is not a valid URL.
pub(super) fn choose(
    config: &mut Config,
    wanted: Option<&str>,
    environment: Option<&Matcher>,
) -> Result<(), ApiError> {
    let wanted = wanted.filter(|it| !it.is_empty());
    config.proxy_url = match wanted {
        Some(text) => Some(text.parse::<Uri>().map_err(|it| unusable(text, &it.to_string()))?),
        None => environment.and_then(|it| of_environment(it, &config.cluster_url)),
    };
    Ok(())
}

/// Returns the proxy of this server from the environment variables, with user and password in its URL.
fn of_environment(environment: &Matcher, server: &Uri) -> Option<Uri> {
    let found = environment.intercept(server)?;
    let uri = found.uri().clone();
    let Some(user) = found.basic_auth().and_then(user_of) else { return Some(uri) };
    let authority = format!("{user}@{}", uri.authority()?);
    let mut parts = uri.into_parts();
    parts.authority = Some(authority.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns `user:password` for a URL from an HTTP Basic header.
fn user_of(header: &HeaderValue) -> Option<String> {
    let encoded = header.to_str().ok()?.strip_prefix("Basic ")?;
    let plain = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = plain.split_once(':').unwrap_or((&plain, ""));
    Some(format!("{}:{}", url::encoded(user), url::encoded(password)))
}

fn unusable(text: &str, problem: &str) -> ApiError {
    refuse(
        format!("the proxy '{text}' is not a URL: {problem}"),
        Some(
            "write a proxy as http://HOST:PORT, in `proxy-url` of a kubeconfig or `proxy_url` of a connection info",
        ),
    )
}
