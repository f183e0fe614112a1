//! Definitions for the kinds that handlers name and nobody has defined: any object fits them.
//!
//! A kind has more names than a handler says. Its objects, when they are among those of `--apply`, know the others; what is
//! still open follows from rules, which are in docs/dev.md.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::documents::{self, Document};
use crate::logic::{
    handler::Category,
    registry::Registry,
    resource::Resource,
    selector::{AnyName, Selector},
};

/// Of a kind whose handlers name no group.
const GROUP: &str = "kopf.dev";
/// Of a kind whose handlers name no version.
const VERSION: &str = "v1";
/// Categories of handlers that choose resources.
const CHOOSING: [Category; 5] = [
    Category::Watching,
    Category::Changing,
    Category::Indexing,
    Category::Spawning,
    Category::Admission,
];
/// The names that handlers of Kopf's examples use: word borders are lost in lower case, and this one can be known.
const KNOWN_PREFIX: &str = "kopf";

/// A kind to define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) group: String,
    pub(super) versions: BTreeSet<String>,
    pub(super) plural: String,
    pub(super) kind: String,
}

/// An object, as far as it tells about its kind.
#[derive(Clone, Copy, Debug)]
struct Sample<'a> {
    group: &'a str,
    version: &'a str,
    kind: &'a str,
}

/// How a handler names a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name<'a> {
    Plural(&'a str),
    Singular(&'a str),
    Kind(&'a str),
}

/// What must be defined so that every handler has its resource, as far as that can be known.
pub(super) fn missing(
    registry: &Registry,
    known: &[Resource],
    objects: &[Document],
) -> Vec<Definition> {
    let samples: Vec<Sample<'_>> = objects.iter().map(|it| Sample::of(&it.object)).collect();
    let mut selectors: Vec<&Selector> =
        registry.selectors(&CHOOSING).into_iter().map(|(_, it)| it).collect();
    // Who says more defines for those who say less.
    selectors.sort_by_key(|it| (it.group.is_none(), it.version.is_none()));
    let said: BTreeSet<&str> = selectors.iter().filter_map(|it| plain(it)).collect();
    let mut found: Vec<Definition> = Vec::new();
    for selector in selectors {
        // What a function chooses has no name to be defined by.
        if !selector.select(known, &|_, _| false).is_empty() {
            continue;
        }
        let Some(wanted) = Definition::of(selector, &samples, &said) else { continue };
        let is_it = |group: &str, plural: &str, kind: &str| {
            let same_group = group == wanted.group || selector.group.is_none();
            same_group && (plural == wanted.plural || kind == wanted.kind)
        };
        // A version that a definition does not have is left to the warning of the operator.
        if known.iter().any(|it| is_it(&it.group, &it.plural, &it.kind)) {
            continue;
        }
        match found.iter_mut().find(|it| is_it(&it.group, &it.plural, &it.kind)) {
            Some(other) if selector.version.is_some() => other.versions.extend(wanted.versions),
            Some(_) => {}
            None => found.push(wanted),
        }
    }
    found
}

impl Definition {
    /// From one selector; `said` are the names that others use.
    fn of(selector: &Selector, samples: &[Sample<'_>], said: &BTreeSet<&str>) -> Option<Self> {
        let name = match Name::of(selector)? {
            // `apple` is the singular if somebody speaks of `apples`.
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
        // Groups without a dot are those of Kubernetes itself, and so are those of its domain.
        let is_ours = group.contains('.') && !group.ends_with("k8s.io");
        let definition = Definition { group, versions: [version].into(), plural, kind };
        (is_ours && is_label(&definition.plural) && is_label(&definition.kind.to_lowercase()))
            .then_some(definition)
    }

    /// `plural.group`
    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.plural, self.group)
    }

    /// The resource definition. The status has an endpoint of its own, as in all well-made definitions: what handlers return
    /// goes there, and is no new generation of the object.
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
            "metadata": { "name": self.name() },
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
    /// Short names, categories, functions and everything tell of no kind.
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

    /// Whether it is a name of this kind.
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

/// The name that may be a plural, or a singular.
fn plain(selector: &Selector) -> Option<&str> {
    match Name::of(selector)? {
        Name::Plural(name) => Some(name),
        Name::Singular(_) | Name::Kind(_) => None,
    }
}

/// `KopfExample` → `kopfexamples`: as definitions are usually written.
fn plural_of(kind: &str) -> String {
    let lower = kind.to_lowercase();
    let hisses = ["s", "x", "z", "ch", "sh"].iter().any(|it| lower.ends_with(it));
    match lower.strip_suffix('y') {
        _ if hisses => format!("{lower}es"),
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        Some(_) | None => format!("{lower}s"),
    }
}

/// `kopfexamples` → `kopfexample`
fn singular_of(plural: &str) -> String {
    let hissing = ["sses", "xes", "zes", "ches", "shes"];
    if let Some(stem) = plural.strip_suffix("ies").filter(|it| !it.is_empty()) {
        return format!("{stem}y");
    }
    let ending = if hissing.iter().any(|it| plural.ends_with(it)) { "es" } else { "s" };
    let stem = plural.strip_suffix(ending).filter(|it| !it.is_empty() && !it.ends_with('s'));
    stem.or(plural.strip_suffix("es").filter(|it| it.ends_with('s'))).unwrap_or(plural).to_owned()
}

/// `kopfexample` → `KopfExample`, but `cronjob` → `Cronjob`.
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

/// What can be a part of a host name, and thus a plural.
fn is_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    let borders = [text.as_bytes().first(), text.as_bytes().last()];
    text.len() <= 63
        && text.bytes().all(is_inner)
        && borders.into_iter().all(|it| it.is_some_and(|it| *it != b'-'))
}
