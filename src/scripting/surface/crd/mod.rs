//! The types of a custom resource, from its CRD: the fields of `ctx.spec` and `ctx.status` in its handlers.

mod render;
#[cfg(test)]
mod tests;

use serde_json::Value;

/// A kind that a CRD defines, in its best version.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomKind {
    /// The kind, such as `KopfExample`.
    pub kind: String,
    /// The group, such as `kopf.dev`.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural, such as `kopfexamples`.
    pub plural: String,
    singular: String,
    short_names: Vec<String>,
    schema: Value,
}

/// The maximum depth; deeper structures are `any`.
const DEPTH_MAX: usize = 32;

/// The type of a field of a custom resource.
#[derive(Clone, Debug, PartialEq)]
enum CrdType {
    Any,
    Text,
    Integer,
    Number,
    Boolean,
    IntegerOrText,
    Words(Vec<String>),
    /// A class, by its path below the kind, such as `Spec.Template`.
    Class(String),
    ListOf(Box<CrdType>),
    MapOf(Box<CrdType>),
}

/// A map with known fields.
#[derive(Clone, Debug, PartialEq)]
struct FieldClass {
    name: String,
    doc: String,
    fields: Vec<Field>,
    /// Whether other fields are possible.
    open: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    takes: CrdType,
    /// Whether it always exists: it is required, or has a default.
    certain: bool,
    doc: String,
}

impl CustomKind {
    /// Reads a `CustomResourceDefinition`. Fails with the name of the missing field.
    pub fn read(definition: &Value) -> Result<Self, String> {
        let text = |path: &str| {
            let found = definition.pointer(path).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| {
                format!("it has no {}", path.trim_start_matches('/').replace('/', "."))
            })
        };
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.ok_or("it has no spec.versions")?;
        let stored = versions.iter().find(|it| flag(it, "storage") && flag(it, "served"));
        let version = stored.or_else(|| versions.iter().find(|it| flag(it, "served")));
        let version = version.ok_or("no version of it is served")?;
        let kind = text("/spec/names/kind")?;
        let names = definition.pointer("/spec/names/shortNames").and_then(Value::as_array);
        let names = names.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
        Ok(CustomKind {
            group: text("/spec/group")?,
            version: version.get("name").and_then(Value::as_str).unwrap_or("v1").to_owned(),
            plural: text("/spec/names/plural")?,
            singular: text("/spec/names/singular").unwrap_or_else(|_| kind.to_lowercase()),
            short_names: names.collect(),
            schema: version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or_default(),
            kind,
        })
    }

    /// Returns the selectors of the kind, as parameters of declaring functions in `LuaCATS`.
    pub(super) fn selectors(&self) -> Vec<Vec<String>> {
        let quoted = |it: &str| format!("\"{it}\"");
        let alone = [self.plural.as_str(), &self.singular, &self.kind];
        let alone = alone.into_iter().chain(self.short_names.iter().map(String::as_str));
        let mut all: Vec<_> = alone.map(quoted).collect();
        all.push(quoted(&format!("{}.{}", self.plural, self.group)));
        all.push(quoted(&format!("{}.{}.{}", self.plural, self.version, self.group)));
        let mut seen = Vec::new();
        all.retain(|it| {
            !seen.contains(it) && {
                seen.push(it.clone());
                true
            }
        });
        let (group, plural) = (quoted(&self.group), quoted(&self.plural));
        let both = quoted(&format!("{}/{}", self.group, self.version));
        vec![
            vec![format!("selector: {}", all.join("|"))],
            vec![format!("group: {group}|{both}"), format!("resource: {plural}")],
            vec![
                format!("group: {group}"),
                format!("version: {}", quoted(&self.version)),
                format!("resource: {plural}"),
            ],
        ]
    }

    /// Returns the version as in objects: `kopf.dev/v1`.
    pub fn api_version(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    /// Returns the schema of a field of its objects, such as `spec`.
    pub fn part(&self, name: &str) -> Option<&Value> {
        self.schema.pointer("/properties")?.get(name)
    }

    /// Returns the types of `spec` and `status`, and the classes in them, the inner ones first.
    fn classes(&self) -> (CrdType, CrdType, Vec<FieldClass>) {
        let mut classes = Vec::new();
        let mut takes = |name, field| collect(&mut classes, name, self.part(field), 0);
        let (spec, status) = (takes("Spec", "spec"), takes("Status", "status"));
        (spec, status, classes)
    }
}

fn collect(
    classes: &mut Vec<FieldClass>,
    name: &str,
    schema: Option<&Value>,
    depth: usize,
) -> CrdType {
    let Some(schema) = schema.filter(|_| depth <= DEPTH_MAX) else { return CrdType::Any };
    if flag(schema, "x-kubernetes-int-or-string") {
        return CrdType::IntegerOrText;
    }
    if let Some(words) = words(schema) {
        return CrdType::Words(words);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => CrdType::Text,
        Some("integer") => CrdType::Integer,
        Some("number") => CrdType::Number,
        Some("boolean") => CrdType::Boolean,
        Some("array") => {
            let item = collect(classes, &format!("{name}.Item"), schema.get("items"), depth + 1);
            CrdType::ListOf(Box::new(item))
        }
        Some("object") => object(classes, name, schema, depth),
        Some(_) | None => CrdType::Any,
    }
}

fn object(classes: &mut Vec<FieldClass>, name: &str, schema: &Value, depth: usize) -> CrdType {
    let Some(fields) = schema.get("properties").and_then(Value::as_object) else {
        let values = schema.get("additionalProperties").filter(|it| it.is_object());
        let item = collect(classes, &format!("{name}.Value"), values, depth + 1);
        return CrdType::MapOf(Box::new(item));
    };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
    let field = |(field, inner): (&String, &Value)| Field {
        name: field.clone(),
        takes: collect(classes, &format!("{name}.{}", capital(field)), Some(inner), depth + 1),
        certain: is_required(field) || inner.get("default").is_some(),
        doc: description(inner),
    };
    let fields = fields.iter().map(field).collect();
    let open = flag(schema, "x-kubernetes-preserve-unknown-fields");
    classes.push(FieldClass { name: name.to_owned(), doc: description(schema), fields, open });
    CrdType::Class(name.to_owned())
}

fn description(schema: &Value) -> String {
    let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

/// Returns the values of an enumeration of strings.
fn words(schema: &Value) -> Option<Vec<String>> {
    let all = schema.get("enum")?.as_array()?;
    let texts: Option<Vec<_>> = all.iter().map(|it| it.as_str().map(str::to_owned)).collect();
    texts.filter(|it| !it.is_empty())
}

fn capital(field: &str) -> String {
    let letter = |it: char| if it.is_alphanumeric() { it } else { '_' };
    let mut letters = field.chars().map(letter);
    letters.next().map(|it| it.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
