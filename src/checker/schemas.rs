//! Schemas of resources: the fields of their objects.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, LazyLock},
};

use serde_json::{Value, json};

use crate::logic::access::grants::Access;

/// A function that finds a definition to which a schema refers.
pub type DefinitionLookup = fn(&str) -> Option<Arc<Value>>;

/// Knowledge in addition to the sources.
#[derive(Clone, Debug, Default)]
pub struct Knowledge {
    /// The ids of the indexes of all scripts, which are fields of `ctx`; `None` if a script could not be loaded.
    pub indexes: Option<Arc<BTreeSet<String>>>,
    /// The kinds of objects whose fields are known.
    pub kinds: Arc<Vec<ObjectKind>>,
    /// Finds the definitions that their schemas refer to.
    pub definitions: Option<DefinitionLookup>,
    /// The grants of the scripts, if they are known.
    pub access: Option<Arc<Access>>,
}

/// A kind of objects, with its names in selectors.
#[derive(Clone, Debug, Default)]
pub struct ObjectKind {
    /// The group; empty for the core group.
    pub group: String,
    /// The version, such as `v1`.
    pub version: String,
    /// The plural, the singular, the kind and the short names.
    pub names: Vec<String>,
    /// The schema of its objects.
    pub schema: Arc<Value>,
    /// Whether the status is a subresource.
    pub has_status: bool,
}

/// A part of a schema.
#[derive(Clone)]
pub(super) struct SchemaPart {
    root: Arc<Value>,
    /// The path from the root, as a JSON pointer.
    at: String,
    definitions: DefinitionLookup,
    /// Whether the root is a schema of whole objects.
    is_object: bool,
}

/// A field of an object.
pub(super) enum Field {
    Known(SchemaPart),
    /// The field does not exist; these do.
    Unknown(Vec<String>),
    /// The schema allows any field.
    Open,
}

/// The schema of metadata, which schemas of objects omit.
static META: LazyLock<Arc<Value>> = LazyLock::new(|| {
    let texts = ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
    let others = ["creationTimestamp", "deletionTimestamp"];
    let open = [
        "generation",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        "managedFields",
        "clusterName",
    ];
    let texts =
        texts.into_iter().chain(others).map(|it| (it.to_owned(), json!({"type": "string"})));
    let open = open.into_iter().map(|it| (it.to_owned(), json!({})));
    let fields: serde_json::Map<String, Value> = texts.chain(open).collect();
    Arc::new(json!({ "type": "object", "properties": fields }))
});

impl ObjectKind {
    /// Returns whether these words of a declaration select it.
    pub(super) fn is_selected(&self, words: &[&str]) -> bool {
        let named = |it: &str| self.names.iter().any(|name| name == it);
        let (group, version) = (self.group.as_str(), self.version.as_str());
        let both = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        match words {
            [word] => match word.split_once('.') {
                None => named(word),
                Some((name, rest)) => {
                    let is_versioned = rest
                        .strip_prefix(version)
                        .is_some_and(|it| it.strip_prefix('.').unwrap_or(it) == group);
                    named(name) && (rest == group || is_versioned)
                }
            },
            [place, name] => named(name) && (*place == both || *place == group),
            [its, of, name] => named(name) && *its == group && *of == version,
            _ => false,
        }
    }
}

impl SchemaPart {
    pub(super) fn of(root: &Arc<Value>, definitions: DefinitionLookup) -> Self {
        SchemaPart { root: Arc::clone(root), at: String::new(), definitions, is_object: true }
            .resolved()
    }

    /// Returns the schema of the metadata of objects.
    pub(super) fn of_metadata(definitions: DefinitionLookup) -> Self {
        SchemaPart { root: Arc::clone(&META), at: String::new(), definitions, is_object: false }
    }

    fn node(&self) -> &Value {
        self.root.pointer(&self.at).unwrap_or(&Value::Null)
    }

