//! One script: its source, and what its top level has declared.

pub(super) mod bounds;
pub(super) mod fingerprint;
pub(super) mod kube_calls;
pub(super) mod modules;
pub(super) mod running_time;

use std::sync::Arc;

use super::terms::Terms;
use crate::call::Scripts;
use crate::logic::handlers::{function::ScriptId, handler::Handler, lifecycle::Chooser};
use crate::ports::BoxFuture;
use crate::scripting::{script::modules::Modules, values::diagnostics::LoadError};

/// One script.
#[derive(Clone, Debug)]
pub struct Source {
    /// As shown in messages: the path as the user gave it.
    pub name: String,
    /// Its content.
    pub text: String,
    /// What it can load; and, when it has been loaded or could not be, what it did load.
    pub modules: Modules,
}

impl Source {
    /// A script without modules.
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
    /// Calls its functions; it knows no others.
    pub(crate) engine: Arc<dyn Scripts>,
    /// What it declared, in order.
    pub(crate) handlers: Vec<Handler>,
    /// The default lifecycles it set, in order.
    pub(crate) lifecycles: Vec<Chooser>,
}

/// Loads one script: compiles it, runs its top level, collects its declarations.
pub(crate) type Load =
    fn(ScriptId, &Source, &Terms) -> BoxFuture<'static, Result<Loaded, LoadError>>;
