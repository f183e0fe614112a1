//! Prepares the next generation: which scripts are loaded, and which continue unchanged.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt as _, stream};
use tokio::time;

use super::{
    codes,
    inspection::{self, Inspect},
    routes::{Home, Routes},
};
use crate::logic::handlers::{
    function::ScriptId,
    handler::Handler,
    lifecycle::{Chooser, Lifecycle},
};
use crate::scripting::{
    Digest, Load, LoadError, Loaded, Placement, Source, Terms, lua, rhai,
    script::{
        bounds,
        index_names::{self, Ids, IndexSearch},
        modules,
    },
};

/// The languages, by the extension of their files.
const LANGUAGES: &[(&str, Load)] = &[("lua", lua::load), ("rhai", rhai::load)];
/// Maximum number of scripts that are loaded concurrently: each computes on separate threads, most of them for a millisecond.
const LOADING_MAX: usize = 8;
/// Maximum time of the top level of a script, including waiting: nothing else can be loaded meanwhile.
const TOP_LEVEL_MAX: Duration = Duration::from_secs(30);

/// A generation that is loaded. Its functions can be called; it ends as soon as they are no longer referenced.
#[derive(Debug)]
pub struct Prepared {
    /// The declared handlers, in order.
    pub handlers: Vec<Handler>,
    /// The default lifecycle, if a script sets it.
    pub lifecycle: Option<Chooser>,
    /// The scripts, for [`super::ScriptHost::take`].
    pub scripts: ScriptSet,
}

/// The scripts of one generation. Clones share them, and keep them alive.
#[derive(Clone, Debug, Default)]
pub struct ScriptSet(Vec<Arc<LoadedScript>>);

/// A loaded script and its handlers.
#[derive(Debug)]
struct LoadedScript {
    /// Its source and its engine. The engine lives as long as it is part of the live generation, even if the script declares
    /// nothing.
    home: Arc<Home>,
    /// The digest of its source.
    digest: Digest,
    /// What it has declared. These do not keep the engine alive, which would be a cycle.
    handlers: Vec<Handler>,
    lifecycles: Vec<Chooser>,
}

/// The result of preparing one source.
enum PreparedScript {
    Kept(Arc<LoadedScript>),
    Loaded(Arc<LoadedScript>),
}

impl ScriptSet {
    /// Returns the default lifecycle, if a script sets it: the last one counts.
    pub(super) fn lifecycle(&self) -> Option<Chooser> {
        self.0.iter().rev().find_map(|it| it.lifecycles().pop())
    }

    /// Returns the files of the scripts and of their modules, with the SHA-256 of their sources.
    pub(super) fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().flat_map(|script| {
            let Source { name, modules, .. } = script.home.source();
            let own = (name.clone(), script.digest.to_string());
            let digests = modules.digests().into_iter();
            let modules = digests.map(|(file, it)| (modules::shown(name, &file), it.to_string()));
            std::iter::once(own).chain(modules)
        })
    }

    /// Returns the script of this source, if loading it again would have the same result.
    fn find(&self, source: &Source) -> Option<Arc<LoadedScript>> {
        let is_same = |it: &&Arc<LoadedScript>| {
            let known = it.home.source();
            known.name == source.name
                && known.text == source.text
                && source.modules.finds_same(&known.modules.taken())
        };
        self.0.iter().find(is_same).map(Arc::clone)
    }
}

impl LoadedScript {
    fn handlers(&self) -> impl Iterator<Item = Handler> {
        let home = self.home.token();
        self.handlers.iter().map(move |it| it.clone().with_owner(&home))
    }

    fn lifecycles(&self) -> Vec<Chooser> {
        let home = self.home.token();
        self.lifecycles.iter().map(|it| it.clone().with_owner(&home)).collect()
    }
}

