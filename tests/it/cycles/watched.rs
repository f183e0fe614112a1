//! An operator with a few handlers of closures, for tests of what surrounds handlers.

use std::sync::Arc;

use kopf::{
    logic::{handler::Kind, outcome::Ended},
    ports::Cause,
    reactor::{Operator, Scope},
    testing::{CallLog, Environment, NativeScripts, Running, handler_of_examples},
};

/// An operator, and the names of the objects its handlers were called for.
pub(crate) struct Watched {
    created: CallLog,
    running: Running,
}

impl Watched {
    /// Starts one with a creation handler; `act` is called in it with the name of the object.
    pub(crate) fn start(
        env: &Environment,
        scope: Scope,
        act: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Watched::with(&[Kind::Create], env, scope, act)
    }

    /// Starts one with a handler of each of these kinds.
    pub(crate) fn with(
        kinds: &[Kind],
        env: &Environment,
        scope: Scope,
        act: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        let (scripts, created) = (NativeScripts::default(), CallLog::default());
        let seen = created.clone();
        let function = scripts.handler("create_fn", move |invocation| {
            if let Cause::Object(cause) = &invocation.cause {
                let name = cause.object.header().name.clone().unwrap_or_default();
                seen.add(&name);
                act(&name);
            }
            Box::pin(async { Ended::Returned(None) })
        });
        let handlers = kinds.iter().map(|kind| handler_of_examples(*kind, function.clone()));
        let operator = env.operator(Arc::new(scripts), handlers.collect());
        Watched { created, running: Running::start(Operator { scope, ..operator }) }
    }

    /// Stops it. Returns the objects for which the handler was called, in order.
    pub(crate) async fn end(self) -> Vec<String> {
        self.running.stop().await;
        self.created.lines()
    }
}
