//! Requests in a test: a function of the test responds in place of the server.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use ::url::Url;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header::CONTENT_TYPE,
};
use http_body_util::Full;
use serde_json::{Value, json};

use super::errors::no_response;
use crate::call::{Faked, Fakes};
use crate::scripting::{
    functions::outcome::{Failure, integer},
    values::text::{did_you_mean, shown},
};

/// The reasons for a missing response.
const ERRORS: [&str; 3] = ["Unreachable", "Untrusted", "Timeout"];
const FIELDS: [&str; 7] = ["status", "headers", "body", "json", "body_base64", "error", "message"];

/// Returns the response of a fake to a request.
pub(super) async fn respond(
    fakes: &Fakes,
    (method, url): (&Method, &Url),
    request: Value,
) -> Result<Response<Full<Bytes>>, Failure> {
    let answer = fakes.respond(Faked::Http, url.as_str(), request).await?;
    let Some(answer) = answer else {
        let declared = fakes.urls();
        let others = if declared.is_empty() {
            "the test declares no fake".to_owned()
        } else {
            format!("the test declares fakes for {}", Value::from(declared))
        };
        return Err(format!(
            "no fake responds to {method} {url}: {others}; declare fake.http({}, FUNCTION) in the test",
            json!(url.as_str())
        )
        .into());
    };
    let read = read(&answer.value).map_err(|problem| fakes.reject(&answer, &problem))?;
    read.map_err(|(reason, message)| no_response(&reason, format!("{url}: {message}")))
}

/// A response, or the reason and the message of a missing one.
type FakedResponse = Result<Response<Full<Bytes>>, (String, String)>;

/// Reads the result of a fake.
fn read(answer: &Value) -> Result<FakedResponse, String> {
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
        let message = text("message")?.unwrap_or("error returned by the fake of the test");
        return Ok(Err((reason.to_owned(), message.to_owned())));
    }
    let status = match fields.get("status") {
        None => 200,
        Some(it) => {
            let status = integer(it).and_then(|it| u16::try_from(it).ok());
            status.filter(|it| (200..600).contains(it)).ok_or_else(|| {
                format!("`status`: expected a number from 200 to 599, got {}", shown(it))
            })?
        }
    };
    let mut headers = read_headers(fields.get("headers"))?;
    let body = match (text("body")?, text("body_base64")?, fields.get("json")) {
        (Some(body), None, None) => Bytes::from(body.to_owned()),
        (None, Some(body), None) => STANDARD
            .decode(body)
            .map_err(|it| format!("`body_base64`: invalid Base64: {it}"))?
            .into(),
        (None, None, Some(value)) => {
            let kind = HeaderValue::from_static("application/json");
            headers.entry(CONTENT_TYPE).or_insert(kind);
            Bytes::from(value.to_string())
        }
        (None, None, None) => Bytes::new(),
        _ => return Err("`body`, `json` and `body_base64`: expected only one of them".into()),
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
