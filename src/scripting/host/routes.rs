//! Where functions live: the engines of all scripts that anybody still has a function of.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Weak},
};

use parking_lot::{Mutex, MutexGuard};

use crate::call::Scripts;
use crate::logic::handlers::function::{self, Function, ScriptId};
use crate::scripting::Source;
use crate::settings::Settings;

/// All engines. They come with their script, and leave when the last reference to it goes.
#[derive(Default)]
pub(super) struct Routes {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    homes: BTreeMap<ScriptId, Weak<Home>>,
    /// As they were told last, for engines that come later.
    settings: Option<Settings>,
}

/// One script's engine, which the functions of the script keep.
pub(super) struct Home {
    script: ScriptId,
    source: Source,
    engine: Arc<dyn Scripts>,
    routes: Weak<Routes>,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Takes in an engine.
    pub(super) fn admit(
        self: &Arc<Self>,
        script: ScriptId,
        source: Source,
        engine: Arc<dyn Scripts>,
    ) -> Arc<Home> {
        let home = Arc::new(Home { script, source, engine, routes: Arc::downgrade(self) });
        let mut state = self.lock();
        if let Some(settings) = &state.settings {
            home.engine.configure(settings);
        }
        state.homes.insert(script, Arc::downgrade(&home));
        home
    }

    /// Tells all engines, also those to come.
    pub(super) fn configure(&self, settings: &Settings) {
        let homes: Vec<_> = {
            let mut state = self.lock();
            state.settings = Some(settings.clone());
            // Not dropped below the lock, which their end takes too.
            state.homes.values().filter_map(Weak::upgrade).collect()
        };
        for home in homes {
            home.engine.configure(settings);
        }
    }

    /// Where a function lives. Those that handlers have know it; those that calls have made are looked up.
    pub(super) fn home(&self, function: &Function) -> Option<Arc<Home>> {
        let known = function.owner().map(|it| Arc::clone(it).downcast::<Home>());
        known.and_then(Result::ok).or_else(|| self.home_of(function.script))
    }

    /// What is known of a script that anybody still has a function of.
    pub(super) fn home_of(&self, script: ScriptId) -> Option<Arc<Home>> {
        self.lock().homes.get(&script).and_then(Weak::upgrade)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.lock().homes.len()
    }
}

impl Home {
    /// The text of the script and its modules.
    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    /// Calls the functions of the script.
    pub(super) fn engine(&self) -> &Arc<dyn Scripts> {
        &self.engine
    }

    /// For the functions of the script.
    pub(super) fn token(self: &Arc<Self>) -> function::Owner {
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
