//! Which proxy leads to the server: the one of the login, or, where that is wanted, the one of the environment.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;

use super::{connect::refuse, url};
use crate::ports::ApiError;

/// Sets the proxy of a configuration, whatever was guessed before: `wanted` is the one of the login.
///
/// # Errors
/// When it is no URL of a proxy.
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

/// The proxy variables say where this server is reached; their user and password go back into the URL.
fn of_environment(environment: &Matcher, server: &Uri) -> Option<Uri> {
    let found = environment.intercept(server)?;
    let uri = found.uri().clone();
    let Some(user) = found.basic_auth().and_then(user_of) else { return Some(uri) };
    let authority = format!("{user}@{}", uri.authority()?);
    let mut parts = uri.into_parts();
    parts.authority = Some(authority.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// `user:password` as URLs have it, from an HTTP Basic header.
fn user_of(header: &HeaderValue) -> Option<String> {
    let encoded = header.to_str().ok()?.strip_prefix("Basic ")?;
    let plain = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let (user, password) = plain.split_once(':').unwrap_or((&plain, ""));
    Some(format!("{}:{}", url::encoded(user), url::encoded(password)))
}

fn unusable(text: &str, problem: &str) -> ApiError {
    refuse(
        format!("the proxy '{text}' is no URL: {problem}"),
        Some(
            "proxies are given as http://HOST:PORT, in `proxy-url` of a kubeconfig or `proxy_url` of a connection info",
        ),
    )
}