/// Loads the next generation: see [`super::ScriptHost::prepare`].
pub(super) async fn prepare(
    routes: &Arc<Routes>,
    terms: &Terms,
    (present, inspect): (&ScriptSet, Option<Inspect>),
    sources: Vec<Source>,
) -> Result<Prepared, Vec<LoadError>> {
    let width = match terms.placement {
        Placement::Threads => LOADING_MAX,
        // One after the other, so that their output has a fixed order.
        Placement::CurrentRuntime => 1,
    };
    let steps = sources.into_iter().map(|source| step(routes, terms, present, source));
    let steps: Vec<_> = stream::iter(steps).buffered(width).collect().await;
    let (mut scripts, mut handlers, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lifecycle, mut loaded) = (None, Vec::new());
    for step in steps {
        let (script, is_logged) = match step {
            Ok(PreparedScript::Kept(script)) => (script, true),
            Ok(PreparedScript::Loaded(script)) => {
                loaded.push(script.home.source().clone());
                (script, false)
            }
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        handlers.extend(script.handlers());
        for next in script.lifecycles() {
            override_lifecycle(&mut lifecycle, next, is_logged);
        }
        scripts.push(script);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let indexes = index_names::of_handlers(&handlers);
    inspection::inspect(inspect, terms, loaded, &indexes).await?;
    let scripts = ScriptSet(scripts);
    find_index_names(terms, &scripts, indexes).await;
    Ok(Prepared { handlers, lifecycle, scripts })
}

/// Finds out which of these indexes each script names. If this fails, each may use all of them.
async fn find_index_names(terms: &Terms, scripts: &ScriptSet, indexes: Ids) {
    let scripts = scripts.clone();
    let work = move || {
        let Some(search) = IndexSearch::new(indexes) else { return };
        for script in &scripts.0 {
            script.home.set_index_names(search.names_of(script.home.source()));
        }
    };
    let _ended = terms.placement.run_blocking(work).await;
}

async fn step(
    routes: &Arc<Routes>,
    terms: &Terms,
    present: &ScriptSet,
    source: Source,
) -> Result<PreparedScript, LoadError> {
    let digest = match examine(terms, present, &source).await? {
        Examined::Known(script) => return Ok(PreparedScript::Kept(script)),
        Examined::New(digest) => digest,
    };
    let script = next_id();
    let loaded = time::timeout(TOP_LEVEL_MAX, load(script, &source, terms)).await;
    let loaded = loaded.unwrap_or_else(|_late| Err(waits_too_long(&source)))?;
    let Loaded { engine, handlers, lifecycles } = loaded;
    let handlers = with_codes(terms, &source, handlers).await?;
    let home = routes.admit(script, source, engine);
    Ok(PreparedScript::Loaded(Arc::new(LoadedScript { home, digest, handlers, lifecycles })))
}

/// What a source turns out to be before it is loaded.
enum Examined {
    /// That of a script of the live generation.
    Known(Arc<LoadedScript>),
    /// Another one, with this digest.
    New(Digest),
}

/// Looks a source up in the live generation. Fails if it is too large to be compiled.
async fn examine(
    terms: &Terms,
    present: &ScriptSet,
    source: &Source,
) -> Result<Examined, LoadError> {
    let (present, own) = (present.clone(), source.clone());
    let work = move || {
        if let Some(script) = present.find(&own) {
            return Ok(Examined::Known(script));
        }
        match bounds::refused(&own.name, &own.text) {
            Some(problem) => {
                let hint = Some("split it into modules: they are counted separately".into());
                Err(LoadError { hint, ..own.error(problem) })
            }
            None => Ok(Examined::New(Digest::of(&own.text))),
        }
    };
    let done = terms.placement.run_blocking(work).await;
    done.unwrap_or_else(|error| Err(source.error(error.to_string())))
}

async fn with_codes(
    terms: &Terms,
    source: &Source,
    mut handlers: Vec<Handler>,
) -> Result<Vec<Handler>, LoadError> {
    let own = source.clone();
    let work = move || {
        codes::assign(&own, &mut handlers);
        handlers
    };
    let done = terms.placement.run_blocking(work).await;
    done.map_err(|error| source.error(error.to_string()))
}

fn waits_too_long(source: &Source) -> LoadError {
    let message =
        format!("the top level of the script takes longer than {} s", TOP_LEVEL_MAX.as_secs());
    let hint = Some(
        "declare only handlers at the top level; wait in `on_startup` or in another handler".into(),
    );
    LoadError { hint, ..source.error(message) }
}

async fn load(script: ScriptId, source: &Source, terms: &Terms) -> Result<Loaded, LoadError> {
    let extension = Path::new(&source.name).extension().unwrap_or_default();
    let language = LANGUAGES.iter().find(|(it, _)| extension == *it);
    let Some((_, load)) = language else {
        let hint = Some("expected .lua or .rhai".into());
        return Err(LoadError { hint, ..source.error("not a script") });
    };
    load(script, source, terms).await
}

/// Replaces the default lifecycle, which all scripts share. One is always set already; `is_logged` is whether replacing it was logged
/// before.
fn override_lifecycle(present: &mut Option<Chooser>, next: Chooser, is_logged: bool) {
    let before = present.take().unwrap_or_else(|| Lifecycle::default().into());
    if !is_logged {
        tracing::warn!(
            target: "kopf.lifecycles",
            "The default lifecycle is already set to {before}, overriding it to {next}."
        );
    }
    *present = Some(next);
}

/// Returns an id that is unique in the process, so that functions of replaced generations are never mistaken for new ones. This is
/// the one global counter: hosts do not know each other, so no caller could pass it in.
fn next_id() -> ScriptId {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    ScriptId(NEXT.fetch_add(1, Ordering::Relaxed))
}
