//! The metrics of an operator, counted where things happen and read by `/metrics`.
//!
//! One value per operator, reached through [`super::Health::metrics`]: there is no process-wide registry.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::telemetry::{Failures, ScriptSeries, series::AllSeries};

/// Bucket bounds in seconds: from a script that only reads something to one that waits for others.
const CALL_SECONDS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// All counters, and the sources of the gauges that are read on request. Clones share them.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Handler calls, by outcome.
    pub calls: Family<CallLabels, Counter>,
    /// Durations of handler calls, in seconds.
    pub call_seconds: Family<HandlerLabels, Histogram, fn() -> Histogram>,
    /// Reviews of webhooks, by result.
    pub reviews: Family<ReviewLabels, Counter>,
    /// Durations of reviews, in seconds.
    pub review_seconds: Family<WebhookLabels, Histogram, fn() -> Histogram>,
    /// Connections to the webhook server that were not accepted.
    pub refused_connections: Family<RefusedLabels, Counter>,
    /// Requests to the API, by result; every attempt counts.
    pub requests: Family<RequestLabels, Counter>,
    /// Complete listings, by resource.
    pub listings: Family<ResourceLabels, Counter>,
    /// Failures of watch streams, by resource.
    pub stream_failures: Family<ResourceLabels, Counter>,
    /// Objects with events that are waiting or being handled.
    pub queues: Gauge,
    /// Edits of the scripts, by result.
    pub reloads: Family<ReloadLabels, Counter>,
    /// The generation of the scripts that runs; 0 before the first one.
    pub generation: Gauge,
    /// When that generation took over, in seconds of Unix time.
    pub generation_seconds: Gauge<f64, AtomicU64>,
    /// Virtual machines restarted while in use, by script and reason.
    pub vm_restarts: Family<RestartLabels, Counter>,
    /// Handlers of objects that have failed and not succeeded since.
    pub failures: Failures,
    samplers: Arc<Mutex<BTreeMap<&'static str, Sampler>>>,
    scripts: AllSeries,
}

/// A gauge that is read on request.
struct Sampler {
    help: &'static str,
    look: Arc<dyn Fn() -> i64 + Send + Sync>,
}

/// Counts one busy object until it is dropped.
#[derive(Debug)]
pub struct Busy(Gauge);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The labels of a handler call.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CallLabels {
    /// The id; for a sub-handler, that of its topmost parent, so that there are at most as many values as declarations.
    pub handler: String,
    /// `success`, `temporary`, `permanent`, `error`, `unfinished` (sub-handlers are left), `cancelled`.
    pub outcome: &'static str,
}

/// The labels of a handler.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct HandlerLabels {
    /// As in [`CallLabels`].
    pub handler: String,
}

/// The labels of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WebhookLabels {
    /// The id of the handler; for conversions, the name of the CRD.
    pub webhook: String,
}

/// The labels of a review.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReviewLabels {
    /// As in [`WebhookLabels`].
    pub webhook: String,
    /// `allowed`, `denied`, `timeout` (a handler was stopped at a limit), `converted`, `failed`.
    pub result: &'static str,
}

/// The labels of a refused connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RefusedLabels {
    /// `certificate` (that of the client), `handshake`, `timeout`.
    pub reason: &'static str,
}

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabels {
    /// `list`, `watch`, `patch`, `create`, `discover` and the like.
    pub verb: &'static str,
    /// The HTTP status, or the reason why there was none.
    pub result: String,
}

/// The labels of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResourceLabels {
    /// Such as `pods.v1`.
    pub resource: String,
}

/// The labels of an edit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReloadLabels {
    /// `accepted`, `rejected`.
    pub result: &'static str,
}

