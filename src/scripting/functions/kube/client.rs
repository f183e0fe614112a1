//! The access of a call to the cluster, and the resources and objects that its arguments name.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::call::{Cause, Invocation, Stopped};
use crate::logic::{
    access::kube::{
        DefaultNamespaces, KubeVerb, Reference, ResourceRef, advice, one, read_object, several,
    },
    handlers::{declare::Argument, selector::Selector},
    object::resource::Resource,
};
use crate::ports::{ApiError, Demand, ErrorClass, Kube, LookupError, Verb};
use crate::scripting::{
    functions::{Call, call::aside, outcome::Failure},
    values::refusal::ServerRefusal,
};

/// The class of errors of the cluster, which the log shows.
const CLASS: &str = "KubeError";
/// The field manager of fields that scripts write.
const MANAGER: &str = "kopf";

/// The access to the cluster for one call.
pub(super) struct KubeClient {
    pub(super) kube: Kube,
    /// The namespace of the handled object.
    handled: Option<String>,
    /// The stop flag, in daemons and timers.
    pub(super) stopped: Option<Stopped>,
    /// What is attempted, for messages about refusals.
    pub(super) attempt: KubeVerb,
}

/// The address of an object, which need not exist.
#[derive(Clone, Debug)]
pub(super) struct ObjectAddress {
    pub(super) resource: Arc<Resource>,
    pub(super) namespace: Option<String>,
    pub(super) name: Option<String>,
    /// The uid, if the script knows it.
    pub(super) uid: Option<String>,
}

impl KubeClient {
    /// Returns the access for a call.
    pub(super) fn of(call: &Call, attempt: KubeVerb) -> Result<Self, Failure> {
        let Some(present) = &call.present else {
            let message = "kube functions can only be called in handlers, not at the top level of a script: use kopf.on_startup \
                           for work that is done once";
            return Err(Failure::Plain(message.into()));
        };
        if let Cause::Activity(activity) = &present.cause
            && activity.activity == "authentication"
        {
            let message = "login handlers cannot call kube functions: the connection needs the credentials that they return";
            return Err(Failure::Plain(message.into()));
        }
        let namespace = |it: &Arc<Invocation>| it.object()?.header().namespace.clone();
        Ok(KubeClient {
            kube: present.services.kube.clone(),
            handled: namespace(present),
            stopped: present.background().map(|it| it.stopped.clone()),
            attempt,
        })
    }

    /// Returns the namespace of the credentials, if it may matter.
    async fn credentials(&self) -> Result<String, Failure> {
        if self.handled.is_some() {
            return Ok(String::new());
        }
        self.kube.default_namespace().await.map_err(|it| self.refused(it))
    }

    /// Finds the resource that a reference names.
    pub(super) async fn resource(&self, resource: &ResourceRef) -> Result<Arc<Resource>, Failure> {
        self.kube.resource(resource).await.map_err(|error| match error {
            LookupError::Api(error) => self.refused(error),
            LookupError::Unresolved(message) => Failure::Answer(Box::new(ServerRefusal {
                class: CLASS,
                reason: "UnknownResource".into(),
                message,
                ..ServerRefusal::default()
            })),
        })
    }

    /// Returns the address of an object.
    pub(super) async fn address(
        &self,
        reference: Reference,
        option: Option<&str>,
    ) -> Result<ObjectAddress, Failure> {
        let Reference { resource, name, namespace, uid } = reference;
        let resource = self.resource(&resource).await?;
        let credentials = self.credentials().await?;
        let home =
            DefaultNamespaces { handled: self.handled.as_deref(), credentials: &credentials };
        let namespace = one(&resource, (option, namespace.as_deref()), home)?;
        Ok(ObjectAddress { resource, namespace, name, uid })
    }

    /// Returns the namespace of the objects of a resource; `None`: all namespaces.
    pub(super) async fn place(
        &self,
        resource: &Resource,
        option: Option<&str>,
    ) -> Result<Option<String>, Failure> {
        let credentials = self.credentials().await?;
        let home =
            DefaultNamespaces { handled: self.handled.as_deref(), credentials: &credentials };
        Ok(several(resource, option, home)?)
    }

    /// Sends a request, and returns the response.
    pub(super) async fn send(&self, demand: Demand) -> Result<Bytes, ApiError> {
        let group = demand.resource.group.clone();
        let sent = self.kube.with(move |cluster| async move { cluster.ask(demand).await }).await;
        if let Err(error) = &sent {
            self.doubt(&group, error);
        }
        sent
    }

    /// Sends a request, and returns the object of the response.
    pub(super) async fn send_for_object(&self, demand: Demand) -> Result<Value, Failure> {
        let answer = self.send(demand).await.map_err(|it| self.refused(it))?;
        object(answer).await
    }

    /// Forgets the discovered resources of a group if the server does not know a path at all: they are out of date.
    pub(super) fn doubt(&self, group: &str, error: &ApiError) {
        if error.class == ErrorClass::Missing && error.answer.is_none() {
            self.kube.forget(group);
        }
    }

