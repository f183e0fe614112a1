//! All scripts of one generation, behind the one interface that the inner side calls.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;

use super::{Load, LoadError, Loaded, Source, Terms, lua, rhai};
use crate::logic::{
    filters::Question,
    function::{Function, ScriptId},
    handler::Handler,
    lifecycle::{Chooser, Lifecycle},
    outcome::{Ended, Raised, RaisedKind},
    resource::Resource,
};
use crate::ports::{BoxFuture, Invocation, Scripts};
use crate::settings::Settings;

/// The languages, by the extension of their files.
const LANGUAGES: &[(&str, Load)] = &[("lua", lua::load), ("rhai", rhai::load)];

/// A generation of scripts: loaded together, replaced together, never changed.
pub struct ScriptHost {
    engines: BTreeMap<ScriptId, Arc<dyn Scripts>>,
    /// The default lifecycle, if a script set it.
    lifecycle: Option<Chooser>,
}

impl ScriptHost {
    /// Loads scripts in this order, and gives what they declare in the same order; or all errors, if any.
    ///
    /// With [`super::Placement::CurrentRuntime`], call it inside a `tokio::task::LocalSet`.
    pub async fn load(
        sources: Vec<Source>,
        terms: impl Into<Terms>,
    ) -> Result<(ScriptHost, Vec<Handler>), Vec<LoadError>> {
        let terms = terms.into();
        let (mut engines, mut handlers, mut errors) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut lifecycle = None;
        for source in &sources {
            let script = next_id();
            match load_one(script, source, &terms).await {
                Ok(loaded) => {
                    engines.insert(script, loaded.engine);
                    handlers.extend(loaded.handlers);
                    for next in loaded.lifecycles {
                        override_lifecycle(&mut lifecycle, next);
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok((ScriptHost { engines, lifecycle }, handlers))
        } else {
            Err(errors)
        }
    }

    fn engine(&self, function: &Function) -> Option<Arc<dyn Scripts>> {
        self.engines.get(&function.script).map(Arc::clone)
    }
}

impl Scripts for ScriptHost {
    fn lifecycle(&self) -> Option<Chooser> {
        self.lifecycle.clone()
    }

    fn configure(&self, settings: &Settings) {
        for engine in self.engines.values() {
            engine.configure(settings);
        }
    }

    fn call(&self, invocation: Arc<Invocation>) -> BoxFuture<'static, Ended> {
        match self.engine(&invocation.handler.function) {
            Some(engine) => engine.call(invocation),
            None => Box::pin(async { Ended::Raised(unknown_script()) }),
        }
    }

    fn ask(
        &self,
        question: Question,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        match self.engine(&question.function) {
            Some(engine) => engine.ask(question, invocation),
            None => Box::pin(async { Err(unknown_script()) }),
        }
    }

    fn choose(
        &self,
        function: Function,
        resource: Arc<Resource>,
    ) -> BoxFuture<'static, Result<bool, Raised>> {
        match self.engine(&function) {
            Some(engine) => engine.choose(function, resource),
            None => Box::pin(async { Err(unknown_script()) }),
        }
    }

    fn compute(
        &self,
        function: Function,
        about: Option<Value>,
        invocation: Arc<Invocation>,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        match self.engine(&function) {
            Some(engine) => engine.compute(function, about, invocation),
            None => Box::pin(async { Err(unknown_script()) }),
        }
    }

    fn transform(
        &self,
        function: Function,
        body: Value,
    ) -> BoxFuture<'static, Result<Value, Raised>> {
        match self.engine(&function) {
            Some(engine) => engine.transform(function, body),
            None => Box::pin(async { Err(unknown_script()) }),
        }
    }
}

async fn load_one(script: ScriptId, source: &Source, terms: &Terms) -> Result<Loaded, LoadError> {
    let extension = Path::new(&source.name).extension().unwrap_or_default();
    let language = LANGUAGES.iter().find(|(it, _)| extension == *it);
    let Some((_, load)) = language else {
        return Err(LoadError {
            file: source.name.clone(),
            line: None,
            source_line: None,
            message: "not a script".into(),
            hint: Some("scripts are .lua and .rhai files".into()),
        });
    };
    load(script, source, terms).await
}

/// There is one default for all scripts, and always one that is set already: whoever sets another should know.
fn override_lifecycle(present: &mut Option<Chooser>, next: Chooser) {
    let before = present.take().unwrap_or_else(|| Lifecycle::default().into());
    tracing::warn!(
        target: "kopf.lifecycles",
        "The default lifecycle is already set to {before}, overriding it to {next}."
    );
    *present = Some(next);
}

/// Ids are unique in the process, so that functions of replaced generations are never taken for new ones. This is the one
/// counter that no caller could pass in: generations do not know each other.
fn next_id() -> ScriptId {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    ScriptId(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// A function of another generation: its handlers should not be called here.
fn unknown_script() -> Raised {
    Raised {
        kind: RaisedKind::Arbitrary("HostError".into()),
        message: "the script of this function is not loaded".into(),
        trace: None,
    }
}
