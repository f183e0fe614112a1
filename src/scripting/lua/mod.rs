//! The Lua engine: Luau in a sandboxed VM per script.
//!
//! [`load`] starts the script's actor (`actor.rs`) and waits until its top level has run. `vm.rs` makes calls, `views/` and
//! `push.rs` make what a script sees of them, `read.rs` and `raised.rs` what comes out.

mod actor;
mod children;
mod declare;
mod hierarchy;
mod host_table;
mod modules;
mod posting;
mod push;
mod raised;
mod read;
mod running;
mod side_table;
mod tree;
mod views;
mod vm;
mod watchdog;
mod world;

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread,
};

use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use self::actor::{Loading, QUEUE_MAX, Request, To};
use super::{LoadError, Loaded, Placement, Source, Terms};
use crate::logic::{
    filters::Question,
    function::{Function, ScriptId},
    outcome::{Ended, Raised},
    resource::Resource,
};
use crate::ports::{BoxFuture, Invocation, Scripts};

/// Loads a Lua script. With [`Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
pub(crate) fn load(
    script: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    let (source, terms) = (source.clone(), terms.clone());
    Box::pin(async move {
        let failed = |message: String| LoadError {
            file: source.name.clone(),
            line: None,
            source_line: None,
            message,
            hint: None,
        };
        let (loading, loaded) = oneshot::channel();
        let (requests, queue) = mpsc::channel(QUEUE_MAX);
        let home = Home::of(script, source.clone(), &terms, (loading, queue));
        let home = home.map_err(|it| failed(format!("the script gets no thread: {it}")))?;
        let ended = || Err(failed("the script's thread has ended".into()));
        let (handlers, lifecycles) = loaded.await.unwrap_or_else(|_| ended())?;
        Ok(Loaded { engine: Arc::new(LuaEngine { requests, _home: home }), handlers, lifecycles })
    })
}

/// Sends calls to the actor of one script. The actor ends when this and all its calls are gone.
struct LuaEngine {
    requests: mpsc::Sender<Request>,
    _home: Home,
}

/// Where the actor runs; kept so that it has an owner, never joined: the actor ends by itself.
enum Home {
    Thread(#[expect(dead_code, reason = "owned only")] thread::JoinHandle<()>),
    Task(#[expect(dead_code, reason = "owned only")] tokio::task::JoinHandle<()>),
}

impl Home {
    fn of(
        script: ScriptId,
        source: Source,
        terms: &Terms,
        (loading, queue): (Loading, mpsc::Receiver<Request>),
    ) -> std::io::Result<Self> {
        match terms.placement {
            Placement::CurrentRuntime => {
                let life = actor::live(script, source, loading, queue);
                Ok(Home::Task(tokio::task::spawn_local(life)))
            }
            Placement::Threads => {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_time().build()?;
                let life = move || runtime.block_on(actor::live(script, source, loading, queue));
                let name = format!("lua-{}", script.0);
                thread::Builder::new().name(name).spawn(life).map(Home::Thread)
            }
        }
    }
}

impl LuaEngine {
    /// Sends a request and waits for its answer; dropping the future cancels the call.
    fn request<T: Send + 'static>(
        &self,
        request: impl FnOnce(To<T>) -> Request + Send + 'static,
        gone: fn(Raised) -> T,
    ) -> BoxFuture<'static, T> {
        let requests = self.requests.clone();
        let (to, answer) = oneshot::channel();
        let sending = async move {
            // A queue without a reader drops the request, which closes the answer.
            drop(requests.send(request(to)).await);
        };
        let sending: BoxFuture<'static, ()> = Box::pin(sending);
        Box::pin(Answer { sending: Some(sending), answer, gone, _requests: self.requests.clone() })
    }
}

/// An answer that is waited for. By hand, because there may be many thousands.
struct Answer<T> {
    /// Boxed, to be freed when it is done.
    sending: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Box<T>>,
    gone: fn(Raised) -> T,
    /// Held until the answer: a generation that was replaced finishes its calls.
    _requests: mpsc::Sender<Request>,
}

impl<T> Future for Answer<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(sending) = &mut self.sending {
            ready!(sending.as_mut().poll(cx));
            self.sending = None;
        }
        let answer = ready!(self.answer.poll_unpin(cx));
        let lost = |_| (self.gone)(raised::of_host("the VM of the script has ended"));
        Poll::Ready(answer.map_or_else(lost, |it| *it))
    }
}

impl Scripts for LuaEngine {
    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended> {
        self.request(|to| Request::Call(invocation, to), Ended::Raised)
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.request(|to| Request::Ask(question, invocation, to), Err)
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.request(|to| Request::Choose(function, resource, to), Err)
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.request(|to| Request::Compute(function, about, invocation, to), Err)
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.request(|to| Request::Transform(function, body, to), Err)
    }
}
