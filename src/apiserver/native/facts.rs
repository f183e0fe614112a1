//! The types of the native kinds, taken from a real server: OpenAPI definitions, additional facts from the Go types, and the served
//! resources.
//!
//! They are embedded compressed and inflated at first use. The text then stays in memory, and each definition is parsed at its own
//! first use. `scripts/native-schemas` generates the text.

use std::{collections::BTreeMap, io::Read, sync::OnceLock};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::schema::Schema;
use crate::sorted::CollectSorted as _;

/// A struct of Go, with the facts that OpenAPI does not have.
#[derive(Debug)]
pub(crate) struct GoType {
    /// The name in error messages: `v1.Pod`.
    pub(crate) name: &'static str,
    /// In the order in which they are written.
    pub(crate) fields: Vec<GoField>,
}

/// A field of a struct of Go.
#[derive(Debug)]
pub(crate) struct GoField {
    /// The name in JSON.
    pub(crate) name: &'static str,
    /// The name in Go; for an embedded struct: `VolumeSource: ConfigMap`.
    pub(crate) go: &'static str,
    /// The field has `omitempty`: its zero value is left out.
    pub(crate) omit: bool,
    /// The field is a pointer: null differs from the zero value, which is written.
    pub(crate) pointer: bool,
    pub(crate) form: GoValueType,
    /// The field number in protobuf, after those of the embedded structs around it. Empty for fields that exist in JSON only.
    pub(crate) numbers: Vec<u32>,
    pub(crate) union: Option<Union>,
}

/// Types with several forms in JSON; protobuf contains the form. All of them are parts of JSON schemas.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Union {
    /// A schema or a list of schemas.
    Schemas,
    /// A schema or a boolean: whether anything is allowed.
    Flag,
    /// A schema or a list of names.
    Names,
}

/// The type of the values of a field.
#[derive(Debug)]
pub(crate) enum GoValueType {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    /// A base64 string in JSON.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrText,
    /// Any JSON, kept as it is.
    Any,
    List(Box<GoValueType>),
    Map(Box<GoValueType>),
    /// A struct, by the name of its definition.
    Struct(&'static str),
}

/// A resource that Kubernetes serves without a CRD.
#[derive(Debug, Deserialize)]
pub(crate) struct NativeResource {
    pub(crate) group: &'static str,
    /// The preferred version first; objects are stored in it.
    pub(crate) versions: Vec<&'static str>,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) short: Vec<&'static str>,
    pub(crate) categories: Vec<&'static str>,
    pub(crate) subresources: Vec<NativeSubresource>,
}

/// An endpoint below single objects.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct NativeSubresource {
    pub(crate) name: &'static str,
    /// The kind of its bodies; empty for the kind of the resource.
    pub(crate) kind: &'static str,
    /// The group of its bodies, if it differs from that of the resource.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) verbs: Vec<&'static str>,
}

#[derive(Default)]
struct NativeFacts {
    schemas: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<Schema>>)>,
    types: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<GoType>>)>,
    resources: Vec<NativeResource>,
}

#[derive(Deserialize)]
struct FactsFile<'a> {
    #[serde(borrow)]
    definitions: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    types: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    resources: &'a RawValue,
}

fn facts() -> &'static NativeFacts {
    static TEXT: OnceLock<String> = OnceLock::new();
    static FACTS: OnceLock<NativeFacts> = OnceLock::new();
    FACTS.get_or_init(|| {
        let text = TEXT.get_or_init(|| {
            let mut text = String::new();
            let mut packed = GzDecoder::new(&include_bytes!("facts.json.gz")[..]);
            // A test reads these embedded bytes. If they were damaged, no kind would be known.
            if packed.read_to_string(&mut text).is_err() {
                text.clear();
            }
            text
        });
        let document: Option<FactsFile<'static>> = serde_json::from_str(text).ok();
        let Some(document) = document else { return NativeFacts::default() };
        let schemas = document.definitions.into_iter();
        let types = document.types.into_iter();
        NativeFacts {
            resources: serde_json::from_str(document.resources.get()).unwrap_or_default(),
            schemas: schemas.map(|(name, it)| (name, (it, OnceLock::new()))).collect_map(),
            types: types.map(|(name, it)| (name, (it, OnceLock::new()))).collect_map(),
        }
    })
}

