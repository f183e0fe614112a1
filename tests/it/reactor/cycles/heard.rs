//! An operator whose handlers only record their calls, for tests of the causes of events.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use kopf::{
    call::{Cause, Invocation, ObjectCause, ObjectDetail},
    logic::{
        handlers::{
            declare::Argument,
            handler::{Handler, Kind},
            outcome::CallEnd,
        },
        object::reason::EventType,
    },
    reactor::{NamespaceScope, Operator},
    settings::Settings,
    telemetry::HealthState,
    testing::{CallLog, Environment, NativeScripts, RunningOperator, declared},
};
use tokio::time;

/// An operator that is not started yet.
pub(crate) struct Listener {
    pub(crate) scripts: NativeScripts,
    pub(crate) settings: Settings,
    /// Called in each handler with the name of its object.
    pub(crate) act: fn(&str),
    handlers: Vec<Handler>,
    scope: NamespaceScope,
    heard: CallLog,
}

/// A running operator.
pub(crate) struct Listening {
    heard: CallLog,
    pub(crate) running: RunningOperator,
}

impl Listener {
    /// Creates an operator without handlers.
    pub(crate) fn new(scope: NamespaceScope) -> Self {
        let mut settings = Settings::default();
        settings.networking.error_backoffs = Vec::new();
        Listener {
            scripts: NativeScripts::default(),
            settings,
            act: |_| {},
            handlers: Vec::new(),
            scope,
            heard: CallLog::default(),
        }
    }

    /// Adds a handler with this id; each call takes this long, daemons run until they must stop.
    pub(crate) fn hears(
        mut self,
        (id, kind): (&str, Kind),
        selectors: Vec<Argument>,
        options: &[(&str, Argument)],
        takes: Duration,
    ) -> Self {
        let (heard, act) = (self.heard.clone(), self.act);
        let function = self.scripts.handler(id, move |invocation| {
            heard.add(told(&invocation, "runs"));
            act(&object_name(&invocation));
            let heard = heard.clone();
            Box::pin(async move {
                match &invocation.cause {
                    Cause::Object(ObjectCause { detail: ObjectDetail::Background(it), .. }) => {
                        it.stopped.wait().await;
                        heard.add(told(&invocation, "stops"));
                    }
                    Cause::Object(_) | Cause::Activity(_) => time::sleep(takes).await,
                }
                CallEnd::Returned(None)
            })
        });
        let options = options.iter().map(|(name, it)| ((*name).to_owned(), it.clone())).collect();
        self.handlers.push(declared(kind, selectors, options, function));
        self
    }

    /// Adds a handler of `kopfexamples`, without options.
    pub(crate) fn hears_examples(self, id: &str, kind: Kind, takes: Duration) -> Self {
        self.hears((id, kind), vec![Argument::Value("kopfexamples".into())], &[], takes)
    }

    /// Adds a handler of raw events of this resource, with its name as the id.
    pub(crate) fn hears_events(self, name: &str) -> Self {
        self.hears((name, Kind::Event), vec![Argument::Value(name.into())], &[], Duration::ZERO)
    }

    /// Starts the operator.
    pub(crate) fn start(self, env: &Environment) -> Listening {
        self.start_changed(env, |it| it)
    }

    /// Starts the operator after a change of its options.
    pub(crate) fn start_changed(
        self,
        env: &Environment,
        change: impl FnOnce(Operator) -> Operator,
    ) -> Listening {
        let operator = Operator {
            settings: Arc::new(Mutex::new(self.settings)),
            scope: self.scope,
            ..env.operator(Arc::new(self.scripts), self.handlers)
        };
        Listening { heard: self.heard, running: RunningOperator::start(change(operator)) }
    }
}

impl Listening {
    /// Returns the calls since the last call of this function: the id, the type of the event or the reason, the name.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.take()
    }

    /// Returns the same calls, sorted: for objects that are handled concurrently.
    pub(crate) fn heard_sorted(&self) -> Vec<String> {
        self.heard.take_sorted()
    }

    /// Returns the parts that are not ready, each with its reason.
    pub(crate) fn unready(&self) -> Vec<String> {
        let parts = self.running.health.parts().into_iter();
        let unready = parts.filter(|(_, it)| it.state != HealthState::Ready);
        unready.map(|(name, it)| format!("{name}: {}", it.text)).collect()
    }

    /// Stops it. Returns the names of the handled objects, in order.
    pub(crate) async fn end_with_names(self) -> Vec<String> {
        let heard = self.end().await.into_iter();
        heard.map(|it| it.rsplit(' ').next().unwrap_or_default().to_owned()).collect()
    }

    /// Stops it. Returns the calls.
    pub(crate) async fn end(self) -> Vec<String> {
        self.running.stop().await;
        self.heard.take()
    }
}

fn told(invocation: &Invocation, in_background: &str) -> String {
    let Cause::Object(cause) = &invocation.cause else { return invocation.handler.id.to_string() };
    let what = match &cause.detail {
        ObjectDetail::Watch(kind) => kind.map_or("listed", EventType::as_str),
        ObjectDetail::Change(change) => change.reason.as_str(),
        ObjectDetail::Background(_) => in_background,
        ObjectDetail::Index => "indexes",
        ObjectDetail::Admission(_) | ObjectDetail::Conversion => "reviews",
    };
    format!("{} {what} {}", invocation.handler.id, object_name(invocation))
}

fn object_name(invocation: &Invocation) -> String {
    let Cause::Object(cause) = &invocation.cause else { return String::new() };
    cause.current().header().name.clone().unwrap_or_default()
}
