//! The scripts of all generations, behind the interface that the operator calls.
//!
//! A generation is prepared next to the live one (`prepare.rs`); a script that did not change is part of both. Scripts are not
//! stopped explicitly: a script ends with the last reference to one of its functions (`routes.rs`).

mod codes;
mod inspection;
mod prepare;
mod routes;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use self::routes::{Home, Routes};
pub use self::{
    inspection::{Inspect, Inspection},
    prepare::{Prepared, ScriptSet},
};
use super::{LoadError, Source, Terms};
use crate::call::{Invocation, Scripts};
use crate::logic::{
    change::filters::Question,
    handlers::{
        function::{Function, ScriptId},
        handler::Handler,
        lifecycle::Chooser,
        outcome::{CallEnd, Raised},
    },
    object::{
        measure::{self, ITEMS_MAX},
        resource::Resource,
    },
};
use crate::ports::BoxFuture;
use crate::settings::Settings;

/// Loads scripts, and calls their functions as long as these are referenced.
pub struct ScriptHost {
    terms: Terms,
    inspect: Option<Inspect>,
    routes: Arc<Routes>,
    /// The scripts of the live generation.
    taken: Mutex<ScriptSet>,
}

impl ScriptHost {
    /// Creates a host without scripts.
    pub fn new(terms: impl Into<Terms>) -> Self {
        let (terms, routes, taken) = (terms.into(), Arc::default(), Mutex::default());
        ScriptHost { terms, inspect: None, routes, taken }
    }

    /// Checks scripts after they were loaded, and rejects those with errors.
    #[must_use]
    pub fn inspecting(self, inspect: Inspect) -> Self {
        ScriptHost { inspect: Some(inspect), ..self }
    }

    /// Loads scripts and takes them at once, for callers with only one generation. Returns what they declare, or all errors.
    ///
    /// With [`super::Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
    pub async fn load(
        sources: Vec<Source>,
        terms: impl Into<Terms>,
    ) -> Result<(ScriptHost, Vec<Handler>), Vec<LoadError>> {
        let host = ScriptHost::new(terms);
        let Prepared { handlers, scripts, .. } = host.prepare(sources).await?;
        host.take(scripts);
        Ok((host, handlers))
    }

    /// Loads the next generation next to the live one, in this order. Returns what it declares, in the same order, or all errors. A
    /// generation that is dropped without being taken has no effect.
    ///
    /// A script that is also in the live generation, with the same source and the same modules, is not loaded again: its functions
    /// are identical.
    ///
    /// With [`super::Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
    pub async fn prepare(&self, sources: Vec<Source>) -> Result<Prepared, Vec<LoadError>> {
        let present = self.taken.lock().clone();
        prepare::prepare(&self.routes, &self.terms, (&present, self.inspect), sources).await
    }

    /// Makes this the live generation. The previous one ends as soon as its functions are no longer referenced.
    pub fn take(&self, scripts: ScriptSet) {
        self.terms.metrics.scripts(scripts.texts());
        let before = std::mem::replace(&mut *self.taken.lock(), scripts);
        // After the lock is released: this may end virtual machines.
        drop(before);
    }

    /// Returns how many scripts are loaded: those of the live generation, of prepared ones, and of previous ones whose functions
    /// are still referenced.
    pub fn live_scripts(&self) -> usize {
        self.routes.len()
    }

    /// Calls a function in its engine.
    fn at_home<T: Send + 'static>(
        &self,
        function: &Function,
        call: impl FnOnce(&dyn Scripts) -> BoxFuture<'static, T>,
        unknown: fn(Raised) -> T,
    ) -> BoxFuture<'static, T> {
        match self.routes.home(function) {
            Some(home) => call(&**home.engine()),
            None => Box::pin(async move { unknown(unknown_script()) }),
        }
    }
}

impl Scripts for ScriptHost {
    fn lifecycle(&self) -> Option<Chooser> {
        self.taken.lock().lifecycle()
    }

    fn may_use_index(&self, script: ScriptId, id: &str) -> bool {
        self.routes.home_of(script).is_none_or(|it| it.may_use_index(id))
    }

    fn configure(&self, settings: &Settings) {
        self.routes.configure(settings);
    }

    fn keep(&self, function: Function) -> Function {
        let home = self.routes.home(&function).as_ref().map(Home::token);
        home.map_or_else(|| function.clone(), |it| function.clone().with_owner(&it))
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, CallEnd> {
        let function = invocation.handler.function.clone();
        self.at_home(&function, |engine| engine.call(invocation), CallEnd::Raised)
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        let function = question.function.clone();
        self.at_home(&function, |engine| engine.ask(question, invocation), Err)
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        self.at_home(&function.clone(), |engine| engine.choose(function, resource), Err)
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        self.at_home(&function.clone(), |engine| engine.compute(function, about, invocation), Err)
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        let (before, placement) = (measure::items(&body), self.terms.placement);
        let changed =
            self.at_home(&function.clone(), |engine| engine.transform(function, body), Err);
        Box::pin(async move {
            let changed = changed.await?;
            let added = measure::items(&changed).saturating_sub(before);
            if added <= ITEMS_MAX {
                return Ok(changed);
            }
            // Not on the operator's thread: it takes long.
            let _freed = placement.run_blocking(move || drop(changed)).await;
            Err(Raised::of_host(format!(
                "a function of ctx.patch.fns would add more than {ITEMS_MAX} items to the body: {added}"
            )))
        })
    }
}

/// Returns the error of a script that is not in the live generation and has no referenced functions.
fn unknown_script() -> Raised {
    Raised::of_host("the script of this function is not loaded")
}
