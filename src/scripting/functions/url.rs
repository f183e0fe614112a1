//! `url`: URLs as browsers read them.

use ::url::{Url, form_urlencoded};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::{Call, bounds, pace};
use crate::scripting::{
    functions::{
        outcome::{Failure, Outcome, integer},
        types::{Library, Type, immediate, required},
    },
    values::text::{did_you_mean, shown},
};

/// The characters that are escaped: all but the unreserved ones.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

pub(super) const LIBRARY: Library = Library {
    name: "url",
    doc: "Parses, builds and encodes URLs.",
    functions: &[
        immediate(
            "parse",
            "Returns the parts of a URL: `scheme, host, port, path, query, fragment, username, password`. `query` is a map; `port` defaults to that of the scheme. Missing parts are nil.",
            &[required(
                "text",
                Type::Name,
                "A URL with its scheme, at most 65536 bytes; a longer one is an error.",
            )],
            Type::Map,
            parse,
        ),
        immediate(
            "build",
            "Returns the URL of parts as returned by `url.parse`; `scheme` and `host` are required.",
            &[required(
                "parts",
                Type::Map,
                "Such as `{scheme = \"https\", host = \"a.b\", query = {q = 1}}`.",
            )],
            Type::Text,
            build,
        ),
        immediate(
            "join",
            "Resolves a link on a page: `url.join(\"https://a.b/c/d\", \"../e\")` is `https://a.b/e`.",
            &[
                required(
                    "base",
                    Type::Name,
                    "The URL of the page, at most 65536 bytes; a longer one is an error.",
                ),
                required(
                    "link",
                    Type::Text,
                    "A URL, or a part of one, at most 65536 bytes; a longer one is an error.",
                ),
            ],
            Type::Text,
            |call| {
                let base = read("base", call.text("base"))?;
                within_bounds("link", call.text("link"))?;
                let joined = base.join(call.text("link"));
                let joined = joined.map_err(|it| Failure::Plain(format!("`link`: {it}")))?;
                Ok(Value::from(String::from(joined)).into())
            },
        ),
        immediate(
            "encode",
            "Encodes a string as a part of a URL: `url.encode(\"a b/c\")` is `a%20b%2Fc`.",
            &[required("text", Type::Text, "The string.")],
            Type::Text,
            |call| {
                Ok(Value::from(utf8_percent_encode(call.text("text"), RESERVED).to_string()).into())
            },
        ),
        immediate(
            "decode",
            "Decodes a part of a URL; `+` remains `+`.",
            &[required("text", Type::Text, "The part.")],
            Type::Text,
            |call| {
                let text = percent_decode_str(call.text("text")).decode_utf8();
                let text =
                    text.map_err(|_problem| Failure::from("`text`: the content is not UTF-8"))?;
                Ok(Value::from(text).into())
            },
        ),
        immediate(
            "query",
            "Encodes a map as the query of a URL: `url.query({a = 1, b = \"x y\"})` is `a=1&b=x+y`. A list repeats its name for each item.",
            &[required("map", Type::Map, "Strings, numbers, true or false, or lists of them.")],
            Type::Text,
            |call| Ok(Value::from(query("map", call.value("map"))?).into()),
        ),
        immediate(
            "parse_query",
            "Decodes a query to a map: values are strings, or lists of strings for repeated names.",
            &[required("text", Type::Text, "The query, with or without a leading `?`.")],
            Type::Map,
            |call| {
                let text = call.text("text");
                Ok(fields(text.strip_prefix('?').unwrap_or(text))?.into())
            },
        ),
    ],
};

/// Returns the URL in an argument.
pub(super) fn read(name: &str, text: &str) -> Result<Url, Failure> {
    within_bounds(name, text)?;
    Url::parse(text).map_err(|problem| {
        format!("`{name}`: {} is not a URL: {problem}", Value::from(text)).into()
    })
}

