//! `import`: see `scripting/script/modules` for where modules come from.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, ThreadId},
};

use kopf_rhai::problem;
use parking_lot::Mutex;
use rhai::{
    Engine, EvalAltResult, GlobalRuntimeState, Module, ModuleResolver, Position, Scope,
    Shared as SharedModule,
};

use super::{api, errors::ErrorSources, rules};
use crate::scripting::{Source, blocking::control, script::modules};

/// Resolves the imports of one script.
pub(super) struct RhaiModules {
    available: modules::Modules,
    /// The name of the script, for messages.
    script: String,
    sources: Arc<ErrorSources>,
    loaded: Mutex<BTreeMap<PathBuf, Progress>>,
}

enum Progress {
    /// Its top level runs on this thread: an import of it there is a cycle.
    Loading(ThreadId),
    Loaded(SharedModule<Module>),
}

impl RhaiModules {
    /// Creates the resolver of this script's modules.
    pub(super) fn of(source: &Source, sources: Arc<ErrorSources>) -> Self {
        let (available, script) = (source.modules.clone(), source.name.clone());
        RhaiModules { available, script, sources, loaded: Mutex::default() }
    }

    /// Compiles a module and runs its top level.
    fn load(
        &self,
        (engine, level): (&Engine, usize),
        name: &str,
        file: &Path,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        let shown = modules::shown(&self.script, file);
        let text = match (self.available.read(file, &self.script), api::library_module(name)) {
            (Ok(text), _) => text,
            // A module next to the script takes precedence.
            (Err(_), Some(library)) => return Ok(library),
            (Err(it), None) => return Err(problem(format!("module '{name}' {it}"))),
        };
        self.sources.texts.insert(&shown, Arc::clone(&text));
        let within = |error: Box<EvalAltResult>| {
            EvalAltResult::ErrorInModule(shown.clone(), error, Position::NONE).into()
        };
        let compiled = engine.compile(&text);
        // If a limit is reached, the parser stops early, with an error that does not say so.
        control::step()?;
        let mut ast = compiled.map_err(|error| within(error.into()))?;
        rules::check_calls(&ast).map_err(within)?;
        ast.set_source(shown.as_str());
        // The calls around the import still count: they are on the same stack.
        let mut global = engine.new_global_runtime_state();
        global.level = level;
        let module = Module::eval_ast_as_new_raw(engine, &mut Scope::new(), &mut global, &ast);
        module.map(SharedModule::new).map_err(within)
    }

    /// Returns the module of this name, for code that is nested in this many calls and imports; loads it if necessary.
    fn find(
        &self,
        (engine, level): (&Engine, usize),
        name: &str,
        position: Position,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        let refuse = |reason: String| {
            let message = format!("module '{name}' {reason}");
            Box::new(EvalAltResult::ErrorRuntime(message.into(), position))
        };
        if let Some(library) = modules::library_of(name).and_then(api::library_module) {
            return Ok(library);
        }
        let this_thread = thread::current().id();
        let file = modules::file_of(name, "rhai").map_err(|it| refuse(it.to_string()))?;
        match self.loaded.lock().get(&file) {
            Some(Progress::Loaded(module)) => return Ok(SharedModule::clone(module)),
            Some(Progress::Loading(thread)) if *thread == this_thread => {
                return Err(refuse("imports itself".into()));
            }
            // Another call may be loading it, too; both results are the same.
            Some(Progress::Loading(_)) | None => {}
        }
        if level >= engine.max_call_levels() {
            return Err(EvalAltResult::ErrorStackOverflow(position).into());
        }
        self.loaded.lock().insert(file.clone(), Progress::Loading(this_thread));
        let result = self.load((engine, level + 1), name, &file).map_err(|mut error| {
            if error.position().is_none() {
                error.set_position(position);
            }
            error
        });
        match &result {
            Ok(module) => {
                self.loaded.lock().insert(file, Progress::Loaded(SharedModule::clone(module)));
            }
            Err(_) => {
                self.loaded.lock().remove(&file);
            }
        }
        result
    }
}

impl ModuleResolver for RhaiModules {
    fn resolve(
        &self,
        engine: &Engine,
        _source: Option<&str>,
        name: &str,
        position: Position,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        self.find((engine, 0), name, position)
    }

    fn resolve_raw(
        &self,
        engine: &Engine,
        global: &mut GlobalRuntimeState,
        _scope: &mut Scope<'_>,
        name: &str,
        position: Position,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        self.find((engine, global.level), name, position)
    }
}
