//! Finds the resource that a script means among those of the cluster that are known so far.

use std::{collections::BTreeMap, fmt, sync::Arc};

use crate::logic::{
    handlers::selector::{AnyName, Selector},
    object::resource::Resource,
    text::nearest::nearest,
};

/// A reference of a script to a resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceRef {
    /// By a selector, as handlers do.
    Selector(Selector),
    /// By version and kind, as objects do.
    Kind {
        /// The group; empty for the core group.
        group: String,
        /// The version of the API group.
        version: String,
        /// The kind, as objects spell it.
        kind: String,
    },
}

/// The reason why a resource cannot be resolved.
#[derive(Clone, Debug, PartialEq)]
pub enum Unresolved {
    /// No known resource matches; contains the most similar name.
    Unknown(Option<String>),
    /// It was known before: the server is only starting, or the CRD was deleted.
    Gone,
    /// Several resources match; contains their names.
    Ambiguous(Vec<String>),
}

/// The resources of the groups that were read.
#[derive(Clone, Debug, Default)]
pub struct KnownResources {
    groups: BTreeMap<String, Vec<Arc<Resource>>>,
    /// Whether all groups are known.
    is_complete: bool,
    /// Resources that were known before and are not served at present.
    gone: Vec<Arc<Resource>>,
}

impl KnownResources {
    /// Stores the resources of a group, or of all groups. Replaces those that were known before.
    pub fn learn(&mut self, group: Option<&str>, resources: Vec<Resource>) {
        if let Some(group) = group {
            let before = self.groups.insert(group.to_owned(), Vec::new());
            self.gone.extend(before.into_iter().flatten());
        } else {
            self.gone.extend(std::mem::take(&mut self.groups).into_values().flatten());
            self.is_complete = true;
        }
        let is_served = |gone: &Arc<Resource>| resources.iter().any(|it| *it == **gone);
        self.gone.retain(|it| !is_served(it));
        for resource in resources {
            self.groups.entry(resource.group.clone()).or_default().push(Arc::new(resource));
        }
    }

    /// Removes the resources of a group, and keeps them as gone.
    pub fn forget(&mut self, group: &str) {
        self.gone.extend(self.groups.remove(group).into_iter().flatten());
        self.is_complete = false;
    }

    /// Returns the resource; `None` if more groups must be read first.
    pub fn find(&self, wanted: &ResourceRef) -> Option<Result<Arc<Resource>, Unresolved>> {
        match wanted {
            ResourceRef::Kind { group, version, kind } => {
                let group = self.groups.get(group)?;
                let is_it = |it: &&Arc<Resource>| it.version == *version && it.kind == *kind;
                let found = group.iter().find(is_it).map(Arc::clone);
                Some(found.ok_or_else(|| self.unknown(wanted)))
            }
            ResourceRef::Selector(selector) => self.select(selector, wanted),
        }
    }

    fn select(
        &self,
        selector: &Selector,
        wanted: &ResourceRef,
    ) -> Option<Result<Arc<Resource>, Unresolved>> {
        let all = || self.groups.values().flatten();
        let fitting = selector.select(all().map(|it| &**it), &|_, _| false);
        // The core group precedes all others, so a match there is certain.
        let is_certain = match &selector.group {
            Some(group) => self.groups.contains_key(group),
            None => self.is_complete || fitting.iter().any(|it| it.group.is_empty()),
        };
        if !is_certain {
            return None;
        }
        Some(match fitting.as_slice() {
            [] => Err(self.unknown(wanted)),
            [one] => {
                let found = all().find(|it| &***it == *one).map(Arc::clone);
                found.ok_or_else(|| self.unknown(wanted))
            }
            several => {
                Err(Unresolved::Ambiguous(several.iter().map(ToString::to_string).collect()))
            }
        })
    }

    fn unknown(&self, wanted: &ResourceRef) -> Unresolved {
        let is_gone = match wanted {
            ResourceRef::Kind { group, version, kind } => self
                .gone
                .iter()
                .any(|it| it.group == *group && it.version == *version && it.kind == *kind),
            ResourceRef::Selector(selector) => {
                !selector.select(self.gone.iter().map(|it| &**it), &|_, _| false).is_empty()
            }
        };
        if is_gone {
            return Unresolved::Gone;
        }
        let all = || self.groups.values().flatten();
        let near = match wanted {
            ResourceRef::Kind { kind, .. } => nearest(kind, all().map(|it| it.kind.as_str())),
            ResourceRef::Selector(selector) => match &selector.any_name {
                Some(AnyName::Named(name)) => {
                    let kinds = all().map(|it| it.kind.as_str());
                    nearest(name, all().map(|it| it.plural.as_str()).chain(kinds))
                        .filter(|it| it != name)
                }
                Some(AnyName::Everything) | None => None,
            },
        };
        Unresolved::Unknown(near.map(str::to_owned))
    }
}

impl ResourceRef {
    /// Returns the groups in which to look for it, in this order; `None` is all of them.
    pub fn groups_to_read(&self) -> Vec<Option<String>> {
        match self {
            ResourceRef::Kind { group, .. } => vec![Some(group.clone())],
            ResourceRef::Selector(selector) => match &selector.group {
                Some(group) => vec![Some(group.clone())],
                None => vec![Some(String::new()), None],
            },
        }
    }
}

impl fmt::Display for ResourceRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ResourceRef::Kind { group, version, kind } if group.is_empty() => {
                write!(f, "{kind} of {version}")
            }
            ResourceRef::Kind { group, version, kind } => write!(f, "{kind} of {group}/{version}"),
            ResourceRef::Selector(it) => f.write_str(&it.described()),
        }
    }
}

impl Unresolved {
    /// Returns the error message, with a hint.
    pub fn message(&self, wanted: &ResourceRef) -> String {
        match self {
            Unresolved::Unknown(near) => {
                let near = near.as_ref().map(|it| format!(" (did you mean '{it}'?)"));
                let near = near.unwrap_or_default();
                format!("the cluster has no resource {wanted}{near}: is its CRD installed?")
            }
            Unresolved::Gone => format!(
                "the API server does not serve {wanted} at present, but did before: it may be starting, or its CRD was deleted"
            ),
            Unresolved::Ambiguous(several) => format!(
                "{wanted} is ambiguous: it can be {}; name the group too",
                several.join(" or ")
            ),
        }
    }
}
