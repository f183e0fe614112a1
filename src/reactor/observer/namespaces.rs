//! Which of the cluster's namespaces are served now.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::StreamExt as _;
use tokio::time::{Instant, sleep_until};

use super::{Events, View};
use crate::logic::{
    namespaces::{NamespacePattern, NamespaceState, namespace_state},
    object::Object,
    reason::EventType,
    resource::Resource,
};
use crate::ports::{ApiError, ErrorClass, Extent, StreamEvent};

/// How often we look again where we may not watch.
pub(super) const LOOK_AGAIN: Duration = Duration::from_mins(10);

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

/// The namespaces that are served.
pub(super) struct Namespaces {
    patterns: Vec<NamespacePattern>,
    present: BTreeSet<Arc<str>>,
    /// Those of the listing that goes on.
    listed: BTreeSet<Arc<str>>,
    source: Source,
    /// Whether the source has been listed since it is what it is.
    is_known: bool,
    /// The failure that was told last.
    told: Option<String>,
}

/// Where the namespaces are known from.
enum Source {
    /// They are as they were at the start.
    Fixed,
    /// From a stream.
    Stream(Events, Resource),
    /// From what we could see before we were denied it; we try again then.
    Denied(Instant, Resource),
}

/// What an item of the stream means.
enum News {
    /// Something is served that was not, or the other way round.
    Changed,
    /// A listing is complete.
    Listed(bool),
    /// We may not look.
    Denied,
    /// Nothing, for what is served.
    None,
}

impl Namespaces {
    /// Lists them once, if scanning is enabled and permitted; otherwise only exact names are served.
    pub(super) async fn observe(view: &View<'_>, patterns: &[NamespacePattern]) -> Self {
        let (patterns, resource) = (patterns.to_vec(), resource());
        let source = if view.settings.scanning.disabled {
            Source::Fixed
        } else {
            Source::Stream(view.watch(&resource, Extent::Whole), resource)
        };
        let mut namespaces = Namespaces {
            patterns,
            present: BTreeSet::new(),
            listed: BTreeSet::new(),
            source,
            is_known: false,
            told: None,
        };
        namespaces.fill().await;
        namespaces
    }

    /// What is served now.
    pub(super) fn present(&self) -> &BTreeSet<Arc<str>> {
        &self.present
    }

    /// Takes in the first listing, or what stands in for it.
    async fn fill(&mut self) {
        loop {
            let Source::Stream(events, _) = &mut self.source else {
                self.present = self.exact();
                if self.present.is_empty() {
                    tracing::warn!(
                        target: "kopf.observation",
                        "No namespace can be served: with scanning disabled, only exact names are, and {} is none.",
                        self.wanted()
                    );
                }
                return;
            };
            let item = events.next().await;
            match self.take(item) {
                News::Listed(_) => {
                    if self.present.is_empty() {
                        tracing::warn!(
                            target: "kopf.observation",
                            "No namespace matches {}: nothing in namespaces is served until one does.",
                            self.wanted()
                        );
                    }
                    return;
                }
                News::Denied => {
                    self.present = self.exact();
                    tracing::warn!(
                        target: "kopf.observation",
                        "Not enough permissions to list namespaces. Falling back to a list of namespaces which are \
                         assumed to exist: {}",
                        self.shown()
                    );
                    if self.present.is_empty() {
                        tracing::warn!(
                            target: "kopf.observation",
                            "No namespace can be served: patterns need the permission to list namespaces; give the \
                             names with -n, or allow `list` and `watch` of `namespaces` in a ClusterRole."
                        );
                    }
                    return;
                }
                News::Changed | News::None => {}
            }
        }
    }

    /// Waits until something is served that was not, or the other way round.
    pub(super) async fn changed(&mut self, view: &View<'_>) {
        loop {
            let item = match &mut self.source {
                Source::Fixed => std::future::pending().await,
                Source::Stream(events, _) => events.next().await,
                Source::Denied(again, resource) => {
                    sleep_until(*again).await;
                    let resource = resource.clone();
                    let events = view.watch(&resource, Extent::Whole);
                    self.source = Source::Stream(events, resource);
                    self.is_known = false;
                    continue;
                }
            };
            match self.take(item) {
                News::Changed | News::Listed(true) => return,
                News::Denied if !self.is_known => {}
                News::Denied => self.tell(
                    "Not enough permissions to watch for namespaces: changes (deletion/creation) will not be noticed; \
                     the namespaces are only refreshed on operator restarts.",
                ),
                News::Listed(false) | News::None => {}
            }
        }
    }

    fn take(&mut self, item: Option<Result<StreamEvent, ApiError>>) -> News {
        match item {
            Some(Ok(StreamEvent::Object(event_type, object))) => self.note(event_type, &object),
            Some(Ok(StreamEvent::Listing)) => {
                self.listed.clear();
                News::None
            }
            Some(Ok(StreamEvent::Listed)) => {
                // What was there and is not any more went while nobody looked.
                let listed = std::mem::take(&mut self.listed);
                let is_changed = listed != self.present;
                self.present = listed;
                self.is_known = true;
                News::Listed(is_changed)
            }
            Some(Ok(StreamEvent::Alive)) => {
                self.told = None;
                News::None
            }
            Some(Err(error)) if error.class == ErrorClass::Denied => {
                self.deny();
                News::Denied
            }
            Some(Err(error)) => {
                self.tell(&format!("Cannot look for namespaces, will try again: {error}"));
                News::None
            }
            None => {
                self.deny();
                News::Denied
            }
        }
    }

    fn deny(&mut self) {
        let source = std::mem::replace(&mut self.source, Source::Fixed);
        if let Source::Stream(_, resource) | Source::Denied(_, resource) = source {
            self.source = Source::Denied(Instant::now() + LOOK_AGAIN, resource);
        }
    }

    fn note(&mut self, event_type: Option<EventType>, namespace: &Object) -> News {
        let Some(name) = namespace.header().name.as_deref().map(Arc::<str>::from) else {
            return News::None;
        };
        let is_wanted = self.patterns.iter().any(|it| it.matches(&name));
        let state = namespace_state(event_type, namespace.body());
        if let NamespaceState::Pending(blockers) = &state
            && is_wanted
        {
            for line in blockers {
                tracing::debug!(target: "kopf.observation", "{line}");
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
            return News::None;
        }
        let is_changed =
            if is_served { self.present.insert(name) } else { self.present.remove(&name) };
        if is_changed { News::Changed } else { News::None }
    }

    /// Names without a pattern in them are served also where namespaces cannot be listed.
    fn exact(&self) -> BTreeSet<Arc<str>> {
        self.patterns.iter().filter_map(NamespacePattern::exact).map(Arc::from).collect()
    }

    /// The patterns, as they were given.
    fn wanted(&self) -> String {
        let patterns = self.patterns.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>();
        patterns.join(" or ")
    }

    fn shown(&self) -> String {
        let names = self.present.iter().map(|it| format!("'{it}'")).collect::<Vec<_>>();
        format!("{{{}}}", names.join(", "))
    }

    fn tell(&mut self, text: &str) {
        if self.told.as_deref() != Some(text) {
            tracing::warn!(target: "kopf.observation", "{text}");
            self.told = Some(text.to_owned());
        }
    }
}
