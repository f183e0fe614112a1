//! The `ConfigMap`s that the user requests: by name or by labels.

use std::fmt;

/// One or several `ConfigMap`s with scripts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MapOption {
    /// The one with this name.
    Named {
        /// `None`: the operator's own namespace.
        namespace: Option<String>,
        /// The name of the `ConfigMap`.
        name: String,
    },
    /// All that match a label selector, in the operator's own namespace.
    Labelled(String),
}

impl fmt::Display for MapOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapOption::Named { namespace: Some(namespace), name } => {
                write!(f, "configmap/{namespace}/{name}")
            }
            MapOption::Named { namespace: None, name } => write!(f, "configmap/{name}"),
            MapOption::Labelled(labels) => write!(f, "configmaps with the labels {labels}"),
        }
    }
}
