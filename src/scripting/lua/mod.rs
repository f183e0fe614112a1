//! The Lua engine: Luau in a sandboxed VM per script.
//!
//! `vm.rs` makes calls, for the actor of a script (`scripting/actor`); `views/` converts values for scripts, with the tables of
//! [`kopf_luau`]; `read.rs` and `raised.rs` convert results and errors back. All that needs the raw API of Luau is in that package.

mod functions;
mod host_table;
mod library;
mod modules;
mod raised;
mod read;
mod running;
mod streams;
#[cfg(test)]
mod tests;
mod views;
mod vm;
mod watchdog;
mod world;

use self::vm::Vm;
use super::{LoadError, Loaded, Source, Terms, actor::engine};
use crate::logic::handlers::function::ScriptId;
use crate::ports::BoxFuture;

/// Loads a Lua script. With [`Placement::CurrentRuntime`](super::Placement), call it inside a `tokio::task::LocalSet`.
pub(crate) fn load(
    script: ScriptId,
    source: &Source,
    terms: &Terms,
) -> BoxFuture<'static, Result<Loaded, LoadError>> {
    engine::load::<Vm>(script, source, terms)
}
