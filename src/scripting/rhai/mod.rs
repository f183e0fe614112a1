//! The Rhai engine: one `Engine` per script, calls on a bounded number of threads, all waiting through the runtime's clock.
#![expect(clippy::unnecessary_box_returns, reason = "Rhai takes and gives its errors boxed")]

mod api;
mod context;
mod errors;
mod functions;
mod handles;
mod limits;
mod modules;
mod rules;
mod script;
mod store;
#[cfg(test)]
mod tests;
mod value;
mod view;
mod vm;

use std::sync::Arc;

use futures::FutureExt as _;
use rhai::Dynamic;
use serde_json::Value;
use tokio::task::consume_budget;

use self::{context::Ctx, script::RhaiScript, value::plain, view::View, vm::Vm};
use super::{
    LoadError, Loaded, Source, Terms,
    blocking::{
        control::{self, admit_result, given},
        present,
        runner::JobRunner,
    },
};
use crate::call::{AwaitedCall, Invocation, Scripts, Stopped};
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::{Function, ScriptId},
        handler::Kind,
        outcome::{CallEnd, Raised},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;
use crate::scripting::handles::ctx::record;
use crate::settings::Settings;

/// A loaded script and the threads that it runs on.
struct RhaiEngine {
    vm: Arc<Vm>,
    runner: Arc<JobRunner>,
}

/// Compiles a script, runs its top level, and collects its declarations.
pub(crate) fn load(
    id: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    let (runner, source) =
        (JobRunner::new(format!("rhai-{}", id.0), &source.name, terms), source.clone());
    let terms = terms.clone();
    async move {
        let file = source.name.clone();
        let of_load = (source.clone(), terms.clone());
        let loaded = runner.run(move || script::load(id, &of_load.0, &of_load.1)).await;
        let (script, handlers, lifecycles) = loaded.unwrap_or_else(|error| {
            let message = error.to_string();
            Err(LoadError {
                file,
                line: None,
                columns: None,
                source_line: None,
                message,
                hint: None,
            })
        })?;
        let runner = Arc::new(runner);
        let vm = Vm::new(id, (source, terms), Arc::clone(&runner), (script, &handlers));
        let engine = RhaiEngine { vm: Arc::new(vm), runner };
        Ok(Loaded { engine: Arc::new(engine), handlers, lifecycles })
    }
    .boxed()
}

impl RhaiEngine {
    /// Runs a job with the script, on one of its threads.
    fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&RhaiScript) -> Result<T, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        let (vm, runner) = (Arc::clone(&self.vm), Arc::clone(&self.runner));
        async move {
            let result = runner.run(move || vm.with(job)).await;
            result.unwrap_or_else(|error| Err(errors::of_runner(&error)))
        }
        .boxed()
    }

    /// Runs a job of an invocation, inline if its function is short; the job gets the `ctx` of the invocation, and may run twice.
    fn run_about<T: Send + 'static>(
        &self,
        function: Function,
        invocation: Arc<Invocation>,
        job: impl Fn(&RhaiScript, Dynamic) -> Result<T, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, Raised>> {
        // The parent handler, in the same script, holds a thread while it waits for its sub-handler.
        let is_within = invocation.handler.kind == Kind::Sub;
        let (vm, runner) = (Arc::clone(&self.vm), Arc::clone(&self.runner));
        // Dropped here and last: the memory of the invocation is the host's, not the script's.
        let keep = AwaitedCall::new(Arc::clone(&invocation));
        let job = about(Arc::clone(&self.vm), invocation, job);
        async move {
            // Inline calls never yield, and must not starve other tasks.
            consume_budget().await;
            let inline = || {
                if runner.delays(&keep) { None } else { vm.inline(&function, &keep) }
            };
            let result = match runner.run_inline(inline, &job) {
                Some(result) => result,
                None if is_within => runner.run_within(job).await,
                None => runner.run(job).await,
            };
            drop(keep);
            result.unwrap_or_else(|error| Err(errors::of_runner(&error)))
        }
        .boxed()
    }

    /// Runs the job of a daemon or a timer. Returns `None` without running it if it must stop before it gets a thread.
    fn run_background<T: Send + 'static>(
        &self,
        stopped: Stopped,
        invocation: Arc<Invocation>,
        job: impl Fn(&RhaiScript, Dynamic) -> Result<Option<T>, Raised> + Send + 'static,
    ) -> BoxFuture<'static, Result<Option<T>, Raised>> {
        let runner = Arc::clone(&self.runner);
        let keep = AwaitedCall::new(Arc::clone(&invocation));
        let job = about(Arc::clone(&self.vm), invocation, job);
        async move {
            let result = match runner.run_background(&stopped, job).await {
                Ok(result) => result.unwrap_or(Ok(None)),
                Err(error) => Err(errors::of_runner(&error)),
            };
            drop(keep);
            result
        }
        .boxed()
    }
}

