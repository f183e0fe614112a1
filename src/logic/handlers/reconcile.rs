//! The options of `kopf.reconcile`, and the handlers that are derived from one declaration.
//!
//! A reconcile handler runs in the background of its objects, as timers do. For each kind that it owns or watches, an index handler is
//! derived: it keeps the children by the uid of their parent, and wakes the parent when one of them changes.

use std::{sync::Arc, time::Duration};

use super::{function::Function, selector::Selector};
use crate::logic::text::json;

/// The start of the ids of derived indexes, which scripts do not see.
pub const INDEX: &str = "reconcile:";

/// Maximum number of bytes of a label value.
const LABEL_MAX: usize = 63;

/// The options of `kopf.reconcile`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconcile {
    /// The kinds of the children.
    pub owns: Vec<Named>,
    /// Other kinds whose changes wake the object.
    pub watches: Vec<Watched>,
    /// The maximum pause between two calls.
    pub resync: Option<Duration>,
    /// Called when the object is deleted; holds the deletion until it has succeeded.
    pub finalize: Option<Function>,
    /// The object has the finalizer even without `finalize`.
    pub finalizer: bool,
    /// Earlier ids of the handler, whose children it takes over.
    pub formerly: Vec<String>,
}

/// A kind, as the script names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The text of the selector.
    pub text: String,
    /// The selector.
    pub selector: Selector,
}

/// A watched kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The kind.
    pub kind: Named,
    /// Returns the names of the objects to wake; `None` wakes all of them.
    pub map: Option<Function>,
}

/// What a derived index handler is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The reconcile handler, by [`Handler::reconciler_key`].
    pub reconciler: Arc<str>,
    /// The label values of its children: the present one, then the earlier ones.
    pub labels: Arc<[String]>,
    /// How the objects are related to the parents.
    pub role: Role,
}

/// How objects are related to those that a reconcile handler is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Children, by their labels.
    Owned,
    /// The function of the handler returns the names of the related objects.
    Mapped,
    /// Related to every object.
    All,
    /// Parents of the objects of an event handler, by their uid.
    Parent,
}

/// Returns the value of the label by which a handler recognizes its children.
pub fn label_of(id: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric();
    let is_valid = id.len() <= LABEL_MAX
        && id.starts_with(plain)
        && id.ends_with(plain)
        && id.chars().all(|it| plain(it) || matches!(it, '-' | '_' | '.'));
    if is_valid {
        return id.to_owned();
    }
    let hash = json::fingerprint(&id.into());
    let kept = id.chars().filter(|it| plain(*it)).take(40).collect::<String>();
    format!("h{kept}-{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::label_of;

    #[test]
    fn labels_are_valid_and_distinct() {
        assert_eq!(label_of("web.app_1"), "web.app_1");
        let odd = ["a/spec.x", "a/spec.y", "", "_", &"x".repeat(64), &"x".repeat(65), "ä"];
        let labels = odd.map(label_of);
        for (index, label) in labels.iter().enumerate() {
            assert!(label.len() <= 63 && label.starts_with('h'), "{label}");
            assert!(!labels[..index].contains(label), "{label}");
        }
    }
}
