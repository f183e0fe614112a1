//! What an operator reports about itself: the health of its parts, and the metrics of the operator and of its scripts.

mod failures;
mod health;
mod metrics;
mod series;

pub use failures::{FAILURES_MAX, FailureCounts, FailureReport, Failures};
pub use health::{Health, HealthState, PartHealth, Pulse};
pub use metrics::{
    CallLabels, HandlerLabels, Metrics, RefusedLabels, ReloadLabels, RequestLabels, ResourceLabels,
    RestartLabels, ReviewLabels, WebhookLabels,
};
pub use series::{Change, SERIES_MAX, ScriptSeries, SeriesLabels};