/// Wraps a job so that it runs for this invocation and gets its `ctx`.
fn about<T>(
    vm: Arc<Vm>,
    invocation: Arc<Invocation>,
    job: impl Fn(&RhaiScript, Dynamic) -> Result<T, Raised>,
) -> impl Fn() -> Result<T, Raised> {
    move || {
        let ctx = Dynamic::from(Ctx::new(Arc::clone(&invocation)));
        let call = Arc::clone(&invocation);
        let result = present::during(Some(Arc::clone(&invocation)), || {
            vm.with(|script| {
                let result = job(script, ctx);
                given(|| script.ended(&call));
                result
            })
        });
        // Short functions retain nothing of their calls.
        if !control::is_inline() {
            control::leave(&call);
        }
        result
    }
}

impl Scripts for RhaiEngine {
    fn configure(&self, settings: &Settings) {
        self.runner.limit(settings.execution.max_workers);
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let stopped = invocation.background().map(|it| it.stopped.clone());
        let function = invocation.handler.function.clone();
        let kind = invocation.handler.kind;
        let call = Arc::clone(&invocation);
        let job = move |script: &RhaiScript, ctx| {
            control::wait_for_patches(&call).map_err(errors::aborted)?;
            let result = script.call(&function, vec![ctx])?;
            let result = given(|| RhaiScript::result(&result, kind))?;
            let ended = CallEnd::Returned((!result.is_null()).then_some(result));
            admit_result(&call, &ended).map_err(errors::of_value)?;
            let CallEnd::Returned(result) = ended else { return Ok(None) };
            Ok(result)
        };
        let ended = match stopped {
            None => self.run_about(invocation.handler.function.clone(), invocation, job),
            Some(stopped) => self.run_background(stopped, invocation, job),
        };
        ended.map(|it| it.map_or_else(CallEnd::Raised, CallEnd::Returned)).boxed()
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.run_about(question.function.clone(), invocation, move |script, ctx| {
            let mut arguments: Vec<_> =
                question.about.clone().map(context::about).into_iter().collect();
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
            let record = View::tree(record(&resource));
            Ok(is_true(&script.call(&function, vec![record])?))
        })
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        let kind = invocation.handler.kind;
        self.run_about(function.clone(), invocation, move |script, ctx| {
            let mut arguments: Vec<_> =
                about.clone().map(|it| context::about(Some(it))).into_iter().collect();
            arguments.push(ctx);
            let returned = script.call(&function, arguments)?;
            given(|| RhaiScript::result(&returned, kind))
        })
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.run(move |script| {
            // Shared, so that the function modifies this value in place; its return value is ignored.
            let changed = plain(&body).into_shared();
            given(|| drop(body));
            drop(script.call(&function, vec![changed.clone()])?);
            let changed = changed.flatten();
            given(|| RhaiScript::json("body", &changed))
        })
    }
}

/// Returns whether the result of a filter counts as true: everything except `()` and `false`.
fn is_true(answer: &Dynamic) -> bool {
    !answer.is_unit() && answer.as_bool().unwrap_or(true)
}
