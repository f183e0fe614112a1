//! Counts the calls of handlers on the way to the scripts.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use serde_json::Value;
use tokio::time::Instant;

use crate::call::{Invocation, Scripts};
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::{Function, ScriptId},
        lifecycle::Chooser,
        outcome::{CallEnd, Raised, RaisedKind},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;
use crate::settings::Settings;
use crate::telemetry::{HandlerLabels, Metrics};

/// A wrapper of scripts that counts their calls.
pub struct CountedScripts {
    scripts: Arc<dyn Scripts>,
    metrics: Arc<Metrics>,
}

/// One running call; there may be many thousands of waiting ones.
struct CountedCall {
    scripts: BoxFuture<'static, CallEnd>,
    invocation: Arc<Invocation>,
    metrics: Arc<Metrics>,
    /// When the call began; `None` after it was counted.
    begun: Option<Instant>,
}

impl CountedScripts {
    /// Wraps these scripts; their calls are counted in these metrics.
    pub fn new(scripts: Arc<dyn Scripts>, metrics: Metrics) -> Self {
        CountedScripts { scripts, metrics: Arc::new(metrics) }
    }
}

impl CountedCall {
    fn count(&mut self, outcome: &'static str) {
        if let Some(begun) = self.begun.take() {
            let Invocation { handler, cause, .. } = &*self.invocation;
            let labels = HandlerLabels::of(handler, cause.resource().map(|it| &**it));
            self.metrics.called(labels, outcome, begun.elapsed());
        }
    }
}

impl Future for CountedCall {
    type Output = CallEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<CallEnd> {
        let ended = ready!(self.scripts.as_mut().poll(cx));
        self.count(outcome(&ended));
        Poll::Ready(ended)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.count("cancelled");
    }
}

impl Scripts for CountedScripts {
    fn lifecycle(&self) -> Option<Chooser> {
        self.scripts.lifecycle()
    }

    fn may_use_index(&self, script: ScriptId, id: &str) -> bool {
        self.scripts.may_use_index(script, id)
    }

    fn configure(&self, settings: &Settings) {
        self.scripts.configure(settings);
    }

    fn keep(&self, function: Function) -> Function {
        self.scripts.keep(function)
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        Box::pin(CountedCall {
            scripts: self.scripts.call(Arc::clone(&invocation)),
            invocation,
            metrics: Arc::clone(&self.metrics),
            begun: Some(Instant::now()),
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

fn outcome(ended: &CallEnd) -> &'static str {
    match ended {
        CallEnd::Returned(_) | CallEnd::Keyed(_) => "success",
        CallEnd::Raised(raised) => match raised.kind {
            RaisedKind::Temporary(_) | RaisedKind::Aborted(_) => "temporary",
            RaisedKind::Permanent => "permanent",
            RaisedKind::Admission(_) => "denied",
            RaisedKind::Arbitrary(_) => "error",
            RaisedKind::Unfinished(_) => "unfinished",
        },
    }
}
