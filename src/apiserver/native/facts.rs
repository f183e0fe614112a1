//! The shapes of the native kinds, as the real server has them: OpenAPI definitions, and what Go knows beyond them.
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
    /// Left out when it has the zero value. Structs are never left out, unless behind a pointer.
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
    /// The items, and how Go prints their type.
    List(&'static str, Box<Form>),
    Map(Box<Form>),
    /// The name of its definition.
    Struct(&'static str),
}

/// Fields that came after the recorded server, and that this one writes.
const LATER: [(&str, [&str; 3]); 1] = [(
    "io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry",
    ["subresource", "Subresource", "?string#8"],
)];

struct Facts {
    schemas: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<Schema>>)>,
    types: BTreeMap<&'static str, (&'static RawValue, OnceLock<Option<GoType>>)>,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    definitions: BTreeMap<&'a str, &'a RawValue>,
    #[serde(borrow)]
    types: BTreeMap<&'a str, &'a RawValue>,
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
        let empty = Document { definitions: BTreeMap::new(), types: BTreeMap::new() };
        let document: Document<'static> = serde_json::from_str(text).unwrap_or(empty);
        let schemas = document.definitions.into_iter();
        let types = document.types.into_iter();
        Facts {
            schemas: schemas.map(|(name, it)| (name, (it, OnceLock::new()))).collect(),
            types: types.map(|(name, it)| (name, (it, OnceLock::new()))).collect(),
        }
    })
}

/// A shared definition of the native kinds by its name, as in `io.k8s.api.core.v1.Pod`.
pub(crate) fn definition(name: &str) -> Option<&'static Schema> {
    let (text, parsed) = facts().schemas.get(name)?;
    let parse = || Some(Schema::parse(&serde_json::from_str(text.get()).ok()?));
    parsed.get_or_init(parse).as_ref()
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
        let later = LATER.iter().filter(|(of, _)| *of == name).map(|(_, field)| *field);
        Some(GoType {
            name: go,
            fields: fields.into_iter().chain(later).filter_map(field).collect(),
        })
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

/// Forms are written as `[v1.Volume]@io.k8s.api.core.v1.Volume`, `{}string`, `int32` and so on.
fn form(code: &'static str) -> Option<Form> {
    if let Some(name) = code.strip_prefix('@') {
        return Some(Form::Struct(name));
    }
    if let Some(items) = code.strip_prefix("{}") {
        return Some(Form::Map(Box::new(form(items)?)));
    }
    if let Some(rest) = code.strip_prefix('[') {
        // Items may be lists themselves, then their type starts with `[]`.
        let end = rest
            .match_indices(']')
            .map(|(at, _)| at)
            .find(|at| *at > 0 && rest.get(at - 1..*at) != Some("["))?;
        let (go, items) = rest.split_at_checked(end)?;
        return Some(Form::List(go, Box::new(form(items.get(1..)?)?)));
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
