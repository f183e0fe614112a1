//! Headers as scripts see them.

use http::{HeaderMap, header::CONTENT_TYPE};
use serde_json::{Map, Value};

/// Returns whether the body is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// Returns the headers as a map. Several headers with one name become one string, separated by commas.
pub(super) fn headers(all: &HeaderMap) -> Value {
    let text = |name: &http::HeaderName| {
        let values = all.get_all(name).iter().map(|it| String::from_utf8_lossy(it.as_bytes()));
        Value::from(values.collect::<Vec<_>>().join(", "))
    };
    all.keys().map(|name| (name.as_str().to_owned(), text(name))).collect::<Map<_, _>>().into()
}
