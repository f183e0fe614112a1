//! Scripts that report when one of their handlers has returned.

use std::sync::Arc;

use kopf::{
    call::{Cause, Invocation, Scripts},
    logic::{
        change::filters::Question,
        handlers::{
            function::Function,
            lifecycle::Chooser,
            outcome::{CallEnd, Raised},
        },
        object::resource::Resource,
    },
    ports::BoxFuture,
    scripting::ScriptHost,
    settings::Settings,
};
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};

/// Reports that a handler has returned.
pub(crate) struct Answer {
    pub(crate) handler: String,
    pub(crate) object: String,
    pub(crate) at: Instant,
}

/// The scripts, and the receiver of the reports.
pub(crate) struct Timed {
    pub(crate) host: ScriptHost,
    pub(crate) tell: mpsc::Sender<Answer>,
}

impl Scripts for Timed {
    fn lifecycle(&self) -> Option<Chooser> {
        self.host.lifecycle()
    }

    fn configure(&self, settings: &Settings) {
        self.host.configure(settings);
    }

    fn keep(&self, function: Function) -> Function {
        self.host.keep(function)
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let object = match &invocation.cause {
            Cause::Object(cause) => cause.current().header().name.clone().unwrap_or_default(),
            Cause::Activity(_) => String::new(),
        };
        let (handler, tell) = (invocation.handler.id.to_string(), self.tell.clone());
        let call = self.host.call(invocation);
        Box::pin(async move {
            let ended = call.await;
            // At the end, the receiver is closed.
            drop(tell.send(Answer { handler, object, at: Instant::now() }).await);
            ended
        })
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.host.ask(question, invocation)
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.host.choose(function, resource)
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.host.compute(function, about, invocation)
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.host.transform(function, body)
    }
}
