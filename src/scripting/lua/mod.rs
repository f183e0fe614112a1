//! The Lua engine: Luau in a sandboxed VM per script.
//!
//! `vm.rs` makes calls, for the actor of a script (`scripting/actor`); `views/`, `push.rs` and
//! `levels/` convert values for scripts; `read.rs` and `raised.rs` convert results and errors back.

mod functions;
mod gauge;
mod host_string;
mod host_table;
mod levels;
mod library;
mod modules;
mod natives;
mod push;
mod pushed;
mod raised;
mod read;
mod running;
mod slim;
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