/// Returns all resources that Kubernetes serves without CRDs, from its discovery.
pub(crate) fn resources() -> &'static [NativeResource] {
    &facts().resources
}

/// Returns a definition by its name, such as `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(name: &str) -> Option<&'static Schema> {
    let (text, parsed) = facts().schemas.get(name)?;
    let parse = || Some(Schema::parse(&serde_json::from_str(text.get()).ok()?));
    parsed.get_or_init(parse).as_ref()
}

/// Returns a definition in its form of OpenAPI v2, without descriptions.
pub(crate) fn raw_definition(name: &str) -> Option<Value> {
    let (text, _) = facts().schemas.get(name)?;
    serde_json::from_str(text.get()).ok()
}

/// Returns all definitions in their form of OpenAPI v2, without descriptions. Each call parses them again, because the result is
/// large.
pub(crate) fn raw_definitions() -> Map<String, Value> {
    let all = facts().schemas.iter();
    all.filter_map(|(name, (text, _))| {
        Some(((*name).into(), serde_json::from_str(text.get()).ok()?))
    })
    .collect()
}

/// Returns the Go struct of a definition.
pub(crate) fn go_type(name: &str) -> Option<&'static GoType> {
    let (text, parsed) = facts().types.get(name)?;
    let parse = || {
        let text: &'static str = text.get();
        let (go, fields): (&str, Vec<[&'static str; 3]>) = serde_json::from_str(text).ok()?;
        Some(GoType { name: go, fields: fields.into_iter().filter_map(field).collect() })
    };
    parsed.get_or_init(parse).as_ref()
}

fn field([name, go, code]: [&'static str; 3]) -> Option<GoField> {
    let (code, numbers) = code.split_once('#').unwrap_or((code, ""));
    let bare = code.trim_start_matches(['?', '*']);
    let flags = code.strip_suffix(bare)?;
    Some(GoField {
        name,
        go,
        omit: flags.contains('?'),
        pointer: flags.contains('*'),
        form: form(bare)?,
        union: match numbers.chars().next_back() {
            Some('a') => Some(Union::Schemas),
            Some('b') => Some(Union::Flag),
            Some('s') => Some(Union::Names),
            _ => None,
        },
        numbers: numbers
            .trim_end_matches(|it: char| it.is_alphabetic())
            .split('.')
            .filter_map(|it| it.parse().ok())
            .collect(),
    })
}

/// Parses the form of a field, written as `[]@io.k8s.api.core.v1.Volume`, `{}string`, `int32` and so on.
fn form(code: &'static str) -> Option<GoValueType> {
    if let Some(name) = code.strip_prefix('@') {
        return Some(GoValueType::Struct(name));
    }
    if let Some(items) = code.strip_prefix("{}") {
        return Some(GoValueType::Map(Box::new(form(items)?)));
    }
    if let Some(items) = code.strip_prefix("[]") {
        return Some(GoValueType::List(Box::new(form(items)?)));
    }
    Some(match code {
        "string" => GoValueType::Text,
        "bool" => GoValueType::Bool,
        "int32" => GoValueType::Int32,
        "int64" => GoValueType::Int64,
        "float64" => GoValueType::Float,
        "bytes" => GoValueType::Bytes,
        "quantity" => GoValueType::Quantity,
        "time" => GoValueType::Time,
        "microtime" => GoValueType::MicroTime,
        "intorstring" => GoValueType::IntOrText,
        "any" => GoValueType::Any,
        _ => return None,
    })
}
