//! Resource selectors of handlers.
//!
//! The contract is `tests/vectors/selectors.json`.

mod restrictions;
#[cfg(test)]
mod tests;

use std::fmt;

pub use restrictions::{Restrictions, misspelled, settings_of};

use super::{
    declare::{Argument, DeclareError, Marker},
    function::Function,
    handler::Callback,
};
use crate::logic::{object::resource::Resource, text::python_text};
use crate::settings::EVERYTHING;

/// A resource selector, parsed from a declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector {
    /// The API group; `None` is any, empty is the core group.
    pub group: Option<String>,
    /// The version; `None` is the preferred one.
    pub version: Option<String>,
    /// The kind, if it must match.
    pub kind: Option<String>,
    /// The plural, if it must match.
    pub plural: Option<String>,
    /// The singular, if it must match.
    pub singular: Option<String>,
    /// A short name, if one must match.
    pub shortcut: Option<String>,
    /// A category, if the resource must belong to one.
    pub category: Option<String>,
    /// A kind, plural, singular or short name; or everything.
    pub any_name: Option<AnyName>,
    /// A function of the description of the resource.
    pub function: Option<Function>,
}

/// The positional name of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnyName {
    /// `kopf.EVERYTHING`
    Everything,
    /// A kind, plural, singular or short name.
    Named(String),
}

/// A function that returns whether a selector's function picks a resource. The shell calls the scripts beforehand.
pub type Picks<'a> = &'a dyn Fn(&Function, &Resource) -> bool;

/// One positional argument of a declaration.
#[derive(Clone, Debug, PartialEq)]
enum Arg {
    Text(String),
    Everything,
    Function(Function),
}

impl Selector {
    /// Reads the positional arguments of a declaration, combined with the keywords.
    ///
    /// A positional group, version or name overrides the keyword.
    pub fn parse(arguments: &[Argument], keywords: Selector) -> Result<Selector, DeclareError> {
        let mut parts =
            arguments.iter().map(Arg::of).collect::<Result<Vec<Option<Arg>>, DeclareError>>()?;
        while parts.last().is_some_and(Option::is_none) {
            parts.pop();
        }
        let mut selector = keywords;
        if parts.len() > 1 && parts.iter().flatten().any(|it| matches!(it, Arg::Function(_))) {
            return Err("the callable filter cannot have any other selectors".into());
        }
        match parts.as_slice() {
            [] => {}
            [only] => selector.take_single(only.as_ref()),
            [Some(Arg::Text(first)), name] if first.contains('/') => {
                let (group, version) = first.rsplit_once('/').unwrap_or_default();
                selector.group = Some(group.to_owned());
                selector.version = Some(version.to_owned());
                selector.take_name(name.as_ref());
            }
            [Some(Arg::Text(first)), name] if first == "v1" => {
                selector.group = Some(String::new());
                selector.version = Some(first.clone());
                selector.take_name(name.as_ref());
            }
            [group, name] => {
                selector.take_group(group.as_ref());
                selector.take_name(name.as_ref());
            }
            [group, version, name] => {
                selector.take_group(group.as_ref());
                selector.version = version.as_ref().map(Arg::text).or(selector.version);
                selector.take_name(name.as_ref());
            }
            _ => return Err("too many positional arguments: at most 3 are accepted".into()),
        }
        selector.checked()
    }

    fn take_single(&mut self, part: Option<&Arg>) {
        let Some(Arg::Text(text)) = part else { return self.take_name(part) };
        let Some((name, rest)) = text.split_once('.') else { return self.take_name(part) };
        let (version, group) = match rest.split_once('.') {
            Some((version, group)) => (version, Some(group)),
            None => (rest, None),
        };
        if is_version(version) {
            self.version = Some(version.to_owned());
            self.group = group.map(str::to_owned).or(self.group.take());
        } else {
            self.group = Some(rest.to_owned());
        }
        self.any_name = Some(AnyName::Named(name.to_owned()));
    }

    fn take_group(&mut self, part: Option<&Arg>) {
        self.group = part.map(Arg::text).or(self.group.take());
    }

    fn take_name(&mut self, part: Option<&Arg>) {
        match part {
            None => {}
            Some(Arg::Everything) => self.any_name = Some(AnyName::Everything),
            Some(Arg::Text(name)) => self.any_name = Some(AnyName::Named(name.clone())),
            Some(Arg::Function(function)) => self.function = Some(function.clone()),
        }
    }

