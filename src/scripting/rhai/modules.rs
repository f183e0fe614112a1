//! `import`: modules beside the script, and nowhere else.
//!
//! `import "lib/naming" as naming` finds `lib/naming.rhai` below the directory of the script. What would lead out of it is
//! refused, by name and by symlink; the symlinks that a ConfigMap mount is made of stay within.

use std::{
    collections::BTreeMap,
    fs,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
};

use rhai::{
    Engine, EvalAltResult, Module, ModuleResolver, Position, Scope, Shared as SharedModule,
};

use super::{
    errors::{Sources, problem},
    shadowed,
};

/// Larger than any module somebody writes; keeps a wrong file from filling the memory.
const MODULE_BYTES_MAX: u64 = 1024 * 1024;

/// Resolves the imports of one script.
pub(super) struct Modules {
    /// The script as the user named it: modules are shown relative to it.
    script: PathBuf,
    /// Where to look; `None` for scripts that are in no file.
    directory: Option<PathBuf>,
    sources: Arc<Sources>,
    loaded: Mutex<BTreeMap<PathBuf, Progress>>,
}

enum Progress {
    /// Its top level runs on this thread: importing it there again is a circle.
    Loading(ThreadId),
    Loaded(SharedModule<Module>),
}

impl Modules {
    pub(super) fn new(script: &str, path: Option<&Path>, sources: Arc<Sources>) -> Self {
        let directory = path.map(|it| match it.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            Some(_) | None => PathBuf::from("."),
        });
        Modules { script: script.into(), directory, sources, loaded: Mutex::default() }
    }

    fn loaded(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Progress>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The file of a module; the error is the reason without the name.
    fn find(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.directory.as_ref().ok_or("the script is in no directory")?;
        let relative = Path::new(name);
        let normal = |it: Component<'_>| matches!(it, Component::Normal(_));
        if name.is_empty() || !relative.components().all(normal) {
            return Err("a module is named by its path below the script's directory".into());
        }
        let mut file = relative.as_os_str().to_owned();
        if relative.extension().is_none_or(|it| it != "rhai") {
            file.push(".rhai");
        }
        let missing = |error: std::io::Error| error.to_string();
        let root = directory.canonicalize().map_err(missing)?;
        let file = root.join(file).canonicalize().map_err(missing)?;
        if file.starts_with(&root) {
            Ok(file)
        } else {
            Err("it leads out of the script's directory".into())
        }
    }

    fn read(file: &Path) -> Result<String, String> {
        let size = fs::metadata(file).map_err(|error| error.to_string())?.len();
        if size > MODULE_BYTES_MAX {
            return Err(format!("it is larger than {MODULE_BYTES_MAX} bytes"));
        }
        fs::read_to_string(file).map_err(|error| error.to_string())
    }

    /// Runs the top level of a module.
    fn load(
        &self,
        engine: &Engine,
        name: &str,
        file: &Path,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        let shown = self.script.with_file_name(name).with_extension("rhai").display().to_string();
        let text = Modules::read(file)
            .map_err(|reason| problem(format!("cannot import \"{name}\": {reason}")))?;
        self.sources.insert(&shown, &text);
        let within = |error: Box<EvalAltResult>| {
            EvalAltResult::ErrorInModule(shown.clone(), error, Position::NONE).into()
        };
        let mut ast = engine.compile(&text).map_err(|error| within(error.into()))?;
        if let Some((position, refused)) = shadowed::find(&ast) {
            let mut error = refused.into_error();
            error.set_position(position);
            return Err(within(error));
        }
        ast.set_source(shown.as_str());
        Module::eval_ast_as_new(Scope::new(), &ast, engine).map(SharedModule::new).map_err(within)
    }
}

impl ModuleResolver for Modules {
    fn resolve(
        &self,
        engine: &Engine,
        _source: Option<&str>,
        name: &str,
        position: Position,
    ) -> Result<SharedModule<Module>, Box<EvalAltResult>> {
        let refuse = |reason: &str| {
            let message = format!("cannot import \"{name}\": {reason}");
            Box::new(EvalAltResult::ErrorRuntime(message.into(), position))
        };
        let this_thread = thread::current().id();
        let file = self.find(name).map_err(|reason| refuse(&reason))?;
        match self.loaded().get(&file) {
            Some(Progress::Loaded(module)) => return Ok(SharedModule::clone(module)),
            Some(Progress::Loading(thread)) if *thread == this_thread => {
                return Err(refuse("it imports itself"));
            }
            // Another call may be loading it too; both results are the same.
            Some(Progress::Loading(_)) | None => {}
        }
        self.loaded().insert(file.clone(), Progress::Loading(this_thread));
        let result = self.load(engine, name, &file);
        match &result {
            Ok(module) => {
                self.loaded().insert(file, Progress::Loaded(SharedModule::clone(module)));
            }
            Err(_) => {
                self.loaded().remove(&file);
            }
        }
        result
    }
}
