//! The types of a custom resource, from its definition: what `ctx.spec` and `ctx.status` have in handlers of it.

use serde_json::{Map, Value};

use super::lua::class_name;

/// A kind that a definition defines, in its best version.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomKind {
    /// `KopfExample`
    pub kind: String,
    /// `kopf.dev`
    pub group: String,
    /// `v1`
    pub version: String,
    /// `kopfexamples`
    pub plural: String,
    singular: String,
    short_names: Vec<String>,
    schema: Value,
}

/// Deeper structures are `any`.
const DEPTH_MAX: usize = 32;

/// The handlers of objects, by the class of their `ctx`.
const CTX: &[&str] = &["ObjectCtx", "ChangeCtx", "EventCtx", "BackgroundCtx", "IndexCtx"];

impl CustomKind {
    /// Reads a `CustomResourceDefinition`. The error says what it lacks.
    pub fn read(definition: &Value) -> Result<Self, String> {
        let text = |path: &str| {
            let found = definition.pointer(path).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| {
                format!("it has no {}", path.trim_start_matches('/').replace('/', "."))
            })
        };
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
        let versions = versions.ok_or("it has no spec.versions")?;
        let flag = |it: &Value, name: &str| it.get(name).and_then(Value::as_bool) == Some(true);
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

    /// The selectors that mean it, as the parameters of declaring functions.
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

    /// The class of `ctx` in handlers of this kind.
    pub(super) fn ctx(&self, class: &str) -> String {
        format!("{}.{class}", self.kind)
    }

    /// Its classes, as `LuaCATS`.
    pub(super) fn lua(&self) -> String {
        let mut classes = Classes::default();
        let part = |name: &str| self.schema.pointer(&format!("/properties/{name}"));
        let spec = classes.add(&format!("{}.Spec", self.kind), part("spec"));
        let status = classes.add(&format!("{}.Status", self.kind), part("status"));
        let kind = &self.kind;
        let mut text = classes.text;
        text.push_str(&format!(
            "\n---A {kind} of {}/{}.\n---@class {kind}: kopf.Object\n---@field spec {spec}\n---@field status? {status}\n",
            self.group, self.version,
        ));
        for class in CTX {
            text.push_str(&format!(
                "\n---@class {}: {}\n---@field body {kind}\n---@field spec {spec}\n---@field status {status}\n",
                self.ctx(class),
                class_name(class),
            ));
        }
        text
    }
}

/// Classes under construction, the inner ones first.
#[derive(Default)]
struct Classes {
    text: String,
}

impl Classes {
    /// The type of what a schema describes; a class of this name if it has fields.
    fn add(&mut self, name: &str, schema: Option<&Value>) -> String {
        self.of(name, schema.unwrap_or(&Value::Null), 0)
    }

    fn of(&mut self, name: &str, schema: &Value, depth: usize) -> String {
        if depth > DEPTH_MAX {
            return "any".into();
        }
        if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
            return "integer|string".into();
        }
        if let Some(words) = words(schema) {
            return words;
        }
        match schema.get("type").and_then(Value::as_str) {
            Some("string") => "string".into(),
            Some("integer") => "integer".into(),
            Some("number") => "number".into(),
            Some("boolean") => "boolean".into(),
            Some("array") => {
                let item = schema.get("items").unwrap_or(&Value::Null);
                let item = self.of(&format!("{name}.Item"), item, depth + 1);
                if item.contains('|') { format!("({item})[]") } else { format!("{item}[]") }
            }
            Some("object") => self.object(name, schema, depth),
            Some(_) | None => "any".into(),
        }
    }

    fn object(&mut self, name: &str, schema: &Value, depth: usize) -> String {
        let empty = Map::new();
        let fields = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        if fields.is_empty() {
            let values = schema.get("additionalProperties").filter(|it| it.is_object());
            let values = values.map_or_else(
                || "any".to_owned(),
                |it| self.of(&format!("{name}.Value"), it, depth + 1),
            );
            return format!("table<string, {values}>");
        }
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|it| it.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut lines = Vec::new();
        for (field, inner) in fields {
            let ty = self.of(&format!("{name}.{}", capital(field)), inner, depth + 1);
            let is_there = required.contains(&field.as_str()) || inner.get("default").is_some();
            let optional = if is_there { "" } else { "?" };
            let doc = inner.get("description").and_then(Value::as_str).unwrap_or_default();
            let doc = doc.split_whitespace().collect::<Vec<_>>().join(" ");
            lines.push(
                format!("---@field {}{optional} {ty} {doc}", key(field)).trim_end().to_owned(),
            );
        }
        if preserves(schema) {
            lines.push("---@field [string] any".to_owned());
        }
        let doc = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let doc: String = doc.lines().map(|it| format!("---{it}\n")).collect();
        self.text.push_str(&format!("\n{doc}---@class {name}\n{}\n", lines.join("\n")));
        name.to_owned()
    }
}

fn preserves(schema: &Value) -> bool {
    schema.get("x-kubernetes-preserve-unknown-fields").and_then(Value::as_bool) == Some(true)
}

/// The values of an enumeration of texts.
fn words(schema: &Value) -> Option<String> {
    let all = schema.get("enum")?.as_array()?;
    let texts: Option<Vec<_>> =
        all.iter().map(|it| it.as_str().map(|it| format!("{it:?}"))).collect();
    texts.filter(|it| !it.is_empty()).map(|it| it.join("|"))
}

fn capital(field: &str) -> String {
    let plain: String =
        field.chars().map(|it| if it.is_alphanumeric() { it } else { '_' }).collect();
    let mut letters = plain.chars();
    letters.next().map(|it| it.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A field whose name is no name is in brackets.
fn key(field: &str) -> String {
    let is_name = !field.is_empty()
        && !field.starts_with(|it: char| it.is_ascii_digit())
        && field.chars().all(|it| it.is_ascii_alphanumeric() || it == '_');
    if is_name { field.to_owned() } else { format!("[{field:?}]") }
}
