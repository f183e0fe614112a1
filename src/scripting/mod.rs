//! Adapter: Lua and Rhai. One script file is one sandboxed VM and one failure domain.
//!
//! [`ScriptHost`] is the `call::Scripts` of the operator: it finds the script of a function and hands the call to its
//! engine. Engines differ only in how values and calls look inside; what a script sees is decided in `handles/` and `functions/`,
//! what a declaration means in `logic/handlers/declare/`.

mod functions;
mod handles;
mod host;
mod lua;
mod rhai;
mod script;
pub mod surface;
mod terms;
mod values;

pub(crate) use self::script::{
    Load, Loaded,
    fingerprint::{EXPRESSION, Kind as TokenKind, TEXT_GOES_ON, Token, lex},
    modules::{file_of as module_file, library_of as module_library},
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
