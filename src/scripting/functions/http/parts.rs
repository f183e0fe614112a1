//! The option `files`: bodies of the type multipart/form-data.

use ::base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use serde_json::{Map, Value};

use crate::scripting::{
    functions::outcome::Failure,
    values::{limits, text::shown},
};

/// The fields of an option.
type OptionFields<'f> = Option<&'f Map<String, Value>>;

/// One file of the body.
struct File<'a> {
    name: &'a str,
    kind: &'a str,
    content: Vec<u8>,
}

/// Returns the fields of `form` and `files` as one body.
pub(super) fn body(
    (form, files): (OptionFields<'_>, OptionFields<'_>),
    headers: &mut HeaderMap,
    size_max: usize,
) -> Result<Bytes, Failure> {
    let boundary = format!("kopf-{}", ::uuid::Uuid::new_v4().simple());
    let mut body = Vec::new();
    for (field, value) in form.into_iter().flatten() {
        let field = quoted("form", field)?;
        let text = match value {
            Value::String(text) => text.clone(),
            other @ (Value::Number(_) | Value::Bool(_)) => other.to_string(),
            other @ (Value::Null | Value::Array(_) | Value::Object(_)) => {
                return Err(
                    format!("`form.{field}`: expected a string, got {}", shown(other)).into()
                );
            }
        };
        let head =
            format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\r\n");
    }
    for (field, value) in files.into_iter().flatten() {
        let file = file(field, value)?;
        let (field, name) = (quoted("files", field)?, quoted("files", file.name)?);
        let kind = quoted("files", file.kind)?;
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\nContent-Type: {kind}\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&file.content);
        body.extend_from_slice(b"\r\n");
        if body.len() > size_max {
            return Err(format!("`files`: {}", limits::too_long_text(size_max)).into());
        }
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let kind = format!("multipart/form-data; boundary={boundary}");
    let kind = HeaderValue::from_str(&kind).map_err(|it| Failure::Plain(it.to_string()))?;
    headers.insert(CONTENT_TYPE, kind);
    Ok(body.into())
}

fn file<'a>(field: &'a str, value: &'a Value) -> Result<File<'a>, Failure> {
    let wrong = |got: &str| {
        let forms = "a string, or a map with `content` or `content_base64`, `name` and `type`";
        Failure::Plain(format!("`files.{field}`: expected {forms}, got {got}"))
    };
    let options = match value {
        Value::String(text) => {
            let content = text.as_bytes().to_vec();
            return Ok(File { name: field, kind: "application/octet-stream", content });
        }
        Value::Object(options) => options,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            return Err(wrong(&shown(other)));
        }
    };
    let known = ["content", "content_base64", "name", "type"];
    if let Some(name) = options.keys().find(|it| !known.contains(&it.as_str())) {
        return Err(wrong(&format!("the option `{name}`")));
    }
    let text = |name: &str| match options.get(name) {
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        None | Some(Value::Null) => Ok(None),
        Some(other) => {
            let got = shown(other);
            Err(Failure::Plain(format!("`files.{field}.{name}`: expected a string, got {got}")))
        }
    };
    let content = match (text("content")?, text("content_base64")?) {
        (Some(content), None) => content.as_bytes().to_vec(),
        (None, Some(content)) => STANDARD
            .decode(content)
            .map_err(|it| format!("`files.{field}.content_base64`: invalid Base64: {it}"))?,
        (Some(_), Some(_)) => return Err(wrong("both")),
        (None, None) => return Err(wrong("neither")),
    };
    let name = text("name")?.unwrap_or(field);
    Ok(File { name, kind: text("type")?.unwrap_or("application/octet-stream"), content })
}

/// Returns a name for the header of a part.
fn quoted(option: &str, text: &str) -> Result<String, Failure> {
    if text.chars().any(char::is_control) {
        return Err(format!("`{option}`: {} has control characters", Value::from(text)).into());
    }
    Ok(text.replace('"', "%22"))
}
