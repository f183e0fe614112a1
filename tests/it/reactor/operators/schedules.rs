//! Schedules of the operator in several processes: each slot runs once, whatever happens to processes, clocks and scripts.

use std::sync::Arc;

use kopf::{
    logic::{change::registry::Registry, generation::Generation, generation::Version},
    ports::{Clock, Steps},
    reactor::Operator,
    scripting::{Placement, ScriptHost, Source},
    settings::Settings,
    testing::{self, BASE, Environment, LogCapture, RunningOperator, examples, run_paused},
};
use kopf_apiserver::{ApiServer, Fault, FaultEffect};
use parking_lot::Mutex;
use serde_json::Value;

const LEASES: &str = "leases.coordination.k8s.io";
const MINUTE: u64 = 60;
const FILES: [&str; 2] = ["handlers.lua", "handlers.rhai"];

/// Processes of one operator.
struct Processes {
    env: Environment,
    steps: Steps,
    log: LogCapture,
    file: &'static str,
}

/// One process.
struct Process {
    running: RunningOperator,
    host: Arc<ScriptHost>,
}

/// Runs a test with the same script in both languages.
fn in_both<F: Future<Output = ()>>(test: impl Fn(Processes) -> F) {
    for file in FILES {
        run_paused(async {
            let (clock, steps) = Clock::stepping(BASE.parse().expect("a timestamp"));
            let env = Environment::with_clock(ApiServer::builder().resource(examples()), clock);
            test(Processes { env, steps, log: LogCapture::of("kopf"), file }).await;
        });
    }
}

impl Processes {
    /// Returns the script; the versions of both languages differ only in their syntax.
    fn source(&self, lua: &str, rhai: &str) -> Source {
        Source::alone(self.file, if self.file == FILES[0] { lua } else { rhai })
    }

    async fn start(&self, identity: &str, source: &Source) -> Process {
        self.start_with(identity, source, Settings::default()).await
    }

    async fn start_with(&self, identity: &str, source: &Source, settings: Settings) -> Process {
        let loaded = self.env.load(vec![source.clone()], Placement::CurrentRuntime);
        let (host, handlers) = loaded.await;
        let operator = self.env.operator(Arc::clone(&host) as _, handlers);
        let identity = testing::identity(identity);
        let settings = Arc::new(Mutex::new(settings));
        let running = RunningOperator::start(Operator { identity, settings, ..operator });
        Process { running, host }
    }

    /// Returns the runs so far: what the script has logged after `ran`.
    fn runs(&self) -> Vec<String> {
        let text = self.log.text();
        let runs = text.lines().filter_map(|it| it.split_once("ran "));
        runs.map(|(_, run)| run.trim_start_matches("2026-01-").to_owned()).collect()
    }

    fn lease(&self) -> Value {
        self.env.server.get(LEASES, "default", "kopf-schedules").unwrap_or_default()
    }
}

impl Process {
    async fn reload(&self, source: Source) {
        let prepared = self.host.prepare(vec![source]).await.expect("it loads");
        let registry = Registry::new(prepared.handlers).expect("ids are unique");
        let generation = Generation { version: Version::FIRST, registry, lifecycle: None };
        self.running.reload(generation).await.expect("accepted");
        self.host.take(prepared.scripts);
    }
}

fn report(all: &Processes) -> Source {
    all.source(
        "kopf.cron('*/5 * * * *', { id = 'report' }, function(ctx) ctx.logger:info('ran ' .. ctx.scheduled) end)",
        "kopf::cron(\"*/5 * * * *\", #{ id: \"report\" }, |ctx| ctx.logger.info(`ran ${ctx.scheduled}`));",
    )
}

#[test]
fn each_slot_runs_once_across_replicas_and_restarts() {
    in_both(|all| async move {
        let source = report(&all);
        let a = all.start("a", &source).await;
        let b = all.start("b", &source).await;
        all.env.until(12 * MINUTE).await;
        assert_eq!(all.runs(), ["01T00:05:00Z", "01T00:10:00Z"], "{}", all.log.text());
        drop(a); // kill -9
        all.env.until(17 * MINUTE).await;
        drop(b);
        // It starts some seconds after its slot, and after a missed one.
        all.env.until(25 * MINUTE + 20).await;
        let c = all.start("c", &source).await;
        all.env.until(32 * MINUTE).await;
        let runs = ["01T00:05:00Z", "01T00:10:00Z", "01T00:15:00Z", "01T00:25:00Z", "01T00:30:00Z"];
        assert_eq!(all.runs(), runs, "{}", all.log.text());
        c.running.stop().await;
        let lease = all.lease();
        assert_eq!(lease["spec"]["holderIdentity"], "c");
        let slots = lease["metadata"]["annotations"]["kopf.dev/schedules"].as_str();
        let slots: Value = serde_json::from_str(slots.unwrap_or_default()).expect("JSON");
        let slot = &slots[format!("{}/cron/report", all.file)];
        assert_eq!(slot["slot"], "2026-01-01T00:30:00Z", "{slots}");
        assert_eq!(slot["schedule"], "*/5 * * * * (UTC)");
    });
}