/// The labels of a restart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RestartLabels {
    /// The file of the script.
    pub script: String,
    /// `memory`: its memory limit was reached; `stuck`: it did not respond.
    pub reason: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(CALL_SECONDS);
        Metrics {
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(histogram),
            reviews: Family::default(),
            review_seconds: Family::new_with_constructor(histogram),
            refused_connections: Family::default(),
            requests: Family::default(),
            listings: Family::default(),
            stream_failures: Family::default(),
            queues: Gauge::default(),
            reloads: Family::default(),
            generation: Gauge::default(),
            generation_seconds: Gauge::default(),
            vm_restarts: Family::default(),
            failures: Failures::default(),
            samplers: Arc::default(),
            scripts: AllSeries::default(),
        }
    }
}

impl Metrics {
    /// Counts a handler call that has ended.
    pub fn called(&self, id: &str, outcome: &'static str, took: Duration) {
        let handler = id.split('/').next().unwrap_or(id).to_owned();
        self.calls.get_or_create(&CallLabels { handler: handler.clone(), outcome }).inc();
        self.call_seconds.get_or_create(&HandlerLabels { handler }).observe(took.as_secs_f64());
    }

    /// Counts a review that has ended. There must be few names of webhooks: those of handlers and CRDs.
    pub fn reviewed(&self, webhook: &str, result: &'static str, took: Duration) {
        let webhook = webhook.to_owned();
        self.reviews.get_or_create(&ReviewLabels { webhook: webhook.clone(), result }).inc();
        self.review_seconds.get_or_create(&WebhookLabels { webhook }).observe(took.as_secs_f64());
    }

    /// Counts a connection to the webhook server that was not accepted.
    pub fn connection_refused(&self, reason: &'static str) {
        self.refused_connections.get_or_create(&RefusedLabels { reason }).inc();
    }

    /// Counts one object with a queue, until the returned value is dropped.
    pub fn busy(&self) -> Busy {
        self.queues.inc();
        Busy(self.queues.clone())
    }

    /// Counts a request that has ended.
    pub fn requested(&self, verb: &'static str, result: String) {
        self.requests.get_or_create(&RequestLabels { verb, result }).inc();
    }

    /// Counts an edit of the scripts: `accepted` or `rejected`.
    pub fn reloaded(&self, result: &'static str) {
        self.reloads.get_or_create(&ReloadLabels { result }).inc();
    }

    /// Sets the number of the live generation and the time when it took over.
    pub fn generation(&self, number: u64, since: Timestamp) {
        self.generation.set(i64::try_from(number).unwrap_or(i64::MAX));
        self.generation_seconds.set(since.as_duration().as_secs_f64());
    }

    /// Counts a restart of a script's virtual machine.
    pub fn vm_restarted(&self, script: &str, reason: &'static str) {
        let labels = RestartLabels { script: script.to_owned(), reason };
        self.vm_restarts.get_or_create(&labels).inc();
    }

    /// Returns the metrics that a script defines itself. The scripts of one operator have different names.
    pub fn of_script(&self, script: &str) -> ScriptSeries {
        let name = script.rsplit('/').next().unwrap_or(script);
        let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
        let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
        self.scripts
            .of_script(format!("kopf_script_{}", stem.chars().map(plain).collect::<String>()))
    }

    /// Adds the metrics of scripts to a page.
    pub fn register_scripts(&self, page: &mut Registry) {
        self.scripts.register(page);
    }

    /// Adds a gauge, replacing one of the same name. Each scrape calls `look`, which must be quick.
    pub fn sample(
        &self,
        name: &'static str,
        help: &'static str,
        look: impl Fn() -> i64 + Send + Sync + 'static,
    ) {
        let sampler = Sampler { help, look: Arc::new(look) };
        self.samplers.lock().insert(name, sampler);
    }

    /// Returns the present gauges: name, help, value.
    pub fn samples(&self) -> Vec<(&'static str, &'static str, i64)> {
        let samplers = self.samplers.lock();
        let looks: Vec<_> =
            samplers.iter().map(|(name, it)| (*name, it.help, Arc::clone(&it.look))).collect();
        drop(samplers);
        looks.into_iter().map(|(name, help, look)| (name, help, look())).collect()
    }
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.help)
    }
}
