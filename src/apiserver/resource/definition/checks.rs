//! Validation of CRDs.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    conversion, convert,
    openapi::{self, Strictness},
    status::{APPROVAL, Approval, approval_of},
    structure,
};
use crate::{
    metadata::names,
    object,
    refusal::{ProblemKind, ValidationProblem},
};

/// Validates a new CRD, or the change of an old one. Of the metadata, only the name is validated.
pub(crate) fn check(new: &Value, old: Option<&Value>) -> Vec<ValidationProblem> {
    let inner = convert::to_internal(new);
    let mut found = Vec::new();
    if old.is_none() {
        name(&inner, &mut found);
    }
    let spec = Spec::of(&inner);
    spec.check(&strictness(&spec, old), &mut found);
    if let Some(old) = old {
        unchanged(&spec, old, &mut found);
    }
    accepted_names(&inner, &mut found);
    stored_versions(&inner, &spec, &mut found);
    approval(&inner, old, &mut found);
    preserve(&spec, old, &mut found);
    found
}

fn name(crd: &Value, found: &mut Vec<ValidationProblem>) {
    let name = object::meta(crd, "name");
    let text = |pointer: &str| crd.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let mut wrong = names::dns_subdomain(name);
    if name != format!("{}.{}", text("/spec/names/plural"), text("/spec/group")) {
        wrong.push("must be spec.names.plural+\".\"+spec.group".into());
    }
    found.extend(wrong.into_iter().map(|it| ValidationProblem::invalid("metadata.name", name, it)));
}

/// The spec of a CRD in the internal form.
struct Spec<'a> {
    fields: Option<&'a Map<String, Value>>,
}

/// The strictness of all checks of a CRD.
struct ValidationOptions {
    schemas: bool,
    structural: bool,
    known_types: bool,
    strict_lists: bool,
    known_reviews: bool,
}

/// Returns the strictness for a new version of a CRD: never stricter than what the stored version already satisfies.
fn strictness(spec: &Spec<'_>, old: Option<&Value>) -> ValidationOptions {
    let old_schemas: Vec<Option<&Value>> = old
        .iter()
        .flat_map(|it| {
            let versions =
                it.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
            versions.map(|it| it.pointer("/schema/openAPIV3Schema"))
        })
        .collect();
    let old_structural = old_schemas.iter().flatten().all(|it| structure::check(it, "").is_empty());
    let extended = spec.schemas().any(|it| {
        has(it, &|it| {
            ["embedded-resource", "preserve-unknown-fields", "int-or-string"]
                .iter()
                .any(|name| it.get(format!("x-kubernetes-{name}")).is_some_and(|it| *it != false))
        })
    });
    let prunes = !spec.preserves();
    ValidationOptions {
        schemas: old_schemas.iter().all(Option::is_some),
        structural: old_structural || prunes || extended,
        known_types: old_structural,
        strict_lists: old_structural,
        known_reviews: true,
    }
}

/// Returns whether a schema or a part of it has a property.
fn has(schema: &Value, property: &dyn Fn(&Value) -> bool) -> bool {
    property(schema)
        || structure::properties(schema).any(|(_, it)| has(it, property))
        || ["items", "additionalProperties", "not"]
            .iter()
            .any(|name| schema.get(name).is_some_and(|it| has(it, property)))
        || ["allOf", "anyOf", "oneOf"]
            .iter()
            .any(|name| structure::several(schema, name).any(|it| has(it, property)))
}

impl<'a> Spec<'a> {
    fn of(crd: &'a Value) -> Self {
        Self { fields: crd.get("spec").and_then(Value::as_object) }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.fields?.get(name)
    }

    fn text(&self, name: &str) -> &'a str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn named(&self, name: &str) -> &'a str {
        self.get("names").map(|it| structure::text(it, name)).unwrap_or_default()
    }