    /// Checks that exactly one criterion names the resources.
    fn checked(self) -> Result<Selector, DeclareError> {
        let positional = self.any_name.as_ref().map(|it| match it {
            AnyName::Everything => "EVERYTHING",
            AnyName::Named(name) => name,
        });
        let function = self.function.as_ref().map(|it| &*it.name);
        let named: Vec<&str> =
            self.names().into_iter().chain([positional]).flatten().chain(function).collect();
        match named.as_slice() {
            [] => Err(DeclareError::new(
                "unspecific resource with no names",
                "name the resource first, such as \"kopfexamples\" or \"kopf.dev/v1\", \"kopfexamples\"",
            )),
            [""] if self.function.is_none() => {
                Err("names must not be empty strings; either none or specific strings".into())
            }
            [_] => Ok(self),
            several => {
                let several = python_text::list(several.iter().copied());
                Err(format!("ambiguous resource specification with {several}").into())
            }
        }
    }

    fn names(&self) -> [Option<&str>; 5] {
        [&self.kind, &self.plural, &self.singular, &self.shortcut, &self.category]
            .map(Option::as_deref)
    }

    /// Returns whether both are equal, except for which functions they refer to.
    pub fn is_alike(&self, other: &Selector) -> bool {
        let without_functions = |it: &Selector| Selector { function: None, ..it.clone() };
        self.function.is_some() == other.function.is_some()
            && without_functions(self) == without_functions(other)
    }

    /// Returns whether it selects one resource: by a name that is not a category.
    pub fn is_specific(&self) -> bool {
        matches!(self.any_name, Some(AnyName::Named(_)))
            || [&self.kind, &self.plural, &self.singular, &self.shortcut]
                .iter()
                .any(|it| it.is_some())
    }

    /// Returns whether it matches a resource, independent of all others.
    pub fn check(&self, resource: &Resource, picks: Picks<'_>) -> bool {
        let equals = |wanted: &Option<String>, actual: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == actual)
        };
        let version_fits = match &self.version {
            Some(version) => *version == resource.version,
            // A function receives every version and decides itself.
            None => resource.preferred || self.function.is_some(),
        };
        equals(&self.group, &resource.group)
            && version_fits
            && equals(&self.kind, &resource.kind)
            && equals(&self.plural, &resource.plural)
            && equals(&self.singular, &resource.singular)
            && self.category.as_ref().is_none_or(|it| resource.categories.contains(it))
            && self.shortcut.as_ref().is_none_or(|it| resource.shortcuts.contains(it))
            && self.name_fits(resource)
            && self.function_fits(resource, picks)
    }

    /// Returns whether it selects a resource among all known ones: [`Self::select`] for one of them.
    pub fn means(&self, resource: &Resource, known: &[Resource], picks: Picks<'_>) -> bool {
        let is_core = |it: &Resource| it.group.is_empty();
        let is_other = self.is_specific() && !is_core(resource);
        self.check(resource, picks)
            && !(is_other && known.iter().any(|it| is_core(it) && self.check(it, picks)))
    }

    /// Reads a selector from one string: the arguments of a declaration, joined by slashes, `*` for everything.
    ///
    /// # Errors
    /// Fails if a declaration with such arguments would fail.
    pub fn of_text(text: &str) -> Result<Selector, DeclareError> {
        let argument = |part: &str| match part {
            EVERYTHING => Argument::Marker(Marker::Everything),
            name => Argument::Value(name.into()),
        };
        let arguments = text.split('/').map(argument).collect::<Vec<_>>();
        Selector::parse(&arguments, Selector::default())
    }

    fn name_fits(&self, resource: &Resource) -> bool {
        match &self.any_name {
            None => true,
            Some(AnyName::Everything) => !is_events(resource),
            Some(AnyName::Named(name)) => {
                [&resource.kind, &resource.plural, &resource.singular].contains(&name)
                    || resource.shortcuts.contains(name)
            }
        }
    }

    fn function_fits(&self, resource: &Resource, picks: Picks<'_>) -> bool {
        self.function.as_ref().is_none_or(|it| !is_events(resource) && picks(it, resource))
    }

    /// Selects from all resources of a cluster, in their order.
    ///
    /// A specific selector prefers the core group: `pods` are not the pods of the metrics API.
    pub fn select<'a>(
        &self,
        resources: impl IntoIterator<Item = &'a Resource>,
        picks: Picks<'_>,
    ) -> Vec<&'a Resource> {
        let mut matching: Vec<_> =
            resources.into_iter().filter(|it| self.check(it, picks)).collect();
        if self.is_specific() && matching.iter().any(|it| it.group.is_empty()) {
            matching.retain(|it| it.group.is_empty());
        }
        matching
    }
}

