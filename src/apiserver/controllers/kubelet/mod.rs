//! A simulated node that runs Pods.
//!
//! Nothing is executed: Pods are scheduled to the node, start, run and end by the clock, and their logs say so. Annotations of a
//! Pod control it. Durations are written as `1500ms`, `30s`, `2m`, `1h` or a number of seconds.
//!
//! | annotation | meaning | default |
//! |---|---|---|
//! | `dev.kopf/starts-after` | from scheduled to running | `1s` |
//! | `dev.kopf/ready-after` | from running to ready | `0s` |
//! | `dev.kopf/runs-for` | from running to terminated | `1s` for Pods that may end; others keep running |
//! | `dev.kopf/exit-code` | the exit code of its containers | `0` |
//! | `dev.kopf/stops-after` | from deleted to removed, at most the grace period | `1s` |
//! | `dev.kopf/log` | additional lines in the log of each container | none |
//!
//! The pause before a restart grows as in `CrashLoopBackOff`: 10 seconds, doubled up to 5 minutes.

pub(crate) mod logs;
mod node;
mod pods;
mod status;
mod volumes;

use super::Controller;

/// The controllers of the node, of its Pods, and of their volumes.
pub(super) const CONTROLLERS: [Controller; 3] =
    [node::CONTROLLER, volumes::CONTROLLER, pods::CONTROLLER];

/// The name of the node.
pub(crate) const NODE: &str = "kopf-dev";
/// Its address, from the range for documentation.
pub(crate) const NODE_IP: &str = "192.0.2.1";
