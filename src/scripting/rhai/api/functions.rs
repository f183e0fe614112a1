//! The functions of `kopf` that take data and return data: see `scripting/functions/kopf.rs`.

use std::sync::Arc;

use rhai::{Dynamic, Map};
use serde_json::Value;

use super::{ARGUMENTS_MAX, HostFn, Outcome};
use crate::call::Invocation;
use crate::scripting::{
    functions::{
        kopf::{Argument, HostFunction},
        posting::{self, Described},
    },
    rhai::{
        context::Ctx,
        control::handed,
        errors::{Thrown, problem},
        handles::{RhaiPassed, native},
        present,
        value::{text, to_json},
    },
};

/// The functions, for both spellings.
pub(super) fn functions() -> impl Iterator<Item = HostFn> {
    HostFunction::all().map(|function| {
        let (least, most) = function.arguments;
        HostFn::new(function.name, least..=most.min(ARGUMENTS_MAX), move |_, arguments| {
            call(&function, &arguments)
        })
    })
}

fn call(function: &HostFunction, given: &[Dynamic]) -> Outcome {
    let present = present::get();
    present.as_deref().inspect(|it| present::parse(it));
    let given: Vec<_> = given.iter().map(RhaiPassed).collect();
    let arguments: Vec<_> = given.iter().map(|it| it as &dyn Argument).collect();
    let call = || function.call(&arguments, present.as_deref());
    let called = if function.keeps() { handed(call) } else { call() };
    called.map(native).map_err(problem)
}

impl Argument for RhaiPassed<'_> {
    fn call(&self) -> Option<Arc<Invocation>> {
        self.0.read_lock::<Ctx>().map(|it| Arc::clone(it.invocation()))
    }

    fn is_raised(&self) -> bool {
        self.0.is::<Thrown>()
    }

    fn described(&self) -> Described {
        described(self.0)
    }

    fn names(&self) -> Option<Vec<String>> {
        self.0.as_map_ref().ok().map(|it| it.keys().map(ToString::to_string).collect())
    }

    fn split(&self, name: &str, place: &str) -> Result<Option<(Described, Value)>, String> {
        let Ok(fields) = self.0.as_map_ref() else { return Ok(None) };
        let mut fields: Map = fields.clone();
        let Some(taken) = fields.remove(name) else { return Ok(None) };
        Ok(Some((described(&taken), to_json(place, &fields.into())?)))
    }
}

/// Class and text of what was caught.
fn described(value: &Dynamic) -> Described {
    if let Some(thrown) = value.read_lock::<Thrown>() {
        return (posting::class(&thrown.kind), thrown.message.clone());
    }
    let fields = value.as_map_ref().ok();
    let field = |name: &str| fields.as_ref().and_then(|it| it.get(name)).map(text);
    // What the language itself raises is a map with the name of the error.
    let class = field("class").or_else(|| field("error")).unwrap_or_else(|| "Error".into());
    (class, field("message").unwrap_or_else(|| text(value)))
}
