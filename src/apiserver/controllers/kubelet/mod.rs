//! One node that pretends to run Pods.
//!
//! Nothing is executed: Pods are bound to the node, start, run and end by the clock, and their logs say so. Annotations of a
//! Pod steer it; durations are written `1500ms`, `30s`, `2m`, `1h` or as a number of seconds.
//!
//! | annotation | means | default |
//! |---|---|---|
//! | `dev.kopf/starts-after` | from bound to running | `1s` |
//! | `dev.kopf/ready-after` | from running to ready | `0s` |
//! | `dev.kopf/runs-for` | from running to ended | Pods that may end: `1s`; others run on |
//! | `dev.kopf/exit-code` | what its containers exit with | `0` |
//! | `dev.kopf/stops-after` | from deleted to gone, at most the grace period | `1s` |
//! | `dev.kopf/log` | further lines in the log of each container | none |
//!
//! A Pod that restarts its containers waits longer each time, as `CrashLoopBackOff` does: 10 seconds, doubled up to 5 minutes.

pub(crate) mod logs;
mod node;
mod pods;
mod status;
mod volumes;

use super::Controller;

/// The node, the Pods on it, and their volumes.
pub(super) const CONTROLLERS: [Controller; 3] =
    [node::CONTROLLER, volumes::CONTROLLER, pods::CONTROLLER];

/// The name of the node.
pub(crate) const NODE: &str = "kopf-dev";
/// Its address, from the range for documentation.
pub(crate) const NODE_IP: &str = "192.0.2.1";
