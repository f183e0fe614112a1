//! The adapter of the Kubernetes API: with scripted responses on a paused clock, and with a real API server if one is available.

mod discovery;
mod kube;
mod real;
mod requests;
mod scripted;
mod streams;

pub(crate) use scripted::{Chunk, Reply, scripted};

use kopf::logic::object::resource::Resource;

/// Returns the resource of these tests.
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
