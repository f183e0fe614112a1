//! Builds a request from the arguments of a script.

use std::time::Duration;

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use ::url::Url;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method,
    header::{
        ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TE, TRAILER,
        TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};
use serde_json::{Map, Value, json};

use super::{
    content::RequestContent,
    headers::{headers, is_json},
    parts,
    retries::Retries,
    trust::Trust,
};
use crate::scripting::{
    functions::{Call, outcome::Failure, scratch, tree, url},
    values::text::shown,
};

const TIMEOUT: Duration = Duration::from_secs(30);
const REDIRECTS: (usize, usize) = (5, 20);
/// The default of `size`: maximum bytes of a response.
const SIZE: usize = 1 << 20;
/// Headers that belong to the connection, not to the request.
const NOT_OURS: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// A request and its limits.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestContent,
    /// The scratch file for the body of the response.
    pub(super) to: Option<String>,
    pub(super) timeout: Duration,
    pub(super) redirects: usize,
    pub(super) size: usize,
    pub(super) retries: Retries,
}

impl Request {
    /// Returns the request of a call.
    ///
    /// # Errors
    /// An argument is invalid.
    pub(super) fn of(call: &Call, method: &str) -> Result<Self, Failure> {
        let mut url = web_url(call.text("url"))?;
        if let Some(fields) = call.map("query").filter(|it| !it.is_empty()) {
            let added = url::query("query", &Value::Object(fields.clone()))?;
            let all = url.query().map_or(added.clone(), |it| format!("{it}&{added}"));
            url.set_query(Some(&all));
        }
        let mut headers = HeaderMap::new();
        headers.insert(
            USER_AGENT,
            HeaderValue::from_static(concat!("kopf/", env!("CARGO_PKG_VERSION"))),
        );
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        let body = body(call, &mut headers)?;
        add_headers(call, &mut headers)?;
        authenticate(call, &mut headers)?;
        let to = call.some_text("to").map(str::to_owned);
        let limits = &call.surroundings.limits;
        let (size, size_max) = match &to {
            Some(_) => (limits.scratch_size, limits.scratch_size),
            None => (SIZE, limits.string_size),
        };
        if to.is_some() {
            scratch::directory(&call.surroundings.access)?;
        }
        Ok(Request {
            method: checked_method(method)?,
            url,
            headers,
            body,
            to,
            timeout: call.duration("timeout").unwrap_or(TIMEOUT),
            redirects: call.count("redirects", REDIRECTS.0)?.min(REDIRECTS.1),
            size: call.count("size", size)?.min(size_max),
            retries: Retries::of(call.map("retries"))?,
        })
    }
}

/// Returns a URL that `http` supports.
pub(super) fn web_url(text: &str) -> Result<Url, Failure> {
    let mut url = url::read("url", text)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`url`: expected http or https, got {}", url.scheme()).into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "`url`: must not contain a user name or a password; use the option `auth`".into()
        );
    }
    url.set_fragment(None);
    Ok(url)
}

fn checked_method(text: &str) -> Result<Method, Failure> {
    let wrong =
        || format!("`method`: expected capital letters such as \"GET\", got {}", Value::from(text));
    let is_right = text.bytes().all(|it| it.is_ascii_uppercase() || it == b'-');
    let method =
        Method::from_bytes(text.as_bytes()).ok().filter(|it| is_right && *it != Method::CONNECT);
    method.ok_or_else(|| wrong().into())
}

