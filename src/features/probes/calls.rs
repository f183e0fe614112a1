//! Counts the calls of handlers on their way to the scripts.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use crate::logic::{
    filters::Question,
    function::Function,
    lifecycle::Chooser,
    outcome::{Ended, Raised, RaisedKind},
    resource::Resource,
};
use crate::ports::{BoxFuture, Invocation, Metrics, Scripts};
use crate::settings::Settings;

/// The same scripts, counted.
pub struct Counted {
    scripts: Arc<dyn Scripts>,
    metrics: Metrics,
}

/// One call; it counts as cancelled unless it says how it ended.
struct Call {
    invocation: Arc<Invocation>,
    metrics: Metrics,
    begun: Instant,
    outcome: &'static str,
}

impl Counted {
    /// Counts the calls of these scripts.
    pub fn new(scripts: Arc<dyn Scripts>, metrics: Metrics) -> Self {
        Counted { scripts, metrics }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.metrics.called(&self.invocation.handler.id, self.outcome, self.begun.elapsed());
    }
}

impl Scripts for Counted {
    fn lifecycle(&self) -> Option<Chooser> {
        self.scripts.lifecycle()
    }

    fn configure(&self, settings: &Settings) {
        self.scripts.configure(settings);
    }

    fn keep(&self, function: Function) -> Function {
        self.scripts.keep(function)
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended> {
        let called = self.scripts.call(Arc::clone(&invocation));
        let metrics = self.metrics.clone();
        Box::pin(async move {
            let mut call =
                Call { invocation, metrics, begun: Instant::now(), outcome: "cancelled" };
            let ended = called.await;
            call.outcome = outcome(&ended);
            ended
        })
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.scripts.ask(question, invocation)
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.scripts.choose(function, resource)
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.scripts.compute(function, about, invocation)
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.scripts.transform(function, body)
    }
}

fn outcome(ended: &Ended) -> &'static str {
    match ended {
        Ended::Returned(_) | Ended::Keyed(_) => "success",
        Ended::Raised(raised) => match raised.kind {
            RaisedKind::Temporary(_) => "temporary",
            RaisedKind::Permanent => "permanent",
            RaisedKind::Arbitrary(_) => "error",
            RaisedKind::Unfinished(_) => "unfinished",
        },
    }
}
