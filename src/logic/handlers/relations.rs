//! The handlers that are derived from a declaration of `kopf.reconcile`: for each kind that it owns or watches, an index handler keeps the
//! objects by the uid of their parent, and calls the handler when one of them changes.

use std::sync::Arc;

use kopf_json::values;

use super::{
    description,
    function::Function,
    handler::{Background, Filters, Handler, Kind, Limits, Named, Parts, Relation, Role, Watched},
    reconcile::{INDEX, label_of},
};

/// The ids of one reconcile handler and of its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RelationIds {
    /// [`Handler::reconciler_key`].
    pub reconciler: Arc<str>,
    /// Whether it watches objects that name those to call it for.
    pub has_names: bool,
    /// The indexes of its children, in the order of [`Handler::owned_kinds`].
    pub children: Vec<Arc<str>>,
    /// The indexes of the kinds that it watches.
    pub watched: Vec<Arc<str>>,
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

    /// Returns its key among all reconcile handlers: ids may repeat for other resources.
    pub fn reconciler_key(&self) -> Arc<str> {
        let resource = self.selector.as_ref().map(description::resource).unwrap_or_default();
        format!("{}@{resource}", self.id).into()
    }

    /// Returns the id of the index of the children of one kind, or of the related objects.
    fn relation_id(&self, what: &str, kind: &Named) -> Arc<str> {
        format!("{INDEX}{}/{what}/{}", self.reconciler_key(), kind.text).into()
    }

    /// Returns its id, and the earlier ones of a reconcile handler.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        let former = self.reconcile.iter().flat_map(|it| &it.formerly).map(String::as_str);
        [&*self.id].into_iter().chain(former)
    }

    /// Returns the labels of its children: of its id, and of earlier ones.
    pub fn labels_of_children(&self) -> Vec<String> {
        self.ids().map(label_of).collect()
    }

    /// Returns the kinds of its children.
    pub fn owned_kinds(&self) -> &[Named] {
        self.reconcile.as_ref().map_or(&[], |it| &it.owns)
    }

    /// Returns the ids of the indexes of a reconcile handler.
    pub fn relation_ids(&self) -> RelationIds {
        let Some(options) = &self.reconcile else { return RelationIds::default() };
        let children = options.owns.iter().map(|it| self.relation_id("owns", it)).collect();
        let watched = options.watches.iter().map(|it| self.relation_id("watches", &it.kind));
        RelationIds {
            reconciler: self.reconciler_key(),
            has_names: options.watches.iter().any(|it| it.map.is_some()),
            children,
            watched: watched.collect(),
        }
    }

    /// Returns the id of the index of the parents of its objects, if it needs one.
    pub fn parent_index(&self) -> Option<Arc<str>> {
        self.parent.as_ref().map(|it| format!("{INDEX}parents/{}", it.text).into())
    }

    /// Returns the index handlers that it needs.
    pub fn relations(&self) -> Vec<Handler> {
        if let Some((id, parent)) = self.parent_index().zip(self.parent.as_ref()) {
            let labels = Arc::default();
            let relation =
                Relation { reconciler: Arc::clone(&self.id), labels, role: Role::Parent };
            let code = values::fingerprint(&parent.text.clone().into()) | 1;
            return vec![self.derived((id, parent), relation, &self.function, code)];
        }
        let Some(options) = &self.reconcile else { return Vec::new() };
        let labels: Arc<[_]> = self.labels_of_children().into();
        let reconciler = self.reconciler_key();
        let relation = |role| {
            let (reconciler, labels) = (Arc::clone(&reconciler), Arc::clone(&labels));
            Relation { reconciler, labels, role }
        };
        // No code of the script decides about children: an edit changes nothing about them.
        let code = code_of(&labels);
        let owned = options.owns.iter().map(|kind| {
            let id = self.relation_id("owns", kind);
            self.derived((id, kind), relation(Role::Owned), &self.function, code)
        });
        let watched = options.watches.iter().map(|Watched { kind, map }| {
            let place = (self.relation_id("watches", kind), kind);
            match map {
                Some(map) => self.derived(place, relation(Role::Mapped), map, self.code),
                None => self.derived(place, relation(Role::All), &self.function, code),
            }
        });
        owned.chain(watched).collect()
    }

    /// Returns an index handler of another kind, for this handler.
    fn derived(
        &self,
        (id, kind): (Arc<str>, &Named),
        relation: Relation,
        function: &Function,
        code: u64,
    ) -> Handler {
        let mut handler = Handler {
            id,
            kind: Kind::Index,
            selector: Some(kind.selector.clone()),
            function: function.clone(),
            code,
            reconcile: None,
            parent: None,
            relation: Some(relation),
            param: None,
            filters: Filters::default(),
            limits: Limits::default(),
            background: Background::default(),
            parts: Parts::default(),
            for_scripts: None,
            ..self.clone()
        };
        let twin = Handler { function: function.clone().without_owner(), ..handler.clone() };
        handler.for_scripts = Some(Arc::new(twin));
        handler
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

/// Returns a fingerprint of the labels that decide which objects are children: never 0, which means unknown.
fn code_of(labels: &[String]) -> u64 {
    values::fingerprint(&labels.into()) | 1
}
