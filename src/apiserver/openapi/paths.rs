//! The paths of the served kinds in OpenAPI v2.
//!
//! Clients read here whether a kind supports a dry run, and which parameters a PATCH accepts.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::{META, OpenApiDefinitions};
use crate::{
    discovery::{SubresourceEndpoint, subresources},
    resource::{ResourceDef, kind::Kind},
};

const JSON: [&str; 2] = ["application/json", "application/yaml"];
const PATCHES: [&str; 3] =
    ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"];
const STRATEGIC: &str = "application/strategic-merge-patch+json";

/// The parameters of writes, with their types.
const WRITE: [(&str, &str); 3] =
    [("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string")];
const FORCE: (&str, &str) = ("force", "boolean");
const DELETE: [(&str, &str); 4] = [
    ("dryRun", "string"),
    ("gracePeriodSeconds", "integer"),
    ("orphanDependents", "boolean"),
    ("propagationPolicy", "string"),
];
const LIST: [(&str, &str); 10] = [
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
];

/// Returns all paths with their operations.
pub(super) fn paths(kinds: &[Arc<Kind>], definitions: &OpenApiDefinitions) -> Map<String, Value> {
    let mut paths = Map::new();
    for kind in kinds {
        for version in &kind.def.versions {
            PathBuilder { def: &kind.def, version, definitions, paths: &mut paths }.add(kind);
        }
    }
    paths.sort_keys();
    paths
}

/// Returns the prefix of paths: `api/v1` or `apis/GROUP/VERSION`.
pub(super) fn base(def: &ResourceDef, version: &str) -> String {
    match def.group.as_str() {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

struct PathBuilder<'a> {
    def: &'a ResourceDef,
    version: &'a str,
    definitions: &'a OpenApiDefinitions,
    paths: &'a mut Map<String, Value>,
}

/// One operation before it is serialized.
struct PathOperation<'a> {
    method: &'a str,
    /// The value of `x-kubernetes-action`.
    action: &'a str,
    /// The operation id, such as `listCoreV1NamespacedPod`.
    id: String,
    /// The name of the definition of the request body.
    body: Option<String>,
    /// The name of the definition of the response.
    response: Option<String>,
    parameters: &'a [(&'a str, &'a str)],
}

