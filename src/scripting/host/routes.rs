//! Finds the engines of functions: those of all scripts with referenced functions.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};

use crate::call::Scripts;
use crate::logic::handlers::function::{self, Function, ScriptId};
use crate::scripting::{Source, script::index_names::IndexNames};
use crate::settings::Settings;

/// All engines. They are added with their script, and removed with the last reference to it.
#[derive(Default)]
pub(super) struct Routes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    homes: BTreeMap<ScriptId, Weak<Home>>,
    /// The latest settings, for engines that are added later.
    settings: Option<Settings>,
}

/// The engine of one script, which the functions of the script keep alive.
pub(super) struct Home {
    script: ScriptId,
    source: Source,
    engine: Arc<dyn Scripts>,
    /// The indexes that it names.
    index_names: Mutex<IndexNames>,
    routes: Weak<Routes>,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds an engine with the latest settings.
    pub(super) fn admit(
        self: &Arc<Self>,
        script: ScriptId,
        source: Source,
        engine: Arc<dyn Scripts>,
    ) -> Arc<Home> {
        let (index_names, routes) = (Mutex::default(), Arc::downgrade(self));
        let home = Arc::new(Home { script, source, engine, index_names, routes });
        let mut state = self.lock();
        if let Some(settings) = &state.settings {
            home.engine.configure(settings);
        }
        state.homes.insert(script, Arc::downgrade(&home));
        home
    }

    /// Passes the settings to all engines, including later ones.
    pub(super) fn configure(&self, settings: &Settings) {
        let homes: Vec<_> = {
            let mut state = self.lock();
            state.settings = Some(settings.clone());
            // Not dropped while the lock is held, because dropping them takes it, too.
            state.homes.values().filter_map(Weak::upgrade).collect()
        };
        for home in homes {
            home.engine.configure(settings);
        }
    }

    /// Returns the home of a function. Functions of handlers know it; those that calls have created are looked up.
    pub(super) fn home(&self, function: &Function) -> Option<Arc<Home>> {
        let known = function.owner().map(|it| Arc::clone(it).downcast::<Home>());
        known.and_then(Result::ok).or_else(|| self.home_of(function.script))
    }

    /// Returns the home of a script with referenced functions.
    pub(super) fn home_of(&self, script: ScriptId) -> Option<Arc<Home>> {
        self.lock().homes.get(&script).and_then(Weak::upgrade)
    }

    /// Returns the number of engines.
    pub(super) fn len(&self) -> usize {
        self.lock().homes.len()
    }
}

impl Home {
    /// Returns the source of the script and its modules.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Returns the engine, which calls the functions of the script.
    pub(super) fn engine(&self) -> &Arc<dyn Scripts> {
        &self.engine
    }

    /// Stores which indexes the script names.
    pub(super) fn set_index_names(&self, names: IndexNames) {
        *self.index_names.lock() = names;
    }

    /// Returns whether the script may use this index.
    pub(super) fn may_use_index(&self, id: &str) -> bool {
        self.index_names.lock().may_include(id)
    }

    /// Returns a token that keeps this home alive, for functions of the script.
    pub(super) fn token(self: &Arc<Self>) -> function::FunctionOwner {
        Arc::<Home>::clone(self)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(routes) = self.routes.upgrade() {
            routes.lock().homes.remove(&self.script);
        }
    }
}

impl fmt::Debug for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the script {}", self.script.0)
    }
}
