//! Requests in a test: a function of the test responds in the place of the server.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::Full;
use serde_json::{Map, Value, json};

use super::{
    heads::{headers, is_json},
    request::Request,
    trouble::unreached,
};
use crate::call::{Faked, Fakes};
use crate::scripting::{
    functions::{Call, given, outcome::Failure, tree, url},
    values::text::{did_you_mean, shown},
};

/// Why there may be no response.
const ERRORS: [&str; 3] = ["Unreachable", "Untrusted", "Timeout"];
const FIELDS: [&str; 7] = ["status", "headers", "body", "json", "body_base64", "error", "message"];

/// The response of a fake.
pub(super) async fn respond(
    fakes: &Fakes,
    call: &Call,
    request: &Request,
) -> Result<Response<Full<Bytes>>, Failure> {
    let Request { method, url, .. } = request;
    let answer = fakes.respond(Faked::Http, url.as_str(), told(call, request)?).await?;
    let Some(answer) = answer else {
        let declared = fakes.urls();
        let others = if declared.is_empty() {
            "the test declares none".to_owned()
        } else {
            format!("those of the test are for {}", Value::from(declared))
        };
        return Err(format!(
            "no fake responds to {method} {url}: {others}; declare fake.http({}, FUNCTION) in the test",
            json!(url.as_str())
        )
        .into());
    };
    let read = read(&answer.value).map_err(|problem| fakes.reject(&answer, &problem))?;
    read.map_err(|(reason, message)| unreached(&reason, format!("{url}: {message}")))
}

/// What a request sends, for the fake and for the record.
fn told(call: &Call, request: &Request) -> Result<Value, Failure> {
    let mut fields = Map::new();
    fields.insert("method".into(), request.method.as_str().into());
    fields.insert("url".into(), request.url.as_str().into());
    fields.insert("query".into(), url::fields(request.url.query().unwrap_or_default())?);
    fields.insert("headers".into(), headers(&request.headers));
    // Redirections to other hosts lose the header.
    let auth = call.map("auth").filter(|_| request.headers.contains_key(AUTHORIZATION));
    fields.extend(auth.map(|it| ("auth".into(), it.clone().into())));
    // Redirections may lose the body.
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
    match std::str::from_utf8(&request.body) {
        Ok(text) => {
            if is_json(&request.headers)
                && let Ok(value) = tree::json(text)
            {
                fields.insert("json".into(), value);
            }
            fields.insert("body".into(), text.into());
        }
        Err(_) => drop(fields.insert("body_base64".into(), STANDARD.encode(&request.body).into())),
    }
    Ok(fields.into())
}

/// Adds what a file has by default.
fn complete(field: &str, file: &mut Value) {
    if let Value::String(content) = file {
        *file = json!({ "content": std::mem::take(content) });
    }
    if let Some(file) = file.as_object_mut() {
        file.entry("name").or_insert_with(|| field.into());
        file.entry("type").or_insert_with(|| "application/octet-stream".into());
    }
}

/// A response, or the reason and the message of none.
type Read = Result<Response<Full<Bytes>>, (String, String)>;

/// Reads what a fake returns.
fn read(answer: &Value) -> Result<Read, String> {
    let fields = match answer {
        Value::String(body) => return response(200, HeaderMap::new(), body.clone().into()).map(Ok),
        Value::Object(fields) => fields,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(format!("expected a map, a string or nil, got {}", shown(other)));
        }
    };
    if let Some(name) = fields.keys().find(|it| !FIELDS.contains(&it.as_str())) {
        let near = did_you_mean(name, FIELDS.into_iter(), "");
        return Err(format!("there is no field `{name}`{near}"));
    }
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(other) => Err(format!("`{name}`: expected a string, got {}", shown(other))),
    };
    if let Some(reason) = text("error")? {
        if !ERRORS.contains(&reason) {
            let known = ERRORS.join(", ");
            return Err(format!("`error`: expected one of {known}, got {}", json!(reason)));
        }
        let message = text("message")?.unwrap_or("as the fake of the test says");
        return Ok(Err((reason.to_owned(), message.to_owned())));
    }
    let status = match fields.get("status") {
        None => 200,
        Some(it) => {
            let status = given::integer(it).and_then(|it| u16::try_from(it).ok());
            status.filter(|it| (200..600).contains(it)).ok_or_else(|| {
                format!("`status`: expected a number from 200 to 599, got {}", shown(it))
            })?
        }
    };
    let mut headers = read_headers(fields.get("headers"))?;
    let body = match (text("body")?, text("body_base64")?, fields.get("json")) {
        (Some(body), None, None) => Bytes::from(body.to_owned()),
        (None, Some(body), None) => {
            STANDARD.decode(body).map_err(|it| format!("`body_base64`: no Base64: {it}"))?.into()
        }
        (None, None, Some(value)) => {
            let kind = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(kind);
            Bytes::from(value.to_string())
        }
        (None, None, None) => Bytes::new(),
        _ => return Err("`body`, `json` and `body_base64`: a response has one body".into()),
    };
    response(status, headers, body).map(Ok)
}

fn read_headers(given: Option<&Value>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    let fields = match given {
        None | Some(Value::Null) => return Ok(headers),
        Some(Value::Object(fields)) => fields,
        Some(other) => return Err(format!("`headers`: expected a map, got {}", shown(other))),
    };
    for (name, value) in fields {
        let key = HeaderName::from_bytes(name.as_bytes());
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let (Ok(key), Ok(text)) = (key, HeaderValue::from_str(&text)) else {
            return Err(format!("`headers`: {} cannot be a header", json!({ name: value })));
        };
        headers.insert(key, text);
    }
    Ok(headers)
}

fn response(status: u16, headers: HeaderMap, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = StatusCode::from_u16(status).map_err(|it| it.to_string())?;
    *response.headers_mut() = headers;
    Ok(response)
}
