//! Reads the results of `on_tunnel` handlers: the URL by which API servers reach the webhook server.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;

use super::configuration::{ClientConfig, WebhookEndpoint};

const EXPECTED: &str =
    "return the URL, such as \"https://ops.example.com\", or a map with `url` and `caBundle`";

/// Reads the result of a handler.
///
/// # Errors
/// Fails if it is not a client configuration that API servers accept.
pub fn client_config(result: &Value) -> Result<ClientConfig, String> {
    match result {
        Value::String(url) => Ok(ClientConfig { endpoint: endpoint(url)?, ca: None }),
        Value::Object(fields) => {
            if let Some(unknown) =
                fields.keys().find(|it| !matches!(it.as_str(), "url" | "caBundle"))
            {
                return Err(format!("unknown field `{unknown}`: {EXPECTED}"));
            }
            let url = fields.get("url").and_then(Value::as_str);
            let endpoint = endpoint(url.ok_or_else(|| format!("no `url`: {EXPECTED}"))?)?;
            let ca = match fields.get("caBundle") {
                None | Some(Value::Null) => None,
                Some(Value::String(text)) => Some(certificates(text)?),
                Some(_) => return Err(format!("`caBundle` is not a string: {EXPECTED}")),
            };
            Ok(ClientConfig { endpoint, ca })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            Err(format!("the result is not a URL: {EXPECTED}"))
        }
    }
}

fn endpoint(url: &str) -> Result<WebhookEndpoint, String> {
    if url.strip_prefix("https://").is_none_or(str::is_empty) {
        return Err(format!(
            "the URL must begin with https://, got {url:?}: API servers call no others"
        ));
    }
    if url.contains(['?', '#', '@']) {
        return Err(format!("the URL must not have a query, a fragment or a user, got {url:?}"));
    }
    Ok(WebhookEndpoint::Url(url.to_owned()))
}

/// Accepts PEM, or the same in base64 as in Kubernetes.
fn certificates(text: &str) -> Result<String, String> {
    if text.contains("-----BEGIN") {
        return Ok(text.to_owned());
    }
    let bytes = BASE64_STANDARD.decode(text.trim()).ok();
    let decoded = bytes.and_then(|it| String::from_utf8(it).ok());
    let decoded = decoded.filter(|it| it.contains("-----BEGIN"));
    decoded
        .ok_or_else(|| "`caBundle` has no certificates: expected PEM, or PEM in base64".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{WebhookEndpoint, client_config};

    #[test]
    fn a_url_or_a_map_is_a_client_configuration() {
        let url = WebhookEndpoint::Url("https://a.example.com/b".to_owned());
        let pem = "-----BEGIN CERTIFICATE-----\n";
        let encoded = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==";
        for (result, ca) in [
            (json!("https://a.example.com/b"), None),
            (json!({"url": "https://a.example.com/b"}), None),
            (json!({"url": "https://a.example.com/b", "caBundle": null}), None),
            (json!({"url": "https://a.example.com/b", "caBundle": pem}), Some(pem)),
            (json!({"url": "https://a.example.com/b", "caBundle": encoded}), Some(pem)),
        ] {
            let config = client_config(&result).unwrap();
            assert_eq!((config.endpoint, config.ca.as_deref()), (url.clone(), ca), "{result}");
        }
    }

    #[test]
    fn other_results_are_refused_with_the_reason() {
        for (result, reason) in [
            (json!(null), "not a URL"),
            (json!(443), "not a URL"),
            (json!(["https://a"]), "not a URL"),
            (json!("http://a"), "begin with https://"),
            (json!("https://"), "begin with https://"),
            (json!("https://a?b"), "query"),
            (json!({}), "no `url`"),
            (json!({"url": "https://a", "ca": "x"}), "unknown field `ca`"),
            (json!({"url": "https://a", "caBundle": 1}), "not a string"),
            (json!({"url": "https://a", "caBundle": "x"}), "no certificates"),
        ] {
            let problem = client_config(&result).unwrap_err();
            assert!(problem.contains(reason), "{result}: {problem}");
        }
    }
}
