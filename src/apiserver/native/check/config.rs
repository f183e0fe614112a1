//! Validation of config maps and secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{FieldValue, Problems, immutable, meta, names};
use crate::refusal::{ProblemKind, ValidationProblem};

/// Limit of all values together, in bytes.
const SIZE: usize = 1024 * 1024;
const REDACTED: &str = "<secret contents redacted>";

pub(in crate::native) fn config_map(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let root = FieldValue::root(new);
    frozen(&mut out, &root, old, &["data", "binaryData"]);
    let (data, binary) = (root.get("data"), root.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&mut out, &value, key);
        if binary.value.get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            out.push(ValidationProblem::invalid(value.path.clone(), key, detail));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        keys(&mut out, &value, key);
        size += bytes(&value).len();
    }
    if size > SIZE {
        out.push(ValidationProblem::new("[]", ProblemKind::TooLong(Value::Null, SIZE)));
    }
    out
}

fn keys(out: &mut Problems, value: &FieldValue<'_>, key: &str) {
    let problems = names::config_key(key).into_iter();
    out.extend(problems.map(|it| ValidationProblem::invalid(value.path.clone(), key, it)));
}

fn bytes(field: &FieldValue<'_>) -> Vec<u8> {
    STANDARD.decode(field.text()).unwrap_or_default()
}

/// Refuses changes of an object with `immutable: true`.
fn frozen(out: &mut Problems, new: &FieldValue<'_>, old: Option<&Value>, fields: &[&str]) {
    let Some(old) = old.map(FieldValue::root).filter(|it| it.get("immutable").flag()) else {
        return;
    };
    let detail = "field is immutable when `immutable` is set";
    if !new.get("immutable").flag() {
        out.push(ValidationProblem::forbidden("immutable", detail));
    }
    for field in fields {
        if new.get(field).value != old.get(field).value {
            out.push(ValidationProblem::forbidden(*field, detail));
        }
    }
}

pub(in crate::native) fn secret(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let root = FieldValue::root(new);
    if let Some(old) = old {
        immutable(&mut out, &root.get("type"), &FieldValue::root(old).get("type"));
    }
    frozen(&mut out, &root, old, &["data"]);
    let data = root.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&mut out, &value, key);
        size += bytes(&value).len();
    }
    if size > SIZE {
        out.push(ValidationProblem::new("data", ProblemKind::TooLong(Value::Null, SIZE)));
    }
    contents(&mut out, &root, &data);
    out
}

/// Checks that a secret has the keys that its type requires.
fn contents(out: &mut Problems, root: &FieldValue<'_>, data: &FieldValue<'_>) {
    let has = |key: &str| data.value.get(key).is_some();
    let missing = |path: String| ValidationProblem::required(path, "");
    match root.get("type").text() {
        "kubernetes.io/service-account-token" => {
            let name = "kubernetes.io/service-account.name";
            let account = root.get("metadata").get("annotations").get(name);
            if account.is_empty() {
                out.push(missing(format!("metadata.annotations[{name}]")));
            }
        }
        "kubernetes.io/dockercfg" => json(out, data, ".dockercfg"),
        "kubernetes.io/dockerconfigjson" => json(out, data, ".dockerconfigjson"),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            out.push(missing("data[username]".into()));
            out.push(missing("data[password]".into()));
        }
        "kubernetes.io/ssh-auth" if data.get("ssh-privatekey").is_empty() => {
            out.push(missing("data[ssh-privatekey]".into()));
        }
        "kubernetes.io/tls" => {
            for key in ["tls.crt", "tls.key"].into_iter().filter(|it| !has(it)) {
                out.push(missing(format!("data[{key}]")));
            }
        }
        _ => {}
    }
}

/// Checks that a key holds a JSON object.
fn json(out: &mut Problems, data: &FieldValue<'_>, key: &str) {
    let path = format!("data[{key}]");
    let Some(value) = data.value.get(key) else {
        out.push(ValidationProblem::required(path, ""));
        return;
    };
    let text = bytes(&FieldValue { path: String::new(), value });
    if let Some(problem) = go_json_problem(&text) {
        out.push(ValidationProblem::invalid(path, REDACTED, problem));
    }
}

/// Returns the message of Go's JSON decoder for a text that is not a JSON object.
fn go_json_problem(text: &[u8]) -> Option<String> {
    let found = match serde_json::from_slice::<Value>(text) {
        Ok(Value::Object(_) | Value::Null) => return None,
        Ok(Value::Array(_)) => "array",
        Ok(Value::String(_)) => "string",
        Ok(Value::Number(_)) => "number",
        Ok(Value::Bool(_)) => "bool",
        Err(error) if error.is_eof() => return Some("unexpected end of JSON input".into()),
        Err(_) if literal_problem(text).is_some() => return literal_problem(text),
        Err(error) => {
            let at = error.column().saturating_sub(1);
            let wrong = text.get(at).map_or('?', |it| char::from(*it));
            let place = if at == 0 || text.iter().take(at).all(u8::is_ascii_whitespace) {
                "looking for beginning of value"
            } else {
                "after top-level value"
            };
            return Some(format!("invalid character '{wrong}' {place}"));
        }
    };
    Some(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
}

/// Returns the message for a text that begins like a literal of JSON (`true`, `false`, `null`) and then differs.
fn literal_problem(text: &[u8]) -> Option<String> {
    let text = text.trim_ascii_start();
    let literal = ["true", "false", "null"]
        .into_iter()
        .find(|it| it.bytes().next() == text.first().copied())?;
    let mut pairs = text.iter().zip(literal.bytes());
    let (found, expected) = pairs.find(|(found, expected)| **found != *expected)?;
    Some(format!(
        "invalid character '{}' in literal {literal} (expecting '{}')",
        char::from(*found),
        char::from(expected)
    ))
}
