//! Handlers in Rust that record their calls, for tests of requests.

use std::{sync::Arc, time::Duration};

use kopf::{
    call::{Cause, Invocation, ObjectCause, ObjectDetail, SharedPatch},
    logic::handlers::{
        handler::{Handler, Kind},
        outcome::CallEnd,
    },
    ports::BoxFuture,
    reactor::Operator,
    settings::Settings,
    testing::{
        self, CallLog, Environment, Link, NativeScripts, RunningOperator, examples,
        handler_of_examples,
    },
};
use kopf_apiserver::ApiServer;
use parking_lot::Mutex;
use tokio::time;

/// Handlers that record their calls as `id name`.
#[derive(Clone, Default)]
pub(super) struct Script {
    pub(super) functions: NativeScripts,
    pub(super) calls: CallLog,
}

impl Script {
    /// Returns a handler that records its call and ends as `then` says.
    pub(super) fn handler(
        &self,
        (kind, id): (Kind, &'static str),
        then: impl Fn(&Invocation) -> CallEnd + Send + Sync + 'static,
    ) -> Handler {
        let (calls, then) = (self.calls.clone(), Arc::new(then));
        let function = self.functions.handler(id, move |invocation| {
            let event = event_type(&invocation);
            calls.add(format!("{id}{event} {}", name(&invocation)));
            let ended = then(&invocation);
            Box::pin(async move { ended }) as BoxFuture<'static, CallEnd>
        });
        handler_of_examples(kind, function)
    }

    /// Returns a handler of raw events that takes this long.
    pub(super) fn slow(&self, id: &'static str, takes: Duration) -> Handler {
        let function = self.functions.handler(id, move |_| {
            Box::pin(async move {
                time::sleep(takes).await;
                CallEnd::Returned(None)
            })
        });
        handler_of_examples(Kind::Event, function)
    }

    pub(super) fn quiet(&self, kind: Kind, id: &'static str) -> Handler {
        self.handler((kind, id), |_| CallEnd::Returned(None))
    }

    /// Starts an operator over this connection.
    pub(super) fn start(
        &self,
        env: &Environment,
        (link, handlers): (&Link, Vec<Handler>),
        mut settings: Settings,
    ) -> RunningOperator {
        settings.posting.failures = false;
        RunningOperator::start(Operator {
            settings: Arc::new(Mutex::new(settings)),
            connect: testing::connect(link.client("ns1")),
            ..env.operator(Arc::new(self.functions.clone()), handlers)
        })
    }

    /// Returns how often this handler was called for this object.
    pub(super) fn count(&self, call: &str) -> usize {
        self.calls.lines().iter().filter(|it| *it == call).count()
    }
}

pub(super) fn cause(invocation: &Invocation) -> &ObjectCause {
    let Cause::Object(cause) = &invocation.cause else { panic!("of an object") };
    cause
}

pub(super) fn patch(invocation: &Invocation) -> &SharedPatch {
    &cause(invocation).patch
}

pub(super) fn name(invocation: &Invocation) -> String {
    cause(invocation).current().header().name.clone().unwrap_or_default()
}

fn event_type(invocation: &Invocation) -> String {
    match &cause(invocation).detail {
        ObjectDetail::Watch(Some(kind)) => format!(" {}", kind.as_str()),
        ObjectDetail::Watch(None)
        | ObjectDetail::Change(_)
        | ObjectDetail::Background(_)
        | ObjectDetail::Index
        | ObjectDetail::Admission(_)
        | ObjectDetail::Conversion => String::new(),
    }
}

/// Returns settings of a client that repeats no requests.
pub(super) fn impatient() -> Settings {
    let mut settings = Settings::default();
    settings.networking.error_backoffs = Vec::new();
    settings
}

pub(super) fn statuses(env: &Environment, method: &str) -> Vec<u16> {
    env.requests(method, "kopfexamples").iter().map(|it| it.status).collect()
}

pub(super) fn with_status() -> Environment {
    let mut resource = examples();
    resource.status_subresource = true;
    Environment::new(ApiServer::builder().resource(resource))
}
