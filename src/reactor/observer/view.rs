//! The cluster and the settings as an observer uses them.

use std::sync::Arc;

use futures::stream::BoxStream;

use crate::logic::object::resource::Resource;
use crate::ports::{ApiError, Cluster, Extent, StreamEvent, StreamTarget};
use crate::settings::Settings;

pub(super) type ObserverEvents = BoxStream<'static, Result<StreamEvent, ApiError>>;

/// The cluster and the settings that an observer uses.
#[derive(Clone)]
pub(super) struct ObserverView<'a> {
    pub(super) cluster: &'a dyn Cluster,
    pub(super) settings: Arc<Settings>,
}

impl ObserverView<'_> {
    /// Streams the changes of a cluster-scoped resource.
    pub(super) fn watch(&self, resource: &Resource, extent: Extent) -> ObserverEvents {
        self.cluster.stream(StreamTarget {
            resource: Arc::new(resource.clone()),
            namespace: None,
            extent,
            settings: Arc::clone(&self.settings),
            restrictions: None,
        })
    }
}
