//! Bodies of writes: from bytes to an object of the kind that the URL names, or to the answer that the real server gives.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    refusal::{Problem, Refusal},
    request::{
        json::{self, Fault},
        protobuf::{self, Envelope, PROTOBUF},
        typed, yaml,
    },
};

/// What bodies may be, in the order of the real server. Protobuf is for native kinds only, but named for all.
pub(crate) const ACCEPTED: [&str; 3] = [JSON, YAML, PROTOBUF];
pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
/// How much of a body is shown in an error.
const SHOWN_BYTES: usize = 30;
/// Where the real server keeps its native kinds; stands in its answers.
const SCHEME: &str = "pkg/api/legacyscheme/scheme.go:30";
/// What every body is read as first; stands in its answers as well.
const TYPE_META: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
                         Kind string \"json:\\\"kind,omitempty\\\"\" }";

/// What a body should be.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    /// Compiled into Kubernetes: kind and version may be left out.
    pub(crate) native: bool,
    /// The definition of a native kind, as in `io.k8s.api.core.v1.Pod`; protobuf cannot be read without it.
    pub(crate) definition: &'a str,
    /// Whether there is a native kind of this group, version and name.
    pub(crate) known: &'a dyn Fn(&str, &str, &str) -> bool,
}

impl Expected<'_> {
    fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

/// Decodes a body; fills in the kind and the version of native kinds where they are missing.
pub(crate) fn decode(
    content_type: &str,
    body: &[u8],
    expected: Expected<'_>,
) -> Result<Value, Refusal> {
    let unrecognized = |why: &str| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            expected.kind,
            shown(body)
        ))
    };
    let value = match media_type(content_type).as_str() {
        "" | JSON => json::parse(body),
        PROTOBUF if expected.native => {
            let envelope = Envelope::parse(body).map_err(|why| unrecognized(&why))?;
            return of_protobuf(envelope, body, &expected);
        }
        YAML => Ok(yaml::parse(body).map_err(|error| unrecognized(&format!("yaml: {error}")))?),
        _ => return Err(Refusal::unsupported_media_type(&ACCEPTED)),
    };
    let value = match value {
        Ok(value) => value,
        Err(Fault::Syntax { text, .. }) => {
            let why = format!("couldn't get version/kind; json parse error: {text}");
            return Err(unrecognized(&why));
        }
        Err(Fault::Number) => return Err(huge_number(body, &expected)),
    };
    let (api_version, kind) = type_meta(&value).map_err(|why| {
        unrecognized(&format!("couldn't get version/kind; json parse error: {why}"))
    })?;
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {api_version}")));
    }
    if expected.native {
        native(value, body, (api_version, kind), &expected)
    } else {
        custom(value, body, (api_version, kind), &expected)
    }
}

fn of_protobuf(
    envelope: Envelope<'_>,
    body: &[u8],
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    let Envelope { api_version, kind, message } = envelope;
    let same = |given: &str, wanted: &str| given.is_empty() || given == wanted;
    let is_expected = same(&api_version, &expected.api_version()) && same(&kind, expected.kind);
    // Messages of other kinds need not be read to be refused.
    let value = if is_expected {
        protobuf::message(expected.definition, message)
            .map_err(|why| cannot_be_handled(expected.kind, expected.version, expected, &why))?
    } else {
        Value::Object(serde_json::Map::new())
    };
    native(value, body, (api_version, kind), expected)
}

/// A body of an endpoint below objects: JSON, or protobuf of this definition.
pub(crate) fn decode_part(
    content_type: &str,
    body: &[u8],
    definition: &str,
) -> Result<Value, String> {
    if media_type(content_type) != PROTOBUF {
        return serde_json::from_slice(body).map_err(|error| error.to_string());
    }
    let envelope = Envelope::parse(body)?;
    let mut value = protobuf::message(definition, envelope.message)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), envelope.api_version.into());
        fields.insert("kind".into(), envelope.kind.into());
    }
    Ok(value)
}

