//! The requests for children.

use std::{fmt, sync::Arc};

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
/// Maximum number of requests for a child that others delete, create or change at the same time.
const ATTEMPTS_MAX: usize = 4;

/// A sender of requests for children.
pub(super) struct Requests<'a>(pub(super) &'a dyn Cluster);

impl Requests<'_> {
    /// Applies a child of the handler with this label and the object with this uid. `seen` is the uid of the child that the watch shows.
    /// The watch may lag behind, so each request names the object that it is meant for: one that has replaced the child is not changed.
    /// Returns the child as the server has stored it.
    pub(super) async fn apply(
        &self,
        child: &Child,
        manager: &str,
        owner: (&str, &str),
        seen: Option<&str>,
    ) -> Result<Value, String> {
        let mut uid = seen.map(str::to_owned);
        let mut attempts_left = ATTEMPTS_MAX;
        loop {
            let error = match self.0.ask(application(child, manager, uid.as_deref())).await {
                Ok(applied) => {
                    return read_object(&applied).map_err(|it| format!("{}: {it}", named(child)));
                }
                Err(error) => error,
            };
            attempts_left -= 1;
            // A body with the uid of another object is invalid; one with a uid is in conflict if there is no object.
            let may_differ = matches!(error.class, ErrorClass::Conflict | ErrorClass::Invalid);
            if !may_differ || attempts_left == 0 {
                return Err(failed(child, &error));
            }
            let present = self.uid_of_own(child, owner).await?;
            if error.class == ErrorClass::Invalid && present == uid {
                return Err(failed(child, &error));
            }
            uid = present;
        }
    }

    /// Returns the uid of a child that belongs to the handler with this label and the object with this uid; `None` if it does not exist.
    async fn uid_of_own(
        &self,
        child: &Child,
        (label, uid): (&str, &str),
    ) -> Result<Option<String>, String> {
        let present = match self.0.ask(demand(child, Verb::Get)).await {
            Ok(present) => present,
            Err(error) if error.is_missing(Some(&child.name)) => return Ok(None),
            Err(error) => return Err(failed(child, &error)),
        };
        let present = read_object(&present).map_err(|it| format!("{}: {it}", named(child)))?;
        let others = match identity_of(&present) {
            (Some(handler), Some(parent)) if handler == label && parent == uid => {
                return Ok(uid_of(&present).map(str::to_owned));
            }
            (Some(handler), Some(_)) if handler == label => "another object".to_owned(),
            (Some(handler), _) => format!("the handler '{handler}'"),
            (None, _) => "another owner".to_owned(),
        };
        Err(format!(
            "{}: it exists and belongs to {others}, so it is not changed; choose another name, or delete it",
            named(child)
        ))
    }

    /// Releases the fields that another field manager has applied. `applied` is the child as the server has stored it.
    pub(super) async fn release(
        &self,
        child: &Child,
        manager: &str,
        applied: &Value,
    ) -> Result<(), String> {
        let (name, namespace, uid) = (&child.name, &child.namespace, uid_of(applied));
        let mut nothing = json!({
            "apiVersion": child.resource.api_version(),
            "kind": child.resource.kind,
            "metadata": { "name": name, "namespace": namespace, "uid": uid },
        });
        crate::logic::access::kube::without_nulls(&mut nothing);
        let released = self.0.ask(applying(child, manager, true, &nothing)).await;
        released.map(drop).map_err(|it| failed(child, &it))
    }

    /// Deletes a child that the watch shows. Returns false if the request was in conflict: most often because the child was replaced,
    /// which the watch has not shown yet.
    pub(super) async fn delete(&self, child: &Observed) -> Result<bool, String> {
        let place = ChildAddress {
            resource: Arc::clone(&child.resource),
            namespace: child.namespace.clone(),
            name: child.name.clone(),
        };
        self.delete_at(&place, child.uid()).await
    }

    /// Deletes the object at an address, if one of the handlers with these labels has applied it for the object with this uid.
    pub(super) async fn delete_own(
        &self,
        place: &ChildAddress,
        (labels, uid): (&[String], &str),
    ) -> Result<(), String> {
        let present = match self.0.ask(place.demand(Verb::Get)).await {
            Ok(present) => present,
            Err(error) if error.is_missing(Some(&place.name)) => return Ok(()),
            Err(error) => return Err(place.failed(&error)),
        };
        let present = read_object(&present).map_err(|it| format!("{place}: {it}"))?;
        let (handler, parent) = identity_of(&present);
        let is_own = handler.is_some_and(|it| labels.iter().any(|label| label == it));
        if !is_own || parent != Some(uid) {
            return Ok(());
        }
        if self.delete_at(place, uid_of(&present)).await? {
            return Ok(());
        }
        Err(format!("{place}: it was replaced while it was being deleted"))
    }

    async fn delete_at(&self, place: &ChildAddress, uid: Option<&str>) -> Result<bool, String> {
        let options = json!({ "preconditions": { "uid": uid }, "propagationPolicy": "Background" });
        let content = Some((JSON, Bytes::from(kopf_json::text(&options))));
        match self.0.ask(Demand { content, ..place.demand(Verb::Delete) }).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_missing(Some(&place.name)) => Ok(true),
            Err(error) if error.class == ErrorClass::Conflict => Ok(false),
            Err(error) => Err(place.failed(&error)),
        }
    }
}

/// The address of a child.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChildAddress {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: Option<String>,
    pub(super) name: String,
}

impl ChildAddress {
    fn demand(&self, verb: Verb) -> Demand {
        demand_of(&self.resource, (self.namespace.as_deref(), &self.name), verb)
    }

    fn failed(&self, error: &ApiError) -> String {
        format!("{self} is no longer needed and could not be deleted: {error}")
    }
}

impl fmt::Display for ChildAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&reconcile::shown(&self.resource, self.namespace.as_deref(), &self.name))
    }
}

/// Returns the request that applies a child: to the object with this uid, or as a new object.
fn application(child: &Child, manager: &str, uid: Option<&str>) -> Demand {
    let mut body = child.body.clone();
    if let Some(Value::Object(metadata)) = body.get_mut("metadata") {
        match uid {
            Some(uid) => metadata.insert("uid".to_owned(), uid.into()),
            // With a version, the server rejects the request if the object exists; no child has a version as old as this.
            None => metadata.insert("resourceVersion".to_owned(), "1".into()),
        };
    }
    applying(child, manager, uid.is_some(), &body)
}

fn applying(child: &Child, manager: &str, force: bool, body: &Value) -> Demand {
    let mut query = vec![("fieldManager", manager.to_owned())];
    query.extend(force.then(|| ("force", "true".to_owned())));
    let content = Some((APPLY, Bytes::from(kopf_json::text(body))));
    Demand { query, content, ..demand(child, Verb::Patch) }
}

fn uid_of(object: &Value) -> Option<&str> {
    object.pointer("/metadata/uid").and_then(Value::as_str)
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
