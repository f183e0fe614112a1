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

pub(crate) use self::script::{Load, Loaded};
pub use self::{
    host::{Prepared, ScriptHost, ScriptSet},
    script::Source,
    terms::{Placement, Terms},
    values::diagnostics::LoadError,
};
pub use crate::scripting::script::modules::{Digest, LoadedModule, Modules, shown as shown_module};
