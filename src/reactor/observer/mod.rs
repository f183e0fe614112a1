//! Observes the resources and namespaces to serve, and their changes.
//!
//! A CRD or a namespace that is created after the start is served as if it had existed before; a deleted one is released.
//! All discovered resources and namespaces are kept, and each selection starts from all of them: the result does not depend on the order of
//! discovery. Requests that are denied are retried periodically.

mod deletions;
mod namespaces;
mod resources;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::future;

use self::{namespaces::Namespaces, resources::Resources, view::ObserverView};
use crate::call::Scripts;
use crate::handling::choosing::Choices;
use crate::logic::{
    change::{
        registry::{Registry, ResourceHandlers},
        selection::Selected,
    },
    discovery::{namespaces::NamespacePattern, served},
    handlers::{
        handler::Category,
        selector::{self, Selector},
    },
    object::resource::Resource,
    replicas::peering,
};
use crate::ports::{ApiError, Cluster};
use crate::settings::Settings;

/// The namespaces to serve.
#[derive(Clone, Debug)]
pub enum NamespaceScope {
    /// All namespaces, with cluster-wide streams.
    Cluster,
    /// The namespaces that match any of these patterns.
    Namespaces(Vec<NamespacePattern>),
}

/// One stream to run: a resource in one namespace, or in the whole cluster.
pub(super) type Target = (Arc<Resource>, Option<Arc<str>>);

/// The streams to run, with the handlers of each resource.
pub(super) type Targets = BTreeMap<Target, Arc<ResourceHandlers>>;

/// The observer of the resources and namespaces to serve.
pub(super) struct Observer<'a> {
    view: ObserverView<'a>,
    scripts: &'a dyn Scripts,
    registry: Registry,
    resources: Resources<'a>,
    choices: Choices,
    /// The served namespaces; `None`: cluster-wide.
    namespaces: Option<Namespaces>,
    /// Warnings that were logged already.
    logged: Vec<String>,
    /// The selectors that match a resource, or have matched one.
    resolved: Vec<Selector>,
    /// The reason why handlers that had resources, or may have some, have none now.
    problem: Option<String>,
    /// Whether the warning about an ineffective setting was logged.
    is_peering_logged: bool,
}

impl<'a> Observer<'a> {
    /// Runs the first discovery.
    ///
    /// # Errors
    /// If the discovery fails.
    pub(super) async fn start(
        cluster: &'a dyn Cluster,
        scripts: &'a dyn Scripts,
        registry: &Registry,
        scope: &NamespaceScope,
        settings: Arc<Settings>,
    ) -> Result<Self, ApiError> {
        for problem in selector::misspelled(&settings.watching) {
            tracing::warn!(target: "kopf.discovery", "{problem}");
        }
        let view = ObserverView { cluster, settings };
        // Runs concurrently: the resource of namespaces is the same in every cluster.
        let namespaces = async {
            Ok(match scope {
                NamespaceScope::Cluster => None,
                NamespaceScope::Namespaces(patterns) => {
                    Some(Namespaces::observe(&view, patterns).await)
                }
            })
        };
        let resources = Resources::scan(view.clone(), registry);
        let (resources, namespaces) = future::try_join(resources, namespaces).await?;
        let choices = Choices::default();
        let mut observer = Observer {
            view,
            scripts,
            registry: registry.clone(),
            resources,
            choices,
            namespaces,
            logged: Vec::new(),
            resolved: Vec::new(),
            problem: None,
            is_peering_logged: false,
        };
        observer.choose().await;
        Ok(observer)
    }

    /// Discovers the resources that the next generation of handlers selects. The streams stay as they are meanwhile, because selector
    /// functions may take a while.
    ///
    /// # Errors
    /// If a function of a selector was edited and fails for every resource: everything stays as it is then.
    pub(super) async fn take_over(&mut self, registry: &Registry) -> Result<(), String> {
        self.resources.discover_more(registry).await;
        self.choices.inherit(&self.registry, registry);
        let failures = self.choices.ask(self.scripts, registry, &self.resources.known()).await;
        let hopeless = failures.hopeless(registry);
        if hopeless.is_none() {
            failures.log();
            self.registry = registry.clone();
        }
        self.resources.keep(&self.registry);
        self.choices.keep(&self.registry);
        hopeless.map_or(Ok(()), Err)
    }

