//! The requests of both commands: they find objects by version and kind, and apply them server-side.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::cli::{
    objects::session::{self, connect, report, unexpected},
    report::Report,
    shared_args::ClusterArgs,
};
use crate::logic::{
    access::kube::{KnownResources, ResourceRef, read_object},
    object::resource::Resource,
};
use crate::ports::{ApiError, Cluster, Demand, ErrorClass, GroupFilter, Verb};

/// The field manager. Scripts apply with other field managers, so both can apply the same objects.
pub(super) const MANAGER: &str = "kopf-deploy";

/// A cluster with its resources.
pub(super) struct Api {
    pub(super) cluster: Arc<dyn Cluster>,
    known: KnownResources,
    is_dry: bool,
}

/// An object of the cluster.
#[derive(Clone)]
pub(super) struct Location {
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: String,
}

/// The result of applying an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeployResult {
    Created,
    Configured,
    Unchanged,
}

impl Location {
    /// Returns the object for messages: `kind/NAME`, with the namespace if there is one.
    pub(super) fn shown(&self) -> String {
        let kind = self.resource.kind.to_lowercase();
        let namespace = self.namespace.as_deref().map(|it| format!(" -n {it}")).unwrap_or_default();
        format!("{kind}/{}{namespace}", self.name)
    }

    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl Api {
    /// Connects to the cluster, and reads its resources.
    pub(super) async fn open(args: &ClusterArgs, is_dry: bool) -> Result<Self, Report> {
        let cluster = connect(args).await?;
        let discovered = cluster.discover(&GroupFilter::All).await.map_err(report)?;
        let mut known = KnownResources::default();
        known.learn(None, discovered.resources);
        Ok(Api { cluster, known, is_dry })
    }

    /// Returns the location of an object of a manifest.
    pub(super) fn place(&self, object: &Value) -> Result<Location, Report> {
        let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (group, version) =
            text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
        let wanted = ResourceRef::Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text("/kind").to_owned(),
        };
        let Some(Ok(resource)) = self.known.find(&wanted) else {
            let problem =
                format!("the cluster has no kind {} in {}", text("/kind"), text("/apiVersion"));
            return Err(Report::failure(problem).with_hint("is its CRD installed?"));
        };
        let namespace = resource.namespaced.then(|| text("/metadata/namespace").to_owned());
        Ok(Location { namespace, name: text("/metadata/name").to_owned(), resource })
    }

    /// Returns an object; `None` if it does not exist.
    pub(super) async fn get(&self, place: &Location) -> Result<Option<Value>, Report> {
        match self.ask(place, Verb::Get, Vec::new(), None).await {
            Ok(response) => {
                let object = read_object(&response).map_err(|it| failed(place, unexpected(&it)))?;
                Ok(Some(object))
            }
            Err(error) if error.class == ErrorClass::Missing => Ok(None),
            Err(error) => Err(failed(place, error)),
        }
    }

    /// Applies an object on the server; `force` takes over fields of other managers.
    pub(super) async fn apply(
        &self,
        place: &Location,
        object: &Value,
        force: bool,
    ) -> Result<DeployResult, Report> {
        let before = self.get(place).await?;
        let query = vec![("fieldManager", MANAGER.to_owned()), ("force", force.to_string())];
        let content = ("application/apply-patch+yaml", Bytes::from(object.to_string()));
        let after = match self.ask(place, Verb::Patch, query, Some(content)).await {
            Ok(response) => changed(&response),
            // Nothing was created, so its namespace may not exist yet.
            Err(error) if self.is_dry && error.class == ErrorClass::Missing => {
                return Ok(DeployResult::Created);
            }
            Err(error) if error.class == ErrorClass::Conflict => {
                let hint = "--force takes these fields over; their owner may change them back";
                return Err(failed(place, error).with_hint(hint));
            }
            Err(error) => return Err(failed(place, error)),
        };
        let version = |it: &Value| it.pointer("/metadata/resourceVersion").cloned();
        Ok(match before {
            None => DeployResult::Created,
            // A dry run creates no version, so the contents are compared.
            Some(before) if self.is_dry && !same(&before, &after) => DeployResult::Configured,
            Some(before) if version(&before) == version(&after) => DeployResult::Unchanged,
            Some(_) => DeployResult::Configured,
        })
    }

