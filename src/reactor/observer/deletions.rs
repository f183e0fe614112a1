//! Deletions of CRDs, until a listing confirms them.
//!
//! A watch may show a deletion seconds late. If the CRD was created again meanwhile, its kind is served, and its objects are being
//! handled: ending its streams would call their handlers again.

use std::{collections::BTreeMap, sync::Arc};

use futures::StreamExt as _;

use super::view::ObserverView;
use crate::logic::{
    discovery::inventory::CrdName, handlers::selector::Restrictions, object::resource::Resource,
};
use crate::ports::{Extent, StreamEvent, StreamTarget};

/// The uid of a CRD, if its object had one.
pub(super) type Uid = Option<String>;

/// The CRDs whose deletion was seen and is not confirmed yet.
pub(super) type Deletions = BTreeMap<CrdName, Uid>;

/// Returns whether the CRD with this uid was deleted permanently: false if another one with its name exists.
///
/// Returns true if CRDs cannot be listed.
pub(super) async fn is_confirmed(
    view: &ObserverView<'_>,
    definitions: &Resource,
    (group, plural): &CrdName,
    uid: &Uid,
) -> bool {
    let fields = Some(format!("metadata.name={plural}.{group}"));
    // A list needs the same permissions as the watch.
    let mut events = view.cluster.stream(StreamTarget {
        resource: Arc::new(definitions.clone()),
        namespace: None,
        extent: Extent::Metadata,
        settings: Arc::clone(&view.settings),
        restrictions: Some(Restrictions { fields, ..Restrictions::default() }),
    });
    while let Some(event) = events.next().await {
        match event {
            // A server that is not up to date may still list the deleted one.
            Ok(StreamEvent::Object(None, crd)) if crd.header().uid != *uid => return false,
            Ok(StreamEvent::Listing | StreamEvent::Object(None, _) | StreamEvent::Alive) => {}
            Ok(StreamEvent::Listed | StreamEvent::Object(Some(_), _)) | Err(_) => return true,
        }
    }
    true
}
