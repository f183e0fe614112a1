//! The options of `kopf.reconcile`, and the handlers that are derived from one declaration.
//!
//! A reconcile handler runs in the background of its objects, as timers do. For each kind that it owns or watches, an index handler is
//! derived: it keeps the children by the uid of their parent, and wakes the parent when one of them changes.

use std::{sync::Arc, time::Duration};

use super::{
    description,
    function::Function,
    handler::{Handler, Kind, Parts},
    selector::Selector,
};

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
}

impl Handler {
    /// Returns whether `kopf.reconcile` has declared it.
    pub fn is_reconciler(&self) -> bool {
        self.kind == Kind::Reconcile
    }

    /// Returns whether its calls end a deletion, so that they must not be missed.
    pub fn finalizes(&self) -> bool {
        self.reconcile.as_ref().is_some_and(|it| it.finalizer || it.finalize.is_some())
    }

    /// Returns what identifies it among all reconcile handlers: ids may repeat for other resources.
    pub fn reconciler_key(&self) -> Arc<str> {
        let resource = self.selector.as_ref().map(description::resource).unwrap_or_default();
        format!("{}@{resource}", self.id).into()
    }

    /// Returns the id of the index of the children of one kind, or of the related objects.
    fn relation_id(&self, what: &str, kind: &Named) -> Arc<str> {
        format!("{INDEX}{}/{what}/{}", self.reconciler_key(), kind.text).into()
    }

    /// Returns the ids of the indexes of its children, with the kinds.
    pub fn child_indexes(&self) -> impl Iterator<Item = (Arc<str>, &Named)> {
        let owns = self.reconcile.iter().flat_map(|it| &it.owns);
        owns.map(|it| (self.relation_id("owns", it), it))
    }

    /// Returns the index handlers that it needs.
    pub fn relations(&self) -> Vec<Handler> {
        let Some(options) = &self.reconcile else { return Vec::new() };
        let former = options.formerly.iter().map(String::as_str);
        let reconciler = self.reconciler_key();
        let labels: Arc<[_]> = [&*self.id].into_iter().chain(former).map(label_of).collect();
        let derived = |id: Arc<str>, kind: &Named, role, function: &Function, code| {
            let reconciler = Arc::clone(&reconciler);
            let relation = Relation { reconciler, labels: Arc::clone(&labels), role };
            let mut handler = Handler {
                id,
                kind: Kind::Index,
                selector: Some(kind.selector.clone()),
                function: function.clone(),
                code,
                reconcile: None,
                relation: Some(relation),
                param: None,
                filters: super::handler::Filters::default(),
                limits: super::handler::Limits::default(),
                background: super::handler::Background::default(),
                parts: Parts::default(),
                for_scripts: None,
                ..self.clone()
            };
            let twin = Handler { function: function.clone().without_owner(), ..handler.clone() };
            handler.for_scripts = Some(Arc::new(twin));
            handler
        };
        let owned = options.owns.iter().map(|kind| {
            let id = self.relation_id("owns", kind);
            // No code of the script decides about children: an edit changes nothing about them.
            let code = code_of(&labels);
            derived(id, kind, Role::Owned, &self.function, code)
        });
        let watched = options.watches.iter().map(|Watched { kind, map }| {
            let id = self.relation_id("watches", kind);
            match map {
                Some(map) => derived(id, kind, Role::Mapped, map, self.code),
                None => derived(id, kind, Role::All, &self.function, code_of(&labels)),
            }
        });
        owned.chain(watched).collect()
    }

    /// Returns the handler with its function `finalize` instead of its own.
    pub fn finalizing(&self) -> Option<Arc<Handler>> {
        let function = self.reconcile.as_ref()?.finalize.clone()?;
        let twin = Handler {
            function: function.clone().without_owner(),
            for_scripts: None,
            ..self.for_scripts.as_deref().unwrap_or(self).clone()
        };
        Some(Arc::new(Handler { function, for_scripts: Some(Arc::new(twin)), ..self.clone() }))
    }
}

/// Returns a fingerprint of what decides which objects are children: never 0, which means unknown.
fn code_of(labels: &[String]) -> u64 {
    crate::logic::text::json::fingerprint(&labels.into()) | 1
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
    let hash = crate::logic::text::json::fingerprint(&id.into());
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
