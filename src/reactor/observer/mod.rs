//! What there is to serve: the resources and the namespaces of the cluster, and their changes.
//!
//! A resource definition or a namespace that comes after the start is served as if it had been there; one that goes is let
//! go. Everything that was discovered is kept, and each choice is made anew from all of it: what is served does not depend
//! on the order in which things have come. Where we may not look, we look again from time to time.

mod namespaces;
mod resources;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{future, stream::BoxStream};

use self::{namespaces::Namespaces, resources::Resources};
use super::Scope;
use crate::handling::choosing::Choices;
use crate::logic::{
    peering,
    registry::{Registry, ResourceHandlers},
    resource::Resource,
    selector::{self, Selector},
    served,
};
use crate::ports::{ApiError, Cluster, Extent, Scripts, StreamEvent, StreamTarget};
use crate::settings::Settings;

/// One stream to run: a resource in one namespace, or in the whole cluster.
pub(super) type Target = (Arc<Resource>, Option<Arc<str>>);

/// The streams to run, each with the handlers of its resource.
pub(super) type Targets = BTreeMap<Target, Arc<ResourceHandlers>>;

type Events = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// Watches what there is to serve.
pub(super) struct Observer<'a> {
    view: View<'a>,
    scripts: &'a dyn Scripts,
    registry: Registry,
    resources: Resources<'a>,
    choices: Choices,
    /// `None`: cluster-wide.
    namespaces: Option<Namespaces>,
    /// Warnings that were told already.
    told: Vec<String>,
    /// The selectors that have, or had, a resource.
    resolved: Vec<Selector>,
    /// Why handlers that had resources, or may have some, have none now.
    problem: Option<String>,
    /// Whether it was told that a setting has no effect.
    is_peering_told: bool,
}

/// Where an observer looks.
#[derive(Clone)]
struct View<'a> {
    cluster: &'a dyn Cluster,
    settings: Arc<Settings>,
}

impl View<'_> {
    /// The changes of a resource of the cluster itself.
    fn watch(&self, resource: &Resource, extent: Extent) -> Events {
        self.cluster.stream(StreamTarget {
            resource: Arc::new(resource.clone()),
            namespace: None,
            extent,
            settings: Arc::clone(&self.settings),
            restrictions: None,
        })
    }
}

impl<'a> Observer<'a> {
    /// Looks around once.
    ///
    /// # Errors
    /// When the cluster cannot be asked what it has.
    pub(super) async fn start(
        cluster: &'a dyn Cluster,
        scripts: &'a dyn Scripts,
        registry: &Registry,
        scope: &Scope,
        settings: Arc<Settings>,
    ) -> Result<Self, ApiError> {
        for problem in selector::misspelled(&settings.watching) {
            tracing::warn!(target: "kopf.observation", "{problem}");
        }
        let view = View { cluster, settings };
        // Side by side: namespaces are the same resource in every cluster.
        let namespaces = async {
            Ok(match scope {
                Scope::Cluster => None,
                Scope::Namespaces(patterns) => Some(Namespaces::observe(&view, patterns).await),
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
            told: Vec::new(),
            resolved: Vec::new(),
            problem: None,
            is_peering_told: false,
        };
        observer.choose().await;
        Ok(observer)
    }

    /// Looks for what the next generation of handlers wants. The streams stay as they are until it is done; selector functions may take
    /// their time.
    ///
    /// # Errors
    /// When a function that chooses resources was edited and fails for all of them: everything stays as it is then.
    pub(super) async fn take_over(&mut self, registry: &Registry) -> Result<(), String> {
        self.resources.look_for_more(registry).await;
        self.choices.inherit(&self.registry, registry);
        let failures = self.choices.ask(self.scripts, registry, &self.resources.known()).await;
        let hopeless = failures.hopeless(registry);
        if hopeless.is_none() {
            failures.tell();
            self.registry = registry.clone();
        }
        self.resources.keep(&self.registry);
        self.choices.keep(&self.registry);
        hopeless.map_or(Ok(()), Err)
    }

    /// The streams that should run now. Tells what cannot be served, once.
    pub(super) fn targets(&mut self) -> Targets {
        let known = self.resources.known();
        let picks = |function: &_, resource: &_| self.choices.of(function, resource);
        let served = served::choose(&self.registry, &known, &picks);
        for warning in served.warnings.iter().filter(|it| !self.told.contains(it)) {
            tracing::warn!(target: "kopf.observation", "{warning}");
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
        self.told = served.warnings;
        targets
    }

    /// Returns why handlers have no resources that should have some, as of the last targets.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Where a resource is watched. What belongs to no namespace is served once there is any to serve.
    fn places(&self, resource: &Resource) -> Vec<Option<Arc<str>>> {
        let Some(namespaces) = &self.namespaces else { return vec![None] };
        match (resource.namespaced, namespaces.present().is_empty()) {
            (true, _) => namespaces.present().iter().map(|it| Some(Arc::clone(it))).collect(),
            (false, false) => vec![None],
            (false, true) => Vec::new(),
        }
    }

    /// Whether a stream has nothing to watch any more: its resource or its namespace is not in the cluster.
    pub(super) fn is_gone(&self, (resource, place): &Target) -> bool {
        let namespaces = self.namespaces.as_ref().map(Namespaces::present);
        let lacks_place = place.as_ref().zip(namespaces).is_some_and(|(it, all)| !all.contains(it));
        lacks_place || self.resources.lacks(resource)
    }

    /// Where to meet other operators, and whether the cluster has such places at all.
    pub(super) fn peerings(&mut self) -> (BTreeSet<peering::Place>, bool) {
        let known = self.resources.known();
        let mut clusterwide = self.view.settings.peering.clusterwide;
        if !clusterwide && self.namespaces.is_none() {
            if !peering::resources(&known, clusterwide).is_empty() && !self.is_peering_told {
                tracing::warn!(
                    target: "kopf.peering",
                    "settings.peering.namespaced has no effect in an operator of the whole cluster: \
                     it meets others at the ClusterKopfPeering."
                );
                self.is_peering_told = true;
            }
            clusterwide = true;
        }
        let namespaces = self.namespaces.as_ref().map(Namespaces::present);
        let places = peering::places(&known, clusterwide, namespaces);
        (places, !peering::resources(&known, clusterwide).is_empty())
    }

    /// Waits until something has changed.
    pub(super) async fn changed(&mut self) {
        let namespaces = async {
            match &mut self.namespaces {
                Some(namespaces) => namespaces.changed(&self.view).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased; // no order is needed: both lead to another look
            () = self.resources.changed() => {}
            () = namespaces => {}
        }
        self.choose().await;
    }

    /// Lets the functions of selectors have a look at what is new.
    async fn choose(&mut self) {
        let known = self.resources.known();
        self.choices.ask(self.scripts, &self.registry, &known).await.tell();
    }
}