/// Checks that a string may be part of a URL: no server accepts longer ones.
fn within_bounds(name: &str, text: &str) -> Result<(), Failure> {
    const BYTES_MAX: usize = 64 * 1024;
    if text.len() <= BYTES_MAX {
        return Ok(());
    }
    Err(format!("`{name}`: longer than {BYTES_MAX} bytes").into())
}

fn parse(call: &Call) -> Outcome {
    let url = read("text", call.text("text"))?;
    let some = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let parts = json!({
        "scheme": url.scheme(),
        "host": url.host_str(),
        "port": url.port_or_known_default(),
        "path": url.path(),
        "query": fields(url.query().unwrap_or_default())?,
        "fragment": url.fragment(),
        "username": some(url.username()),
        "password": url.password(),
    });
    let Value::Object(parts) = parts else { return Ok(parts.into()) };
    let there = parts.into_iter().filter(|(_, it)| !it.is_null());
    Ok(Value::Object(there.collect()).into())
}

fn build(call: &Call) -> Outcome {
    const KNOWN: [&str; 8] =
        ["scheme", "host", "port", "path", "query", "fragment", "username", "password"];
    let Some(parts) = call.map("parts") else { return Err("`parts` is missing".into()) };
    if let Some(unknown) = parts.keys().find(|it| !KNOWN.contains(&it.as_str())) {
        let near = did_you_mean(unknown, KNOWN.into_iter(), "");
        return Err(format!("`parts`: unknown part `{unknown}`{near}").into());
    }
    let text = |name: &str| match parts.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            within_bounds(&format!("parts.{name}"), text).map(|()| Some(text.as_str()))
        }
        Some(other) => {
            Err(Failure::Plain(format!("`parts.{name}`: expected a string, got {}", shown(other))))
        }
    };
    let needed = |name: &str| {
        text(name)?
            .ok_or_else(|| Failure::Plain(format!("`parts.{name}` is missing: expected a string")))
    };
    let mut url = read("parts", &format!("{}://{}", needed("scheme")?, needed("host")?))?;
    let wrong =
        |name: &str| Failure::Plain(format!("`parts.{name}`: not allowed in a URL of this scheme"));
    if let Some(port) = parts.get("port").filter(|it| !it.is_null()) {
        let port = integer(port).and_then(|it| u16::try_from(it).ok());
        let port = port.ok_or("`parts.port`: expected a number from 0 to 65535")?;
        url.set_port(Some(port)).map_err(|()| wrong("port"))?;
    }
    if let Some(name) = text("username")? {
        url.set_username(name).map_err(|()| wrong("username"))?;
    }
    if let Some(password) = text("password")? {
        url.set_password(Some(password)).map_err(|()| wrong("password"))?;
    }
    if let Some(path) = text("path")? {
        url.set_path(path);
    }
    if let Some(map) = parts.get("query").filter(|it| !it.is_null()) {
        url.set_query(
            Some(&query("parts.query", map)?).filter(|it| !it.is_empty()).map(String::as_str),
        );
    }
    url.set_fragment(text("fragment")?);
    Ok(Value::from(String::from(url)).into())
}

/// Returns a map as a query.
pub(super) fn query(name: &str, map: &Value) -> Result<String, Failure> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (key, value) in map.as_object().into_iter().flatten() {
        let values = match value {
            Value::Array(items) => items.iter().collect(),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
        };
        for value in values {
            match value {
                Value::String(text) => query.append_pair(key, text),
                Value::Number(_) | Value::Bool(_) => query.append_pair(key, &value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let got = shown(value);
                    return Err(format!("`{name}.{key}`: expected a string, got {got}").into());
                }
            };
        }
    }
    Ok(query.finish())
}

/// Returns a query as a map.
pub(super) fn fields(query: &str) -> Result<Value, Failure> {
    let mut fields: Map<String, Value> = Map::new();
    for (count, (key, value)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
        bounds::room_for(count)?;
        pace::short_step(count)?;
        let value = Value::from(value.into_owned());
        match fields.get_mut(&*key) {
            None => drop(fields.insert(key.into_owned(), value)),
            Some(Value::Array(items)) => items.push(value),
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }
    Ok(Value::Object(fields))
}
