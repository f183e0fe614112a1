//! Decoding of bodies: from bytes to an object of the kind in the URL, or to the refusal of the real server.

use serde_json::Value;

use crate::{
    refusal::{Refusal, ValidationProblem},
    request::{
        json,
        protobuf::{self, Envelope, PROTOBUF},
        yaml,
    },
};

/// The media types of bodies, in the order of the real server. Protobuf is accepted for native kinds only, but listed for all.
pub(crate) const ACCEPTED: [&str; 3] = [JSON, YAML, PROTOBUF];
pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";
/// The place where the real server registers native kinds; part of its messages.
const SCHEME: &str = "pkg/runtime/scheme.go:111";
/// The kind that a body must have.
#[derive(Clone, Copy)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a str,
    pub(crate) version: &'a str,
    pub(crate) kind: &'a str,
    /// Compiled into Kubernetes: kind and version may be left out.
    pub(crate) native: bool,
    /// The definition of a native kind, such as `io.k8s.api.core.v1.Pod`; required for protobuf.
    pub(crate) definition: &'a str,
    /// Returns whether a native kind of this group, version and name exists.
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

/// Decodes a body; fills in a missing kind and version of native kinds. Adds the paths of duplicate fields to `repeated`.
pub(crate) fn decode(
    content_type: &str,
    body: &[u8],
    expected: Expected<'_>,
    repeated: &mut Vec<String>,
) -> Result<Value, Refusal> {
    let unrecognized = |why: &str| unrecognized(&expected, why);
    let value = match media_type(content_type).as_str() {
        "" | JSON => json::parse_strictly(body, repeated),
        PROTOBUF if expected.native => {
            let envelope = Envelope::parse(body).map_err(|why| unrecognized(&why))?;
            return of_protobuf(envelope, &expected);
        }
        YAML => Ok(yaml::parse(body).map_err(|error| unrecognized(&format!("yaml: {error}")))?),
        _ => return Err(Refusal::unsupported_media_type(&ACCEPTED)),
    };
    let value = value.map_err(|why| unrecognized(&format!("json parse error: {why}")))?;
    let (api_version, kind) =
        type_meta(&value).map_err(|why| unrecognized(&format!("json parse error: {why}")))?;
    if api_version.matches('/').count() > 1 {
        return Err(unrecognized(&format!("unexpected GroupVersion string: {api_version}")));
    }
    if expected.native {
        native(value, (api_version, kind), &expected)
    } else {
        custom(value, (api_version, kind), &expected)
    }
}

/// Makes the refusal of a body that is not an object of the kind.
fn unrecognized(expected: &Expected<'_>, why: &str) -> Refusal {
    let kind = expected.kind;
    Refusal::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why}"
    ))
}

fn of_protobuf(envelope: Envelope<'_>, expected: &Expected<'_>) -> Result<Value, Refusal> {
    let Envelope { api_version, kind, message } = envelope;
    let same = |given: &str, wanted: &str| given.is_empty() || given == wanted;
    let is_expected = same(&api_version, &expected.api_version()) && same(&kind, expected.kind);
    // Protobuf of other kinds is refused without decoding it.
    let value = if is_expected {
        protobuf::message(expected.definition, message)
            .map_err(|why| Refusal::undecodable(expected.kind, expected.version, &why))?
    } else {
        Value::Object(serde_json::Map::new())
    };
    native(value, (api_version, kind), expected)
}

/// Decodes the body of a subresource: JSON, or protobuf of this definition.
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

/// Returns the version and the kind in a body, empty if missing. Fails if they are not strings.
pub(crate) fn type_meta(value: &Value) -> Result<(String, String), String> {
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Null => return Ok((String::new(), String::new())),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            let name = json::type_name(other);
            return Err(format!("expected an object, got a value of type {name}"));
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
                return Err(format!("{name}: expected a string, got a value of type {wrong}"));
            }
        }
    }
    Ok(found)
}

fn native(
    mut value: Value,
    (api_version, kind): (String, String),
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    let wanted = expected.api_version();
    let given = (
        if api_version.is_empty() { wanted.clone() } else { api_version },
        if kind.is_empty() { expected.kind.to_owned() } else { kind },
    );
    let (group, version) = given.0.split_once('/').unwrap_or(("", &given.0));
    let unhandled = |why: &str| {
        let (found, kind) = (&given.1, expected.kind);
        Refusal::bad_request(format!(
            "{found} in version {version:?} cannot be handled as a {kind}: {why}"
        ))
    };
    if given.0 != wanted && given.1 == expected.kind && (expected.known)(group, version, &given.1) {
        // The decoder does not distinguish the versions of a kind.
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
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".into(), given.0.clone().into());
        fields.insert("kind".into(), given.1.clone().into());
    }
    Ok(value)
}

fn custom(
    value: Value,
    (api_version, kind): (String, String),
    expected: &Expected<'_>,
) -> Result<Value, Refusal> {
    if kind.is_empty() {
        return Err(unrecognized(expected, "the field kind is missing"));
    }
    let wanted = expected.api_version();
    if api_version != wanted {
        return Err(other_version(&api_version, &wanted));
    }
    if kind != expected.kind {
        let name = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let problem =
            ValidationProblem::invalid("kind", kind.as_str(), format!("must be {}", expected.kind));
        return Err(Refusal::invalid(expected.group, &kind, name, &[problem]));
    }
    Ok(value)
}

fn other_version(given: &str, wanted: &str) -> Refusal {
    Refusal::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({wanted})"
    ))
}

/// Returns the media type without its parameters.
pub(crate) fn media_type(content_type: &str) -> String {
    let (name, _parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    let name = name.trim().to_ascii_lowercase();
    // Parameters without a type are an invalid media type; an empty header means the default one.
    if name.is_empty() && !content_type.trim().is_empty() { ";".into() } else { name }
}

/// Checks that the name and the namespace of an object match the URL. An update or a patch needs a name.
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
        let why =
            "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Refusal::bad_request(why));
    }
    Ok(())
}

/// Checks that a patched object still has its kind.
pub(crate) fn check_patched(patched: &Value, expected: Expected<'_>) -> Result<(), Refusal> {
    let (api_version, kind) = type_meta(patched).map_err(|why| Refusal::unfit_patch(&why))?;
    let name = patched.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let wanted = expected.api_version();
    if expected.native {
        let same = |given: &str, wanted: &str| given.is_empty() || given == wanted;
        if same(&api_version, &wanted) && same(&kind, expected.kind) {
            return Ok(());
        }
        let of = if api_version.is_empty() { wanted } else { api_version };
        let kind = if kind.is_empty() { expected.kind.to_owned() } else { kind };
        return Err(Refusal::unfit_patch(&format!("{of} {kind} is another kind")));
    }
    if kind.is_empty() {
        return Err(Refusal::unfit_patch("the field kind is missing"));
    }
    if api_version.is_empty() {
        return Err(Refusal::internal(
            "Object 'apiVersion' is missing in 'object has no apiVersion field'",
        ));
    }
    if api_version != wanted {
        let problem = ValidationProblem::invalid(
            "apiVersion",
            api_version.as_str(),
            format!("must be {wanted}"),
        );
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        return Err(Refusal::invalid(group, &kind, name, &[problem]));
    }
    if kind != expected.kind {
        let problem =
            ValidationProblem::invalid("kind", kind.as_str(), format!("must be {}", expected.kind));
        return Err(Refusal::invalid(expected.group, &kind, name, &[problem]));
    }
    Ok(())
}