    fn versions(&self) -> impl Iterator<Item = &'a Value> {
        self.get("versions").and_then(Value::as_array).into_iter().flatten()
    }

    fn preserves(&self) -> bool {
        self.get("preserveUnknownFields") == Some(&Value::Bool(true))
    }

    fn schemas(&self) -> impl Iterator<Item = &'a Value> {
        let own = self.versions().filter_map(|it| it.pointer("/schema/openAPIV3Schema"));
        own.chain(self.get("validation").and_then(|it| it.get("openAPIV3Schema")))
    }

    fn check(&self, demands: &ValidationOptions, found: &mut Vec<ValidationProblem>) {
        self.group_and_scope(found);
        self.presence_of_schemas(demands, found);
        let mut strictness = Strictness {
            structural: demands.structural,
            known_types: demands.known_types,
            status: false,
            strict_lists: demands.strict_lists,
        };
        let defaults = self.schemas().any(|it| has(it, &|it| it.get("default").is_some()));
        if defaults {
            strictness.structural = true;
            if self.preserves() {
                let text = "must be false in order to use defaults in the schema";
                found.push(ValidationProblem::invalid("spec.preserveUnknownFields", true, text));
            }
        }
        self.check_versions(strictness, found);
        self.name_fields(found);
        names_are_labels(self.get("names"), "spec.names", found);
        let any_status = self.shared_or_own_status();
        if let Some(wrapper) = self.get("validation") {
            strictness.status = any_status;
            openapi::check(wrapper, strictness, "spec.validation", found);
        }
        subresources(self.get("subresources"), "spec.subresources", found);
        columns(self.get("additionalPrinterColumns"), "spec.additionalPrinterColumns", found);
        conversion::check(self.get("conversion"), self.preserves(), demands.known_reviews, found);
    }

    fn group_and_scope(&self, found: &mut Vec<ValidationProblem>) {
        let group = self.text("group");
        let wrong = names::dns_subdomain(group);
        if group.is_empty() {
            found.push(ValidationProblem::required("spec.group", ""));
        } else if !wrong.is_empty() {
            found.push(ValidationProblem::invalid("spec.group", group, wrong.join(",")));
        } else if !group.contains('.') {
            found.push(ValidationProblem::invalid(
                "spec.group",
                group,
                "should be a domain with at least one dot",
            ));
        }
        match self.text("scope") {
            "" => found.push(ValidationProblem::required("spec.scope", "")),
            "Cluster" | "Namespaced" => {}
            other => {
                let known = ["Cluster", "Namespaced"].map(String::from).into();
                found.push(ValidationProblem::new(
                    "spec.scope",
                    ProblemKind::NotSupported(other.into(), known),
                ));
            }
        }
    }

    fn presence_of_schemas(&self, demands: &ValidationOptions, found: &mut Vec<ValidationProblem>) {
        if self.get("validation").is_some_and(|it| it.get("openAPIV3Schema").is_some()) {
            return;
        }
        let why = if demands.schemas { "" } else { "because otherwise all fields are pruned" };
        if !demands.schemas && self.preserves() {
            return;
        }
        for (at, version) in self.versions().enumerate() {
            let asked = demands.schemas || structure::flag(version, "served");
            if asked && version.pointer("/schema/openAPIV3Schema").is_none() {
                found.push(ValidationProblem::required(
                    format!("spec.versions[{at}].schema.openAPIV3Schema"),
                    why,
                ));
            }
        }
    }

    /// Returns the schema of a version, either its own or the shared one.
    fn schema_of(&self, version: &Value) -> Value {
        let wrapper = version.get("schema").or(self.get("validation"));
        wrapper.and_then(|it| it.get("openAPIV3Schema")).cloned().unwrap_or_default()
    }

    /// Returns whether a version has a status subresource.
    fn status_of(&self, version: &Value) -> bool {
        let own = self.versions().any(|it| it.get("subresources").is_some());
        let all = if own { version.get("subresources") } else { self.get("subresources") };
        all.is_some_and(|it| it.get("status").is_some_and(|it| !it.is_null()))
    }

    fn shared_or_own_status(&self) -> bool {
        let own = self.versions().filter_map(|it| it.get("subresources"));
        own.chain(self.get("subresources"))
            .any(|it| it.get("status").is_some_and(|it| !it.is_null()))
    }

    fn check_versions(&self, strictness: Strictness, found: &mut Vec<ValidationProblem>) {
        let mut seen = BTreeSet::new();
        let mut unique = true;
        for (at, version) in self.versions().enumerate() {
            let name = structure::text(version, "name");
            unique &= seen.insert(name);
            let path = format!("spec.versions[{at}]");
            let wrong = names::dns_1035_label(name);
            if !wrong.is_empty() {
                found.push(ValidationProblem::invalid(
                    format!("{path}.name"),
                    name,
                    wrong.join(","),
                ));
            }
            if let Some(wrapper) = version.get("schema") {
                let strictness = Strictness { status: self.status_of(version), ..strictness };
                openapi::check(wrapper, strictness, &format!("{path}.schema"), found);
            }
            subresources(version.get("subresources"), &format!("{path}.subresources"), found);
            selectable(version, &self.schema_of(version), &path, found);
            let at = format!("{path}.additionalPrinterColumns");
            columns(version.get("additionalPrinterColumns"), &at, found);
        }
        self.shared_and_own(found);
        let all = self.get("versions").cloned().unwrap_or_default();
        let wrong = |text: &str| ValidationProblem::invalid("spec.versions", all.clone(), text);
        if !unique {
            found.push(wrong("must contain unique version names"));
        }
        if self.versions().filter(|it| structure::flag(it, "storage")).count() != 1 {
            found.push(wrong("must have exactly one version marked as storage version"));
        }
        let version = self.text("version");
        let label = names::dns_1035_label(version);
        if !version.is_empty() && !label.is_empty() {
            found.push(ValidationProblem::invalid("spec.version", version, label.join(",")));
        }
        let first = self.versions().next().map(|it| structure::text(it, "name"));
        if !version.is_empty() && first.is_some_and(|it| it != version) {
            let text = "must match the first version in spec.versions";
            found.push(ValidationProblem::invalid("spec.version", version, text));
        }
    }

    /// Refuses fields that are both shared and in the versions, and fields that are equal in all versions but not shared.
    fn shared_and_own(&self, found: &mut Vec<ValidationProblem>) {
        let fields = [
            ("validation", "schema", "schemas"),
            ("subresources", "subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns", "additionalPrinterColumns"),
        ];
        for (top, own, plural) in fields {
            if self.get(top).is_some() && self.versions().any(|it| it.get(own).is_some()) {
                let text = format!("top-level and per-version {plural} are mutually exclusive");
                found.push(ValidationProblem::forbidden(format!("spec.{top}"), text));
            }
        }
        for (top, own, plural) in fields {
            let mut all = self.versions().map(|it| it.get(own));
            let Some(Some(first)) = all.next() else { continue };
            if all.all(|it| it == Some(first)) {
                let text = format!(
                    "per-version {plural} may not all be set to identical values (top-level {top} should be used instead)"
                );
                let all = self.get("versions").cloned().unwrap_or_default();
                found.push(ValidationProblem::invalid("spec.versions", all, text));
            }
        }
    }

    fn name_fields(&self, found: &mut Vec<ValidationProblem>) {
        for field in ["plural", "singular", "kind", "listKind"] {
            if self.named(field).is_empty() {
                found.push(ValidationProblem::required(format!("spec.names.{field}"), ""));
            }
        }
    }
}

