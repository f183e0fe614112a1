//! `ctx.conditions`

use rhai::{Dynamic, Engine, EvalAltResult, INT};
use serde_json::Value;

use super::{
    control::given,
    errors::problem,
    value::{plain, to_json},
};
use crate::scripting::{conditions::Conditions, leftovers::Handle, text::shown};

/// The conditions of the handled object.
#[derive(Clone, Debug)]
pub(super) struct ConditionsView(pub(super) Handle<Conditions>);

type Result<T> = std::result::Result<T, Box<EvalAltResult>>;

impl ConditionsView {
    /// All of them.
    pub(super) fn json(&self) -> Value {
        self.0.json()
    }

    /// What is written waits in the host's memory until it is sent.
    fn set(&self, passed: &[&Dynamic]) -> Result<()> {
        given(|| {
            let mut arguments = <[Value; 4]>::default();
            for (place, value) in arguments.iter_mut().zip(passed) {
                *place = json("set", value)?;
            }
            self.0.set(&arguments).map_err(problem)
        })
    }
}

fn json(function: &str, value: &Dynamic) -> Result<Value> {
    to_json(&format!("ctx.conditions.{function}"), value).map_err(problem)
}

impl IntoIterator for ConditionsView {
    type Item = Dynamic;
    type IntoIter = std::vec::IntoIter<Dynamic>;

    /// Over the list as it is now.
    fn into_iter(self) -> Self::IntoIter {
        let list = self.json();
        list.as_array().into_iter().flatten().map(plain).collect::<Vec<_>>().into_iter()
    }
}

/// Teaches an engine the view. Methods take it by value: Rhai assigns the receiver back otherwise.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<ConditionsView>("conditions")
        .register_fn("set", |view: ConditionsView, kind: Dynamic, status: Dynamic| {
            view.set(&[&kind, &status])
        })
        .register_fn(
            "set",
            |view: ConditionsView, kind: Dynamic, status: Dynamic, reason: Dynamic| {
                view.set(&[&kind, &status, &reason])
            },
        )
        .register_fn(
            "set",
            |view: ConditionsView,
             kind: Dynamic,
             status: Dynamic,
             reason: Dynamic,
             message: Dynamic| { view.set(&[&kind, &status, &reason, &message]) },
        )
        .register_fn("get", |view: ConditionsView, kind: Dynamic| {
            let condition = view.0.get(&json("get", &kind)?).map_err(problem)?;
            Ok::<_, Box<EvalAltResult>>(plain(&condition))
        })
        // `is` is a word of the language.
        .register_fn("is_true", |view: ConditionsView, kind: Dynamic| {
            view.0.is(&json("is_true", &kind)?).map_err(problem)
        })
        .register_fn("remove", |view: ConditionsView, kind: Dynamic| {
            let kind = json("remove", &kind)?;
            given(|| view.0.remove(&kind).map_err(problem))
        })
        .register_fn("len", |view: ConditionsView| {
            INT::try_from(view.json().as_array().map_or(0, Vec::len)).unwrap_or(INT::MAX)
        })
        .register_fn("to_string", |view: ConditionsView| shown(&view.json()))
        .register_fn("to_debug", |view: ConditionsView| shown(&view.json()))
        .register_iterator::<ConditionsView>();
}
