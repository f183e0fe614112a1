//! Objects of another server: they are loaded when a request first needs them, so that changes can be tried on a copy.
//!
//! A request for a collection loads it, and a request for an object loads that one. What is loaded is not loaded again, so changes and
//! deletions on this server stay.

use std::{collections::BTreeSet, fmt, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::Mutex as AsyncMutex;

use crate::{
    ApiServer, Refusal, ResourceDef, Shared, metadata, object,
    request::{ApiRequest, route::RequestTarget},
    store::StoreKey,
};

/// The objects that a request needs.
#[derive(Clone, Debug)]
pub struct ObjectQuery {
    /// The resource. Its first version is needed.
    pub resource: ResourceDef,
    /// `None`: cluster-scoped, or all namespaces.
    pub namespace: Option<String>,
    /// `None`: all objects.
    pub name: Option<String>,
}

/// A function that reads objects of another server. Objects that do not exist there are left out.
#[derive(Clone)]
pub struct Loader(Arc<dyn Fn(ObjectQuery) -> LoadedObjects + Send + Sync>);

type LoadedObjects = BoxFuture<'static, Result<Vec<Value>, Refusal>>;

/// A loader, and what it has loaded.
pub(crate) struct Loading {
    loader: Loader,
    /// Locked while objects are loaded, so that nothing is loaded twice.
    loaded: AsyncMutex<LoadedParts>,
}

/// The parts of the other server that were loaded: the resource, the namespace, the name.
#[derive(Debug, Default)]
struct LoadedParts(BTreeSet<(String, Option<String>, Option<String>)>);

impl Loader {
    /// Creates a loader from a function.
    pub fn new<F>(load: impl Fn(ObjectQuery) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Value>, Refusal>> + Send + 'static,
    {
        Self(Arc::new(move |query| Box::pin(load(query))))
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Adds an object of another server as it is there: its uid and its times are kept, its version is new. An object of this name is
    /// replaced. A CRD starts to serve its resource.
    ///
    /// # Errors
    /// Fails if this server does not serve the resource, which is named as in messages of the server.
    pub fn import(&self, resource: &str, object: Value) -> Result<(), Refusal> {
        let imported = self.0.import(resource, object);
        self.0.announce();
        imported
    }
}

impl Shared {
    fn import(&self, resource: &str, mut body: Value) -> Result<(), Refusal> {
        let mut store = self.store();
        if !store.tables.contains_key(resource) {
            return Err(Refusal::unknown_resource());
        }
        let (namespace, name) = (object::meta(&body, "namespace"), object::meta(&body, "name"));
        let key = StoreKey::new(resource, namespace, name);
        metadata::normalize(&mut body);
        store.put(&key, body);
        Ok(())
    }
}

impl Loading {
    pub(crate) fn new(loader: Loader) -> Self {
        Self { loader, loaded: AsyncMutex::default() }
    }

    /// Loads the objects that a request needs, unless they are there.
    pub(crate) async fn prepare(
        &self,
        shared: &Shared,
        (request, target): (&ApiRequest, &RequestTarget),
    ) -> Result<(), Refusal> {
        let Some(query) = query(shared, request, target) else { return Ok(()) };
        let resource = query.resource.qualified();
        let mut loaded = self.loaded.lock().await;
        if loaded.covers(&resource, query.namespace.as_deref(), query.name.as_deref()) {
            return Ok(());
        }
        let part = (resource.clone(), query.namespace.clone(), query.name.clone());
        for object in (self.loader.0)(query).await? {
            let text = |field| Some(object::meta(&object, field)).filter(|it| !it.is_empty());
            if !loaded.covers(&resource, text("namespace"), text("name")) {
                shared.import(&resource, object)?;
            }
        }
        loaded.0.insert(part);
        Ok(())
    }
}

impl LoadedParts {
    /// Returns whether an object or a collection is among the loaded parts.
    fn covers(&self, resource: &str, namespace: Option<&str>, name: Option<&str>) -> bool {
        let has = |namespace: Option<&str>, name: Option<&str>| {
            let part = (resource.to_owned(), namespace.map(Into::into), name.map(Into::into));
            self.0.contains(&part)
        };
        has(None, None) || has(namespace, None) || (name.is_some() && has(namespace, name))
    }
}

/// Returns what a request needs; `None` if it needs no stored objects.
fn query(shared: &Shared, request: &ApiRequest, target: &RequestTarget) -> Option<ObjectQuery> {
    let store = shared.store();
    let tables = store.tables.values();
    let is_meant = |it: &&ResourceDef| it.plural == target.plural && it.group == target.group;
    let resource = tables.map(|it| &it.kind.def).find(is_meant)?.clone();
    let is_listed = resource.verbs.iter().any(|it| it == "list");
    let creates = request.method == "POST" && target.name.is_none();
    let name = if creates { Some(created_name(&request.body)?) } else { target.name.clone() };
    let namespace = target.namespace.clone();
    is_listed.then_some(ObjectQuery { resource, namespace, name })
}

/// Returns the name of an object that is about to be created: one of this name may exist. `None` if the server generates it.
fn created_name(body: &[u8]) -> Option<String> {
    let object: Value = serde_json::from_slice(body).ok()?;
    Some(object::meta(&object, "name").to_owned()).filter(|it| !it.is_empty())
}