/// The version and the kind that a body names, empty if missing; or why they cannot be read.
pub(crate) fn type_meta(value: &Value) -> Result<(String, String), String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok((String::new(), String::new())),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let name = json::type_name(other);
            return Err(format!("json: cannot unmarshal {name} into Go value of type {TYPE_META}"));
        }
    };
    let mut found = (String::new(), String::new());
    for (name, value) in fields {
        let place = match name.as_str() {
            "apiVersion" => &mut found.0,
            "kind" => &mut found.1,
            _ => continue,
        };
        match value {
            Value::String(text) => place.clone_from(text),
            Value::Null => {}
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                let wrong = json::type_name(other);
                return Err(format!(
                    "json: cannot unmarshal {wrong} into Go struct field .{name} of type string"
                ));
            }
        }
    }
    Ok(found)
}

fn native(
    mut value: Value,
    body: &[u8],
    (api_version, kind): (String, String),
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    let wanted = expected.api_version();
    let given = (
        if api_version.is_empty() { wanted.clone() } else { api_version },
        if kind.is_empty() { expected.kind.to_owned() } else { kind },
    );
    let (group, version) = given.0.split_once('/').unwrap_or(("", &given.0));
    let unhandled = |why: &str| cannot_be_handled(&given.1, version, expected, why);
    if given.0 != wanted && given.1 == expected.kind && (expected.known)(group, version, &given.1) {
        // The versions of a kind are one for the decoder.
        return Err(other_version(&given.0, &wanted));
    }
    if given.0 != wanted || given.1 != expected.kind {
        return Err(unhandled(&if (expected.known)(group, version, &given.1) {
            let package = match expected.group.split('.').next() {
                None | Some("") => "core",
                Some(first) => first,
            };
            format!(
                "converting ({version}.{}) to ({package}.{}): unknown conversion",
                given.1, expected.kind
            )
        } else {
            let of = &given.0;
            format!(
                "no kind \"{}\" is registered for version \"{of}\" in scheme \"{SCHEME}\"",
                given.1
            )
        }));
    }
    if value.is_null() {
        value = Value::Object(serde_json::Map::new());
    }
    typed::metadata_of_native(&value, body, expected.version, expected.kind)
        .map_err(|why| unhandled(&why))?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), given.0.clone().into());
        fields.insert("kind".into(), given.1.clone().into());
    }
    Ok(value)
}

fn custom(
    value: Value,
    body: &[u8],
    (api_version, kind): (String, String),
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    if kind.is_empty() {
        // What the real server read last is the whole body; of a YAML body it is what it was converted to.
        let whole = if body.first() == Some(&b'{') {
            String::from_utf8_lossy(body).into_owned()
        } else {
            value.to_string()
        };
        let why = format!(
            "unmarshalerDecoder: Object 'Kind' is missing in '{whole}', {}",
            typed::place(whole.as_bytes(), whole.len())
        );
        return Err(cannot_be_handled(expected.kind, expected.version, expected, &why));
    }
    let version = match api_version.as_str() {
        "" => expected.version,
        given => given.rsplit('/').next().unwrap_or(given),
    };
    typed::metadata_of_custom(&value)
        .map_err(|why| cannot_be_handled(&kind, version, expected, &why))?;
    if api_version.is_empty() {
        return Err(Refusal::internal(
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ));
    }
    let wanted = expected.api_version();
    if api_version != wanted {
        return Err(other_version(&api_version, &wanted));
    }
    if kind != expected.kind {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let problem = Problem::invalid("kind", kind.as_str(), format!("must be {}", expected.kind));
        return Err(Refusal::invalid(expected.group, &kind, name, &[problem]));
    }
    Ok(value)
}

fn other_version(given: &str, wanted: &str) -> Refusal {
    Refusal::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({wanted})"
    ))
}

/// A body that is JSON, but not of this kind.
fn cannot_be_handled(kind: &str, version: &str, expected: &Expected<'_>, why: &str) -> Refusal {
    Refusal::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {}: {why}",
        expected.kind
    ))
}

/// A number that is too large for a float: the real server names no field in this case either.
fn huge_number(body: &[u8], expected: &Expected<'_>) -> Refusal {
    let prefix = if expected.native {
        format!("{}.{}.", expected.version, expected.kind)
    } else {
        String::new()
    };
    let end = json::huge_number_end(body);
    let why = format!("{prefix}readNumberAsString: invalid number, {}", typed::place(body, end));
    cannot_be_handled(expected.kind, expected.version, expected, &why)
}

