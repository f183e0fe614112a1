//! Scripts in `ConfigMap`s, through the API: read at the start, then watched.
//!
//! A connection of their own, as the kubeconfig or the pod says: the login handlers are in the scripts that have to be read
//! first. A watch is limited to the objects that were asked for, so that little permission is enough.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::{StreamExt as _, stream::BoxStream, stream::SelectAll};

mod content;

use self::content::Map;
use super::Error;
use crate::cli::{options::MapOption, report::Report};
use crate::logic::{reason::EventType, resource::Resource};
use crate::ports::{
    Address, ApiError, Cluster, ErrorClass, Extent, Health, HealthState, StreamEvent, StreamTarget,
};
use crate::settings::Settings;

/// As the settings name the resource.
const CONFIGMAPS: &str = "configmaps";

/// Maps by namespace and name.
type Found = BTreeMap<(String, String), Map>;

/// What a stream tells, and for which of the wanted.
type Told = (usize, Result<StreamEvent, ApiError>);

/// The maps that were asked for, as they are now.
pub struct Maps {
    wanted: Vec<Wanted>,
    streams: SelectAll<BoxStream<'static, Told>>,
    /// How the streams are.
    health: Health,
}

/// One of those that were asked for.
struct Wanted {
    option: MapOption,
    namespace: String,
    found: Found,
    /// What a listing has told until now, while there is one.
    listing: Option<Found>,
}

impl Maps {
    /// Reads them once.
    ///
    /// # Errors
    /// When the API says no, or has no such thing.
    pub async fn open(
        cluster: &dyn Cluster,
        options: &[MapOption],
        settings: &Settings,
    ) -> Result<Self, Report> {
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
            };
            let pulse = Arc::new(health.pulse(&option.to_string(), None));
            let stream = cluster.stream_with_pulse(target, pulse);
            streams.push(stream.map(move |event| (index, event)).boxed());
            let found = read(cluster, &resource, option, namespace).await?;
            let namespace = namespace.to_owned();
            wanted.push(Wanted { option: option.clone(), namespace, found, listing: None });
        }
        Ok(Maps { wanted, streams, health })
    }

    /// The scripts as they are now.
    pub fn read(&self) -> Result<Vec<MapScript>, Error> {
        let mut maps = BTreeMap::new();
        for wanted in &self.wanted {
            if wanted.found.is_empty() {
                return Err(Error::NoMap(wanted.missing()));
            }
            maps.extend(&wanted.found);
        }
        let mut scripts = Vec::new();
        for map in maps.into_values() {
            for (name, text) in map.scripts().map_err(Error::UnusableMap)? {
                let (name, text) = (name, text.to_owned());
                scripts.push(MapScript { name, text, texts: map.data.clone() });
            }
        }
        Ok(scripts)
    }

    /// Waits until something has happened. Nothing is lost if it is not waited for to the end.
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

    /// Why changes may not be seen at the moment, one line for each reason.
    pub fn troubles(&self) -> Vec<String> {
        let parts = self.health.parts().into_iter();
        let troubled = parts.filter(|(_, part)| part.state != HealthState::Ready);
        troubled.map(|(name, part)| format!("changes of {name} are not seen: {}", part.text)).collect()
    }
}

/// A script, and what it can load.
#[derive(Clone, Debug, PartialEq)]
pub struct MapScript {
    /// `configmap/NAMESPACE/NAME/KEY`
    pub name: String,
    /// Its text.
    pub text: String,
    /// All texts of its map, by key.
    pub texts: BTreeMap<String, String>,
}

impl Wanted {
    /// Whether it means that something may be different now.
    fn take(&mut self, event: Result<StreamEvent, ApiError>) -> bool {
        match event {
            Ok(StreamEvent::Listing) => {
                self.listing = Some(Found::new());
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
                self.listing.is_none()
            }
            Ok(StreamEvent::Listed) => {
                let listed = self.listing.take();
                let is_new = listed.as_ref().is_some_and(|it| *it != self.found);
                self.found = listed.unwrap_or_default();
                is_new
            }
            Ok(StreamEvent::Alive) => false,
            // What is there stays; that we are blind now is news.
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

/// The first reading: here an error is an answer, while a stream goes on trying.
async fn read(
    cluster: &dyn Cluster,
    resource: &Resource,
    option: &MapOption,
    namespace: &str,
) -> Result<Found, Report> {
    let objects = match option {
        MapOption::Named { name, .. } => {
            let address = Address { resource, namespace: Some(namespace), name };
            match cluster.get(address).await {
                Ok(object) => Ok(vec![object]),
                Err(error) if error.class == ErrorClass::Missing => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        }
        MapOption::Labelled(_) => cluster.list(resource, Some(namespace)).await,
    };
    let objects = objects.map_err(|it| refused(&it))?;
    let maps = objects.iter().map(Map::of);
    Ok(maps.map(|it| ((it.namespace.clone(), it.name.clone()), it)).collect())
}

fn refused(error: &ApiError) -> Report {
    let report = Report::failure(format!("scripts from ConfigMaps: {}", error.message));
    let hint = match (&error.hint, error.class) {
        (_, ErrorClass::Denied) => Some(
            "the operator's account needs the verbs get, list and watch on configmaps in that namespace: see docs/reload.md",
        ),
        (Some(hint), _) => Some(hint.as_str()),
        (None, _) => None,
    };
    match hint {
        Some(hint) => report.with_hint(hint),
        None => report,
    }
}

/// The same settings, with nothing but these maps asked for.
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

/// Every cluster has them: there is nothing to discover.
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
