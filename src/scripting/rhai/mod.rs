//! Rhai: one engine per script, calls on a bounded set of threads, all waiting on the runtime's clock.
#![expect(clippy::unnecessary_box_returns, reason = "Rhai takes and gives its errors boxed")]

mod api;
mod context;
mod control;
mod errors;
mod functions;
mod index;
mod live;
mod modules;
mod pool;
mod present;
mod runner;
mod script;
mod shadowed;
mod stopped;
#[cfg(test)]
mod tests;
mod turn;
mod value;
mod view;

use std::sync::Arc;

use futures::FutureExt as _;
use rhai::Dynamic;
use serde_json::Value;

use self::{
    context::Ctx,
    errors::of_host,
    runner::Runner,
    script::Script,
    value::{plain, to_json},
    view::View,
};
use super::{LoadError, Loaded, Source, Terms, ctx::record};
use crate::logic::{
    filters::Question,
    function::{Function, ScriptId},
    handler::Kind,
    outcome::{Ended, Raised},
    resource::Resource,
};
use crate::ports::{BoxFuture, Invocation, Scripts, Stopped};
use crate::settings::Settings;

/// A loaded script and the threads it runs on.
struct RhaiEngine {
    script: Arc<Script>,
    runner: Arc<Runner>,
}

/// Loads a script: compiles it, runs its top level, collects its declarations.
pub(crate) fn load(
    id: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    load_on(Runner::new(terms.placement), id, source.clone())
}

fn load_on(
    runner: Runner,
    id: ScriptId,
    source: Source,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    async move {
        let (file, runner) = (source.name.clone(), runner.of(&source.name));
        let loaded = runner.run(move || script::load(id, &source)).await;
        let (script, handlers, lifecycles) = loaded.unwrap_or_else(|error| {
            let message = error.to_string();
            Err(LoadError { file, line: None, source_line: None, message, hint: None })
        })?;
        let engine = RhaiEngine { script: Arc::new(script), runner: Arc::new(runner) };
        Ok(Loaded { engine: Arc::new(engine), handlers, lifecycles })
    }
    .boxed()
}

impl RhaiEngine {
    /// Runs something with the script on one of its threads.
    fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Script) -> Result<T, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        let (script, runner) = (Arc::clone(&self.script), Arc::clone(&self.runner));
        async move {
            let result = runner.run(move || job(&script)).await;
            result.unwrap_or_else(|error| Err(of_host(error.to_string())))
        }
        .boxed()
    }

    /// The same for a call that is about something; the job gets its `ctx`.
    fn run_about<T: Send + 'static>(
        &self,
        invocation: Arc<Invocation>,
        job: impl FnOnce(&Script, Dynamic) -> Result<T, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        // The parent of a sub-handler, which is of the same script, has a thread and waits.
        let is_within = invocation.handler.kind == Kind::Sub;
        let runner = Arc::clone(&self.runner);
        let job = about(Arc::clone(&self.script), invocation, job);
        async move {
            let result =
                if is_within { runner.run_within(job).await } else { runner.run(job).await };
            result.unwrap_or_else(|error| Err(of_host(error.to_string())))
        }
        .boxed()
    }

    /// Runs a daemon or a timer. One that must stop before it gets a thread has no result.
    fn run_background<T: Send + 'static>(
        &self,
        stopped: Stopped,
        invocation: Arc<Invocation>,
        job: impl FnOnce(&Script, Dynamic) -> Result<Option<T>, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<T>, Raised>> {
        let runner = Arc::clone(&self.runner);
        let job = about(Arc::clone(&self.script), invocation, job);
        async move {
            match runner.run_background(&stopped, job).await {
                Ok(result) => result.unwrap_or(Ok(None)),
                Err(error) => Err(of_host(error.to_string())),
            }
        }
        .boxed()
    }
}

/// A job that is about something.
fn about<T>(
    script: Arc<Script>,
    invocation: Arc<Invocation>,
    job: impl FnOnce(&Script, Dynamic) -> T,
) -> impl FnOnce() -> T {
    move || {
        let ctx = Dynamic::from(Ctx::new(Arc::clone(&invocation)));
        present::during(Some(invocation), || job(&script, ctx))
    }
}

impl Scripts for RhaiEngine {
    fn configure(&self, settings: &Settings) {
        self.runner.limit(settings.execution.max_workers);
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended> {
        let stopped = invocation.background().map(|it| it.stopped.clone());
        let function = invocation.handler.function.clone();
        let job = move |script: &Script, ctx| {
            let result = script.call(&function, vec![ctx])?;
            let result = to_json("the result", &result).map_err(errors::of_value)?;
            Ok((!result.is_null()).then_some(result))
        };
        let ended = match stopped {
            None => self.run_about(invocation, job),
            Some(stopped) => self.run_background(stopped, invocation, job),
        };
        ended.map(|it| it.map_or_else(Ended::Raised, Ended::Returned)).boxed()
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.run_about(invocation, move |script, ctx| {
            let mut arguments: Vec<_> = question.about.map(context::about).into_iter().collect();
            arguments.push(ctx);
            let answer = script.call(&question.function, arguments)?;
            Ok(is_true(&answer))
        })
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.run(move |script| {
            let record = View::tree(Arc::new(record(&resource)));
            Ok(is_true(&script.call(&function, vec![record])?))
        })
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.run_about(invocation, move |script, ctx| {
            let mut arguments: Vec<_> =
                about.map(|it| context::about(Some(it))).into_iter().collect();
            arguments.push(ctx);
            let returned = script.call(&function, arguments)?;
            to_json("the result", &returned).map_err(errors::of_value)
        })
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.run(move |script| {
            // Shared, so that the function changes this very value; what it returns does not matter.
            let body = plain(&body).into_shared();
            drop(script.call(&function, vec![body.clone()])?);
            to_json("body", &body.flatten()).map_err(errors::of_value)
        })
    }
}

/// The truth of filters: everything but `()` and false.
fn is_true(answer: &Dynamic) -> bool {
    !answer.is_unit() && answer.as_bool().unwrap_or(true)
}
