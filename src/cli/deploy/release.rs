//! The objects that have the finalizer of an operator that is being removed.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use super::api::Api;
use crate::cli::{
    objects::{
        release_one,
        session::{ObjectSession, report},
    },
    options::ScopeOption,
    rbac::{Survey, print},
    report::Report,
};
use crate::logic::{
    change::repair,
    discovery::namespaces::NamespacePattern,
    object::{Object, resource::Resource},
    text::listed::listed,
};
use crate::ports::ErrorClass;
use crate::settings::PREFIX;
use crate::sorted::CollectSorted as _;

/// Maximum number of objects that an error message names.
const NAMED_MAX: usize = 5;

/// The objects of an operator, by resource.
pub(super) struct FinalizedObjects {
    sessions: Vec<ObjectSession>,
    finalizer: String,
}

impl FinalizedObjects {
    /// Reads the objects that the operator serves and that have its finalizer.
    pub(super) async fn by(survey: &Survey, api: &Api) -> Result<Self, Report> {
        let finalizer = survey.options.settings.persistence.finalizer.clone();
        let handlers = survey.registry.handlers().iter();
        let resources: BTreeSet<&Resource> = handlers
            .filter(|it| it.requires_finalizer())
            .flat_map(|it| survey.resources_of(it))
            .collect_set();
        let mut sessions = Vec::new();
        for resource in resources {
            let mut objects = match api.cluster.list(resource, None).await {
                Ok(objects) => objects,
                // Its CRD was never applied, or is deleted.
                Err(error) if error.class == ErrorClass::Missing => Vec::new(),
                Err(error) => return Err(report(error)),
            };
            objects.retain(|it| {
                let header = it.header();
                let namespace = header.namespace.as_deref();
                header.finalizers.contains(&finalizer)
                    && is_served(&survey.options.scope, namespace)
            });
            let cluster = Arc::clone(&api.cluster);
            sessions.push(ObjectSession { cluster, resource: resource.clone(), objects });
        }
        Ok(FinalizedObjects { sessions, finalizer })
    }

    /// Fails if the deletion of an object waits for a handler.
    pub(super) fn require_none_is_deleted(&self) -> Result<(), Report> {
        let is_deleted = |it: &&Object| it.header().deletion_timestamp.is_some();
        let waiting: Vec<_> = self
            .sessions
            .iter()
            .flat_map(|session| {
                session.objects.iter().filter(is_deleted).map(|it| session.shown(it))
            })
            .collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let named = listed(waiting.iter(), NAMED_MAX);
        let problem = format!("the deletion of {named} waits for a handler of this operator");
        let hint = "no change was made: let the operator finish (`kopf status` shows its failures), or pass --force, which skips the handler";
        Err(Report::failure(problem).with_hint(hint))
    }

    /// Removes the finalizer and the annotations.
    pub(super) async fn release(&self, is_dry: bool) -> Result<(), Report> {
        let patch = |body: &Value| repair::release(body, &self.finalizer, PREFIX);
        let done = if is_dry { "would be released" } else { "released" };
        for session in &self.sessions {
            for object in &session.objects {
                if release_one(session, object, patch, is_dry).await? {
                    print(&format!("{} {done}\n", session.shown(object)));
                }
            }
        }
        Ok(())
    }
}

fn is_served(scope: &ScopeOption, namespace: Option<&str>) -> bool {
    match (scope, namespace) {
        (ScopeOption::Cluster | ScopeOption::Unsaid, _) | (ScopeOption::Namespaces(_), None) => {
            true
        }
        (ScopeOption::Namespaces(patterns), Some(name)) => {
            patterns.iter().any(|it| NamespacePattern::new(it).matches(name))
        }
    }
}