impl Arg {
    fn of(argument: &Argument) -> Result<Option<Arg>, DeclareError> {
        use serde_json::Value;
        match argument {
            Argument::Absent | Argument::Value(Value::Null) => Ok(None),
            Argument::Value(Value::String(text)) => Ok(Some(Arg::Text(text.clone()))),
            Argument::Marker(Marker::Everything) => Ok(Some(Arg::Everything)),
            Argument::Callback(Callback::Function(it)) => Ok(Some(Arg::Function(it.clone()))),
            Argument::Value(_)
            | Argument::Marker(Marker::Present | Marker::Absent)
            | Argument::Callback(_)
            | Argument::List(_)
            | Argument::Map(_) => Err(DeclareError::new(
                "a resource is selected with strings, kopf.EVERYTHING, or one function",
                "options go into one table after the selectors, and the handler function comes last",
            )),
        }
    }

    /// Returns the string of a group or version. A marker is not a valid name there, so nothing matches.
    fn text(&self) -> String {
        match self {
            Arg::Text(text) => text.clone(),
            Arg::Everything => "EVERYTHING".to_owned(),
            Arg::Function(function) => function.name.to_string(),
        }
    }
}

/// Returns whether this is a version by the rules of Kubernetes: `v1`, `v2beta3`.
fn is_version(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let Some(rest) = text.strip_prefix('v') else { return false };
    let end = rest.find(|it: char| !it.is_ascii_digit()).unwrap_or(rest.len());
    let (major, rest) = rest.split_at(end);
    let stage = rest.strip_prefix("alpha").or_else(|| rest.strip_prefix("beta"));
    digits(major) && (rest.is_empty() || stage.is_some_and(digits))
}

/// Returns whether the resource is that of events. A cluster has many events, and handlers of everything would cause more: only explicit
/// names select them.
fn is_events(resource: &Resource) -> bool {
    let core = resource.group.is_empty() && resource.version == "v1";
    resource.plural == "events" && (core || resource.group == "events.k8s.io")
}

impl Selector {
    /// Describes the selector for users: `'kopfexamples' of kopf.dev/v1`.
    pub fn described(&self) -> String {
        let named = [
            ("kind ", &self.kind),
            ("plural ", &self.plural),
            ("singular ", &self.singular),
            ("short name ", &self.shortcut),
            ("category ", &self.category),
        ];
        let mut named = named
            .into_iter()
            .filter_map(|(what, name)| Some(format!("{what}'{}'", name.as_ref()?)));
        let what = match (&self.any_name, &self.function) {
            (Some(AnyName::Named(name)), _) => format!("'{name}'"),
            (None, Some(function)) => format!("the function '{}'", function.name),
            (Some(AnyName::Everything), _) | (None, None) => {
                named.next().unwrap_or_else(|| "everything".to_owned())
            }
        };
        let of = [self.group.as_deref(), self.version.as_deref()];
        let of: Vec<_> = of.into_iter().flatten().filter(|it| !it.is_empty()).collect();
        if of.is_empty() { what } else { format!("{what} of {}", of.join("/")) }
    }
}

impl fmt::Display for Selector {
    /// Formats the selector for warnings: only the fields that are set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = [
            ("group", &self.group),
            ("version", &self.version),
            ("kind", &self.kind),
            ("plural", &self.plural),
            ("singular", &self.singular),
            ("shortcut", &self.shortcut),
            ("category", &self.category),
        ];
        let mut shown: Vec<String> = texts
            .into_iter()
            .filter_map(|(key, text)| {
                Some(format!("{key}={}", python_text::quoted(text.as_ref()?)))
            })
            .collect();
        match &self.any_name {
            None => {}
            Some(AnyName::Everything) => shown.push("any_name=EVERYTHING".to_owned()),
            Some(AnyName::Named(name)) => {
                shown.push(format!("any_name={}", python_text::quoted(name)));
            }
        }
        shown.extend(self.function.as_ref().map(|it| format!("fn={}", it.name)));
        write!(f, "Selector({})", shown.join(", "))
    }
}
