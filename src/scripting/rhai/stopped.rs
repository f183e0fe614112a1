//! `ctx.stopped` of daemons and timers.

use rhai::{Array, Dynamic, Engine, EvalAltResult, INT, ImmutableString};
use serde_json::Value;

use super::{
    control::{self, Until},
    errors::problem,
    value::to_json,
};
use crate::logic::stopping::StopReasons;
use crate::ports::Stopped;
use crate::scripting::stopped;

/// The stop flag.
#[derive(Clone, Debug)]
pub(super) struct StopFlag(pub(super) Stopped);

/// `ctx.stopped.reason`
#[derive(Clone, Copy, Debug)]
pub(super) struct Reasons(StopReasons);

impl StopFlag {
    fn wait(&self, timeout: &Dynamic) -> Result<bool, Box<EvalAltResult>> {
        let timeout = to_json("stopped.wait", timeout).map_err(problem)?;
        let timeout = stopped::timeout(&timeout).map_err(problem)?;
        control::wait(Until::Stopped(self.0.clone(), timeout))?;
        Ok(self.0.is_set())
    }

    fn reason(&self) -> Dynamic {
        stopped::reasons(&self.0).map_or(Dynamic::UNIT, |it| Dynamic::from(Reasons(it)))
    }
}

impl Reasons {
    /// The names.
    pub(super) fn json(self) -> Value {
        stopped::listed(self.0)
    }

    fn names(self) -> Array {
        self.0.iter().map(|it| it.as_str().into()).collect()
    }
}

impl IntoIterator for Reasons {
    type Item = Dynamic;
    type IntoIter = std::vec::IntoIter<Dynamic>;

    fn into_iter(self) -> Self::IntoIter {
        self.names().into_iter()
    }
}

/// Teaches an engine the flag. Methods take it by value: Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<StopFlag>("stopped")
        .register_fn("wait", |flag: StopFlag| flag.wait(&Dynamic::UNIT))
        .register_fn("wait", |flag: StopFlag, timeout: Dynamic| flag.wait(&timeout))
        .register_fn("is_set", |flag: StopFlag| flag.0.is_set())
        .register_get("reason", |flag: &mut StopFlag| flag.reason())
        .register_fn("to_string", |flag: StopFlag| stopped::shown(&flag.0))
        .register_fn("to_debug", |flag: StopFlag| stopped::shown(&flag.0))
        .register_type_with_name::<Reasons>("stop reasons")
        .register_fn("contains", |reasons: Reasons, name: ImmutableString| {
            stopped::contains(reasons.0, &name).map_err(problem)
        })
        .register_fn("len", |reasons: Reasons| {
            INT::try_from(reasons.0.iter().count()).unwrap_or(INT::MAX)
        })
        .register_indexer_get(|reasons: &mut Reasons, place: INT| {
            let found = usize::try_from(place).ok().and_then(|it| reasons.0.iter().nth(it));
            found.map_or(Dynamic::UNIT, |it| it.as_str().into())
        })
        .register_fn("to_string", |reasons: Reasons| reasons.0.to_string())
        .register_fn("to_debug", |reasons: Reasons| reasons.0.to_string())
        .register_iterator::<Reasons>();
}