fn names_are_labels(names: Option<&Value>, path: &str, found: &mut Vec<ValidationProblem>) {
    let Some(names) = names else { return };
    let text = |field: &str| structure::text(names, field);
    for field in ["plural", "singular"] {
        let wrong = names::dns_1035_label(text(field));
        if !text(field).is_empty() && !wrong.is_empty() {
            found.push(ValidationProblem::invalid(
                format!("{path}.{field}"),
                text(field),
                wrong.join(","),
            ));
        }
    }
    for field in ["kind", "listKind"] {
        let wrong = names::dns_1035_label(&text(field).to_lowercase());
        if !text(field).is_empty() && !wrong.is_empty() {
            let text_of =
                format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
            found.push(ValidationProblem::invalid(format!("{path}.{field}"), text(field), text_of));
        }
    }
    labels(names, "shortNames", path, found);
    if !text("kind").is_empty() && text("kind") == text("listKind") {
        let words = "kind and listKind may not be the same";
        found.push(ValidationProblem::invalid(format!("{path}.listKind"), text("listKind"), words));
    }
    labels(names, "categories", path, found);
}

fn labels(names: &Value, field: &str, path: &str, found: &mut Vec<ValidationProblem>) {
    for (at, name) in structure::several(names, field).filter_map(Value::as_str).enumerate() {
        let wrong = names::dns_1035_label(name);
        if !wrong.is_empty() {
            let at = format!("{path}.{field}[{at}]");
            found.push(ValidationProblem::invalid(at, name, wrong.join(",")));
        }
    }
}

