//! The adapter of the Kubernetes API over scripted answers, on a paused clock; and over a real API server where one is at hand.

mod discovery;
mod real;
mod requests;
mod scripted;
mod streams;

pub(crate) use scripted::{Chunk, Reply, scripted};

use kopf::logic::object::resource::Resource;

/// The resource of these tests.
pub(crate) fn kopfexamples() -> Resource {
    Resource {
        group: "kopf.dev".into(),
        version: "v1".into(),
        plural: "kopfexamples".into(),
        kind: "KopfExample".into(),
        singular: "kopfexample".into(),
        namespaced: true,
        ..Resource::default()
    }
}
