//! An operator whose handlers only say that they were called, for tests of what brings events to them.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    logic::{
        declare::{Argument, Declaration, declare},
        handler::{Handler, Kind},
        outcome::Ended,
        reason::EventType,
        registry::Registry,
    },
    ports::{Cause, Health, Invocation, ObjectCause, ObjectDetail},
    reactor::{self, Operator, Scope},
    settings::Settings,
    testing::{self, NativeScripts},
};
use kopf_apiserver::ApiServer;
use tokio::{task::JoinSet, time};
use tokio_util::sync::CancellationToken;

/// An operator that is not started yet.
pub(crate) struct Listener {
    pub(crate) scripts: NativeScripts,
    pub(crate) settings: Settings,
    pub(crate) health: Health,
    handlers: Vec<Handler>,
    scope: Scope,
    heard: Arc<Mutex<Vec<String>>>,
}

/// The same while it runs. Dropping it is a `kill -9`.
pub(crate) struct Listening {
    heard: Arc<Mutex<Vec<String>>>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Listener {
    /// Without handlers.
    pub(crate) fn new(scope: Scope) -> Self {
        let mut settings = Settings::default();
        settings.networking.error_backoffs = Vec::new();
        Listener {
            scripts: NativeScripts::default(),
            settings,
            health: Health::default(),
            handlers: Vec::new(),
            scope,
            heard: Arc::default(),
        }
    }

    /// One handler more, of this id; each call takes so long, daemons run until they must stop.
    pub(crate) fn hears(
        mut self,
        (id, kind): (&str, Kind),
        selectors: Vec<Argument>,
        options: &[(&str, Argument)],
        takes: Duration,
    ) -> Self {
        let heard = Arc::clone(&self.heard);
        let function = self.scripts.handler(id, move |invocation| {
            heard.lock().push(told(&invocation, "runs"));
            let heard = Arc::clone(&heard);
            Box::pin(async move {
                match &invocation.cause {
                    Cause::Object(ObjectCause { detail: ObjectDetail::Background(it), .. }) => {
                        it.stopped.wait().await;
                        let stops = told(&invocation, "stops");
                        heard.lock().push(stops);
                    }
                    Cause::Object(_) | Cause::Activity(_) => time::sleep(takes).await,
                }
                Ended::Returned(None)
            })
        });
        let options = options.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
        let location = "test:1".into();
        let declaration = Declaration { kind, selectors, options, function, location };
        self.handlers.push(declare(declaration).expect("a declaration"));
        self
    }

    /// One handler of raw events more, of this resource and with its name as the id.
    pub(crate) fn hears_events(self, name: &str) -> Self {
        self.hears((name, Kind::Event), vec![Argument::Value(name.into())], &[], Duration::ZERO)
    }

    /// Starts it.
    pub(crate) fn start(self, server: &ApiServer) -> Listening {
        let client = testing::client(server);
        let registry = Registry::new(self.handlers).expect("ids are unique");
        let operator = Operator {
            settings: Arc::new(Mutex::new(self.settings)),
            scope: self.scope,
            health: self.health,
            ..testing::operator(Arc::new(self.scripts), registry, client)
        };
        let (stop, mut task) = (CancellationToken::new(), JoinSet::new());
        let token = stop.clone();
        task.spawn(async move { reactor::run(operator, token).await.expect("it runs") });
        Listening { heard: self.heard, stop, task }
    }
}

impl Listening {
    /// The calls since this was asked last: the id, the type of the event or the reason, the name.
    pub(crate) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock())
    }

    /// The same, sorted: for objects that are handled side by side.
    pub(crate) fn heard_sorted(&self) -> Vec<String> {
        let mut heard = self.heard();
        heard.sort();
        heard
    }

    /// Stops it; gives what was heard.
    pub(crate) async fn end(mut self) -> Vec<String> {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        self.heard()
    }
}

fn told(invocation: &Invocation, in_background: &str) -> String {
    let Cause::Object(cause) = &invocation.cause else { return invocation.handler.id.to_string() };
    let what = match &cause.detail {
        ObjectDetail::Watch(kind) => kind.map_or("listed", EventType::as_str),
        ObjectDetail::Change(change) => change.reason.as_str(),
        ObjectDetail::Background(_) => in_background,
        ObjectDetail::Index => "indexes",
    };
    let name = cause.current().header().name.clone().unwrap_or_default();
    format!("{} {what} {name}", invocation.handler.id)
}

/// Lets virtual time pass.
pub(crate) async fn pass(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}