fn subresources(all: Option<&Value>, path: &str, found: &mut Vec<ValidationProblem>) {
    let Some(scale) = all.and_then(|it| it.get("scale")).filter(|it| !it.is_null()) else { return };
    let paths = [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."], "should be a json path under .status"),
        (
            "labelSelectorPath",
            &[".spec.", ".status."],
            "should be a json path under either .spec or .status",
        ),
    ];
    for (field, prefixes, text) in paths {
        let value = structure::text(scale, field);
        let at = format!("{path}.scale.{field}");
        if value.is_empty() {
            if field != "labelSelectorPath" {
                found.push(ValidationProblem::required(at, ""));
            }
        } else if !value.starts_with('.') {
            found.push(ValidationProblem::invalid(
                at,
                value,
                "must be a simple json path starting with .",
            ));
        } else if !prefixes.iter().any(|it| value.starts_with(it)) {
            found.push(ValidationProblem::invalid(at, value, text));
        }
    }
}

fn columns(all: Option<&Value>, path: &str, found: &mut Vec<ValidationProblem>) {
    const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
    const FORMATS: [&str; 8] =
        ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
    for (at, column) in all.and_then(Value::as_array).into_iter().flatten().enumerate() {
        let path = format!("{path}[{at}]");
        let text = |field: &str| structure::text(column, field);
        if text("name").is_empty() {
            found.push(ValidationProblem::required(format!("{path}.name"), ""));
        }
        let words = format!("must be one of {}", TYPES.join(","));
        match text("type") {
            "" => found.push(ValidationProblem::required(format!("{path}.type"), words)),
            other if !TYPES.contains(&other) => {
                found.push(ValidationProblem::invalid(format!("{path}.type"), other, words));
            }
            _ => {}
        }
        let format = text("format");
        if !format.is_empty() && !FORMATS.contains(&format) {
            let words = format!("must be one of {}", FORMATS.join(","));
            found.push(ValidationProblem::invalid(format!("{path}.format"), format, words));
        }
        let at = format!("{path}.JSONPath");
        match text("JSONPath") {
            "" => found.push(ValidationProblem::required(at, "")),
            other if !other.starts_with('.') => {
                found.push(ValidationProblem::invalid(
                    at,
                    other,
                    "must be a simple json path starting with .",
                ));
            }
            _ => {}
        }
    }
}

/// Refuses changes of immutable fields: the group and the plural always, the scope and the kind once the CRD is established.
fn unchanged(spec: &Spec<'_>, old: &Value, found: &mut Vec<ValidationProblem>) {
    let established = object_condition(old, "Established");
    let mut same = |pointer: &str, new: &str| {
        let before = old.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        if before != new {
            let path = pointer.trim_start_matches('/').replace('/', ".");
            found.push(ValidationProblem::invalid(path, new, "field is immutable"));
        }
    };
    if established {
        same("/spec/scope", spec.text("scope"));
        same("/spec/names/kind", spec.named("kind"));
    }
    same("/spec/group", spec.text("group"));
    same("/spec/names/plural", spec.named("plural"));
}

