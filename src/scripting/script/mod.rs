//! One script: its source, and what its top level has declared.

pub(super) mod bounds;
pub(super) mod fingerprint;
pub(super) mod index_names;
pub(super) mod kube_calls;
pub(super) mod modules;
pub(super) mod priority;
pub(super) mod running_time;

use std::sync::Arc;

use super::terms::Terms;
use crate::call::Scripts;
use crate::logic::handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser};
use crate::ports::BoxFuture;
use crate::scripting::{script::modules::Modules, values::diagnostics::LoadError};

/// A script as it was read.
#[derive(Clone, Debug)]
pub struct Source {
    /// The path as the user gave it, which messages show.
    pub name: String,
    /// The content of its file.
    pub text: String,
    /// What it can load. After a load, even a failed one: also what it has loaded.
    pub modules: Modules,
}

impl Source {
    /// Returns a script without modules.
    pub fn alone(name: impl Into<String>, text: impl Into<String>) -> Self {
        Source { name: name.into(), text: text.into(), modules: Modules::default() }
    }

    /// Returns an error about the script as a whole.
    pub(super) fn error(&self, message: impl Into<String>) -> LoadError {
        let (file, message) = (self.name.clone(), message.into());
        LoadError { file, line: None, columns: None, source_line: None, message, hint: None }
    }
}

/// A script whose top level has run.
pub(crate) struct Loaded {
    /// Calls the functions of this script; it knows no others.
    pub(crate) engine: Arc<dyn Scripts>,
    /// The declared handlers, in order.
    pub(crate) handlers: Vec<Handler>,
    /// The default lifecycles that it has set, in order.
    pub(crate) lifecycles: Vec<Chooser>,
}

/// Loads one script: compiles it, runs its top level, collects its declarations.
pub(crate) type Load =
    fn(ScriptId, &Source, &Terms) -> BoxFuture<'static, Result<Loaded, LoadError>>;
