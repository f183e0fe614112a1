//! Parsing of paths.

use crate::request::query::percent_decode;

/// The endpoints of the server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Route {
    /// The version of the server: `/version`.
    ServerVersion,
    /// The versions of the core group: `/api`.
    CoreVersions,
    /// The list of groups: `/apis`.
    Groups,
    /// The document of one group: `/apis/GROUP`.
    Group(String),
    /// The resources of a version: `/apis/GROUP/VERSION`, and `/api/v1` with an empty group.
    Resources(String, String),
    /// The objects of a resource, or one of them.
    Objects(RequestTarget),
}

/// The resource, namespace, name and subresource in a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RequestTarget {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) subresource: Option<String>,
    /// The path contains `watch`, as old clients send it.
    pub(crate) watch: bool,
}

/// Parses a path; `None` if Kubernetes has no such path.
pub(crate) fn parse(path: &str) -> Option<Route> {
    if path.starts_with("//") {
        return None;
    }
    // Encoded slashes count as slashes.
    let path = percent_decode(path);
    let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
    Some(match segments.as_slice() {
        ["version"] => Route::ServerVersion,
        ["api"] => Route::CoreVersions,
        ["api", version] => Route::Resources(String::new(), (*version).into()),
        ["api", version, rest @ ..] => Route::Objects(target("", version, rest)?),
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).into()),
        ["apis", group, version] => Route::Resources((*group).into(), (*version).into()),
        ["apis", group, version, rest @ ..] => Route::Objects(target(group, version, rest)?),
        _ => return None,
    })
}

fn target(group: &str, version: &str, rest: &[&str]) -> Option<RequestTarget> {
    let (watch, rest) = match rest {
        ["watch", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let (namespace, plural, rest) = match rest {
        // A namespace is an object, too: the word after its name may be a subresource.
        ["namespaces", _, "status" | "finalize"] if group.is_empty() => split_plural(rest)?,
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => {
            let (_, plural, rest) = split_plural(rest)?;
            (Some(*namespace), plural, rest)
        }
        rest => split_plural(rest)?,
    };
    let (name, subresource) = match rest {
        [] => (None, None),
        [name] => (Some(*name), None),
        [name, subresource @ ..] => (Some(*name), Some(subresource.join("/"))),
    };
    Some(RequestTarget {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        namespace: namespace.map(String::from),
        name: name.map(String::from),
        subresource,
        watch,
    })
}

type Split<'a> = (Option<&'a str>, &'a str, &'a [&'a str]);

fn split_plural<'a>(rest: &'a [&'a str]) -> Option<Split<'a>> {
    rest.split_first().map(|(plural, rest)| (None, *plural, rest))
}
