//! A copy of a cluster: the embedded API server, with the objects of the cluster that requests need.

use std::{collections::BTreeMap, sync::Arc};

use futures::{StreamExt as _, stream};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, task};

use crate::cli::{
    objects::session::{self, report},
    options::RunOptions,
    report::Report,
    scripts::UnloadedScripts,
    shared_args::ClusterArgs,
};
use crate::logic::{access::kube::read_object, object::resource::Resource};
use crate::ports::{ApiError, Clock, Cluster, Demand, ErrorClass, GroupFilter, Verb};
use crate::webhooks::LocalWebhooks;
use kopf_apiserver::{
    ApiServer, Loader, ObjectQuery, Post, Refusal, ResourceDef, WebhookTarget,
    streaming::PodStreams,
};

/// The resource of CRDs.
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// Maximum number of objects in the copy: they are held in memory twice.
const OBJECTS_MAX: usize = 200_000;

/// A connection to a cluster, with its own runtime: the requests take real time, while the operator runs on a clock that skips it.
pub(super) struct LiveCluster {
    runtime: Arc<Runtime>,
    cluster: Arc<dyn Cluster>,
}

/// The address of an object: its resource as in messages of the server, its namespace, its name.
pub(super) type ObjectKey = (String, String, String);

/// The objects of the cluster that were read, and the first failure.
#[derive(Default)]
pub(super) struct Originals {
    pub(super) objects: BTreeMap<ObjectKey, Value>,
    /// Why the copy is incomplete.
    pub(super) failure: Option<ApiError>,
}

/// A copy of a cluster, for one operator.
pub(super) struct ClusterCopy {
    pub(super) server: ApiServer,
    pub(super) originals: Arc<Mutex<Originals>>,
}

impl LiveCluster {
    /// Connects to the cluster that the options name.
    pub(super) fn connect(args: &ClusterArgs) -> Result<Self, Report> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|it| Report::failure(format!("cannot start the runtime: {it}")))?;
        let cluster = runtime.block_on(session::connect(args))?;
        Ok(LiveCluster { runtime: Arc::new(runtime), cluster })
    }

    /// Adds the scripts in `ConfigMap`s, if the options name some.
    pub(super) fn add_maps(
        &self,
        read: UnloadedScripts,
        options: &RunOptions,
        clock: Clock,
    ) -> Result<UnloadedScripts, Report> {
        self.runtime.block_on(read.maps(options, Some(&*self.cluster), clock))
    }

    /// Returns a server with the resources of the cluster, which loads objects when they are needed.
    pub(super) fn copy(&self, clock: Clock, local: &LocalWebhooks) -> Result<ClusterCopy, Report> {
        let (cluster, runtime) = (Arc::clone(&self.cluster), Arc::clone(&self.runtime));
        let read = self.runtime.block_on(async {
            let discovered = cluster.discover(&GroupFilter::All).await?;
            let crds = match session::pages(&*cluster, &crds(), (None, &[])).await {
                Ok(crds) => crds,
                // Without them, resources have no schemas.
                Err(error) if error.class == ErrorClass::Denied => Vec::new(),
                Err(error) => return Err(error),
            };
            Ok((discovered.resources, crds))
        });
        let (resources, crds) = read.map_err(report)?;
        let originals = Arc::<Mutex<Originals>>::default();
        let own = Arc::clone(&originals);
        let loader = Loader::new(move |query| {
            let (cluster, runtime, originals) =
                (Arc::clone(&cluster), Arc::clone(&runtime), Arc::clone(&own));
            async move {
                // While a blocking task runs, the clock of the operator stands still.
                let read = task::spawn_blocking(move || {
                    runtime.block_on(objects(&*cluster, &query)).map(|it| (query, it))
                });
                match read.await {
                    Ok(Ok((query, found))) => originals.lock().keep(&query.resource, found),
                    Ok(Err(error)) => Err(originals.lock().fail(error)),
                    Err(ended) => Err(refusal(500, "InternalError", ended.to_string())),
                }
            }
        });
        let stamp = move || clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        // Nothing runs in the copy, so nothing is logged there.
        let pods = PodStreams::default().logs(|_request| Some(stream::empty().boxed()));
        let mut builder = ApiServer::builder().clock(stamp).admission(false).pods(pods);
        builder =
            builder.seed(fastrand::u64(..)).loader(loader).webhooks(post(local, &self.runtime));
        for def in undefined(&resources, &crds) {
            builder = builder.resource(def);
        }
        let server = builder.build();
        for crd in crds {
            let key = (CRDS.to_owned(), String::new(), text(&crd, "/metadata/name").to_owned());
            originals.lock().objects.insert(key, crd.clone());
            server.import(CRDS, crd).map_err(|it| Report::failure(it.message))?;
        }
        Ok(ClusterCopy { server, originals })
    }
}

impl Originals {
    /// Remembers objects as the cluster has them.
    fn keep(&mut self, def: &ResourceDef, found: Vec<Value>) -> Result<Vec<Value>, Refusal> {
        if self.objects.len().saturating_add(found.len()) > OBJECTS_MAX {
            let message = format!("the operator needs more than {OBJECTS_MAX} objects");
            let hint = Some("limit it to fewer namespaces with -n".to_owned());
            let class = ErrorClass::Fatal;
            return Err(self.fail(ApiError { class, status: None, message, hint, answer: None }));
        }
        for object in &found {
            self.objects.entry(key(def, object)).or_insert_with(|| object.clone());
        }
        Ok(found)
    }

