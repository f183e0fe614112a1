//! What there is to serve: the resources and the namespaces of the cluster, and their changes.
//!
//! A resource definition or a namespace that comes after the start is served as if it had been there; one that goes is let
//! go. Where we may not look, what was found at the start is what counts until a restart.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream::BoxStream};
use tokio::time;

use super::Scope;
use crate::logic::{
    namespaces::NamespacePattern, object::Object, peering, reason::EventType, registry::Registry,
    resource::Resource, served,
};
use crate::ports::{ApiError, Cluster, ErrorClass, Extent, GroupFilter, StreamEvent, StreamTarget};
use crate::settings::Settings;

/// A definition changes several times while it comes up; we look once it has been quiet for so long.
const SETTLING: Duration = Duration::from_millis(100);

/// One stream to run: a resource in one namespace, or in the whole cluster.
pub(super) type Target = (Resource, Option<Arc<str>>);

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// Watches what there is to serve.
pub(super) struct Observer<'a> {
    cluster: &'a dyn Cluster,
    registry: &'a Registry,
    settings: Arc<Settings>,
    resources: Vec<Resource>,
    /// `None`: cluster-wide.
    namespaces: Option<Namespaces>,
    /// Changes of resource definitions, if we may see them.
    definitions: Option<Events>,
    /// Warnings that were told already.
    told: BTreeSet<String>,
}

/// The namespaces that are served.
struct Namespaces {
    patterns: Vec<NamespacePattern>,
    present: BTreeSet<String>,
    /// Their changes, if we may see them.
    events: Option<Events>,
}

impl<'a> Observer<'a> {
    /// Looks around once.
    ///
    /// # Errors
    /// When the cluster cannot be asked what it has.
    pub(super) async fn start(
        cluster: &'a dyn Cluster,
        registry: &'a Registry,
        scope: &Scope,
        settings: Arc<Settings>,
    ) -> Result<Self, ApiError> {
        let resources = cluster.discover(&groups(registry, &settings)).await?;
        let mut observer = Observer {
            cluster,
            registry,
            settings,
            resources,
            namespaces: None,
            definitions: None,
            told: BTreeSet::new(),
        };
        observer.definitions = observer.watch("apiextensions.k8s.io", "customresourcedefinitions");
        if let Scope::Namespaces(patterns) = scope {
            let events = observer.watch("", "namespaces");
            let mut namespaces = Namespaces::new(patterns, events);
            namespaces.fill().await;
            observer.namespaces = Some(namespaces);
        }
        Ok(observer)
    }

    /// The streams that should run now. Tells what cannot be served, once.
    pub(super) fn targets(&mut self) -> BTreeSet<Target> {
        let served = served::choose(self.registry, &self.resources);
        for warning in &served.warnings {
            if !self.told.contains(warning) {
                tracing::warn!(target: "kopf.observation", "{warning}");
            }
        }
        self.told = served.warnings.into_iter().collect();
        let namespaces = self.namespaces.as_ref().map(|it| &it.present);
        let places = |resource: &Resource| match namespaces {
            Some(names) if resource.namespaced => {
                names.iter().map(|it| Some(Arc::from(it.as_str()))).collect::<Vec<_>>()
            }
            Some(_) | None => vec![None],
        };
        let targets = served.resources.into_iter().flat_map(|resource| {
            let places = places(&resource);
            places.into_iter().map(move |place| (resource.clone(), place))
        });
        targets.collect()
    }

    /// Where to meet other operators, and whether the cluster has such places at all.
    pub(super) fn peerings(&mut self) -> (BTreeSet<peering::Place>, bool) {
        let mut clusterwide = self.settings.peering.clusterwide;
        let is_known = !peering::resources(&self.resources, clusterwide).is_empty();
        if !clusterwide && self.namespaces.is_none() && is_known {
            let text = "settings.peering.namespaced has no effect in an operator of the whole cluster: \
                        it meets others at the ClusterKopfPeering.";
            if self.told.insert(text.to_owned()) {
                tracing::warn!(target: "kopf.peering", "{text}");
            }
        }
        clusterwide |= self.namespaces.is_none();
        let namespaces = self.namespaces.as_ref().map(|it| &it.present);
        let places = peering::places(&self.resources, clusterwide, namespaces);
        (places, !peering::resources(&self.resources, clusterwide).is_empty())
    }

    /// Waits until something has changed.
    pub(super) async fn changed(&mut self) {
        loop {
            let names = self.namespaces.as_mut();
            tokio::select! {
                biased; // no order is needed: both lead to another look
                changed = next_of_definitions(&mut self.definitions) => if changed && self.rescan().await {
                    return;
                },
                changed = next_of_namespaces(names) => if changed {
                    return;
                },
            }
        }
    }

