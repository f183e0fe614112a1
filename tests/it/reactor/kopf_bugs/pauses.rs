//! Daemons and timers of an operator that is paused: each is stopped once, and can start again afterwards.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::{Memo, ObjectPacker},
    cluster::KubeCluster,
    features::{
        daemons::{Base, Daemons, ObjectDaemons, SpawnContext},
        indexes::Readiness,
    },
    logic::{
        background::stopping::StopReason,
        handlers::{
            handler::{Handler, Kind},
            outcome::CallEnd,
        },
        object::Object,
    },
    ports::Pauses,
    settings::Settings,
    telemetry::Health,
    testing::{self, CallLog, Environment, NativeScripts, handler_of_examples, object, pass},
};
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

use crate::vectors::catalogue;

/// The daemons of one object, without a reactor.
struct Yard {
    base: Arc<Base>,
    background: ObjectDaemons,
    handler: Arc<Handler>,
    object: Arc<Object>,
    pauses: Pauses,
    stop: CancellationToken,
    heeding: JoinSet<()>,
    /// The times and the reasons of their ends.
    ended: CallLog,
}

impl Yard {
    /// Starts a daemon that ends `lag` after its stop was requested.
    fn new(lag: Duration) -> Self {
        let (env, ended) = (Environment::default(), CallLog::default());
        let (scripts, settings) = (NativeScripts::default(), Arc::new(Settings::default()));
        let seen = ended.clone();
        let function = scripts.handler("daemon_fn", move |invocation| {
            let seen = seen.clone();
            Box::pin(async move {
                let stopped = &invocation.background().expect("a daemon").stopped;
                stopped.wait().await;
                time::sleep(lag).await;
                seen.add(stopped.reasons().to_string());
                CallEnd::Returned(None)
            })
        });
        let base = Arc::new(Base {
            resource: Arc::new(catalogue::kopfexamples()),
            packer: Arc::new(ObjectPacker::of(Arc::default())),
            cluster: Arc::new(KubeCluster::over(
                testing::client(&env.server),
                Arc::clone(&settings),
            )),
            scripts: Arc::new(scripts),
            settings,
            clock: env.clock,
            daemons: Arc::new(Daemons::default()),
            handlers: Arc::default(),
            readiness: Readiness::new(false),
            namespaces: None,
            metrics: Health::default().metrics().clone(),
        });
        let handler = Arc::new(handler_of_examples(Kind::Daemon, function));
        base.handlers.renew(&[Arc::clone(&handler)], &Arc::default());
        let (pauses, stop, mut heeding) =
            (Pauses::default(), CancellationToken::new(), JoinSet::new());
        let (own, heeded, until) = (Arc::clone(&base), pauses.clone(), stop.clone());
        heeding.spawn(async move {
            own.daemons.stop_on_pause(&heeded, &own.settings.background, until).await;
        });
        Yard {
            background: ObjectDaemons::new(&base),
            base,
            handler,
            object: Arc::new(Object::from_value(object("ns1", "n1"))),
            pauses,
            stop,
            heeding,
            ended,
        }
    }

    /// Runs the steps of a cycle of the object; returns whether the daemon is being stopped.
    fn cycle(&mut self) -> bool {
        self.background.reap();
        let host = SpawnContext { object: &self.object, memo: &Memo::default() };
        self.background.spawn(&self.base, &self.handler, host);
        self.background.is_stopping(|_| true)
    }

    async fn end(mut self) -> Vec<(u64, String)> {
        self.stop.cancel();
        while self.heeding.join_next().await.is_some() {}
        self.base.daemons.end(&self.base.settings.background).await;
        self.ended.timed().into_iter().map(|(at, line)| (at.as_secs(), line)).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn daemons_stop_at_a_pause_and_start_again_after_it() {
    let mut yard = Yard::new(Duration::ZERO);
    assert!(!yard.cycle());
    pass(1).await;
    yard.pauses.set("stronger@ns1", true);
    pass(1).await;
    yard.pauses.set("stronger@ns1", false);
    pass(1).await;
    assert!(!yard.cycle(), "a new one runs");
    pass(1).await;
    let ended = yard.end().await;
    let reasons = [StopReason::OperatorPausing, StopReason::OperatorExiting];
    let reasons = reasons.map(|it| it.as_str().to_owned());
    let [pausing, exiting] = reasons;
    assert_eq!(ended, [(1, pausing), (4, exiting)]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_daemon_is_given_up_once_and_starts_again_only_when_it_has_ended() {
    let mut yard = Yard::new(Duration::from_secs(30));
    yard.cycle();
    pass(1).await;
    yard.pauses.set("stronger@ns1", true);
    time::sleep(Duration::from_secs(10)).await;
    yard.pauses.set("stronger@ns1", false);
    assert!(yard.cycle(), "it is still the old one");
    time::sleep(Duration::from_secs(25)).await;
    assert!(!yard.cycle(), "a new one runs");
    let ended = yard.end().await;
    // The new one is cancelled as hung.
    assert_eq!(ended, [(31, "OPERATOR_PAUSING|DAEMON_ABANDONED".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn each_pause_stops_those_that_started_since_the_last_one() {
    let mut yard = Yard::new(Duration::ZERO);
    for _ in 0..3 {
        assert!(!yard.cycle());
        pass(1).await;
        yard.pauses.set("stronger@ns1", true);
        pass(1).await;
        yard.pauses.set("stronger@ns1", false);
        pass(1).await;
    }
    let ended = yard.end().await;
    assert_eq!(ended.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [1, 4, 7]);
}