    /// Returns the streams that must run now. Logs each warning about resources once.
    pub(super) fn targets(&mut self) -> Targets {
        let known = self.resources.known();
        let picks = |function: &_, resource: &_| self.choices.of(function, resource);
        let served = served::choose(&self.registry, &known, &picks);
        for warning in served.warnings.iter().filter(|it| !self.logged.contains(it)) {
            tracing::warn!(target: "kopf.discovery", "{warning}");
        }
        let mut targets = Targets::new();
        for resource in served.resources {
            let handlers = Arc::new(served::handlers(&self.registry, &resource, &known, &picks));
            let places = self.places(&resource);
            let resource = Arc::new(resource);
            let each = places.into_iter().map(|it| (Arc::clone(&resource), it));
            targets.extend(each.map(|it| (it, Arc::clone(&handlers))));
        }
        self.problem =
            served::problem(&served.unresolved, &self.resolved, &self.resources.unknown());
        self.resolved.retain(|it| served.unresolved.contains(it));
        self.resolved.extend(served.resolved);
        self.logged = served.warnings;
        targets
    }

    /// Returns the resources that handlers of webhooks select, each with these handlers.
    pub(super) fn admission(&self) -> Vec<(Arc<Resource>, Selected)> {
        if self.registry.selectors(&Category::WEBHOOKS).is_empty() {
            return Vec::new();
        }
        let known = self.resources.known();
        let picks = |function: &_, resource: &_| self.choices.of(function, resource);
        let handlers = |it: &Resource| {
            let handlers = served::handlers(&self.registry, it, &known, &picks).admission;
            (!handlers.is_empty()).then(|| (Arc::new(it.clone()), handlers))
        };
        known.iter().filter_map(handlers).collect()
    }

    /// Returns why handlers lack resources that they select, according to the last targets.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns where to watch a resource. Cluster-scoped resources are served while there is any namespace to serve.
    fn places(&self, resource: &Resource) -> Vec<Option<Arc<str>>> {
        let Some(namespaces) = &self.namespaces else { return vec![None] };
        match (resource.namespaced, namespaces.present().is_empty()) {
            (true, _) => namespaces.present().iter().map(|it| Some(Arc::clone(it))).collect(),
            (false, false) => vec![None],
            (false, true) => Vec::new(),
        }
    }

    /// Returns whether a stream has nothing to watch any more: its resource or its namespace does not exist in the cluster.
    pub(super) fn is_gone(&self, (resource, place): &Target) -> bool {
        let namespaces = self.namespaces.as_ref().map(Namespaces::present);
        let lacks_place = place.as_ref().zip(namespaces).is_some_and(|(it, all)| !all.contains(it));
        lacks_place || self.resources.lacks(resource)
    }

    /// Returns the peering objects to follow, and whether the cluster has peering resources at all.
    pub(super) fn peerings(&mut self) -> (BTreeSet<peering::PeeringScope>, bool) {
        let known = self.resources.known();
        let mut clusterwide = self.view.settings.peering.clusterwide;
        if !clusterwide && self.namespaces.is_none() {
            if !peering::resources(&known, clusterwide).is_empty() && !self.is_peering_logged {
                tracing::warn!(
                    target: "kopf.peering",
                    "settings.peering.namespaced has no effect in a cluster-wide operator, which uses the ClusterKopfPeering."
                );
                self.is_peering_logged = true;
            }
            clusterwide = true;
        }
        let namespaces = self.namespaces.as_ref().map(Namespaces::present);
        let places = peering::places(&known, clusterwide, namespaces);
        (places, !peering::resources(&known, clusterwide).is_empty())
    }

    /// Waits until the resources or namespaces have changed.
    pub(super) async fn changed(&mut self) {
        let namespaces = async {
            match &mut self.namespaces {
                Some(namespaces) => namespaces.changed(&self.view).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased; // the order makes no difference: both lead to another selection
            () = self.resources.changed() => {}
            () = namespaces => {}
        }
        self.choose().await;
    }

    /// Calls the functions of selectors for new resources.
    async fn choose(&mut self) {
        let known = self.resources.known();
        self.choices.ask(self.scripts, &self.registry, &known).await.log();
    }
}
