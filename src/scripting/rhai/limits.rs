//! The limits of Rhai's own functions: those of the running call.

use kopf_rhai::{Fallible, Limits, builtins};
use rhai::{Dynamic, Engine, EvalAltResult};

use crate::scripting::{
    blocking::control::{self, Abort},
    values::{limits, refused},
};

/// The limits of the running call of this thread.
struct CallLimits;

impl Limits for CallLimits {
    const ITEMS_MAX: usize = limits::ITEMS_MAX;
    const DEPTH_MAX: usize = refused::DEPTH_MAX;

    fn step() -> Fallible<()> {
        Ok(control::step()?)
    }

    fn reserve(bytes: usize) -> Fallible<()> {
        Ok(control::reserve(bytes)?)
    }

    fn string_size() -> usize {
        control::sizes().1
    }

    fn too_long() -> Box<EvalAltResult> {
        Abort::TooLong(control::sizes().1).raised().into()
    }

    fn too_many(what: &'static str) -> Box<EvalAltResult> {
        Abort::TooMany(what).raised().into()
    }
}

/// Fails if the value of a variable that the script reads is too large.
pub(super) fn check_size(value: &Dynamic) -> Fallible<()> {
    builtins::check_size::<CallLimits>(value)
}

/// Registers the replacements of Rhai's own functions in an engine.
pub(super) fn register(engine: &mut Engine) {
    builtins::register::<CallLimits>(engine);
}
