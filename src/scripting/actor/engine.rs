//! Sends calls to the actor of one script.

use std::{rc::Rc, sync::Arc};

use futures::future::LocalBoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;

use super::{
    ActorVm,
    life::{self, ActorRequest, Start},
    response::{ActorCall, ActorResponse},
    script::{ActorScript, Print, Reason},
    thread::Actor,
};
use crate::call::{Invocation, Scripts};
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::{Function, ScriptId},
        outcome::{CallEnd, Raised},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;
use crate::scripting::{LoadError, Loaded, Placement, Source, Terms};

/// Loads a script. With [`Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
pub(in crate::scripting) fn load<V: ActorVm>(
    script: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    let (source, placement) = (source.clone(), terms.placement);
    let script = Arc::new(ActorScript::new(script, source.clone(), terms));
    Box::pin(async move {
        let failed = |message: String| LoadError {
            file: source.name.clone(),
            line: None,
            columns: None,
            source_line: None,
            message,
            hint: None,
        };
        let (loading, loaded) = oneshot::channel();
        let actor = Actor::<V>::start(&script, placement, Start::First(loading));
        let actor =
            actor.map_err(|it| failed(format!("cannot start a thread for the script: {it}")))?;
        let ended = || Err(failed("the thread of the script has stopped".into()));
        let declared = tokio::select! {
            // The order makes no difference: only one of them happens.
            biased;
            declared = loaded => declared.unwrap_or_else(|_| ended())?,
            () = actor.stuck.cancelled() => {
                return Err(failed("the top level of the script did not finish".into()));
            }
        };
        let print = Print::of(&declared);
        let (handlers, lifecycles) = declared;
        let engine = ActorEngine { script, placement, print, actor: Mutex::new(Arc::new(actor)) };
        Ok(Loaded { engine: Arc::new(engine), handlers, lifecycles })
    })
}

/// Sends calls to the actor of one script. The actor ends when this engine and all its calls are dropped.
struct ActorEngine<V: ActorVm> {
    script: Arc<ActorScript>,
    placement: Placement,
    /// The declarations that every VM of this script must repeat.
    print: Print,
    actor: Mutex<Arc<Actor<V>>>,
}

impl<V: ActorVm> ActorEngine<V> {
    /// Returns the actor. One that does not respond is abandoned and replaced.
    fn actor(&self) -> Arc<Actor<V>> {
        let mut actor = self.actor.lock();
        if actor.stuck.is_cancelled() {
            let start = Start::Again(self.print.clone());
            // If no thread can be started, this request fails, and the next one tries again.
            if let Ok(next) = Actor::start(&self.script, self.placement, start) {
                self.script.replaced(Reason::Stuck);
                *actor = Arc::new(next);
            }
        }
        Arc::clone(&actor)
    }

    /// Sends a request to call a function that is not a handler, and waits for its response; dropping the future cancels the call.
    fn other<T: Send + 'static>(
        &self,
        begin: impl FnOnce(Rc<V>) -> LocalBoxFuture<'static, Result<T, Raised>> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        let actor = self.actor();
        let request = |to| ActorRequest::Other(life::job(to, begin));
        Box::pin(async move { ActorResponse::new(actor, Err, request).await })
    }
}

impl<V: ActorVm> Scripts for ActorEngine<V> {
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let is_delayed = invocation.waits_for(self.script.memos.patches());
        let may_be_inline = self.script.can_be_suspended() && !is_delayed;
        let actor = self.actor();
        Box::pin(ActorCall::Begins { actor, invocation, may_be_inline })
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.other(|vm| Box::pin(async move { vm.ask(question, invocation).await }))
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.other(|vm| Box::pin(async move { vm.choose(function, resource).await }))
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.other(|vm| Box::pin(async move { vm.compute(function, about, invocation).await }))
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.other(|vm| Box::pin(async move { vm.transform(function, body).await }))
    }
}
