//! Kubernetes events on their way to the cluster.

/// Takes events and returns at once: they are posted in the background.
#[derive(Clone, Debug, Default)]
pub struct Posts {}
