//! The metrics in the `OpenMetrics` text format, as Prometheus reads them.

use std::{collections::BTreeMap, sync::atomic::AtomicU64};

use prometheus_client::{
    encoding::{
        EncodeLabelSet,
        text::{encode, encode_registry},
    },
    metrics::{
        family::Family,
        gauge::{ConstGauge, Gauge},
        info::Info,
    },
    registry::{Registry, Unit},
};
use tokio::time::Instant;

use super::report;
use crate::telemetry::{FailureCounts, HandlerLabels, Health, Metrics, PartHealth};

/// The content type of the page.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabels {
    part: String,
}

/// Adds the metrics of webhooks.
fn add_webhooks(registry: &mut Registry, metrics: &Metrics) {
    registry.register(
        "webhook_reviews",
        "Reviews of webhooks by webhook and result",
        metrics.reviews.clone(),
    );
    registry.register_with_unit(
        "webhook_review_duration",
        "Durations of reviews of webhooks",
        Unit::Seconds,
        metrics.review_seconds.clone(),
    );
    registry.register(
        "webhook_connections_refused",
        "Connections to the webhook server that were not accepted, by reason",
        metrics.refused_connections.clone(),
    );
}

/// Returns the page with the present values of all metrics.
pub(super) fn expose(health: &Health, now: Instant) -> String {
    let mut registry = Registry::with_prefix("kopf");
    let metrics = health.metrics();
    registry.register(
        "build",
        "The version of kopf",
        Info::new([("version", env!("CARGO_PKG_VERSION"))]),
    );
    registry.register("handler_calls", "Handler calls by outcome", metrics.calls.clone());
    registry.register_with_unit(
        "handler_call_duration",
        "Durations of handler calls",
        Unit::Seconds,
        metrics.call_seconds.clone(),
    );
    add_webhooks(&mut registry, metrics);
    registry.register(
        "api_requests",
        "Requests to the Kubernetes API by verb and by HTTP status or reason, each attempt",
        metrics.requests.clone(),
    );
    registry.register(
        "stream_listings",
        "Complete listings of a resource, at the start and after lost watches",
        metrics.listings.clone(),
    );
    registry.register(
        "stream_failures",
        "Failures of the streams of a resource",
        metrics.stream_failures.clone(),
    );
    registry.register(
        "objects_queued",
        "Objects with events that are waiting or being handled",
        metrics.queues.clone(),
    );
    registry.register("script_reload", "Edits of the scripts by result", metrics.reloads.clone());
    registry.register(
        "script_vm_restarts",
        "Restarts of scripts that were out of memory or did not respond",
        metrics.vm_restarts.clone(),
    );
    registry.register(
        "script_generation",
        "The live generation of the scripts",
        metrics.generation.clone(),
    );
    registry.register_with_unit(
        "script_generation_timestamp",
        "When the live generation took over, in Unix time",
        Unit::Seconds,
        metrics.generation_seconds.clone(),
    );
    add_failures(&mut registry, &metrics.failures.counts(now));
    let parts = health.parts();
    add_parts(&mut registry, &parts, now);
    let mut bare = Registry::default();
    for (name, help, number) in metrics.samples() {
        bare.register(name, help, ConstGauge::new(number));
    }
    metrics.register_scripts(&mut bare);
    metrics.register_common(&mut bare);
    let mut text = String::new();
    // Writing to a string cannot fail; scrapers would notice half a page by its missing end mark.
    if encode_all(&mut text, &bare, &registry).is_err() {
        text.clear();
    }
    text
}

fn encode_all(text: &mut String, first: &Registry, last: &Registry) -> std::fmt::Result {
    encode_registry(text, first)?;
    encode(text, last)
}

/// Adds the handlers that fail for objects.
fn add_failures(registry: &mut Registry, counts: &BTreeMap<HandlerLabels, FailureCounts>) {
    let retrying = Family::<HandlerLabels, Gauge>::default();
    let failed = Family::<HandlerLabels, Gauge>::default();
    let oldest = Family::<HandlerLabels, Gauge<f64, AtomicU64>>::default();
    for (labels, counts) in counts {
        retrying.get_or_create(labels).set(counts.retrying);
        failed.get_or_create(labels).set(counts.failed);
        oldest.get_or_create(labels).set(counts.oldest.as_secs_f64());
    }
    registry.register(
        "objects_retrying",
        "Objects whose handler has failed and will be retried",
        retrying,
    );
    registry.register("objects_failed", "Objects whose handler has failed permanently", failed);
    registry.register_with_unit(
        "oldest_retry",
        "How long the handler has been failing for one of the objects, at most",
        Unit::Seconds,
        oldest,
    );
}

/// Adds two gauges per part, so that one alert covers all parts.
fn add_parts(registry: &mut Registry, parts: &BTreeMap<String, PartHealth>, now: Instant) {
    let ready = Family::<PartLabels, Gauge>::default();
    let silence = Family::<PartLabels, Gauge<f64, AtomicU64>>::default();
    for (name, part) in parts {
        let labels = PartLabels { part: name.clone() };
        ready.get_or_create(&labels).set(i64::from(report::is_ready(part, now)));
        if part.silence_max.is_some() {
            let age = now.saturating_duration_since(part.seen).as_secs_f64();
            silence.get_or_create(&labels).set(age);
        }
    }
    registry.register(
        "part_ready",
        "Whether a part of the operator is ready, as in /readyz",
        ready,
    );
    registry.register_with_unit(
        "part_silence",
        "Time since the last report of a part that reports regularly",
        Unit::Seconds,
        silence,
    );
}