/// Adds the header of basic authentication.
fn authenticate(call: &Call, headers: &mut HeaderMap) -> Result<(), Failure> {
    let Some(auth) = call.map("auth") else { return Ok(()) };
    if headers.contains_key(AUTHORIZATION) {
        return Err("`auth`: cannot be combined with the header Authorization".into());
    }
    if let Some(name) = auth.keys().find(|it| !matches!(it.as_str(), "user" | "password")) {
        return Err(format!("`auth`: expected `user` and `password`, got `{name}`").into());
    }
    let text = |name: &str| match auth.get(name) {
        Some(Value::String(text)) => Ok(text.as_str()),
        // Never shown: it may be a secret of another type.
        Some(_) | None => Err(Failure::Plain(format!("`auth.{name}`: expected a string"))),
    };
    let (user, password) = (text("user")?, text("password")?);
    if user.contains(':') {
        return Err("`auth.user`: must not contain a colon".into());
    }
    let encoded = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let value = HeaderValue::from_str(&encoded).map_err(|it| format!("`auth`: {it}"))?;
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

/// Returns the body, from one of the options for it.
fn body(call: &Call, headers: &mut HeaderMap) -> Result<RequestContent, Failure> {
    let ways = ["json", "files", "form", "body", "body_base64", "from"];
    let ways: Vec<_> = ways.into_iter().filter(|it| call.has(it)).collect();
    if ways == ["files", "form"] || ways == ["files"] {
        let fields = (call.map("form"), call.map("files"));
        let size_max = call.surroundings.limits.string_size;
        return parts::body(fields, headers, size_max).map(RequestContent::Bytes);
    }
    if let [one, other, ..] = ways.as_slice() {
        return Err(format!("`{one}` and `{other}`: expected only one of them").into());
    }
    let mut kind =
        |text: &'static str| drop(headers.insert(CONTENT_TYPE, HeaderValue::from_static(text)));
    let bytes: Bytes = match ways.first().copied() {
        None => Bytes::new(),
        Some("json") => {
            kind("application/json");
            call.value("json").to_string().into()
        }
        Some("form") => {
            kind("application/x-www-form-urlencoded");
            url::query("form", call.value("form"))?.into()
        }
        Some("body") => {
            kind("text/plain; charset=utf-8");
            call.text("body").to_owned().into()
        }
        Some("from") => {
            kind("application/octet-stream");
            let file = call.surroundings.scratch.get(call.present.as_ref(), call.text("from"))?;
            return Ok(RequestContent::File(file));
        }
        Some(_) => {
            kind("application/octet-stream");
            let bytes = STANDARD.decode(call.text("body_base64"));
            bytes.map_err(|it| format!("`body_base64`: invalid Base64: {it}"))?.into()
        }
    };
    Ok(RequestContent::Bytes(bytes))
}

fn add_headers(call: &Call, headers: &mut HeaderMap) -> Result<(), Failure> {
    for (name, value) in call.map("headers").into_iter().flatten() {
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_problem| {
            format!("`headers`: {} is not a valid header name", Value::from(name.as_str()))
        })?;
        if NOT_OURS.contains(&key) {
            return Err(format!(
                "`headers`: {key} is set by the HTTP client and cannot be changed"
            )
            .into());
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => {
                return Err(
                    format!("`headers.{name}`: expected a string, got {}", shown(value)).into()
                );
            }
        };
        let text = HeaderValue::from_str(&text).map_err(|_problem| {
            format!("`headers.{name}`: must not contain line breaks or control characters")
        })?;
        headers.insert(key, text);
    }
    Ok(())
}

/// Returns the trust settings of a call.
pub(super) fn trust(call: &Call) -> Result<Trust, Failure> {
    let text = |name: &str| call.some_text(name).map(str::to_owned);
    let identity = match (text("cert"), text("key")) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        (Some(_), None) => return Err("`cert` needs `key`".into()),
        (None, Some(_)) => return Err("`key` needs `cert`".into()),
    };
    let is_insecure = call.flag("insecure");
    if is_insecure && call.has("ca") {
        return Err("`ca` and `insecure` cannot be combined: `insecure` disables the check of the certificate".into());
    }
    Ok(Trust { ca: text("ca"), is_insecure, identity })
}

/// Returns the content of a request, for the fake and for the record.
pub(super) fn described(call: &Call, request: &Request) -> Result<Value, Failure> {
    let mut fields = Map::new();
    fields.insert("method".into(), request.method.as_str().into());
    fields.insert("url".into(), request.url.as_str().into());
    fields.insert("query".into(), url::fields(request.url.query().unwrap_or_default())?);
    fields.insert("headers".into(), headers(&request.headers));
    // Redirects to other hosts remove the header.
    let auth = call.map("auth").filter(|_| request.headers.contains_key(AUTHORIZATION));
    fields.extend(auth.map(|it| ("auth".into(), it.clone().into())));
    // Redirects may remove the body.
    if request.body.is_empty() {
        return Ok(fields.into());
    }
    for name in ["form", "files"] {
        fields.extend(call.map(name).map(|it| (name.into(), it.clone().into())));
    }
    if let Some(files) = fields.get_mut("files").and_then(Value::as_object_mut) {
        files.iter_mut().for_each(|(field, it)| complete(field, it));
        return Ok(fields.into());
    }
    let body = request.body.bytes(call.surroundings.limits.string_size)?;
    match std::str::from_utf8(&body) {
        Ok(text) => {
            if is_json(&request.headers)
                && let Ok(value) = tree::json(text)
            {
                fields.insert("json".into(), value);
            }
            fields.insert("body".into(), text.into());
        }
        Err(_) => drop(fields.insert("body_base64".into(), STANDARD.encode(&body).into())),
    }
    Ok(fields.into())
}

/// Adds the defaults of a file.
fn complete(field: &str, file: &mut Value) {
    if let Value::String(content) = file {
        *file = json!({ "content": std::mem::take(content) });
    }
    if let Some(file) = file.as_object_mut() {
        file.entry("name").or_insert_with(|| field.into());
        file.entry("type").or_insert_with(|| "application/octet-stream".into());
    }
}
