//! Scripts in `ConfigMap`s: read from the API at the start, then watched.
//!
//! They use a separate connection with the kubeconfig or the service account: the login handlers are in the scripts to be read. A
//! watch is limited to the requested objects, so that few permissions are needed.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use futures::{
    StreamExt as _,
    stream::{BoxStream, SelectAll},
};
use tokio::time;

mod content;
mod guard;
mod option;

use self::content::Map;
pub use self::{guard::MapGuard, option::MapOption};
use super::error::Error;
use crate::logic::{
    admission::guard::{Guarded, GuardedMaps},
    object::{reason::EventType, resource::Resource},
};
use crate::ports::{ApiError, Cluster, Extent, StreamEvent, StreamTarget};
use crate::scripting::Source;
use crate::settings::Settings;
use crate::sources::SourceProblem;
use crate::telemetry::{Health, HealthState};

/// The name of the resource, as in settings.
const CONFIGMAPS: &str = "configmaps";

/// An API that does not respond within this time is reported as unreachable: a start must not hang.
const START_MAX: Duration = Duration::from_secs(30);

/// Maps by namespace and name.
type FoundMaps = BTreeMap<(String, String), Map>;

/// An event of a stream, and the index of its request.
type MapEvent = (usize, Result<StreamEvent, ApiError>);

/// The requested maps, as they are now.
pub struct Maps {
    wanted: Vec<MapRequest>,
    streams: SelectAll<BoxStream<'static, MapEvent>>,
    /// The health of the streams.
    health: Health,
}

/// One request of the user.
struct MapRequest {
    option: MapOption,
    namespace: String,
    found: FoundMaps,
    /// The maps of an unfinished list, if there is one.
    listing: Option<FoundMaps>,
    /// Whether a list has been completed.
    is_known: bool,
}

impl Maps {
    /// Reads the maps once.
    ///
    /// # Errors
    /// Fails if the API reports an error, or does not respond in time.
    pub async fn open(
        cluster: &dyn Cluster,
        options: &[MapOption],
        settings: &Settings,
    ) -> Result<Self, SourceProblem> {
        let resource = Arc::new(configmaps());
        let own = cluster.default_namespace();
        let health = Health::default();
        let (mut wanted, mut streams) = (Vec::new(), SelectAll::new());
        for (index, option) in options.iter().enumerate() {
            let namespace = match option {
                MapOption::Named { namespace, .. } => namespace.as_deref().unwrap_or(own),
                MapOption::Labelled(_) => own,
            };
            let target = StreamTarget {
                resource: Arc::clone(&resource),
                namespace: Some(namespace.into()),
                extent: Extent::Whole,
                settings: Arc::new(restricted(settings, option)),
                restrictions: None,
            };
            let pulse = Arc::new(health.pulse(&option.to_string(), None));
            let stream = cluster.stream_with_pulse(target, pulse);
            streams.push(stream.map(move |event| (index, event)).boxed());
            wanted.push(MapRequest::new(option, namespace));
        }
        let mut maps = Maps { wanted, streams, health };
        match time::timeout(START_MAX, maps.first()).await {
            Ok(Ok(())) => Ok(maps),
            Ok(Err(report)) => Err(report),
            Err(_) => Err(maps.silence()),
        }
    }

    /// Waits until each request has been listed.
    async fn first(&mut self) -> Result<(), SourceProblem> {
        while self.wanted.iter().any(|it| !it.is_known) {
            let Some((index, event)) = self.streams.next().await else { break };
            let Some(wanted) = self.wanted.get_mut(index) else { continue };
            if let Err(error) = &event {
                return Err(refused(&wanted.option, &error.message, Some(error)));
            }
            wanted.take(event);
        }
        Ok(())
    }

    /// Returns why there is no response.
    fn silence(&self) -> SourceProblem {
        let parts = self.health.parts();
        let late = self.wanted.iter().find(|it| !it.is_known);
        let Some(option) = late.map(|it| &it.option) else {
            return SourceProblem::new("the ConfigMaps with scripts could not be read in time");
        };
        let reason = parts.get(&option.to_string()).map(|it| it.text.clone()).unwrap_or_default();
        refused(option, &reason, None)
    }

    /// Returns the current scripts.
    ///
    /// # Errors
    /// Fails if a requested map does not exist, or cannot be used.
    pub fn read(&self) -> Result<Vec<Source>, Error> {
        let mut maps = BTreeMap::new();
        for wanted in &self.wanted {
            if wanted.found.is_empty() {
                return Err(Error::NoMap(wanted.missing()));
            }
            maps.extend(&wanted.found);
        }
        let mut scripts = Vec::new();
        for map in maps.into_values() {
            scripts.extend(map.sources()?);
        }
        Ok(scripts)
    }