/// Returns whether a condition of a CRD is true.
pub(super) fn object_condition(crd: &Value, kind: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions
        .into_iter()
        .flatten()
        .any(|it| structure::text(it, "type") == kind && structure::text(it, "status") == "True")
}

fn accepted_names(crd: &Value, found: &mut Vec<ValidationProblem>) {
    names_are_labels(crd.pointer("/status/acceptedNames"), "status.acceptedNames", found);
}

fn stored_versions(crd: &Value, spec: &Spec<'_>, found: &mut Vec<ValidationProblem>) {
    let path = "status.storedVersions";
    let stored: Vec<&str> = crd
        .pointer("/status/storedVersions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if stored.is_empty() {
        found.push(ValidationProblem::invalid(
            path,
            Value::Null,
            "must have at least one stored version",
        ));
        return;
    }
    // Each stored version counts once, so a second version of the same name is not found.
    let mut left = stored.clone();
    for version in spec.versions() {
        let name = structure::text(version, "name");
        let was_there = left.contains(&name);
        left.retain(|it| *it != name);
        if structure::flag(version, "storage") && !was_there {
            let text = format!("must have the storage version {name}");
            found.push(ValidationProblem::invalid(path, stored.clone(), text));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        if !spec.versions().any(|it| structure::text(it, "name") == *name) {
            found.push(ValidationProblem::invalid(
                format!("{path}[{at}]"),
                *name,
                format!(
                    "missing from spec.versions; {name} was previously a storage version, and must remain in \
                     spec.versions until a storage migration ensures no data remains persisted in {name} and \
                     removes {name} from status.storedVersions"
                ),
            ));
        }
    }
}

fn approval(crd: &Value, old: Option<&Value>, found: &mut Vec<ValidationProblem>) {
    let same = |it: &Value| {
        std::mem::discriminant(&approval_of(it)) == std::mem::discriminant(&approval_of(crd))
    };
    if old.is_some_and(same) {
        return;
    }
    let path = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = format!("protected groups must have approval annotation {APPROVAL:?}");
    match approval_of(crd) {
        Approval::Missing => {
            found.push(ValidationProblem::required(path, format!("{must}, {see}")));
        }
        Approval::Invalid => {
            let annotations = crd.pointer("/metadata/annotations");
            let value = annotations.and_then(|it| it.get(APPROVAL)).cloned().unwrap_or_default();
            let text =
                format!("{must} with either a URL or a reason starting with \"unapproved\", {see}");
            found.push(ValidationProblem::invalid(path, value, text));
        }
        Approval::NotNeeded | Approval::Approved(_) | Approval::Bypassed(_) => {}
    }
}

fn preserve(spec: &Spec<'_>, old: Option<&Value>, found: &mut Vec<ValidationProblem>) {
    let before = old.and_then(|it| it.pointer("/spec/preserveUnknownFields"));
    if spec.preserves() && before != Some(&Value::Bool(true)) {
        let text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        found.push(ValidationProblem::invalid("spec.preserveUnknownFields", true, text));
    }
}

/// Validates the selectable fields of a version: they must be strings, booleans or integers in the schema.
fn selectable(version: &Value, schema: &Value, path: &str, found: &mut Vec<ValidationProblem>) {
    // If all versions share a schema, the fields are at the top of the spec.
    let at = if version.get("schema").is_some() {
        format!("{path}.selectableFields")
    } else {
        "spec.selectableFields".into()
    };
    for (index, it) in structure::several(version, "selectableFields").enumerate() {
        let json_path = structure::text(it, "jsonPath");
        let mut node = Some(schema);
        for name in json_path.split('.').skip(1) {
            node = node.and_then(|it| it.get("properties")?.get(name));
        }
        let detail = match node.map(|it| structure::text(it, "type")) {
            None => "is an invalid path: does not refer to a valid field",
            Some("string" | "boolean" | "integer") => continue,
            Some(_) => {
                "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                 formats are allowed."
            }
        };
        found.push(ValidationProblem::invalid(
            format!("{at}[{index}].jsonPath"),
            json_path,
            detail,
        ));
    }
}
