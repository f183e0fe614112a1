//! Observes which namespaces to serve.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use super::view::{ObserverEvents, ObserverView};
use crate::logic::{
    discovery::namespaces::{NamespacePattern, NamespaceState, namespace_state},
    object::{Object, reason::EventType, resource::Resource},
};
use crate::ports::{ApiError, ErrorClass, Extent, StreamEvent};

/// The interval between attempts while access is denied.
pub(super) const ACCESS_RETRY: Duration = Duration::from_mins(10);

/// Returns the resource of namespaces as every cluster has it.
fn resource() -> Resource {
    Resource {
        version: "v1".to_owned(),
        plural: "namespaces".to_owned(),
        kind: "Namespace".to_owned(),
        singular: "namespace".to_owned(),
        preferred: true,
        ..Resource::default()
    }
}

/// The namespaces to serve.
pub(super) struct Namespaces {
    patterns: Vec<NamespacePattern>,
    present: BTreeSet<Arc<str>>,
    /// The namespaces of the listing in progress.
    listed: BTreeSet<Arc<str>>,
    source: NamespaceSource,
    /// Whether the present source was listed completely.
    is_known: bool,
    /// The failure that was logged last.
    logged: Option<String>,
}

/// The source of the namespaces.
enum NamespaceSource {
    /// Fixed at the start.
    Fixed,
    /// A watch stream of namespaces.
    Stream(ObserverEvents, Resource),
    /// The last state before access was denied, and the time of the next attempt.
    Denied(Instant, Resource),
}

/// The meaning of an event for the served namespaces.
enum NamespaceEffect {
    /// The set of served namespaces has changed.
    Changed,
    /// A listing is complete; true if the set has changed.
    Listed(bool),
    /// Access to namespaces is denied.
    Denied,
    /// The set has not changed.
    None,
}

impl Namespaces {
    /// Lists the namespaces once, if scanning is enabled and permitted; otherwise only exact names are served.
    pub(super) async fn observe(view: &ObserverView<'_>, patterns: &[NamespacePattern]) -> Self {
        let (patterns, resource) = (patterns.to_vec(), resource());
        let source = if view.settings.scanning.disabled {
            NamespaceSource::Fixed
        } else {
            NamespaceSource::Stream(view.watch(&resource, Extent::Whole), resource)
        };
        let mut namespaces = Namespaces {
            patterns,
            present: BTreeSet::new(),
            listed: BTreeSet::new(),
            source,
            is_known: false,
            logged: None,
        };
        namespaces.fill().await;
        namespaces
    }

    /// Returns the namespaces served at present.
    pub(super) fn present(&self) -> &BTreeSet<Arc<str>> {
        &self.present
    }

    /// Processes the first listing, or falls back to exact names.
    async fn fill(&mut self) {
        loop {
            let NamespaceSource::Stream(events, _) = &mut self.source else {
                self.present = self.exact();
                if self.present.is_empty() {
                    tracing::warn!(
                        target: "kopf.discovery",
                        "No namespace can be served: scanning is disabled, so only exact names work, not {}.",
                        self.wanted()
                    );
                }
                return;
            };
            let item = events.next().await;
            match self.take(item) {
                NamespaceEffect::Listed(_) => {
                    if self.present.is_empty() {
                        tracing::warn!(
                            target: "kopf.discovery",
                            "No namespace matches {}: nothing is served until one does.",
                            self.wanted()
                        );
                    }
                    return;
                }
                NamespaceEffect::Denied => {
                    self.present = self.exact();
                    tracing::warn!(
                        target: "kopf.discovery",
                        "Not enough permissions to list namespaces. Falling back to a list of namespaces which are \
                         assumed to exist: {}",
                        self.shown()
                    );
                    if self.present.is_empty() {
                        tracing::warn!(
                            target: "kopf.discovery",
                            "No namespace can be served: patterns need the permission to list namespaces; pass exact \
                             names with -n, or allow `list` and `watch` of `namespaces` in a ClusterRole."
                        );
                    }
                    return;
                }
                NamespaceEffect::Changed | NamespaceEffect::None => {}
            }
        }
    }

