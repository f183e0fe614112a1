//! OpenAPI v2 as protobuf: `openapi.v2.Document` of gnostic. The field numbers are those of its `OpenAPIv2.proto`.
//!
//! It has only the messages that the generated documents need. Values of any type are YAML strings there; JSON is valid YAML.

use prost::{Message, Oneof};
use serde_json::{Map, Value};

#[derive(Clone, PartialEq, Message)]
pub(super) struct OpenApiDocument {
    #[prost(string, tag = "1")]
    swagger: String,
    #[prost(message, optional, tag = "2")]
    info: Option<Info>,
    #[prost(message, optional, tag = "8")]
    paths: Option<Paths>,
    #[prost(message, optional, tag = "9")]
    definitions: Option<NamedSchemas>,
}

#[derive(Clone, PartialEq, Message)]
struct Info {
    #[prost(string, tag = "1")]
    title: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Paths {
    #[prost(message, repeated, tag = "2")]
    path: Vec<NamedPathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedPathItem {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<PathItem>,
}

#[derive(Clone, PartialEq, Message)]
struct PathItem {
    #[prost(message, optional, tag = "2")]
    get: Option<Operation>,
    #[prost(message, optional, tag = "3")]
    put: Option<Operation>,
    #[prost(message, optional, tag = "4")]
    post: Option<Operation>,
    #[prost(message, optional, tag = "5")]
    delete: Option<Operation>,
    #[prost(message, optional, tag = "8")]
    patch: Option<Operation>,
    #[prost(message, repeated, tag = "9")]
    parameters: Vec<ParametersItem>,
}

#[derive(Clone, PartialEq, Message)]
struct Operation {
    #[prost(string, repeated, tag = "1")]
    tags: Vec<String>,
    #[prost(string, tag = "5")]
    id: String,
    #[prost(string, repeated, tag = "6")]
    produces: Vec<String>,
    #[prost(string, repeated, tag = "7")]
    consumes: Vec<String>,
    #[prost(message, repeated, tag = "8")]
    parameters: Vec<ParametersItem>,
    #[prost(message, optional, tag = "9")]
    responses: Option<Responses>,
    #[prost(string, repeated, tag = "10")]
    schemes: Vec<String>,
    #[prost(message, repeated, tag = "13")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct ParametersItem {
    #[prost(message, optional, tag = "1")]
    parameter: Option<Parameter>,
}

#[derive(Clone, PartialEq, Message)]
struct Parameter {
    #[prost(oneof = "ParameterKind", tags = "1, 2")]
    kind: Option<ParameterKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ParameterKind {
    #[prost(message, tag = "1")]
    Body(Box<BodyParameter>),
    #[prost(message, tag = "2")]
    Other(NonBodyParameter),
}

#[derive(Clone, PartialEq, Message)]
struct BodyParameter {
    #[prost(string, tag = "2")]
    name: String,
    #[prost(string, tag = "3")]
    place: String,
    #[prost(bool, tag = "4")]
    required: bool,
    #[prost(message, optional, tag = "5")]
    schema: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NonBodyParameter {
    #[prost(oneof = "OtherParameter", tags = "3, 4")]
    kind: Option<OtherParameter>,
}

#[derive(Clone, PartialEq, Oneof)]
enum OtherParameter {
    #[prost(message, tag = "3")]
    Query(QueryParameter),
    #[prost(message, tag = "4")]
    Path(PathParameter),
}

#[derive(Clone, PartialEq, Message)]
struct QueryParameter {
    #[prost(string, tag = "2")]
    place: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "6")]
    kind: String,
    #[prost(bool, tag = "20")]
    unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
struct PathParameter {
    #[prost(bool, tag = "1")]
    required: bool,
    #[prost(string, tag = "2")]
    place: String,
    #[prost(string, tag = "4")]
    name: String,
    #[prost(string, tag = "5")]
    kind: String,
    #[prost(bool, tag = "19")]
    unique_items: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Responses {
    #[prost(message, repeated, tag = "1")]
    response_code: Vec<NamedResponse>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedResponse {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<ResponseValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ResponseValue {
    #[prost(message, optional, tag = "1")]
    response: Option<Response>,
}

#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(string, tag = "1")]
    description: String,
    #[prost(message, optional, tag = "2")]
    schema: Option<SchemaItem>,
}

#[derive(Clone, PartialEq, Message)]
struct SchemaItem {
    #[prost(message, optional, tag = "1")]
    schema: Option<Schema>,
}

/// `Definitions` and `Properties`, which have the same fields.
#[derive(Clone, PartialEq, Message)]
struct NamedSchemas {
    #[prost(message, repeated, tag = "1")]
    additional_properties: Vec<NamedSchema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedSchema {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct Schema {
    #[prost(string, tag = "1")]
    reference: String,
    #[prost(string, tag = "2")]
    format: String,
    #[prost(string, tag = "3")]
    title: String,
    #[prost(string, tag = "4")]
    description: String,
    #[prost(message, optional, tag = "5")]
    default: Option<Any>,
    #[prost(double, tag = "6")]
    multiple_of: f64,
    #[prost(double, tag = "7")]
    maximum: f64,
    #[prost(bool, tag = "8")]
    exclusive_maximum: bool,
    #[prost(double, tag = "9")]
    minimum: f64,
    #[prost(bool, tag = "10")]
    exclusive_minimum: bool,
    #[prost(int64, tag = "11")]
    max_length: i64,
    #[prost(int64, tag = "12")]
    min_length: i64,
    #[prost(string, tag = "13")]
    pattern: String,
    #[prost(int64, tag = "14")]
    max_items: i64,
    #[prost(int64, tag = "15")]
    min_items: i64,
    #[prost(bool, tag = "16")]
    unique_items: bool,
    #[prost(int64, tag = "17")]
    max_properties: i64,
    #[prost(int64, tag = "18")]
    min_properties: i64,
    #[prost(string, repeated, tag = "19")]
    required: Vec<String>,
    #[prost(message, repeated, tag = "20")]
    allowed: Vec<Any>,
    #[prost(message, optional, boxed, tag = "21")]
    additional_properties: Option<Box<AdditionalPropertiesItem>>,
    #[prost(message, optional, tag = "22")]
    kind: Option<TypeItem>,
    #[prost(message, optional, tag = "23")]
    items: Option<ItemsItem>,
    #[prost(message, optional, tag = "25")]
    properties: Option<NamedSchemas>,
    #[prost(message, repeated, tag = "31")]
    vendor_extension: Vec<NamedAny>,
}

#[derive(Clone, PartialEq, Message)]
struct AdditionalPropertiesItem {
    #[prost(oneof = "AdditionalProperties", tags = "1, 2")]
    kind: Option<AdditionalProperties>,
}

#[derive(Clone, PartialEq, Oneof)]
enum AdditionalProperties {
    #[prost(message, boxed, tag = "1")]
    Schema(Box<Schema>),
    #[prost(bool, tag = "2")]
    Boolean(bool),
}

#[derive(Clone, PartialEq, Message)]
struct TypeItem {
    #[prost(string, repeated, tag = "1")]
    value: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ItemsItem {
    #[prost(message, repeated, tag = "1")]
    schema: Vec<Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedAny {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    value: Option<Any>,
}

#[derive(Clone, PartialEq, Message)]
struct Any {
    #[prost(string, tag = "2")]
    yaml: String,
}

/// Converts an OpenAPI v2 document of this module.
pub(super) fn document(document: &Value) -> OpenApiDocument {
    let paths = named(document, "paths", |name, it| NamedPathItem { name, value: Some(path(it)) });
    let info = document.get("info").unwrap_or(&Value::Null);
    OpenApiDocument {
        swagger: text(document, "swagger"),
        info: Some(Info { title: text(info, "title"), version: text(info, "version") }),
        paths: Some(Paths { path: paths }),
        definitions: Some(schemas(document, "definitions")),
    }
}

fn path(item: &Value) -> PathItem {
    let operation = |method: &str| item.get(method).map(operation);
    PathItem {
        get: operation("get"),
        put: operation("put"),
        post: operation("post"),
        delete: operation("delete"),
        patch: operation("patch"),
        parameters: list(item, "parameters").map(parameter).collect(),
    }
}

fn operation(it: &Value) -> Operation {
    let responses = named(it, "responses", |name, it| {
        let schema = it.get("schema").map(|it| SchemaItem { schema: Some(schema(it)) });
        let response = Response { description: text(it, "description"), schema };
        NamedResponse { name, value: Some(ResponseValue { response: Some(response) }) }
    });
    Operation {
        tags: texts(it, "tags"),
        id: text(it, "operationId"),
        produces: texts(it, "produces"),
        consumes: texts(it, "consumes"),
        parameters: list(it, "parameters").map(parameter).collect(),
        responses: Some(Responses { response_code: responses }),
        schemes: texts(it, "schemes"),
        vendor_extension: extensions(it),
    }
}

fn parameter(it: &Value) -> ParametersItem {
    let (name, place, kind) = (text(it, "name"), text(it, "in"), text(it, "type"));
    let (required, unique_items) = (flag(it, "required"), flag(it, "uniqueItems"));
    let other = |kind| ParameterKind::Other(NonBodyParameter { kind: Some(kind) });
    let kind = match place.as_str() {
        "body" => {
            let schema = it.get("schema").map(schema);
            ParameterKind::Body(Box::new(BodyParameter { name, place, required, schema }))
        }
        "path" => {
            other(OtherParameter::Path(PathParameter { required, place, name, kind, unique_items }))
        }
        _ => other(OtherParameter::Query(QueryParameter { place, name, kind, unique_items })),
    };
    ParametersItem { parameter: Some(Parameter { kind: Some(kind) }) }
}

/// Converts a schema. The recursion is as deep as the definitions, whose depth is bounded.
fn schema(it: &Value) -> Schema {
    let whole = |name: &str| it.get(name).and_then(Value::as_i64).unwrap_or_default();
    let number = |name: &str| it.get(name).and_then(Value::as_f64).unwrap_or_default();
    let additional = it.get("additionalProperties").map(|it| {
        let kind = match it.as_bool() {
            Some(flag) => AdditionalProperties::Boolean(flag),
            None => AdditionalProperties::Schema(Box::new(schema(it))),
        };
        Box::new(AdditionalPropertiesItem { kind: Some(kind) })
    });
    Schema {
        reference: text(it, "$ref"),
        format: text(it, "format"),
        title: text(it, "title"),
        description: text(it, "description"),
        default: it.get("default").map(any),
        multiple_of: number("multipleOf"),
        maximum: number("maximum"),
        exclusive_maximum: flag(it, "exclusiveMaximum"),
        minimum: number("minimum"),
        exclusive_minimum: flag(it, "exclusiveMinimum"),
        max_length: whole("maxLength"),
        min_length: whole("minLength"),
        pattern: text(it, "pattern"),
        max_items: whole("maxItems"),
        min_items: whole("minItems"),
        unique_items: flag(it, "uniqueItems"),
        max_properties: whole("maxProperties"),
        min_properties: whole("minProperties"),
        required: texts(it, "required"),
        allowed: list(it, "enum").map(any).collect(),
        additional_properties: additional,
        kind: it.get("type").and_then(Value::as_str).map(|it| TypeItem { value: vec![it.into()] }),
        items: it.get("items").map(|it| ItemsItem { schema: vec![schema(it)] }),
        properties: it.get("properties").map(|_| schemas(it, "properties")),
        vendor_extension: extensions(it),
    }
}

fn schemas(holder: &Value, field: &str) -> NamedSchemas {
    let named = named(holder, field, |name, it| NamedSchema { name, value: Some(schema(it)) });
    NamedSchemas { additional_properties: named }
}

fn extensions(it: &Value) -> Vec<NamedAny> {
    let fields = it.as_object().into_iter().flatten();
    let extensions = fields.filter(|(name, _)| name.starts_with("x-"));
    extensions.map(|(name, it)| NamedAny { name: name.clone(), value: Some(any(it)) }).collect()
}

fn any(it: &Value) -> Any {
    Any { yaml: it.to_string() }
}

fn named<T>(holder: &Value, field: &str, make: impl Fn(String, &Value) -> T) -> Vec<T> {
    let fields = holder.get(field).and_then(Value::as_object);
    let fields: Option<&Map<String, Value>> = fields;
    fields.into_iter().flatten().map(|(name, it)| make(name.clone(), it)).collect()
}

fn list<'a>(holder: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    holder.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn text(holder: &Value, field: &str) -> String {
    holder.get(field).and_then(Value::as_str).unwrap_or_default().into()
}

fn texts(holder: &Value, field: &str) -> Vec<String> {
    list(holder, field).filter_map(Value::as_str).map(String::from).collect()
}

fn flag(holder: &Value, field: &str) -> bool {
    holder.get(field).and_then(Value::as_bool).unwrap_or(false)
}
