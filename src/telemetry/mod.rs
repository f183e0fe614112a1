//! The reports of an operator about itself: the health of its parts, and the metrics of the operator and of its scripts.

mod conditions;
mod failures;
mod health;
mod labels;
mod log_control;
mod metrics;
mod process;
mod queues;
mod series;
mod usage;

pub use conditions::{DueCondition, ShownFailure};
pub use failures::{FAILURES_MAX, FailureCounts, FailureReport, Failures};
pub use health::{Health, HealthState, PartHealth, Pulse};
pub use labels::{
    CallLabels, HandlerLabels, RefusedLabels, ReloadLabels, RequestLabels, ResourceLabels,
    RestartLabels, ReviewLabels, WebhookLabels,
};
pub use log_control::{LogControl, LogLevels, SCRIPTS_MAX};
pub use metrics::{ClientRequest, Metrics};
pub use process::ProcessUsage;
pub use queues::{QueueSeries, Waiting};
pub use series::{Change, SERIES_MAX, ScriptSeries, SeriesLabels};
pub use usage::{ScriptUsage, ThreadUsage};