    /// Returns the error for the script.
    pub(super) fn refused(&self, error: ApiError) -> Failure {
        let said = error.answer.map(|it| *it).unwrap_or_default();
        let advice = error.status.map(|it| advice(self.attempt, it, &said)).unwrap_or_default();
        let parts = [error.message, advice, error.hint.unwrap_or_default()];
        let parts: Vec<_> = parts.into_iter().filter(|it| !it.is_empty()).collect();
        let unsaid = match error.class {
            ErrorClass::Retry => "Unavailable",
            ErrorClass::Denied => "Unauthorized",
            ErrorClass::Missing => "NotFound",
            ErrorClass::Conflict => "Conflict",
            ErrorClass::Outdated | ErrorClass::Invalid => "Invalid",
            ErrorClass::Expired => "Expired",
            ErrorClass::Fatal => "Failed",
        };
        Failure::Answer(Box::new(ServerRefusal {
            class: CLASS,
            status: error.status,
            reason: if said.reason.is_empty() { unsaid.to_owned() } else { said.reason },
            message: parts.join("; "),
            details: said.details,
        }))
    }
}

impl ObjectAddress {
    /// Returns the name of the object.
    pub(super) fn named(&self) -> Result<String, Failure> {
        let unnamed =
            || Failure::Plain("the object has no name: `metadata.name` is missing".into());
        self.name.clone().ok_or_else(unnamed)
    }

    /// Returns a request for the object; for the collection if it has no name.
    pub(super) fn demand(&self, verb: Verb) -> Demand {
        Demand {
            verb,
            resource: Arc::clone(&self.resource),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            subresource: None,
            query: Vec::new(),
            content: None,
        }
    }

    /// Returns the name of the object in messages.
    pub(super) fn shown(&self) -> String {
        let name = self.name.as_deref().unwrap_or_default();
        let place = self.namespace.as_ref().map(|it| format!(" in '{it}'")).unwrap_or_default();
        format!("{} '{name}'{place}", self.resource)
    }
}

/// Returns a failure that is not a response of the server, with a reason in one word, by which scripts can distinguish failures.
pub(super) fn failed(reason: &str, message: String) -> Failure {
    Failure::Answer(Box::new(ServerRefusal {
        class: CLASS,
        reason: reason.to_owned(),
        message,
        ..ServerRefusal::default()
    }))
}

/// Returns the object of a response, as scripts receive it.
pub(super) async fn object(answer: Bytes) -> Result<Value, Failure> {
    object_as(answer, |it| it).await
}

/// Returns what a function makes of the object of a response, on another thread if the response is long.
pub(super) async fn object_as<T: Send + 'static>(
    answer: Bytes,
    read: impl FnOnce(Value) -> T + Send + 'static,
) -> Result<T, Failure> {
    let made = aside(answer.len(), move || read_object(&answer).map(read)).await?;
    made.map_err(|it| Failure::Plain(format!("the response is not an object: {it}")))
}

/// Returns the text of a response. Bytes that are not UTF-8 are replaced.
pub(super) async fn text(answer: Bytes) -> Result<String, Failure> {
    aside(answer.len(), move || String::from_utf8_lossy(&answer).into_owned()).await
}

/// Returns the selector of the positional arguments; or a reference if one of them was passed.
pub(super) fn selected(call: &Call) -> Result<Reference, Failure> {
    let first = call.value("selector");
    if let Value::Object(fields) = first {
        if fields.contains_key("apiVersion") {
            return Ok(Reference::of(first)?);
        }
        let resource = ResourceRef::Selector(described(fields)?);
        return Ok(Reference { resource, name: None, namespace: None, uid: None });
    }
    let arguments = ["selector", "selector2", "selector3"].map(|it| call.value(it).clone());
    let selector = Selector::parse(&arguments.map(Argument::Value), Selector::default());
    let resource = ResourceRef::Selector(selector.map_err(|it| Failure::Plain(it.message))?);
    Ok(Reference { resource, name: None, namespace: None, uid: None })
}

/// Reads a resource in the form of `ctx.resource`.
fn described(fields: &Map<String, Value>) -> Result<Selector, Failure> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let selector = Selector {
        group: text("group"),
        version: text("version"),
        plural: text("plural"),
        ..Selector::default()
    };
    if selector.plural.is_none() {
        let message = "`selector`: expected the name of a resource, an object, or ctx.resource: a map with `plural`";
        return Err(Failure::Plain(message.into()));
    }
    Ok(selector)
}

/// Returns an option that is a string.
pub(super) fn option<'a>(call: &'a Call, name: &str) -> Option<&'a str> {
    call.value(name).as_str()
}

/// Returns the query that names the writer, and makes it a dry run if requested.
pub(super) fn intent(call: &Call) -> Vec<(&'static str, String)> {
    let manager = option(call, "field_manager").unwrap_or(MANAGER).to_owned();
    let mut query = vec![("fieldManager", manager)];
    if is_dry(call) {
        query.push(("dryRun", "All".into()));
    }
    query
}

/// Returns whether it is a dry run.
pub(super) fn is_dry(call: &Call) -> bool {
    call.value("dry_run") == true
}
