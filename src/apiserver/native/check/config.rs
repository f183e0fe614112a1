//! Config maps and secrets.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{Problems, Spot, immutable, meta, names};
use crate::refusal::{Problem, ProblemKind};

/// All values together, in bytes.
const SIZE: usize = 1024 * 1024;
const REDACTED: &str = "<secret contents redacted>";

pub(in crate::native) fn config_map(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let root = Spot::root(new);
    frozen(&mut out, &root, old, &["data", "binaryData"]);
    let (data, binary) = (root.get("data"), root.get("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&mut out, &value, key);
        if binary.value.get(key).is_some() {
            let detail = "duplicate of key present in binaryData";
            out.push(Problem::invalid(value.path.clone(), key, detail));
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        keys(&mut out, &value, key);
        size += bytes(&value).len();
    }
    if size > SIZE {
        out.push(Problem::new("[]", ProblemKind::TooLong(Value::Null, SIZE)));
    }
    out
}

fn keys(out: &mut Problems, value: &Spot<'_>, key: &str) {
    let problems = names::config_key(key).into_iter();
    out.extend(problems.map(|it| Problem::invalid(value.path.clone(), key, it)));
}

fn bytes(spot: &Spot<'_>) -> Vec<u8> {
    STANDARD.decode(spot.text()).unwrap_or_default()
}

/// What `immutable: true` forbids.
fn frozen(out: &mut Problems, new: &Spot<'_>, old: Option<&Value>, fields: &[&str]) {
    let Some(old) = old.map(Spot::root).filter(|it| it.get("immutable").flag()) else { return };
    let detail = "field is immutable when `immutable` is set";
    if !new.get("immutable").flag() {
        out.push(Problem::forbidden("immutable", detail));
    }
    for field in fields {
        if new.get(field).value != old.get(field).value {
            out.push(Problem::forbidden(*field, detail));
        }
    }
}

pub(in crate::native) fn secret(new: &Value, old: Option<&Value>) -> Problems {
    let mut out = meta::object(new, old, names::dns_subdomain);
    let root = Spot::root(new);
    if let Some(old) = old {
        immutable(&mut out, &root.get("type"), &Spot::root(old).get("type"));
    }
    frozen(&mut out, &root, old, &["data"]);
    let data = root.get("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        keys(&mut out, &value, key);
        size += bytes(&value).len();
    }
    if size > SIZE {
        out.push(Problem::new("data", ProblemKind::TooLong(Value::Null, SIZE)));
    }
    contents(&mut out, &root, &data);
    out
}

/// What the type of a secret asks for.
fn contents(out: &mut Problems, root: &Spot<'_>, data: &Spot<'_>) {
    let has = |key: &str| data.value.get(key).is_some();
    let missing = |path: String| Problem::required(path, "");
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

/// A value that is a JSON object.
fn json(out: &mut Problems, data: &Spot<'_>, key: &str) {
    let path = format!("data[{key}]");
    let Some(value) = data.value.get(key) else {
        out.push(Problem::required(path, ""));
        return;
    };
    let text = bytes(&Spot { path: String::new(), value });
    if let Some(problem) = go_json_problem(&text) {
        out.push(Problem::invalid(path, REDACTED, problem));
    }
}

/// Why a text is not a JSON object, in the words of Go.
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

/// A word that begins as one of JSON and goes on otherwise.
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
