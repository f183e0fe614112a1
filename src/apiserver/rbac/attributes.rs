//! The attributes of a request, as the rules of roles name them.

use crate::{
    rbac::User,
    refusal::{Refusal, join},
    request::{
        query::Query,
        route::{self, RequestTarget, Route},
    },
};
use serde_json::json;

/// The verb and the object of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributes {
    /// The name of the object; empty for collections. It is the first field, because comparisons of records mostly differ in it.
    pub name: String,
    /// The verb, such as `list`; for paths outside of the API groups, the HTTP method in lower case.
    pub verb: String,
    /// The API group of the resource; empty for the core group.
    pub group: String,
    /// The plural of the resource; empty for paths outside of the API groups.
    pub resource: String,
    /// The subresource, such as `status`; empty for the object itself.
    pub subresource: String,
    /// Empty for cluster-scoped resources, and for requests across all namespaces.
    pub namespace: String,
    /// A path outside of the API groups, such as `/version`; otherwise empty.
    pub path: String,
}

impl Attributes {
    /// Returns the attributes of a request.
    pub(crate) fn of(method: &str, path: &str, query: &str) -> Self {
        match route::parse(path) {
            Some(Route::Objects(target)) => Self::of_objects(method, target, &Query::parse(query)),
            Some(_) | None => {
                Self { verb: method.to_lowercase(), path: path.into(), ..Self::default() }
            }
        }
    }

    fn of_objects(method: &str, target: RequestTarget, query: &Query) -> Self {
        let mut name = target.name.unwrap_or_default();
        let verb = match method {
            _ if target.watch => "watch",
            "POST" => "create",
            "PUT" => "update",
            "PATCH" => "patch",
            "DELETE" if name.is_empty() => "deletecollection",
            "DELETE" => "delete",
            "GET" | "HEAD" if !name.is_empty() => "get",
            "GET" | "HEAD" if query.flag("watch") => "watch",
            "GET" | "HEAD" => "list",
            _ => "",
        };
        if name.is_empty() && matches!(verb, "list" | "watch" | "deletecollection") {
            name = named_by(query.text("fieldSelector").unwrap_or_default()).into();
        }
        let mut namespace = target.namespace.unwrap_or_default();
        if target.group.is_empty() && target.plural == "namespaces" && namespace.is_empty() {
            // A namespace counts as inside of itself.
            namespace.clone_from(&name);
        }
        let subresource = target.subresource.unwrap_or_default();
        Self {
            verb: verb.into(),
            group: target.group,
            resource: target.plural,
            subresource: subresource.split('/').next().unwrap_or_default().into(),
            namespace,
            name,
            path: String::new(),
        }
    }

    /// Returns the resource in its form in rules, such as `pods/log`.
    pub(crate) fn combined(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            subresource => format!("{}/{subresource}", self.resource),
        }
    }

    /// Returns the refusal for a user without the permission; the reason may be empty.
    pub(crate) fn forbidden(&self, user: &User, reason: &str) -> Refusal {
        let mut why = self.complaint(user);
        if !reason.is_empty() {
            why = format!("{why}: {reason}");
        }
        let message = format!("{}forbidden: {why}", self.subject());
        let mut details = json!({});
        if let Some(fields) = details.as_object_mut() {
            let all = [("name", &self.name), ("group", &self.group), ("kind", &self.resource)];
            for (field, value) in all.into_iter().filter(|(_, it)| !it.is_empty()) {
                fields.insert(field.into(), value.clone().into());
            }
        }
        let details = Some(Box::new(details));
        Refusal { code: 403, reason: "Forbidden".into(), message, details }
    }

    fn subject(&self) -> String {
        let resource = join(&self.resource, &self.group);
        match (self.resource.as_str(), self.name.as_str()) {
            ("", _) => String::new(),
            (_, "") => format!("{resource} is "),
            (_, name) => format!("{resource} {name:?} is "),
        }
    }

    fn complaint(&self, user: &User) -> String {
        let (user, verb) = (&user.name, &self.verb);
        if self.resource.is_empty() {
            return format!("User {user:?} cannot {verb} path {:?}", self.path);
        }
        let place = match self.namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let (resource, group) = (self.combined(), &self.group);
        format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
    }
}

/// Returns the name in a field selector; empty if there is none.
fn named_by(selector: &str) -> &str {
    let terms = selector.split(',').filter_map(|it| it.strip_prefix("metadata.name="));
    terms.map(|it| it.trim_start_matches('=')).next().unwrap_or_default()
}
