//! Handlers keep their scripts alive; the handlers that scripts see do not.
//!
//! A script stays loaded as long as any of its functions is referenced, and the operator references them through handlers. But scripts can
//! store `ctx`, and `ctx` refers to its handler: a script that stored it would keep itself loaded. So each handler has a twin, without
//! these references, for the calls.

use std::sync::Arc;

use super::{
    function::{Function, FunctionOwner, ScriptId},
    handler::{Callback, Criterion, Filters, Handler, InitialDelay},
    lifecycle::Chooser,
};

impl Handler {
    /// Returns the handler with functions that keep their script alive.
    #[must_use]
    pub fn with_owner(self, owner: &FunctionOwner) -> Handler {
        let mut for_scripts = self.clone();
        for_scripts.each_function(&mut |it| *it = it.clone().without_owner());
        let mut handler = Handler { for_scripts: Some(Arc::new(for_scripts)), ..self };
        handler.each_function(&mut |it| *it = it.clone().with_owner(owner));
        handler
    }

    /// Returns the twin for calls, which scripts may store.
    #[must_use]
    pub fn for_scripts(self: &Arc<Self>) -> Arc<Handler> {
        Arc::clone(self.for_scripts.as_ref().unwrap_or(self))
    }

    fn each_function(&mut self, change: &mut dyn FnMut(&mut Function)) {
        change(&mut self.function);
        self.selector.iter_mut().filter_map(|it| it.function.as_mut()).for_each(&mut *change);
        self.filters.each_function(change);
        if let Some(InitialDelay::Computed(function)) = &mut self.background.initial_delay {
            change(function);
        }
        if let Some(options) = &mut self.reconcile {
            let options = Arc::make_mut(options);
            options.finalize.iter_mut().for_each(&mut *change);
            options.watches.iter_mut().filter_map(|it| it.map.as_mut()).for_each(&mut *change);
        }
    }
}

impl Filters {
    /// Returns whether both are equal, except for which functions they refer to.
    pub(in crate::logic) fn is_alike(&self, other: &Filters) -> bool {
        let without_functions = |it: &Filters| {
            let mut filters = it.clone();
            filters.each_function(&mut |it| *it = Function::new(ScriptId(0), 0, ""));
            filters
        };
        without_functions(self) == without_functions(other)
    }

    fn each_function(&mut self, change: &mut dyn FnMut(&mut Function)) {
        let Filters { labels, annotations, field: _, value, old, new, when } = self;
        let metadata = labels.iter_mut().chain(annotations).map(|(_, criterion)| criterion);
        let values = value.iter_mut().chain(old).chain(new);
        for criterion in metadata.chain(values) {
            match criterion {
                Criterion::Callback(callback) => callback.each_function(change),
                Criterion::Equals(_) | Criterion::Present | Criterion::Absent => {}
            }
        }
        if let Some(callback) = when {
            callback.each_function(change);
        }
    }
}

impl Callback {
    fn each_function(&mut self, change: &mut dyn FnMut(&mut Function)) {
        match self {
            Callback::Function(function) => change(function),
            Callback::All(all) | Callback::Any(all) | Callback::None(all) => {
                for callback in all {
                    callback.each_function(change);
                }
            }
            Callback::Not(callback) => callback.each_function(change),
        }
    }
}

impl Chooser {
    /// Returns the chooser with a function that keeps its script alive.
    #[must_use]
    pub fn with_owner(self, owner: &FunctionOwner) -> Chooser {
        match self {
            Chooser::Custom(function) => Chooser::Custom(function.with_owner(owner)),
            Chooser::BuiltIn(_) => self,
        }
    }
}