    /// Asks the cluster again what it has. A failure changes nothing: the next change of a definition asks again.
    async fn rescan(&mut self) -> bool {
        while time::timeout(SETTLING, next_of_definitions(&mut self.definitions)).await.is_ok() {}
        match self.cluster.discover(&groups(self.registry, &self.settings)).await {
            Ok(resources) => {
                self.resources = resources;
                true
            }
            Err(error) => {
                tracing::warn!(target: "kopf.observation", "Cannot look for new resources: {error}");
                false
            }
        }
    }

    fn watch(&self, group: &str, plural: &str) -> Option<Events> {
        if self.settings.scanning.disabled {
            return None;
        }
        let is_it = |it: &&Resource| it.group == group && it.plural == plural && it.preferred;
        let resource = Arc::new(self.resources.iter().find(is_it)?.clone());
        let settings = Arc::clone(&self.settings);
        Some(self.cluster.stream(StreamTarget {
            resource,
            namespace: None,
            extent: Extent::Metadata,
            settings,
        }))
    }
}

/// Waits for a change of a definition; tells whether to look again. Those of a listing are known already.
async fn next_of_definitions(events: &mut Option<Events>) -> bool {
    let Some(stream) = events else { return std::future::pending().await };
    match stream.next().await {
        Some(Ok(StreamEvent::Object(event_type, _))) => event_type.is_some(),
        Some(Ok(StreamEvent::Listed)) => false,
        Some(Err(error)) if error.class != ErrorClass::Denied => false,
        Some(Err(_)) | None => {
            tracing::warn!(
                target: "kopf.observation",
                "Not enough permissions to watch for resources: changes (creation/deletion/updates) \
                 will not be noticed; the resources are only refreshed on operator restarts."
            );
            *events = None;
            false
        }
    }
}

async fn next_of_namespaces(namespaces: Option<&mut Namespaces>) -> bool {
    match namespaces {
        Some(namespaces) => namespaces.next().await.unwrap_or(false),
        None => std::future::pending().await,
    }
}

impl Namespaces {
    fn new(patterns: &[String], events: Option<Events>) -> Self {
        let patterns = patterns.iter().map(NamespacePattern::new).collect::<Vec<_>>();
        // Names without a pattern in them are served also where namespaces cannot be listed.
        let exact = patterns.iter().filter_map(NamespacePattern::exact).map(str::to_owned);
        Namespaces { present: exact.collect(), patterns, events }
    }

    /// Takes in the first listing.
    async fn fill(&mut self) {
        while self.events.is_some() && self.next().await.is_some() {}
    }

    /// Takes in the next event; tells whether it changed anything. `None` at the end of a listing, and when nothing can be
    /// seen any more.
    async fn next(&mut self) -> Option<bool> {
        let Some(events) = &mut self.events else { return std::future::pending().await };
        match events.next().await {
            Some(Ok(StreamEvent::Object(event_type, object))) => {
                Some(self.note(event_type, &object))
            }
            Some(Ok(StreamEvent::Listed)) => None,
            Some(Err(error)) if error.class != ErrorClass::Denied => Some(false),
            Some(Err(_)) | None => {
                let names = self.present.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>();
                tracing::warn!(
                    target: "kopf.observation",
                    "Not enough permissions to list or watch namespaces. Falling back to a list of namespaces \
                     which are assumed to exist: {{{}}}",
                    names.join(", ")
                );
                self.events = None;
                None
            }
        }
    }

    fn note(&mut self, event_type: Option<EventType>, object: &Object) -> bool {
        let Some(name) = &object.header().name else { return false };
        if event_type == Some(EventType::Deleted) {
            return self.present.remove(name);
        }
        // A namespace that is going is served to its end: the finalizers in it must be handled.
        self.patterns.iter().any(|it| it.matches(name)) && self.present.insert(name.clone())
    }
}

fn groups(registry: &Registry, settings: &Settings) -> GroupFilter {
    // The core group is needed for namespaces and events, the other for the definitions of resources.
    let own = [String::new(), "apiextensions.k8s.io".to_owned()];
    let of_peering = peering::GROUPS.map(str::to_owned);
    let of_peering = of_peering.into_iter().filter(|_| !settings.peering.standalone);
    let own = own.into_iter().chain(of_peering);
    registry
        .groups()
        .map_or(GroupFilter::All, |it| GroupFilter::Only(it.into_iter().chain(own).collect()))
}
