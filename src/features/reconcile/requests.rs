//! The requests for children.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::logic::{
    access::kube::read_object,
    object::resource::Resource,
    reconcile::{self, Child, Observed, identity_of},
};
use crate::ports::{ApiError, Cluster, Demand, ErrorClass, Verb};

const APPLY: &str = "application/apply-patch+yaml";
const JSON: &str = "application/json";

/// Sends the requests for children.
pub(super) struct Requests<'a>(pub(super) &'a dyn Cluster);

impl Requests<'_> {
    /// Checks that a child which the watch does not show is new, or belongs to the handler with this label and the object with this
    /// uid. Returns whether it is new.
    pub(super) async fn check(
        &self,
        child: &Child,
        (label, uid): (&str, &str),
    ) -> Result<bool, String> {
        let present = match self.0.ask(demand(child, Verb::Get)).await {
            Ok(present) => present,
            Err(error) if error.class == ErrorClass::Missing => return Ok(true),
            Err(error) => return Err(failed(child, &error)),
        };
        let present = read_object(&present).map_err(|it| format!("{}: {it}", named(child)))?;
        let others = match identity_of(&present) {
            (Some(handler), Some(parent)) if handler == label && parent == uid => return Ok(false),
            (Some(handler), Some(_)) if handler == label => "another object".to_owned(),
            (Some(handler), _) => format!("the handler '{handler}'"),
            (None, _) => "somebody else".to_owned(),
        };
        Err(format!(
            "{}: it exists and belongs to {others}, so it is not changed; choose another name, or delete it",
            named(child)
        ))
    }

    /// Applies a child; returns what the server has made of it.
    pub(super) async fn apply(
        &self,
        child: &Child,
        manager: &str,
        force: bool,
    ) -> Result<Value, String> {
        let applied = self.0.ask(application(child, manager, force, &child.body)).await;
        let applied = applied.map_err(|it| failed(child, &it))?;
        read_object(&applied).map_err(|it| format!("{}: {it}", named(child)))
    }

    /// Releases the fields that another field manager has applied.
    pub(super) async fn release(&self, child: &Child, manager: &str) -> Result<(), String> {
        let nothing = json!({
            "apiVersion": child.resource.api_version(),
            "kind": child.resource.kind,
            "metadata": { "name": child.name, "namespace": child.namespace },
        });
        let mut nothing = nothing;
        crate::logic::access::kube::without_nulls(&mut nothing);
        let released = self.0.ask(application(child, manager, true, &nothing)).await;
        released.map(drop).map_err(|it| failed(child, &it))
    }

    /// Deletes a child, unless it is gone or was replaced.
    pub(super) async fn delete(&self, child: &Observed) -> Result<(), String> {
        let options = json!({
            "preconditions": { "uid": child.uid() },
            "propagationPolicy": "Background",
        });
        let place = (child.namespace.as_deref(), child.name.as_str());
        let demand = Demand {
            content: Some((JSON, Bytes::from(options.to_string()))),
            ..demand_of(&child.resource, place, Verb::Delete)
        };
        match self.0.ask(demand).await {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.class, ErrorClass::Missing | ErrorClass::Conflict) => {
                Ok(())
            }
            Err(error) => {
                let what = reconcile::shown(&child.resource, place.0, place.1);
                Err(format!("{what}, which is not wanted any more, could not be deleted: {error}"))
            }
        }
    }
}

fn application(child: &Child, manager: &str, force: bool, body: &Value) -> Demand {
    let mut query = vec![("fieldManager", manager.to_owned())];
    query.extend(force.then(|| ("force", "true".to_owned())));
    let content = Some((APPLY, Bytes::from(body.to_string())));
    Demand { query, content, ..demand(child, Verb::Patch) }
}

fn demand(child: &Child, verb: Verb) -> Demand {
    demand_of(&child.resource, (child.namespace.as_deref(), &child.name), verb)
}

fn demand_of(
    resource: &Arc<Resource>,
    (namespace, name): (Option<&str>, &str),
    verb: Verb,
) -> Demand {
    Demand {
        verb,
        resource: Arc::clone(resource),
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        subresource: None,
        query: Vec::new(),
        content: None,
    }
}

fn named(child: &Child) -> String {
    let what = reconcile::shown(&child.resource, child.namespace.as_deref(), &child.name);
    format!("{} ({what})", child.path)
}

fn failed(child: &Child, error: &ApiError) -> String {
    format!("{}: {error}", named(child))
}
