//! The shapes of the native kinds, as the real server has them: OpenAPI definitions, what Go knows beyond them, and what is served.
//!
//! Embedded compressed, inflated when somebody asks for the first time. After that the text stays, and each definition is
//! parsed when it is asked for. The text is made by `scripts/native-schemas`.

use std::{collections::BTreeMap, io::Read, sync::OnceLock};

use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use crate::schema::Schema;

/// A struct of Go.
#[derive(Debug)]
pub(crate) struct GoType {
    /// As errors print it: `v1.Pod`.
    pub(crate) name: &'static str,
    /// In the order in which they are written.
    pub(crate) fields: Vec<GoField>,
}

/// A field of a struct of Go.
#[derive(Debug)]
pub(crate) struct GoField {
    /// In JSON.
    pub(crate) name: &'static str,
    /// In Go; of an embedded struct: `VolumeSource: ConfigMap`.
    pub(crate) go: &'static str,
    /// Left out when it has the zero value.
    pub(crate) omit: bool,
    /// Null is a value of its own, and zero values are written.
    pub(crate) pointer: bool,
    pub(crate) form: Form,
    /// In protobuf: its own number after those of the embedded structs around it. None for what only JSON has.
    pub(crate) numbers: Vec<u32>,
    pub(crate) union: Option<Union>,
}

/// What is one of several things in JSON, and says in protobuf which; all are parts of JSON schemas.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Union {
    /// A schema or a list of schemas.
    Schemas,
    /// A schema, or whether anything is allowed.
    Flag,
    /// A schema or a list of names.
    Names,
}

/// What the values of a field look like.
#[derive(Debug)]
pub(crate) enum Form {
    Text,
    Bool,
    Int32,
    Int64,
    Float,
    /// Base64 in JSON.
    Bytes,
    Quantity,
    Time,
    MicroTime,
    IntOrText,
    /// Kept as it is.
    Any,
    List(Box<Form>),
    Map(Box<Form>),
    /// The name of its definition.
    Struct(&'static str),
}

/// A served resource of Kubernetes itself.
#[derive(Debug, Deserialize)]
pub(crate) struct Served {
    pub(crate) group: &'static str,
    /// The preferred one first; objects are stored in it.
    pub(crate) versions: Vec<&'static str>,
    pub(crate) plural: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<&'static str>,
    pub(crate) short: Vec<&'static str>,
    pub(crate) categories: Vec<&'static str>,
    pub(crate) subresources: Vec<Subresource>,
}

/// An endpoint below single objects.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Subresource {
    pub(crate) name: &'static str,
    /// Of its bodies; empty: of the resource itself.
    pub(crate) kind: &'static str,
    /// Of its bodies, if it is not the one of the resource.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) verbs: Vec<&'static str>,
}

#[derive(Default)]
struct Facts {
    schemas: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<Schema>>)>,
    types: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<GoType>>)>,
    resources: Vec<Served>,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    definitions: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    types: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    resources: &'a RawValue,
}

fn facts() -> &'static Facts {
    static TEXT: OnceLock<String> = OnceLock::new();
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| {
        let text = TEXT.get_or_init(|| {
            let mut text = String::new();
            let mut packed = GzDecoder::new(&include_bytes!("facts.json.gz")[..]);
            // The bytes are ours and a test reads them; without them, nothing is known of any kind.
            if packed.read_to_string(&mut text).is_err() {
                text.clear();
            }
            text
        });
        let document: Option<Document<'static>> = serde_json::from_str(text).ok();
        let Some(document) = document else { return Facts::default() };
        let schemas = document.definitions.into_iter();
        let types = document.types.into_iter();
        Facts {
            resources: serde_json::from_str(document.resources.get()).unwrap_or_default(),
            schemas: schemas.map(|(name, it)| (name, (it, OnceLock::new()))).collect(),
            types: types.map(|(name, it)| (name, (it, OnceLock::new()))).collect(),
        }
    })
}

/// What Kubernetes serves without CRDs, as its discovery tells it.
pub(crate) fn resources() -> &'static [Served] {
    &facts().resources
}

/// A shared definition of the native kinds by its name, as in `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(name: &str) -> Option<&'static Schema> {
    let (text, parsed) = facts().schemas.get(name)?;
    let parse = || Some(Schema::parse(&serde_json::from_str(text.get()).ok()?));
    parsed.get_or_init(parse).as_ref()
}

/// A definition as `OpenAPI` version 2 has it, without descriptions.
pub(crate) fn raw_definition(name: &str) -> Option<Value> {
    let (text, _) = facts().schemas.get(name)?;
    serde_json::from_str(text.get()).ok()
}

/// All definitions as OpenAPI v2 has them, without descriptions. Made anew by each call, for it is big.
pub(crate) fn raw_definitions() -> Map<String, Value> {
    let all = facts().schemas.iter();
    all.filter_map(|(name, (text, _))| {
        Some(((*name).into(), serde_json::from_str(text.get()).ok()?))
    })
    .collect()
}

/// What Go knows of a definition.
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

/// Forms are written as `[]@io.k8s.api.core.v1.Volume`, `{}string`, `int32` and so on.
fn form(code: &'static str) -> Option<Form> {
    if let Some(name) = code.strip_prefix('@') {
        return Some(Form::Struct(name));
    }
    if let Some(items) = code.strip_prefix("{}") {
        return Some(Form::Map(Box::new(form(items)?)));
    }
    if let Some(items) = code.strip_prefix("[]") {
        return Some(Form::List(Box::new(form(items)?)));
    }
    Some(match code {
        "string" => Form::Text,
        "bool" => Form::Bool,
        "int32" => Form::Int32,
        "int64" => Form::Int64,
        "float64" => Form::Float,
        "bytes" => Form::Bytes,
        "quantity" => Form::Quantity,
        "time" => Form::Time,
        "microtime" => Form::MicroTime,
        "intorstring" => Form::IntOrText,
        "any" => Form::Any,
        _ => return None,
    })
}
