//! Errors of servers as values of Rhai: see `scripting/functions/refusal.rs`.

use rhai::{Dynamic, Engine, EvalAltResult, ImmutableString, Position};

use crate::scripting::{functions::Refusal, rhai::value::plain};

/// What a server refused: what `catch` gives.
#[derive(Clone, Debug)]
pub(in crate::scripting::rhai) struct ServerError(pub(in crate::scripting::rhai) Box<Refusal>);

impl ServerError {
    /// To be raised.
    pub(super) fn into_error(self) -> Box<EvalAltResult> {
        EvalAltResult::ErrorRuntime(Dynamic::from(self), Position::NONE).into()
    }
}

/// What a script can do with one.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<ServerError>("error")
        .register_indexer_get(|it: &mut ServerError, name: ImmutableString| {
            plain(&it.0.field(&name))
        })
        .register_fn("to_string", |it: ServerError| it.0.message)
        .register_fn("to_debug", |it: ServerError| it.0.message)
        .register_fn("+", |text: ImmutableString, it: ServerError| {
            format!("{text}{}", it.0.message)
        })
        .register_fn("+", |it: ServerError, text: ImmutableString| {
            format!("{}{text}", it.0.message)
        });
}