    /// Follows a reference to a definition.
    fn resolved(self) -> Self {
        let node = self.node();
        let reference = node.get("$ref").or_else(|| node.pointer("/allOf/0/$ref"));
        let name = reference.and_then(Value::as_str).and_then(|it| it.rsplit('/').next());
        let Some(name) = name else { return self };
        let definitions = self.definitions;
        // Without the definition, any field is possible.
        let root = definitions(name).unwrap_or_default();
        let is_object = self.is_object && self.at.is_empty();
        SchemaPart { root, at: String::new(), definitions, is_object }
    }

    fn below(&self, step: &str) -> Option<Self> {
        let at = format!("{}/{step}", self.at);
        self.root.pointer(&at)?;
        let (root, definitions) = (Arc::clone(&self.root), self.definitions);
        Some(SchemaPart { root, at, definitions, is_object: self.is_object }.resolved())
    }

    /// Returns the schema of a field.
    pub(super) fn field(&self, name: &str) -> Field {
        let node = self.node();
        let escaped = name.replace('~', "~0").replace('/', "~1");
        if let Some(known) = self.below(&format!("properties/{escaped}")) {
            return Field::Known(known);
        }
        let flag = |name: &str| node.get(name) == Some(&Value::Bool(true));
        let is_open = flag("x-kubernetes-preserve-unknown-fields")
            || flag("x-kubernetes-embedded-resource")
            || flag("x-kubernetes-int-or-string")
            || node.get("additionalProperties").is_some_and(|it| *it != Value::Bool(false));
        let fields = node.get("properties").and_then(Value::as_object);
        match fields.filter(|it| !it.is_empty() && !is_open) {
            Some(fields) => Field::Unknown(fields.keys().cloned().collect()),
            None => self.below("additionalProperties").map_or(Field::Open, Field::Known),
        }
    }

    /// Returns the names of its fields with their types and descriptions.
    pub(super) fn fields(&self) -> Vec<(String, String, String)> {
        let fields = self.node().get("properties").and_then(Value::as_object);
        let names = fields.into_iter().flat_map(serde_json::Map::keys);
        let described = |name: &String| {
            let text = |of: &Self, key: &str| {
                of.node().get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            let escaped = name.replace('~', "~0").replace('/', "~1");
            let field = self.below(&format!("properties/{escaped}"));
            let own = self.node().pointer(&format!("/properties/{escaped}/description"));
            let own = own.and_then(Value::as_str).map(str::to_owned);
            let ty = field.as_ref().map(|it| text(it, "type")).unwrap_or_default();
            let doc = own.or_else(|| field.as_ref().map(|it| text(it, "description")));
            (name.clone(), ty, doc.unwrap_or_default())
        };
        names.map(described).collect()
    }

    /// Returns the schema of the items of a list, or of the values of a map.
    pub(super) fn item(&self) -> Option<Self> {
        self.below("items").or_else(|| self.below("additionalProperties"))
    }

    /// Returns whether values are strings.
    pub(super) fn is_text(&self) -> bool {
        let node = self.node();
        let is_either = node.get("x-kubernetes-int-or-string").is_some()
            || node.get("format") == Some(&"int-or-string".into());
        node.get("type") == Some(&"string".into()) && !is_either
    }

    /// Returns whether values are lists.
    pub(super) fn is_list(&self) -> bool {
        self.node().get("type") == Some(&"array".into())
    }

    /// Returns whether it is the schema of a kind.
    pub(super) fn is_of(&self, kind: &ObjectKind) -> bool {
        Arc::ptr_eq(&self.root, &kind.schema)
    }

    /// Returns whether it is the schema of whole objects.
    pub(super) fn is_root(&self) -> bool {
        self.is_object && self.at.is_empty()
    }
}

impl PartialEq for SchemaPart {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root) && self.at == other.at
    }
}

impl fmt::Debug for SchemaPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.at)
    }
}
