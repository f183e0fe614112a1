//! Permissive CRDs for kinds that handlers name but no CRD defines.
//!
//! A kind has more names than a handler uses. Objects of `--apply` provide others; the rest follows from rules, which are
//! documented in docs/dev.md.

use std::collections::BTreeSet;

use kopf_apiserver::PLACEHOLDER;
use serde_json::{Value, json};

use super::documents::{self, FileObject};
use crate::logic::{
    change::registry::Registry,
    handlers::{
        handler::{Category, Conversion},
        selector::{AnyName, Selector},
    },
    object::resource::Resource,
};
use crate::sorted;

/// The default group of kinds.
const GROUP: &str = "kopf.dev";
/// The default version of kinds.
const VERSION: &str = "v1";
/// Categories of handlers that select resources.
const CHOOSING: [Category; 6] = [
    Category::Watching,
    Category::Changing,
    Category::Indexing,
    Category::Spawning,
    Category::Admission,
    Category::Conversion,
];
/// The prefix of the kinds in Kopf's examples: lower case hides word boundaries, but this one is known.
const KNOWN_PREFIX: &str = "kopf";

/// A kind to define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) group: String,
    pub(super) versions: BTreeSet<String>,
    pub(super) plural: String,
    pub(super) kind: String,
    /// Whether handlers or objects name the group.
    pub(super) has_group: bool,
}

/// The parts of an object that identify its kind.
#[derive(Clone, Copy, Debug)]
struct Sample<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// The name of a kind in a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Plural(&'a str),
    Singular(&'a str),
    Kind(&'a str),
}

/// Returns the kinds that must be defined so that every handler has its resource, as far as that can be determined.
pub(super) fn missing(
    registry: &Registry,
    known: &[Resource],
    objects: &[FileObject],
) -> Vec<Definition> {
    let samples: Vec<Sample<'_>> = objects.iter().map(|it| Sample::of(&it.object)).collect();
    let mut selectors = registry.selectors(&CHOOSING);
    // More specific selectors define kinds for less specific ones; conversions name versions.
    sorted::sort_by_key(&mut selectors, |(handler, it)| {
        let converts = handler.admission.conversion.is_some();
        (it.group.is_none(), it.version.is_none() && !converts)
    });
    let said: BTreeSet<&str> = selectors.iter().filter_map(|(_, it)| plain(it)).collect();
    let mut found: Vec<Definition> = Vec::new();
    for (handler, selector) in selectors {
        // A selector function provides no name for a definition.
        if !selector.select(known, &|_, _| false).is_empty() {
            continue;
        }
        let Some(mut wanted) = Definition::of(selector, &samples, &said) else { continue };
        let conversion = handler.admission.conversion.as_ref();
        if let Some(Conversion { from, to }) = conversion {
            wanted.versions = [from.clone(), to.clone()].into();
        }
        let is_it = |group: &str, plural: &str, kind: &str| {
            let same_group = group == wanted.group || selector.group.is_none();
            same_group && (plural == wanted.plural || kind == wanted.kind)
        };
        // If the CRD lacks a version, the operator warns about it.
        if known.iter().any(|it| is_it(&it.group, &it.plural, &it.kind)) {
            continue;
        }
        match found.iter_mut().find(|it| is_it(&it.group, &it.plural, &it.kind)) {
            Some(other) if selector.version.is_some() || conversion.is_some() => {
                other.versions.extend(wanted.versions);
            }
            Some(_) => {}
            None => found.push(wanted),
        }
    }
    found
}

impl Definition {
    /// Returns the definition for one selector; `said` are the names that other selectors use.
    fn of(selector: &Selector, samples: &[Sample<'_>], said: &BTreeSet<&str>) -> Option<Self> {
        let name = match Name::of(selector)? {
            // `apple` is the singular if another selector names `apples`.
            Name::Plural(name) if said.contains(&*plural_of(name)) => Name::Singular(name),
            name @ (Name::Plural(_) | Name::Singular(_) | Name::Kind(_)) => name,
        };
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|it| it == is);
        let sample = samples.iter().find(|it| {
            name.fits(it.kind)
                && fits(&selector.group, it.group)
                && fits(&selector.version, it.version)
        });
        let part = |wanted: &Option<String>, sampled: Option<&str>, usual: &str| {
            wanted.as_deref().or(sampled).unwrap_or(usual).to_owned()
        };
        let group = part(&selector.group, sample.map(|it| it.group), GROUP);
        let version = part(&selector.version, sample.map(|it| it.version), VERSION);
        let (plural, kind) = match (name, sample) {
            (Name::Plural(plural), Some(sample)) => (plural.to_owned(), sample.kind.to_owned()),
            (Name::Plural(plural), None) => (plural.to_owned(), kind_of(&singular_of(plural))),
            (Name::Singular(_), Some(sample)) => (plural_of(sample.kind), sample.kind.to_owned()),
            (Name::Singular(name), None) => (plural_of(name), kind_of(name)),
            (Name::Kind(kind), _) => (plural_of(kind), kind.to_owned()),
        };
        // Groups without a dot, and those of the domain `k8s.io`, belong to Kubernetes itself.
        let is_ours = group.contains('.') && !group.ends_with("k8s.io");
        let has_group = selector.group.is_some() || sample.is_some();
        let definition = Definition { group, versions: [version].into(), plural, kind, has_group };
        (is_ours && is_label(&definition.plural) && is_label(&definition.kind.to_lowercase()))
            .then_some(definition)
    }

    /// Returns the name of the CRD: `plural.group`.
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// Returns the CRD. It has a status subresource, as CRDs should: results of handlers are stored there, and do not change the
    /// generation of the object.
    pub(super) fn to_crd(&self) -> Value {
        let versions = self.versions.iter().enumerate().map(|(index, name)| {
            json!({
                "name": name,
                "served": true,
                "storage": index == 0,
                "subresources": { "status": {} },
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                },
            })
        });
        let versions: Vec<Value> = versions.collect();
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {
                "name": self.name(),
                // The operator may define the kind when it starts.
                "annotations": { (PLACEHOLDER): if self.has_group { "group" } else { "names" } },
            },
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {
                    "plural": self.plural,
                    "singular": self.kind.to_lowercase(),
                    "kind": self.kind,
                    "listKind": format!("{}List", self.kind),
                },
                "versions": versions,
            },
        })
    }
}

