//! In which namespace a request is made.

use crate::logic::resource::Resource;

/// The option that stands for all namespaces.
pub const ALL_NAMESPACES: &str = "*";

/// The namespaces that are meant where none is named: that of the handled object, else that of the credentials.
#[derive(Clone, Copy, Debug)]
pub struct Home<'a> {
    /// Of the handled object.
    pub handled: Option<&'a str>,
    /// Of the credentials.
    pub credentials: &'a str,
}

/// Where several objects are.
pub type Whole = Option<String>;

impl Home<'_> {
    fn namespace(&self) -> String {
        self.handled.unwrap_or(self.credentials).to_owned()
    }
}

/// The namespace of one object; `named` is what the option and the object say.
///
/// # Errors
/// They contradict each other or the resource.
pub fn one(
    resource: &Resource,
    (option, own): (Option<&str>, Option<&str>),
    home: Home<'_>,
) -> Result<Option<String>, String> {
    if let (Some(option), Some(own)) = (option, own)
        && option != own
    {
        return Err(format!(
            "the object is in '{own}', but the option `namespace` says '{option}'"
        ));
    }
    if option == Some(ALL_NAMESPACES) {
        return Err("one object is in one namespace: `namespace = \"*\"` is for lists".into());
    }
    if resource.namespaced {
        return Ok(Some(option.or(own).map_or_else(|| home.namespace(), str::to_owned)));
    }
    match option {
        Some(_) => Err(of_cluster(resource)),
        None => Ok(None),
    }
}

/// Where several objects are listed or watched.
///
/// # Errors
/// A namespace is named, and the resource has none.
pub fn several(resource: &Resource, option: Option<&str>, home: Home<'_>) -> Result<Whole, String> {
    match option {
        Some(ALL_NAMESPACES) => Ok(None),
        Some(_) if !resource.namespaced => Err(of_cluster(resource)),
        Some(named) => Ok(Some(named.to_owned())),
        None => Ok(resource.namespaced.then(|| home.namespace())),
    }
}

fn of_cluster(resource: &Resource) -> String {
    format!("{resource} are cluster-wide: leave `namespace` out")
}