    /// Waits until the set of served namespaces has changed.
    pub(super) async fn changed(&mut self, view: &ObserverView<'_>) {
        loop {
            let item = match &mut self.source {
                NamespaceSource::Fixed => std::future::pending().await,
                NamespaceSource::Stream(events, _) => events.next().await,
                NamespaceSource::Denied(again, resource) => {
                    sleep_until(*again).await;
                    let resource = resource.clone();
                    let events = view.watch(&resource, Extent::Whole);
                    self.source = NamespaceSource::Stream(events, resource);
                    self.is_known = false;
                    continue;
                }
            };
            match self.take(item) {
                NamespaceEffect::Changed | NamespaceEffect::Listed(true) => return,
                NamespaceEffect::Denied if !self.is_known => {}
                NamespaceEffect::Denied => self.log(
                    "Not enough permissions to watch for namespaces: changes (deletion/creation) will not be noticed; \
                     the namespaces are only refreshed on operator restarts.",
                ),
                NamespaceEffect::Listed(false) | NamespaceEffect::None => {}
            }
        }
    }

    fn take(&mut self, item: Option<Result<StreamEvent, ApiError>>) -> NamespaceEffect {
        match item {
            Some(Ok(StreamEvent::Object(event_type, object))) => self.note(event_type, &object),
            Some(Ok(StreamEvent::Listing)) => {
                self.listed.clear();
                NamespaceEffect::None
            }
            Some(Ok(StreamEvent::Listed)) => {
                // Namespaces that are missing from the listing were deleted while the watch was interrupted.
                let listed = std::mem::take(&mut self.listed);
                let is_changed = listed != self.present;
                self.present = listed;
                self.is_known = true;
                NamespaceEffect::Listed(is_changed)
            }
            Some(Ok(StreamEvent::Alive)) => {
                self.logged = None;
                NamespaceEffect::None
            }
            Some(Err(error)) if error.class == ErrorClass::Denied => {
                self.deny();
                NamespaceEffect::Denied
            }
            Some(Err(error)) => {
                self.log(&format!("Cannot watch namespaces, retrying: {error}"));
                NamespaceEffect::None
            }
            None => {
                self.deny();
                NamespaceEffect::Denied
            }
        }
    }

    fn deny(&mut self) {
        let source = std::mem::replace(&mut self.source, NamespaceSource::Fixed);
        if let NamespaceSource::Stream(_, resource) | NamespaceSource::Denied(_, resource) = source
        {
            self.source = NamespaceSource::Denied(Instant::now() + ACCESS_RETRY, resource);
        }
    }

    fn note(&mut self, event_type: Option<EventType>, namespace: &Object) -> NamespaceEffect {
        let Some(name) = namespace.header().name.as_deref().map(Arc::<str>::from) else {
            return NamespaceEffect::None;
        };
        let is_wanted = self.patterns.iter().any(|it| it.matches(&name));
        let state = namespace_state(event_type, namespace.body());
        if let NamespaceState::Pending(blockers) = &state
            && is_wanted
        {
            for line in blockers {
                tracing::debug!(target: "kopf.discovery", "{line}");
            }
        }
        let is_served = match state {
            NamespaceState::Served | NamespaceState::Pending(_) => is_wanted,
            NamespaceState::Gone => false,
        };
        if event_type.is_none() {
            if is_served {
                self.listed.insert(name);
            }
            return NamespaceEffect::None;
        }
        let is_changed =
            if is_served { self.present.insert(name) } else { self.present.remove(&name) };
        if is_changed { NamespaceEffect::Changed } else { NamespaceEffect::None }
    }

    /// Returns the names without wildcards, which are served also where namespaces cannot be listed.
    fn exact(&self) -> BTreeSet<Arc<str>> {
        self.patterns.iter().filter_map(NamespacePattern::exact).map(Arc::from).collect()
    }

    /// Returns the patterns as they were given, for log lines.
    fn wanted(&self) -> String {
        let patterns = self.patterns.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>();
        patterns.join(" or ")
    }

    fn shown(&self) -> String {
        let names = self.present.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>();
        format!("{{{}}}", names.join(", "))
    }

    fn log(&mut self, text: &str) {
        if self.logged.as_deref() != Some(text) {
            tracing::warn!(target: "kopf.discovery", "{text}");
            self.logged = Some(text.to_owned());
        }
    }
}