    /// Returns the response for a request that needs objects which cannot be read. A lack of permissions is an answer like any other.
    fn fail(&mut self, error: ApiError) -> Refusal {
        if error.class == ErrorClass::Denied {
            // The operator describes its own request, which has this response.
            let told = error.message.split_once("403 Forbidden: ").map(|(_, told)| told);
            return refusal(403, "Forbidden", told.unwrap_or(&error.message).to_owned());
        }
        let refused = refusal(503, "ServiceUnavailable", error.message.clone());
        self.failure.get_or_insert(error);
        refused
    }
}

/// Returns the function that sends reviews: to the operator, and conversions also to webhooks of the cluster. Its admission webhooks are
/// not called, because changes in the copy do not concern them.
fn post(local: &LocalWebhooks, runtime: &Arc<Runtime>) -> Post {
    let (local, runtime) = (local.clone(), Arc::clone(runtime));
    Post::new(move |target: WebhookTarget, body| {
        let (local, runtime) = (local.clone(), Arc::clone(&runtime));
        async move {
            if let Some(answer) = local.review(&target.url, &body).await {
                return answer;
            }
            let review: Value = serde_json::from_slice(&body).unwrap_or_default();
            if text(&review, "/kind") != "AdmissionReview" {
                let call = move || runtime.block_on(Post::https().call(&target, body));
                return task::spawn_blocking(call).await.unwrap_or_else(|it| Err(it.to_string()));
            }
            let response = json!({ "uid": text(&review, "/request/uid"), "allowed": true });
            let version = text(&review, "/apiVersion");
            let answer =
                json!({ "apiVersion": version, "kind": "AdmissionReview", "response": response });
            Ok(answer.to_string().into())
        }
    })
}

/// Returns the address of an object.
pub(super) fn key(def: &ResourceDef, object: &Value) -> ObjectKey {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    (def.qualified(), namespace.to_owned(), name.to_owned())
}

/// Returns the string at a path; empty if there is none.
pub(super) fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// Reads objects of the cluster. Objects, resources and versions that it does not have are left out.
async fn objects(cluster: &dyn Cluster, query: &ObjectQuery) -> Result<Vec<Value>, ApiError> {
    let resource = resource(&query.resource);
    let namespace = query.namespace.as_deref();
    let named = query.name.as_ref().map(|it| [("fieldSelector", format!("metadata.name={it}"))]);
    let options = named.as_ref().map_or(&[][..], |it| &it[..]);
    let error = match session::pages(cluster, &resource, (namespace, options)).await {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    match (&query.name, error.class) {
        (_, ErrorClass::Missing) => Ok(Vec::new()),
        // Who may not list may be allowed to read single objects.
        (Some(name), ErrorClass::Denied) => {
            match cluster.ask(get(&resource, namespace, name)).await {
                Ok(object) => Ok(read_object(&object).into_iter().collect()),
                Err(error) if error.class == ErrorClass::Missing => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        }
        _ => Err(error),
    }
}

fn get(resource: &Arc<Resource>, namespace: Option<&str>, name: &str) -> Demand {
    Demand {
        verb: Verb::Get,
        resource: Arc::clone(resource),
        namespace: namespace.map(str::to_owned),
        name: Some(name.to_owned()),
        subresource: None,
        query: Vec::new(),
        content: None,
    }
}

/// Returns the resources that neither the embedded server nor a CRD defines. Their objects have no schema.
fn undefined(resources: &[Resource], crds: &[Value]) -> Vec<ResourceDef> {
    let mut defs = BTreeMap::<String, ResourceDef>::new();
    let built_in = ApiServer::builder().build().resources();
    let is_defined = |it: &ResourceDef| {
        let name = it.qualified();
        built_in.iter().any(|it| it.qualified() == name)
            || crds.iter().any(|it| text(it, "/metadata/name") == name)
    };
    for resource in resources.iter().filter(|it| !it.plural.contains('/')) {
        let mut def =
            ResourceDef::new(&resource.group, &resource.version, &resource.plural, &resource.kind);
        def.singular.clone_from(&resource.singular);
        def.short_names = resource.shortcuts.iter().cloned().collect();
        def.categories = resource.categories.iter().cloned().collect();
        def.namespaced = resource.namespaced;
        def.status_subresource = resource.subresources.contains("status");
        def.verbs = resource.verbs.iter().cloned().collect();
        if is_defined(&def) {
            continue;
        }
        match defs.get_mut(&def.qualified()) {
            Some(known) if resource.preferred => known.versions.insert(0, resource.version.clone()),
            Some(known) => known.versions.push(resource.version.clone()),
            None => drop(defs.insert(def.qualified(), def)),
        }
    }
    defs.into_values().collect()
}

/// Returns the resource of objects in their first version.
pub(super) fn resource(def: &ResourceDef) -> Arc<Resource> {
    Arc::new(Resource {
        group: def.group.clone(),
        version: def.versions.first().cloned().unwrap_or_default(),
        plural: def.plural.clone(),
        kind: def.kind.clone(),
        namespaced: def.namespaced,
        ..Resource::default()
    })
}

fn crds() -> Arc<Resource> {
    Arc::new(Resource {
        group: "apiextensions.k8s.io".into(),
        version: "v1".into(),
        plural: "customresourcedefinitions".into(),
        kind: "CustomResourceDefinition".into(),
        ..Resource::default()
    })
}

fn refusal(code: u16, reason: &'static str, message: String) -> Refusal {
    Refusal { code, reason: reason.into(), message, details: None }
}