/// What a header says before its parameters.
pub(crate) fn media_type(content_type: &str) -> String {
    let (name, _parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    let name = name.trim().to_ascii_lowercase();
    // Parameters of nothing are no media type; nothing at all is the default one.
    if name.is_empty() && !content_type.trim().is_empty() { ";".into() } else { name }
}

/// The start of a body for an error: as text if it looks like JSON.
fn shown(body: &[u8]) -> String {
    let start = body.get(..SHOWN_BYTES).unwrap_or(body);
    let mut text = match body.first() {
        None => return "<empty>".into(),
        Some(b'{') => String::from_utf8_lossy(start).into_owned(),
        Some(_) => start.iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap_or_default();
            hex
        }),
    };
    if body.len() > SHOWN_BYTES {
        text.push_str(" ...");
    }
    text
}

/// The object of a write and the URL do not agree; `Ok` if they do. An update or a patch needs a name.
pub(crate) fn check_place(object: &Value, name: &str, namespace: &str) -> Result<(), Refusal> {
    let meta = |field: &str| {
        let found = object.get("metadata").and_then(|it| it.get(field)).and_then(Value::as_str);
        found.unwrap_or_default()
    };
    let given = meta("name");
    if given.is_empty() {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )));
    }
    if given != name {
        return Err(Refusal::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        )));
    }
    let given = meta("namespace");
    if !given.is_empty() && given != namespace {
        return Err(Refusal::bad_request(format!(
            "the namespace of the object ({given}) does not match the namespace on the request ({namespace})"
        )));
    }
    Ok(())
}

/// What a patch makes of a custom object must still be of its kind.
pub(crate) fn check_patched(patched: &Value, expected: Expected<'_>) -> Result<(), Refusal> {
    let text = shown_patched(patched, expected.native);
    let refused = |why: &str| {
        let problem = Problem::invalid("patch", text.as_str(), why);
        Err(Refusal::invalid("", "", "", &[problem]))
    };
    let (api_version, kind) = match type_meta(patched) {
        Ok(found) => found,
        Err(why) => {
            return refused(&format!("couldn't get version/kind; json parse error: {why}"));
        }
    };
    let name = patched.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let wanted = expected.api_version();
    if expected.native {
        let same = |given: &str, wanted: &str| given.is_empty() || given == wanted;
        if same(&api_version, &wanted) && same(&kind, expected.kind) {
            let checked = typed::metadata_of_native(
                patched,
                text.as_bytes(),
                expected.version,
                expected.kind,
            );
            return checked.or_else(|why| refused(&why));
        }
        let of = if api_version.is_empty() { wanted } else { api_version };
        let kind = if kind.is_empty() { expected.kind.to_owned() } else { kind };
        return refused(&format!(
            "no kind \"{kind}\" is registered for version \"{of}\" in scheme \"{SCHEME}\""
        ));
    }
    if kind.is_empty() {
        return refused(&format!(
            "unmarshalerDecoder: Object 'Kind' is missing in '{text}', {}",
            typed::place(text.as_bytes(), text.len())
        ));
    }
    if let Err(why) = typed::metadata_of_custom(patched) {
        return refused(&why);
    }
    if api_version.is_empty() {
        return Err(Refusal::internal(
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ));
    }
    if api_version != wanted {
        let problem =
            Problem::invalid("apiVersion", api_version.as_str(), format!("must be {wanted}"));
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        return Err(Refusal::invalid(group, &kind, name, &[problem]));
    }
    if kind != expected.kind {
        let problem = Problem::invalid("kind", kind.as_str(), format!("must be {}", expected.kind));
        return Err(Refusal::invalid(expected.group, &kind, name, &[problem]));
    }
    Ok(())
}

/// A patched object as the real server has it before it reads it again: a map with its keys in order. Below the first level
/// of native kinds the order is that of the stored object.
pub(crate) fn shown_patched(patched: &Value, native: bool) -> String {
    if native && let Value::Object(fields) = patched {
        let mut fields = fields.clone();
        fields.sort_keys();
        return Value::Object(fields).to_string();
    }
    typed::sorted_json(patched)
}

/// The same refusal for what a patch has made of a native object.
pub(crate) fn refuse_patched(refusal: Refusal, kind: &str, text: &str) -> Refusal {
    match refusal.message.split_once(&format!("cannot be handled as a {kind}: ")) {
        Some((_, why)) => {
            let problem = Problem::invalid("patch", text, why);
            Refusal::invalid("", "", "", &[problem])
        }
        None => refusal,
    }
}