    /// Returns the requested maps.
    pub fn guarded(&self) -> Vec<Guarded> {
        let guarded = self.wanted.iter().map(|it| Guarded {
            namespace: it.namespace.clone(),
            maps: match &it.option {
                MapOption::Named { name, .. } => GuardedMaps::Named(name.clone()),
                MapOption::Labelled(labels) => GuardedMaps::Labelled(labels.clone()),
            },
        });
        guarded.collect()
    }

    /// Waits for a change. Cancel-safe.
    pub async fn changed(&mut self) {
        loop {
            let Some((index, event)) = self.streams.next().await else {
                return std::future::pending().await;
            };
            let Some(wanted) = self.wanted.get_mut(index) else { continue };
            if wanted.take(event) {
                return;
            }
        }
    }

    /// Returns why changes may not be detected at the moment, one line for each reason.
    pub fn troubles(&self) -> Vec<String> {
        let parts = self.health.parts().into_iter();
        let troubled = parts.filter(|(_, part)| part.state != HealthState::Ready);
        troubled
            .map(|(name, part)| format!("changes of {name} are not detected: {}", part.text))
            .collect()
    }
}

impl MapRequest {
    fn new(option: &MapOption, namespace: &str) -> Self {
        let (option, namespace) = (option.clone(), namespace.to_owned());
        MapRequest { option, namespace, found: FoundMaps::new(), listing: None, is_known: false }
    }

    /// Handles an event. Returns whether anything may have changed.
    fn take(&mut self, event: Result<StreamEvent, ApiError>) -> bool {
        match event {
            Ok(StreamEvent::Listing) => {
                self.listing = Some(FoundMaps::new());
                false
            }
            Ok(StreamEvent::Object(kind, object)) => {
                let map = Map::of(&object);
                let key = (map.namespace.clone(), map.name.clone());
                let found = self.listing.as_mut().unwrap_or(&mut self.found);
                if kind == Some(EventType::Deleted) {
                    found.remove(&key);
                } else {
                    found.insert(key, map);
                }
                self.listing.is_none() && self.is_known
            }
            Ok(StreamEvent::Listed) => {
                let listed = self.listing.take().unwrap_or_default();
                let is_new = listed != self.found;
                self.found = listed;
                self.is_known = true;
                is_new
            }
            Ok(StreamEvent::Alive) => false,
            // Keep the known maps; report that changes are not detected.
            Err(_) => true,
        }
    }

    fn missing(&self) -> String {
        match &self.option {
            MapOption::Named { name, .. } => {
                format!("there is no configmap/{}/{name}", self.namespace)
            }
            MapOption::Labelled(labels) => {
                format!("no ConfigMap in the namespace {} has the labels {labels}", self.namespace)
            }
        }
    }
}

impl fmt::Debug for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted = self.wanted.iter().map(|it| it.option.to_string());
        f.debug_list().entries(wanted).finish()
    }
}

fn refused(option: &MapOption, reason: &str, error: Option<&ApiError>) -> SourceProblem {
    let report = SourceProblem::new(format!("cannot read {option}: {reason}"));
    let hint = match error {
        Some(error) if error.status == Some(403) => Some(
            "grant the operator's account the verbs list and watch on configmaps in this namespace",
        ),
        Some(error) => error.hint.as_deref(),
        None => Some(
            "check that the cluster is running and that the `server` of the current context is correct: `kubectl version`",
        ),
    };
    match hint {
        Some(hint) => report.with_hint(hint),
        None => report,
    }
}

/// Returns the settings restricted to the requested maps.
fn restricted(settings: &Settings, option: &MapOption) -> Settings {
    let mut settings = settings.clone();
    let watching = &mut settings.watching;
    watching.label_selectors.clear();
    watching.field_selectors.clear();
    watching.shard_selectors.clear();
    match option {
        MapOption::Named { name, .. } => {
            let selector = format!("metadata.name={name}");
            watching.field_selectors.insert(CONFIGMAPS.to_owned(), selector);
        }
        MapOption::Labelled(labels) => {
            watching.label_selectors.insert(CONFIGMAPS.to_owned(), labels.clone());
        }
    }
    settings
}

/// Returns the resource. Every cluster has it, so it needs no discovery.
fn configmaps() -> Resource {
    Resource {
        version: "v1".into(),
        plural: CONFIGMAPS.into(),
        kind: "ConfigMap".into(),
        singular: "configmap".into(),
        namespaced: true,
        preferred: true,
        ..Resource::default()
    }
}
