//! The metrics of an operator: updated where events happen, read by `/metrics`.
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
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{
    labels::{
        CallLabels, ClientLabels, Combinations, HandlerLabels, LatencyLabels, OTHER, RefusedLabels,
        ReloadLabels, RequestLabels, ResourceLabels, RestartLabels, ReviewLabels, ScriptLabels,
        WebhookLabels,
    },
    process::ProcessSeries,
    queues::Queues,
};
use crate::telemetry::{
    OperatorFailures, ProcessUsage, QueueSeries, ScriptSeries, ScriptUsage, series::AllSeries,
    usage::AllUsage,
};

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
    /// Requests to the API, with the labels of client-go.
    client_requests: Family<ClientLabels, Counter>,
    /// Durations of requests until the response begins, in seconds.
    client_seconds: Family<LatencyLabels, Histogram, fn() -> Histogram>,
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
    pub failures: OperatorFailures,
    samplers: Arc<Mutex<BTreeMap<&'static str, Sampler>>>,
    scripts: AllSeries,
    usage: AllUsage,
    /// The sources of the live generation.
    texts: Arc<Mutex<Vec<ScriptLabels>>>,
    queues_by_resource: Queues,
    process: ProcessSeries,
    handlers: Combinations<HandlerLabels>,
    resources: Combinations<String>,
}

/// The HTTP side of a request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequest<'a> {
    /// The HTTP method of the request.
    pub method: &'a str,
    /// The host and port of the API server.
    pub host: &'a str,
    /// The status; `None` if there was no response.
    pub status: Option<u16>,
    /// Until the response began, or the attempt failed.
    pub took: Duration,
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
            client_requests: Family::default(),
            client_seconds: Family::new_with_constructor(histogram),
            listings: Family::default(),
            stream_failures: Family::default(),
            queues: Gauge::default(),
            reloads: Family::default(),
            generation: Gauge::default(),
            generation_seconds: Gauge::default(),
            vm_restarts: Family::default(),
            failures: OperatorFailures::default(),
            samplers: Arc::default(),
            scripts: AllSeries::default(),
            usage: AllUsage::default(),
            texts: Arc::default(),
            queues_by_resource: Queues::default(),
            process: ProcessSeries::default(),
            handlers: Combinations::default(),
            resources: Combinations::default(),
        }
    }
}

impl Metrics {
    /// Counts a handler call that has ended.
    pub fn called(&self, of: HandlerLabels, outcome: &'static str, took: Duration) {
        let of = self.handlers.within(of, HandlerLabels::other);
        self.calls.get_or_create(&CallLabels { of: of.clone(), outcome }).inc();
        self.call_seconds.get_or_create(&of).observe(took.as_secs_f64());
    }

    /// Returns the labels of a resource, within the limit.
    fn resource(&self, resource: String) -> String {
        self.resources.within(resource, || OTHER.to_owned())
    }

    /// Counts a complete listing.
    pub fn listed(&self, resource: String) {
        let resource = self.resource(resource);
        self.listings.get_or_create(&ResourceLabels { resource }).inc();
    }

    /// Counts a failure of a stream.
    pub fn stream_failed(&self, resource: String) {
        let resource = self.resource(resource);
        self.stream_failures.get_or_create(&ResourceLabels { resource }).inc();
    }

    /// Returns the work queue of a resource.
    pub fn queue(&self, resource: String) -> Arc<QueueSeries> {
        self.queues_by_resource.of(self.resource(resource))
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
    pub fn requested(&self, verb: &'static str, result: String, request: ClientRequest<'_>) {
        self.requests.get_or_create(&RequestLabels { verb, result }).inc();
        let ClientRequest { method, host, status, took } = request;
        let code = status.map_or_else(|| "<error>".to_owned(), |it| it.to_string());
        let (method, host) = (method.to_owned(), host.to_owned());
        let latency = LatencyLabels { verb: method.clone(), host: host.clone() };
        self.client_requests.get_or_create(&ClientLabels { code, method, host }).inc();
        self.client_seconds.get_or_create(&latency).observe(took.as_secs_f64());
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

    /// Returns the counters of the memory and the CPU time of the script in this file.
    pub fn usage_of(&self, file: &str, memory_limit: usize) -> ScriptUsage {
        self.usage.of_script(file, memory_limit)
    }

    /// Sets the scripts of the live generation: their files and the SHA-256 of their sources.
    pub fn scripts(&self, scripts: impl Iterator<Item = (String, String)>) {
        let labels = scripts.map(|(script, sha256)| ScriptLabels { script, sha256 });
        *self.texts.lock() = labels.collect();
    }

    /// Sets the function that reads the usage of the process; it must be quick.
    pub fn read_process(&self, read: impl Fn() -> ProcessUsage + Send + Sync + 'static) {
        self.process.read_with(read);
    }

    /// Adds the metrics of scripts to a page.
    pub fn register_scripts(&self, page: &mut Registry) {
        self.scripts.register(page);
        self.usage.register(page);
        let info = Family::<ScriptLabels, Gauge>::default();
        for labels in self.texts.lock().iter() {
            info.get_or_create(labels).set(1);
        }
        let help = "The scripts of the live generation, with their SHA-256";
        page.register("kopf_script_info", help, info);
    }

    /// Adds the metrics that have the names of client-go and of Prometheus clients.
    pub fn register_common(&self, page: &mut Registry) {
        self.queues_by_resource.register(page);
        page.register(
            "rest_client_requests",
            "Requests to the Kubernetes API by status, method and host, each attempt",
            self.client_requests.clone(),
        );
        page.register_with_unit(
            "rest_client_request_duration",
            "Durations of requests until the response begins",
            Unit::Seconds,
            self.client_seconds.clone(),
        );
        self.process.register(page);
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

    /// Returns the current gauges: name, help, value.
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