impl<'a> Sample<'a> {
    fn of(object: &'a Value) -> Self {
        let api_version = documents::text(object, "/apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Sample { group, version, kind: documents::text(object, "/kind") }
    }
}

impl<'a> Name<'a> {
    /// Returns the name in a selector. Short names, categories, functions and `kopf.EVERYTHING` identify no kind.
    fn of(selector: &'a Selector) -> Option<Self> {
        let any = match &selector.any_name {
            Some(AnyName::Named(name)) => Some(name.as_str()),
            Some(AnyName::Everything) | None => None,
        };
        let is_kind = |it: &&str| it.starts_with(|first: char| first.is_ascii_uppercase());
        let kind = selector.kind.as_deref().or(any.filter(is_kind)).map(Name::Kind);
        let plural = selector.plural.as_deref().or(any).map(Name::Plural);
        kind.or(plural).or(selector.singular.as_deref().map(Name::Singular))
    }

    /// Returns whether this is a name of this kind.
    fn fits(self, kind: &str) -> bool {
        let lower = kind.to_lowercase();
        match self {
            Name::Kind(name) => name == kind,
            Name::Singular(name) => name == lower,
            Name::Plural(name) => {
                name == plural_of(kind) || name == lower || name == format!("{lower}s")
            }
        }
    }
}

/// Returns the name that may be a plural or a singular.
fn plain(selector: &Selector) -> Option<&str> {
    match Name::of(selector)? {
        Name::Plural(name) => Some(name),
        Name::Singular(_) | Name::Kind(_) => None,
    }
}

/// Returns the usual plural of a CRD: `KopfExample` → `kopfexamples`.
fn plural_of(kind: &str) -> String {
    let lower = kind.to_lowercase();
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|it| lower.ends_with(it));
    match lower.strip_suffix('y') {
        _ if hisses => format!("{lower}es"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        Some(_) | None => format!("{lower}s"),
    }
}

/// Returns the singular: `kopfexamples` → `kopfexample`.
fn singular_of(plural: &str) -> String {
    let hissing = ["sses", "xes", "zes", "ches", "shes"];
    if let Some(stem) = plural.strip_suffix("ies").filter(|it| !it.is_empty()) {
        return format!("{stem}y");
    }
    let ending = if hissing.iter().any(|it| plural.ends_with(it)) { "es" } else { "s" };
    let stem = plural.strip_suffix(ending).filter(|it| !it.is_empty() && !it.ends_with('s'));
    stem.or(plural.strip_suffix("es").filter(|it| it.ends_with('s'))).unwrap_or(plural).to_owned()
}

/// Returns the kind: `kopfexample` → `KopfExample`, but `cronjob` → `Cronjob`.
fn kind_of(singular: &str) -> String {
    match singular.strip_prefix(KNOWN_PREFIX).filter(|it| !it.is_empty()) {
        Some(rest) => format!("{}{}", capitalized(KNOWN_PREFIX), capitalized(rest)),
        None => capitalized(singular),
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|it| it.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// Returns whether this is a valid part of a host name, and thus a valid plural.
fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let borders = [text.as_bytes().first(), text.as_bytes().last()];
    text.len() <= 63
        && text.bytes().all(is_inner)
        && borders.into_iter().all(|it| it.is_some_and(|it| *it != b'-'))
}
