//! `kopf plan`: what an operator would change in a cluster, which is only read.
//!
//! The operator runs on a copy of the cluster in memory (`copy.rs`), on a clock that skips all waiting. `changes.rs` compares the copy
//! with the objects that were read, and `output.rs` prints the differences.

pub mod args;
mod changes;
mod copy;
mod output;
#[cfg(test)]
mod tests;

use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::time;
use tokio_util::sync::CancellationToken;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
};

use self::{
    args::PlanArgs,
    copy::{ClusterCopy, LiveCluster},
    output::Failures,
};
use crate::cli::{
    dev, identity, logging,
    objects::session::report,
    options::{LogOptions, RunOptions, Verbosity},
    report::{Exit, Report},
    scripts::{self, UnloadedScripts},
    shared_args::OutputFormat,
    test::on_virtual_time,
};
use crate::logic::{
    handlers::lifecycle::Lifecycle,
    text::{duration, printable::printable},
};
use crate::ports::Clock;
use crate::reactor::{self, Operator};
use crate::scripting::{Placement, Terms};
use crate::settings::Settings;
use crate::telemetry::{Health, Metrics};
use crate::webhooks::LocalWebhooks;

/// Prints what the operator would change.
pub(super) fn run(args: &PlanArgs, options: &RunOptions) -> Result<Exit, Report> {
    let limit = limit(&args.duration)?;
    let read = UnloadedScripts::files(options)?;
    let live = LiveCluster::connect(&args.cluster)?;
    let clock = Clock::starting_at(Clock::system().now());
    let log = LogOptions {
        verbosity: if args.verbose { Verbosity::Verbose } else { Verbosity::Quiet },
        ..LogOptions::of_commands()
    };
    let sink = |line: &str| {
        let _closed = std::io::stderr().write_all(line.as_bytes());
    };
    let errors = LoggedErrors::default();
    let subscriber = logging::subscriber(log, clock, Box::new(sink)).with(errors.clone());
    let _log = tracing::subscriber::set_default(subscriber);
    let read = live.add_maps(read, options, clock)?;
    let local = LocalWebhooks::default();
    let copy = live.copy(clock, &local)?;
    let settings = settings(&options.settings);
    let dry_run = DryRun { options, settings: Arc::clone(&settings), clock, local, limit };
    let failures = on_virtual_time(dry_run.run(read, &copy))??;
    if let Some(error) = copy.originals.lock().failure.take() {
        return Err(report(error));
    }
    let settings = Arc::new(settings.lock().clone());
    let changes = changes::changes(&copy, &settings);
    let text = match args.output {
        OutputFormat::Text => output::text(&changes, &failures),
        OutputFormat::Json => json_line(&output::json(&changes, &failures)),
    };
    let _closed = std::io::stdout().write_all(text.as_bytes());
    Ok(if errors.any() { Exit::Failure } else { Exit::Success })
}

/// Whether the operator has logged an error. Clones share it.
#[derive(Clone, Default)]
struct LoggedErrors(Arc<AtomicBool>);

impl LoggedErrors {
    fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S: Subscriber> Layer<S> for LoggedErrors {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if *event.metadata().level() == Level::ERROR {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// An operator that runs on a copy.
struct DryRun<'a> {
    options: &'a RunOptions,
    settings: Arc<Mutex<Settings>>,
    clock: Clock,
    local: LocalWebhooks,
    limit: Duration,
}

impl DryRun<'_> {
    /// Runs the operator. Returns which handlers fail.
    async fn run(self, read: UnloadedScripts, copy: &ClusterCopy) -> Result<Failures, Report> {
        let DryRun { options, settings, clock, local, limit } = self;
        let placement = Placement::CurrentRuntime;
        let terms = Terms { placement, clock, is_dry: true, ..scripts::terms(options) };
        let first = read.load(terms, false).await?;
        let health = Health::default();
        let operator = Operator {
            scripts: first.host,
            registry: first.registry,
            settings,
            clock,
            scope: dev::scope(&options.scope),
            lifecycle: Lifecycle::default(),
            connect: dev::connect(copy.server.clone(), None, Metrics::default()),
            health: health.clone(),
            liveness: None,
            identity: identity::of_operator(clock),
            reloads: None,
            webhooks: Some(Arc::new(local)),
            is_dry: true,
        };
        // It is dropped at the end, so clean-up handlers do not run.
        let running = reactor::run(operator, CancellationToken::new());
        if let Ok(Err(failure)) = time::timeout(limit, running).await {
            return Err(Report::failure(failure.to_string()));
        }
        Ok(health.metrics().failures.counts(time::Instant::now()))
    }
}

/// Returns the settings of an operator that is alone on its copy.
fn settings(settings: &Settings) -> Arc<Mutex<Settings>> {
    let mut own = settings.clone();
    own.peering.standalone = true;
    own.leadership.enabled = false;
    Arc::new(Mutex::new(own))
}

fn limit(text: &str) -> Result<Duration, Report> {
    let parsed = duration::parse(&Value::from(text)).filter(|it| !it.is_zero());
    parsed.ok_or_else(|| {
        let report = Report::usage(format!("--for: not a duration: '{}'", text.escape_debug()));
        report.with_hint("write it as 30s, 5m or 1h")
    })
}

fn json_line(value: &Value) -> String {
    format!("{}\n", printable(value.to_string()))
}