#[test]
fn a_clock_that_is_set_back_repeats_no_slot_and_one_that_is_set_forward_misses_them() {
    in_both(|all| async move {
        let _a = all.start("a", &report(&all)).await;
        let _b = all.start("b", &report(&all)).await;
        all.env.until(11 * MINUTE).await;
        all.steps.set_ahead(-10 * 60);
        all.env.until(23 * MINUTE).await;
        // The clocks show 00:13.
        assert_eq!(all.runs(), ["01T00:05:00Z", "01T00:10:00Z"], "{}", all.log.text());
        all.env.until(26 * MINUTE).await;
        assert_eq!(all.runs().len(), 3, "{}", all.log.text());
        // The clocks show 02:02.
        all.steps.set_ahead(95 * 60 + 60);
        all.env.until(32 * MINUTE).await;
        let runs = ["01T00:05:00Z", "01T00:10:00Z", "01T00:15:00Z", "01T02:05:00Z"];
        assert_eq!(all.runs(), runs, "{}", all.log.text());
    });
}

#[test]
fn missed_slots_run_once_if_the_schedule_wants_it() {
    in_both(|all| async move {
        let source = all.source(
            "kopf.cron('0 * * * *', { id = 'r', missed = 'once' }, function(ctx) ctx.logger:info('ran ' .. ctx.scheduled) end)",
            "kopf::cron(\"0 * * * *\", #{ id: \"r\", missed: \"once\" }, |ctx| ctx.logger.info(`ran ${ctx.scheduled}`));",
        );
        drop({
            let first = all.start("a", &source).await;
            all.env.until(61 * MINUTE).await;
            first
        });
        all.env.until(250 * MINUTE).await;
        let _two = (all.start("b", &source).await, all.start("c", &source).await);
        all.env.until(299 * MINUTE).await;
        assert_eq!(all.runs(), ["01T01:00:00Z", "01T04:00:00Z"], "{}", all.log.text());
    });
}

#[test]
fn an_interval_is_kept_across_replicas_restarts_and_steps_of_the_clock() {
    in_both(|all| async move {
        let source = all.source(
            "kopf.every('10m', { initial_delay = 60 }, function(ctx) kopf.sleep('2m') ctx.logger:info('ran ' .. ctx.scheduled) end)",
            "kopf::every(\"10m\", #{ initial_delay: 60 }, |ctx| { kopf::sleep(\"2m\"); ctx.logger.info(`ran ${ctx.scheduled}`); });",
        );
        let a = all.start("a", &source).await;
        let _b = all.start("b", &source).await;
        all.env.until(14 * MINUTE).await;
        // From 1 to 3 minutes, and from 13 to 15.
        assert_eq!(all.runs(), ["01T00:01:00Z"]);
        all.env.until(16 * MINUTE).await;
        assert_eq!(all.runs().len(), 2, "{}", all.log.text());
        drop(a);
        // The last run is in the future of this clock: the pause is one interval from the restart.
        all.steps.set_ahead(-3600);
        let _c = all.start("c", &source).await;
        all.env.until(24 * MINUTE).await;
        assert_eq!(all.runs().len(), 2, "{}", all.log.text());
        all.env.until(29 * MINUTE).await;
        assert_eq!(all.runs().len(), 3, "{}", all.log.text());
    });
}

#[test]
fn a_run_has_the_retries_of_a_handler_and_never_overlaps_with_itself() {
    in_both(|all| async move {
        let source = all.source(
            "local n = 0
             kopf.cron('* * * * *', { id = 'r', backoff = 50, retries = 3 }, function(ctx)
                 n = n + 1
                 ctx.logger:info('ran ' .. ctx.scheduled .. ' ' .. ctx.activity .. ' ' .. ctx.retry)
                 if n <= 4 then error('not yet') end
             end)",
            "let state = #{ n: 0 };
             kopf::cron(\"* * * * *\", #{ id: \"r\", backoff: 50, retries: 3 }, |ctx| {
                 state.n += 1;
                 ctx.logger.info(`ran ${ctx.scheduled} ${ctx.activity} ${ctx.retry}`);
                 if state.n <= 4 { throw \"not yet\" }
             });",
        );
        let _a = all.start("a", &source).await;
        all.env.until(5 * MINUTE + 1).await;
        let runs: Vec<_> =
            all.runs().iter().map(|it| it.replace("01T00:0", "").replace(":00Z", "")).collect();
        // The first one fails permanently after 100 s; meanwhile the slot of 00:02 is due.
        let expected =
            ["1 schedule 0", "1 schedule 1", "1 schedule 2", "2 schedule 0", "2 schedule 1"];
        assert_eq!(
            runs.get(..5),
            Some(expected.map(str::to_owned).as_slice()),
            "{}",
            all.log.text()
        );
        assert!(runs.contains(&"5 schedule 0".to_owned()), "{runs:?}");
    });
}