    /// Changes fields of an object by a merge patch.
    pub(super) async fn merge(&self, place: &Location, patch: &Value) -> Result<Value, Report> {
        let content = ("application/merge-patch+json", Bytes::from(patch.to_string()));
        let response = self.ask(place, Verb::Patch, Vec::new(), Some(content)).await;
        response.map(|it| changed(&it)).map_err(|it| failed(place, it))
    }

    /// Deletes an object. Returns whether it existed.
    pub(super) async fn delete(&self, place: &Location) -> Result<bool, Report> {
        // Not as a body: with a body, servers ignore the dry run of the query.
        let query = vec![("propagationPolicy", "Background".to_owned())];
        match self.ask(place, Verb::Delete, query, None).await {
            Ok(_) => Ok(true),
            Err(error) if error.class == ErrorClass::Missing => Ok(false),
            Err(error) => Err(failed(place, error)),
        }
    }

    /// Lists the objects with these labels in the namespace of an object.
    pub(super) async fn list(
        &self,
        (api_version, kind): (&str, &str),
        namespace: &str,
        labels: &str,
    ) -> Result<Vec<(Location, Value)>, Report> {
        let example = json!({
            "apiVersion": api_version, "kind": kind, "metadata": { "namespace": namespace },
        });
        let all = self.place(&example)?;
        let labels = [("labelSelector", labels.to_owned())];
        self.pages(&all, &labels).await.map_err(|it| failed(&all, it))
    }

    /// Lists all objects of a kind in the cluster; `None` if that is not permitted.
    pub(super) async fn list_everywhere(
        &self,
        (api_version, kind): (&str, &str),
    ) -> Result<Option<Vec<(Location, Value)>>, Report> {
        let example = self.place(&json!({ "apiVersion": api_version, "kind": kind }))?;
        let all = Location { namespace: None, ..example };
        match self.pages(&all, &[]).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.class == ErrorClass::Denied => Ok(None),
            Err(error) => Err(failed(&all, error)),
        }
    }

    /// Returns an object with `metadata.managedFields`, which [`Api::get`] drops; `None` if it does not exist.
    pub(super) async fn get_with_managers(
        &self,
        place: &Location,
    ) -> Result<Option<Value>, Report> {
        let named = [("fieldSelector", format!("metadata.name={}", place.name))];
        let mut found = self.pages(place, &named).await.map_err(|it| failed(place, it))?;
        Ok(found.pop().map(|(_, body)| body))
    }

    async fn pages(
        &self,
        all: &Location,
        labels: &[(&'static str, String)],
    ) -> Result<Vec<(Location, Value)>, ApiError> {
        let namespace = all.namespace.as_deref();
        let found = session::pages(&*self.cluster, &all.resource, (namespace, labels)).await?;
        let placed = found.into_iter().map(|object| {
            let text = |path: &str| object.pointer(path).and_then(Value::as_str);
            let place = Location {
                resource: Arc::clone(&all.resource),
                namespace: text("/metadata/namespace").map(str::to_owned),
                name: text("/metadata/name").unwrap_or_default().to_owned(),
            };
            (place, object)
        });
        Ok(placed.collect())
    }

    async fn ask(
        &self,
        place: &Location,
        verb: Verb,
        mut query: Vec<(&'static str, String)>,
        content: Option<(&'static str, Bytes)>,
    ) -> Result<Bytes, ApiError> {
        if self.is_dry && !matches!(verb, Verb::Get | Verb::List) {
            query.push(("dryRun", "All".to_owned()));
        }
        let demand = Demand {
            verb,
            resource: Arc::clone(&place.resource),
            namespace: place.namespace.clone(),
            name: (verb != Verb::List).then(|| place.name.clone()),
            subresource: None,
            query,
            content,
        };
        self.cluster.ask(demand).await
    }
}

/// Returns the object in the response to a change, which has succeeded even if its response contains none.
fn changed(response: &Bytes) -> Value {
    read_object(response).unwrap_or_default()
}

/// Returns whether two versions of an object have the same content.
fn same(before: &Value, after: &Value) -> bool {
    let bare = |it: &Value| {
        let mut bare = it.clone();
        if let Some(metadata) = bare.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| {
                !["generation", "managedFields", "resourceVersion"].contains(&key.as_str())
            });
        }
        bare
    };
    bare(before) == bare(after)
}

fn failed(place: &Location, error: ApiError) -> Report {
    let Report { message, hint, .. } = report(error);
    let failed = Report::failure(format!("{}: {message}", place.shown()));
    match hint {
        Some(hint) => failed.with_hint(hint),
        None => failed,
    }
}
