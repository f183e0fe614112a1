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
pub use failures::{FAILURES_MAX, FailureCounts, FailureReport, OperatorFailures};
pub use health::{Health, HealthState, PartHealth, Pulse};
pub use labels::{
    CallLabels, HandlerLabels, RefusedLabels, ReloadLabels, RequestLabels, ResourceLabels,
    RestartLabels, ReviewLabels, WebhookLabels,
};
pub use log_control::{LogControl, LogLevels, SCRIPTS_MAX};
pub use metrics::{ClientRequest, Metrics};
pub use process::ProcessUsage;
pub use queues::{QueueSeries, QueuedObject};
pub use series::{SERIES_MAX, ScriptSeries, SeriesChange, SeriesLabels};
pub use usage::{ScriptUsage, ThreadUsage};