impl PathBuilder<'_> {
    fn add(mut self, kind: &Kind) {
        let def = self.def;
        let base = format!("/{}", base(def, self.version));
        let can = |verb: &str| def.verbs.iter().any(|it| it == verb);
        let own = self.name(&def.group, self.version, &def.kind);
        let list = self.name(&def.group, self.version, &format!("{}List", def.kind));
        let collection = if def.namespaced {
            format!("{base}/namespaces/{{namespace}}/{}", def.plural)
        } else {
            format!("{base}/{}", def.plural)
        };
        if def.namespaced && can("list") {
            let id = format!("list{}{}ForAllNamespaces", self.prefix(), def.kind);
            let operation = PathOperation {
                method: "get",
                action: "list",
                id,
                body: None,
                response: list.clone(),
                parameters: &LIST,
            };
            self.put(&format!("{base}/{}", def.plural), &operation, None);
        }
        let one = format!("{collection}/{{name}}");
        let status = Some(format!("{META}Status"));
        let options = Some(format!("{META}DeleteOptions"));
        let none = &[][..];
        let patch = [WRITE.as_slice(), &[FORCE]].concat();
        for (verb, path, method, action, word, body, response, parameters) in [
            ("list", &collection, "get", "list", "list", &None, &list, &LIST[..]),
            ("create", &collection, "post", "post", "create", &own, &own, &WRITE),
            (
                "deletecollection",
                &collection,
                "delete",
                "deletecollection",
                "deleteCollection",
                &options,
                &status,
                &DELETE,
            ),
            ("get", &one, "get", "get", "read", &None, &own, none),
            ("update", &one, "put", "put", "replace", &own, &own, &WRITE),
            ("delete", &one, "delete", "delete", "delete", &options, &status, &DELETE),
            ("patch", &one, "patch", "patch", "patch", &Some(format!("{META}Patch")), &own, &patch),
        ] {
            if can(verb) {
                let id = self.id(word, "");
                let operation = PathOperation {
                    method,
                    action,
                    id,
                    body: body.clone(),
                    response: response.clone(),
                    parameters,
                };
                self.put(path, &operation, None);
            }
        }
        for part in subresources(kind, self.version) {
            self.add_part(&one, &part);
        }
    }

    fn add_part(&mut self, one: &str, part: &SubresourceEndpoint<'_>) {
        let own = self.name(part.group, part.version, part.kind);
        let patch = [WRITE.as_slice(), &[FORCE]].concat();
        for (verb, method, word) in [
            ("get", "get", "read"),
            ("update", "put", "replace"),
            ("patch", "patch", "patch"),
            ("create", "post", "create"),
        ] {
            if !part.verbs.contains(&verb) {
                continue;
            }
            let operation = PathOperation {
                method,
                action: method,
                id: self.id(word, part.name),
                body: match method {
                    "get" => None,
                    "patch" => Some(format!("{META}Patch")),
                    _ => own.clone(),
                },
                response: own.clone(),
                parameters: match method {
                    "get" => &[],
                    "patch" => &patch,
                    _ => &WRITE,
                },
            };
            self.put(&format!("{one}/{}", part.name), &operation, Some(part));
        }
    }

    fn name(&self, group: &str, version: &str, kind: &str) -> Option<String> {
        self.definitions.name(group, version, kind).map(String::from)
    }

    /// Returns the group and the version in operation ids: `RbacAuthorizationV1`.
    fn prefix(&self) -> String {
        let group = if self.def.group.is_empty() { "core" } else { &self.def.group };
        let group = group.strip_suffix(".k8s.io").unwrap_or(group);
        group.split('.').chain([self.version]).map(capital).collect()
    }

    fn id(&self, word: &str, part: &str) -> String {
        let (word, collection) = match word {
            "deleteCollection" => ("delete", "Collection"),
            word => (word, ""),
        };
        let place = if self.def.namespaced { "Namespaced" } else { "" };
        format!("{word}{}{collection}{place}{}{}", self.prefix(), self.def.kind, capital(part))
    }

    fn put(
        &mut self,
        path: &str,
        operation: &PathOperation<'_>,
        part: Option<&SubresourceEndpoint<'_>>,
    ) {
        let def = self.def;
        let written = self.write(operation, part);
        let item = self.paths.entry(path).or_insert_with(|| {
            let name = path.contains("{name}").then(|| path_parameter("name"));
            let namespace = path.contains("{namespace}").then(|| path_parameter("namespace"));
            let pretty = Some(query_parameter(("pretty", "string")));
            let all: Vec<Value> = [name, namespace, pretty].into_iter().flatten().collect();
            json!({ "parameters": all })
        });
        debug_assert!(path.contains(&def.plural));
        if let Some(item) = item.as_object_mut() {
            item.insert(operation.method.into(), written);
        }
    }

    fn write(
        &self,
        operation: &PathOperation<'_>,
        part: Option<&SubresourceEndpoint<'_>>,
    ) -> Value {
        let def = self.def;
        let reference = |name: &String| json!({ "$ref": format!("#/definitions/{name}") });
        let response =
            operation.response.as_ref().map_or_else(|| json!({ "type": "object" }), reference);
        let body = match (&operation.body, operation.method) {
            (Some(name), method) => Some(json!({
                "name": "body",
                "in": "body",
                "required": method != "delete",
                "schema": reference(name),
            })),
            (None, "post" | "put") => Some(json!({
                "name": "body", "in": "body", "required": true, "schema": { "type": "object" },
            })),
            (None, _) => None,
        };
        let parameters = operation.parameters.iter().map(|it| query_parameter(*it));
        let parameters: Vec<Value> = body.into_iter().chain(parameters).collect();
        let mut consumes: Vec<&str> = match operation.method {
            "patch" => PATCHES.into(),
            _ => JSON.into(),
        };
        if operation.method == "patch" && def.native {
            consumes.insert(2, STRATEGIC);
        }
        let code = if operation.method == "post" { "201" } else { "200" };
        let word = if operation.method == "post" { "Created" } else { "OK" };
        // For custom resources, even the scale is marked with the kind itself.
        let (group, version, kind) = match part.filter(|_| def.native) {
            Some(part) => (part.group, part.version, part.kind),
            None => (def.group.as_str(), self.version, def.kind.as_str()),
        };
        let prefix = self.prefix();
        let group_tag = prefix.strip_suffix(&capital(self.version)).unwrap_or(&prefix);
        json!({
            "tags": [format!("{}_{}", small(group_tag), self.version)],
            "operationId": operation.id,
            "consumes": consumes,
            "produces": JSON,
            "schemes": ["https"],
            "parameters": parameters,
            "responses": {
                (code): { "description": word, "schema": response },
                "401": { "description": "Unauthorized" },
            },
            "x-kubernetes-action": operation.action,
            "x-kubernetes-group-version-kind": { "group": group, "kind": kind, "version": version },
        })
    }
}

fn path_parameter(name: &str) -> Value {
    json!({ "uniqueItems": true, "type": "string", "name": name, "in": "path", "required": true })
}

fn query_parameter((name, kind): (&str, &str)) -> Value {
    json!({ "uniqueItems": true, "type": kind, "name": name, "in": "query" })
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

fn small(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|it| it.to_ascii_lowercase()).into_iter().chain(letters).collect()
}
