//! Adapter: Lua and Rhai. One script file is one sandboxed VM and one failure domain.
//!
//! [`ScriptHost`] implements `call::Scripts` for the operator: it finds the script of a function and passes the call to its engine.
//! The engines differ only in how values and calls are represented; `handles/` and `functions/` decide what a script sees,
//! `logic/handlers/declare/` what a declaration means.

mod actor;
mod blocking;
mod functions;
mod handles;
mod host;
mod inline;
mod lua;
mod rhai;
mod script;
pub mod surface;
mod terms;
mod values;

pub(crate) use self::script::{
    Load, Loaded,
    bounds::SCRIPT_BYTES_MAX,
    fingerprint::{EXPRESSION, STRING_CONTINUES, Token, TokenKind, lex},
    modules::{file_of as module_file, library_of as module_library},
    priority::lower_priority,
};
pub use self::{
    host::{Inspect, Inspection, Prepared, ScriptHost, ScriptSet},
    script::Source,
    terms::{Language, Placement, Terms},
    values::diagnostics::{Columns, LoadError},
};
pub use crate::scripting::script::{
    kube_calls::{KubeCall, KubeCalls, KubeTarget, kinds_in_yaml, kube_calls},
    modules::{Digest, LoadedModule, Modules, shown as shown_module},
};