#[test]
fn a_reload_keeps_the_slots_of_edited_schedules_and_stops_removed_ones() {
    in_both(|all| async move {
        let text = |cron: &str, extra: [&str; 2]| {
            all.source(
                &format!("kopf.cron('{cron}', {{ id = 'r', missed = 'once' }}, function(ctx) ctx.logger:info('ran ' .. ctx.scheduled) end) {}", extra[0]),
                &format!("kopf::cron(\"{cron}\", #{{ id: \"r\", missed: \"once\" }}, |ctx| ctx.logger.info(`ran ${{ctx.scheduled}}`)); {}", extra[1]),
            )
        };
        let other = [
            "kopf.every('3m', { id = 'o', sharp = true }, function(ctx) ctx.logger:info('ran o') end)",
            "kopf::every(\"3m\", #{ id: \"o\", sharp: true }, |ctx| ctx.logger.info(\"ran o\"));",
        ];
        let process = all.start("a", &text("*/10 * * * *", other)).await;
        all.env.until(4 * MINUTE).await;
        assert_eq!(all.runs(), ["o", "o"]);
        process.reload(text("*/10 * * * *", ["", ""])).await;
        all.env.until(14 * MINUTE).await;
        assert_eq!(all.runs(), ["o", "o", "01T00:10:00Z"], "{}", all.log.text());
        // Neither 00:05 nor 00:11 are missed times of the edited one.
        process.reload(text("*/5 * * * *", ["", ""])).await;
        all.env.until(14 * MINUTE + 30).await;
        assert_eq!(all.runs().len(), 3, "{}", all.log.text());
        all.env.until(16 * MINUTE).await;
        assert_eq!(
            all.runs().last().map(String::as_str),
            Some("01T00:15:00Z"),
            "{}",
            all.log.text()
        );
    });
}

#[test]
fn standbys_run_nothing_and_a_new_leader_takes_the_next_slot() {
    in_both(|all| async move {
        let mut settings = Settings::default();
        settings.leadership.enabled = true;
        let source = report(&all);
        let a = all.start_with("a", &source, settings.clone()).await;
        all.env.until(MINUTE).await;
        let _b = all.start_with("b", &source, settings).await;
        all.env.until(6 * MINUTE).await;
        let by = |all: &Processes| all.lease()["spec"]["holderIdentity"].clone();
        assert_eq!(by(&all), "a");
        drop(a);
        all.env.until(11 * MINUTE).await;
        assert_eq!(by(&all), "b");
        assert_eq!(all.runs(), ["01T00:05:00Z", "01T00:10:00Z"], "{}", all.log.text());
    });
}

#[test]
fn without_permission_nothing_runs_and_the_log_says_what_is_missing() {
    in_both(|all| async move {
        all.env.refuse(403, "GET", "/leases/kopf-schedules");
        let _a = all.start("a", &report(&all)).await;
        all.env.until(6 * MINUTE).await;
        assert_eq!(all.runs(), Vec::<String>::new());
        let told = "Schedule 'report' cannot run, retrying every 10 s: cannot use the lease 'kopf-schedules' in 'default'";
        assert_eq!(all.log.count(told), 1, "{}", all.log.text());
        assert_eq!(all.log.count("kopf rbac generate"), 1, "{}", all.log.text());
    });
}

#[test]
fn a_lost_response_makes_no_slot_run_twice_or_never() {
    in_both(|all| async move {
        let _a = all.start("a", &report(&all)).await;
        let _b = all.start("b", &report(&all)).await;
        all.env.until(6 * MINUTE).await;
        let lost = Fault::always(FaultEffect::TimeoutAfterwards).times(4);
        all.env.server.fault(lost.on("PUT", "/leases/kopf-schedules"));
        all.env.until(16 * MINUTE).await;
        let runs = ["01T00:05:00Z", "01T00:10:00Z", "01T00:15:00Z"];
        assert_eq!(all.runs(), runs, "{}", all.log.text());
    });
}
