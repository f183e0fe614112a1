//! The scripts of all generations, behind the one interface that the inner side calls.
//!
//! A generation is prepared beside the one that runs (`prepare.rs`); a script that did not change goes from the one to the
//! next as it is. Nobody ends a script: it goes with the last reference to one of its functions (`routes.rs`).

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
        outcome::{Ended, Raised},
    },
    object::resource::Resource,
};
use crate::ports::BoxFuture;
use crate::settings::Settings;

/// Loads scripts, and calls their functions as long as anybody has these.
pub struct ScriptHost {
    terms: Terms,
    inspect: Option<Inspect>,
    routes: Arc<Routes>,
    /// The generation that runs.
    taken: Mutex<ScriptSet>,
}

impl ScriptHost {
    /// Without any script.
    pub fn new(terms: impl Into<Terms>) -> Self {
        let (terms, routes, taken) = (terms.into(), Arc::default(), Mutex::default());
        ScriptHost { terms, inspect: None, routes, taken }
    }

    /// Checks scripts after they were loaded, and rejects those with mistakes.
    #[must_use]
    pub fn inspecting(self, inspect: Inspect) -> Self {
        ScriptHost { inspect: Some(inspect), ..self }
    }

    /// Loads scripts and takes them at once, for whoever has but one generation: gives what they declare, or all errors.
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

    /// Loads the next generation beside the present one, in this order, and gives what it declares in the same order; or all
    /// errors, if any. What is dropped without being taken leaves nothing behind.
    ///
    /// A script that is also in the present generation, with the same text and the same modules, is not loaded again: its
    /// functions are the very same.
    ///
    /// With [`super::Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
    pub async fn prepare(&self, sources: Vec<Source>) -> Result<Prepared, Vec<LoadError>> {
        let present = self.taken.lock().clone();
        prepare::prepare(&self.routes, &self.terms, (&present, self.inspect), sources).await
    }

    /// From now on this is the present generation. The one before goes as soon as nobody has its functions.
    pub fn take(&self, scripts: ScriptSet) {
        self.terms.metrics.scripts(scripts.texts());
        let before = std::mem::replace(&mut *self.taken.lock(), scripts);
        // When the lock is open again: this may end virtual machines.
        drop(before);
    }

    /// How many scripts are loaded: of the present generation, of those that are prepared, and of those before as far as
    /// anybody still has their functions.
    pub fn live_scripts(&self) -> usize {
        self.routes.len()
    }

    /// Makes a call of a function, where that lives.
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

    fn names(&self, script: ScriptId, name: &str) -> bool {
        self.routes.home_of(script).is_none_or(|it| {
            let Source { text, modules, .. } = it.source();
            text.contains(name) || modules.name(name)
        })
    }

    fn configure(&self, settings: &Settings) {
        self.routes.configure(settings);
    }

    fn keep(&self, function: Function) -> Function {
        let home = self.routes.home(&function).as_ref().map(Home::token);
        home.map_or_else(|| function.clone(), |it| function.clone().with_owner(&it))
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended> {
        let function = invocation.handler.function.clone();
        self.at_home(&function, |engine| engine.call(invocation), Ended::Raised)
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
        self.at_home(&function.clone(), |engine| engine.transform(function, body), Err)
    }
}

/// Neither of the present generation nor of one that anybody still has a function of.
fn unknown_script() -> Raised {
    Raised::of_host("the script of this function is not loaded")
}
