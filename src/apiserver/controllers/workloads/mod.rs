//! The controllers of the workload kinds.

mod claim;
mod cronjobs;
mod daemonsets;
mod deployments;
mod jobs;
pub(crate) mod pods;
mod replicasets;
mod revision;
mod revisions;
pub(crate) mod rollout;
mod services;
mod statefulsets;

use super::Controller;
#[cfg(test)]
pub(crate) use rollout::{RolloutLimits, annotation, portion};

/// In the order in which they run: owners first, which saves one batch.
pub(super) const CONTROLLERS: [Controller; 7] = [
    cronjobs::CONTROLLER,
    deployments::CONTROLLER,
    replicasets::CONTROLLER,
    statefulsets::CONTROLLER,
    daemonsets::CONTROLLER,
    jobs::CONTROLLER,
    services::CONTROLLER,
];
