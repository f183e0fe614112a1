//! Scripts of a leader whose process was frozen for longer than its lease: none of their calls continues.

use std::{sync::Arc, time::Duration};

use kopf::{
    reactor::{Operator, OperatorFailure},
    scripting::{Placement, Source},
    settings::Settings,
    testing::{
        self, Environment, Fate, Link, LogCapture, RunningOperator, object, pass, run_paused,
    },
};
use parking_lot::Mutex;
use tokio::time;

/// Handlers that wait when the process is frozen, by extension.
const SCRIPTS: [(&str, &str); 2] = [
    (
        "frozen.lua",
        r#"
        local function work(ctx)
            ctx.logger:info("began")
            kopf.sleep(8)
            ctx.logger:info("went on")
        end
        kopf.on_create("kopfexamples", work)
        kopf.daemon("kopfexamples", { id = "daemon" }, work)
        kopf.timer("kopfexamples", { id = "timer", interval = 1 }, function(ctx) ctx.logger:info("ticks") end)
        "#,
    ),
    (
        "frozen.rhai",
        r#"
        fn work(ctx) {
            ctx.logger.info("began");
            kopf::sleep(8);
            ctx.logger.info("went on");
        }
        kopf::on_create("kopfexamples", |ctx| work(ctx));
        kopf::daemon("kopfexamples", #{id: "daemon"}, |ctx| work(ctx));
        kopf::timer("kopfexamples", #{id: "timer", interval: 1}, |ctx| ctx.logger.info("ticks"));
        "#,
    ),
];

#[test]
fn scripts_of_a_leader_that_was_frozen_do_not_go_on() {
    for (name, text) in SCRIPTS {
        run_paused(async {
            let env = Environment::default();
            for number in 0..10 {
                env.create(object("ns1", &format!("object-{number}")));
            }
            let log = LogCapture::of("kopf");
            let mut settings = Settings::default();
            settings.leadership.enabled = true;
            let (scripts, handlers) =
                env.load(vec![Source::alone(name, text)], Placement::CurrentRuntime).await;
            let link = Link::new(&env.server);
            let operator = RunningOperator::start(Operator {
                settings: Arc::new(Mutex::new(settings)),
                connect: testing::connect(link.client("ops")),
                ..env.operator(scripts, handlers)
            });
            env.until(4).await;
            assert_eq!(log.count("began"), 20, "{}", log.text());
            let (ticks, written) =
                (log.count("ticks"), env.requests("PATCH", "kopfexamples").len());
            link.set(Fate::Hang);
            time::advance(Duration::from_secs(30)).await;
            link.set(Fate::Pass);
            pass(1).await;
            assert!(matches!(operator.end().await, Err(OperatorFailure::Leadership(_))));
            assert_eq!((log.count("went on"), log.count("ticks")), (0, ticks), "{}", log.text());
            assert_eq!(env.requests("PATCH", "kopfexamples").len(), written);
        });
    }
}
