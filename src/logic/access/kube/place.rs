//! Determines the namespace of a request.

use crate::logic::object::resource::Resource;

/// The value of the option that means all namespaces.
pub const ALL_NAMESPACES: &str = "*";

/// The default namespaces: that of the handled object, else that of the credentials.
#[derive(Clone, Copy, Debug)]
pub struct DefaultNamespaces<'a> {
    /// The namespace of the handled object.
    pub handled: Option<&'a str>,
    /// The namespace of the credentials.
    pub credentials: &'a str,
}

/// The namespace of several objects; `None`: all namespaces.
pub type ListNamespace = Option<String>;

impl DefaultNamespaces<'_> {
    fn namespace(&self) -> String {
        self.handled.unwrap_or(self.credentials).to_owned()
    }
}

/// Returns the namespace of one object, from the option and from the object itself.
///
/// # Errors
/// Fails if they contradict each other or the resource.
pub fn one(
    resource: &Resource,
    (option, own): (Option<&str>, Option<&str>),
    home: DefaultNamespaces<'_>,
) -> Result<Option<String>, String> {
    if let (Some(option), Some(own)) = (option, own)
        && option != own
    {
        return Err(format!("the object is in '{own}', but the option `namespace` is '{option}'"));
    }
    if option == Some(ALL_NAMESPACES) {
        return Err("`namespace = \"*\"` is only valid for lists".into());
    }
    if resource.namespaced {
        return Ok(Some(option.or(own).map_or_else(|| home.namespace(), str::to_owned)));
    }
    match option {
        Some(_) => Err(of_cluster(resource)),
        None => Ok(None),
    }
}

/// Returns the namespace in which objects are listed or watched.
///
/// # Errors
/// Fails if a namespace is given for a cluster-scoped resource.
pub fn several(
    resource: &Resource,
    option: Option<&str>,
    home: DefaultNamespaces<'_>,
) -> Result<ListNamespace, String> {
    match option {
        Some(ALL_NAMESPACES) => Ok(None),
        Some(_) if !resource.namespaced => Err(of_cluster(resource)),
        Some(named) => Ok(Some(named.to_owned())),
        None => Ok(resource.namespaced.then(|| home.namespace())),
    }
}

fn of_cluster(resource: &Resource) -> String {
    format!("{resource} are cluster-scoped: omit `namespace`")
}
