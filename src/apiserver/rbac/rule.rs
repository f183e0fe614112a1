//! One rule of a role.

use serde_json::{Value, json};

use crate::{object, rbac::Attributes};

/// Matches every verb, group, resource and path.
const ALL: &str = "*";

/// The permissions of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PolicyRule {
    pub(crate) verbs: Vec<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) resources: Vec<String>,
    /// Empty for all objects.
    pub(crate) names: Vec<String>,
    /// Paths outside of the API groups.
    pub(crate) paths: Vec<String>,
}

impl PolicyRule {
    /// Parses the rules of a role.
    pub(crate) fn all(role: &Value) -> Vec<Self> {
        let rules = object::list(role, "/rules").iter();
        let read = |it: &Value| Self {
            verbs: object::strings(it, "/verbs"),
            groups: object::strings(it, "/apiGroups"),
            resources: object::strings(it, "/resources"),
            names: object::strings(it, "/resourceNames"),
            paths: object::strings(it, "/nonResourceURLs"),
        };
        rules.map(read).collect()
    }

    /// Returns the rules that allow everything.
    pub(crate) fn everything() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        let resources = Self { verbs: all(), groups: all(), resources: all(), ..Self::default() };
        [resources, Self { verbs: all(), paths: all(), ..Self::default() }]
    }

    /// Returns whether this rule allows a request.
    pub(crate) fn allows(&self, wanted: &Attributes) -> bool {
        if !has(&self.verbs, &wanted.verb) {
            return false;
        }
        if wanted.resource.is_empty() {
            return self.paths.iter().any(|it| covers_path(it, &wanted.path));
        }
        has(&self.groups, &wanted.group)
            && self.resources.iter().any(|it| covers_resource(it, &wanted.combined()))
            && (self.names.is_empty() || self.names.contains(&wanted.name))
    }

    /// Returns the rule in the form of rules reviews.
    pub(crate) fn to_json(&self) -> Value {
        let mut rule = json!({ "verbs": self.verbs });
        let parts = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
        ];
        if let Some(fields) = rule.as_object_mut() {
            for (name, values) in parts.into_iter().filter(|(_, it)| !it.is_empty()) {
                fields.insert(name.into(), values.clone().into());
            }
        }
        rule
    }

    /// Splits the rule into rules with one verb and one resource each.
    pub(crate) fn single(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut singles = Vec::new();
        for verb in &self.verbs {
            for path in &self.paths {
                singles.push(Self { verbs: one(verb), paths: one(path), ..Self::default() });
            }
        }
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let (verbs, groups) = (one(verb), one(group));
                    let names = if self.names.is_empty() {
                        vec![Vec::new()]
                    } else {
                        self.names.iter().map(one).collect()
                    };
                    singles.extend(names.into_iter().map(|names| Self {
                        verbs: verbs.clone(),
                        groups: groups.clone(),
                        resources: one(resource),
                        names,
                        paths: Vec::new(),
                    }));
                }
            }
        }
        singles
    }

    /// Returns whether it allows everything that a split rule allows.
    pub(crate) fn covers(&self, single: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| wanted.iter().all(|it| has(own, it));
        let resources = || {
            let wanted = single.resources.iter();
            wanted.into_iter().all(|it| self.resources.iter().any(|own| covers_resource(own, it)))
        };
        let paths =
            || single.paths.iter().all(|it| self.paths.iter().any(|own| covers_path(own, it)));
        let names = self.names.is_empty()
            || (!single.names.is_empty() && single.names.iter().all(|it| self.names.contains(it)));
        let of_kind = if single.paths.is_empty() {
            all(&self.groups, &single.groups) && resources() && names
        } else {
            paths()
        };
        all(&self.verbs, &single.verbs) && of_kind
    }

    /// Formats the rule for refusals: `{APIGroups:["apps"], Resources:["deployments"], Verbs:["get" "list"]}`.
    pub(crate) fn text(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.paths),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.into_iter().filter(|(_, it)| !it.is_empty());
        let parts: Vec<String> = parts.map(|(name, it)| format!("{name}:{}", quoted(it))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

/// Formats a list as Go does: `["a" "b"]`.
pub(crate) fn quoted(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|it| format!("{it:?}")).collect();
    format!("[{}]", texts.join(" "))
}

fn has(own: &[String], wanted: &str) -> bool {
    own.iter().any(|it| it == ALL || it == wanted)
}

/// Returns whether a resource of a rule includes another one. `*/scale` means the subresource of all resources.
fn covers_resource(own: &str, wanted: &str) -> bool {
    let of_all = || {
        let subresource = wanted.split_once('/').map(|(_, it)| it);
        subresource.is_some_and(|it| own.strip_prefix("*/") == Some(it))
    };
    own == ALL || own == wanted || of_all()
}

fn covers_path(own: &str, wanted: &str) -> bool {
    let prefix = own.strip_suffix(ALL);
    own == wanted || prefix.is_some_and(|it| wanted.starts_with(it))
}
