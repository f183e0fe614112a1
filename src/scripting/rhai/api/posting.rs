//! `kopf.event`, `kopf.info`, `kopf.warn`, `kopf.exception`.

use rhai::{Dynamic, EvalAltResult, Map};

use super::HostFn;
use crate::scripting::{
    posting::{self, Arguments, Described, EXC, Function},
    rhai::{
        control::handed,
        errors::{Thrown, problem},
        present,
        value::{text, to_json},
    },
};

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    let one = |(name, function): &(&'static str, Function)| {
        let (name, function) = (*name, *function);
        HostFn::new(name, 0..=super::ARGUMENTS_MAX, move |_, arguments| {
            let present = present::get();
            present.as_deref().inspect(|it| present::parse(it));
            handed(|| {
                let arguments = read(name, function, arguments.clone())?;
                posting::post(function, arguments, present.as_deref()).map_err(problem)
            })?;
            Ok(Dynamic::UNIT)
        })
    };
    posting::FUNCTIONS.iter().map(one).collect()
}

fn read(
    name: &str,
    function: Function,
    arguments: Vec<Dynamic>,
) -> Result<Arguments, Box<EvalAltResult>> {
    let place = format!("kopf.{name}");
    let mut arguments = arguments.into_iter();
    let objects = arguments.next().unwrap_or_default();
    let objects = to_json(&format!("{place}: the object"), &objects).map_err(problem)?;
    let (mut rest, mut error) = (Vec::new(), None);
    for (index, mut argument) in arguments.enumerate() {
        let place = format!("{place}: `{}`", function.argument(index));
        let names = argument.as_map_ref().ok();
        let names = names.map(|it| it.keys().map(ToString::to_string).collect::<Vec<_>>());
        // An error of the host is recognised anywhere.
        let is_raised = function == Function::Exception && argument.is::<Thrown>();
        if is_raised || function.is_error(rest.len(), names.as_deref()) {
            error = (!argument.is_unit()).then(|| described(&argument)).or(error);
            continue;
        }
        if function == Function::Exception {
            // An error is no data: it is taken out, and the rest is read.
            let exc = argument.write_lock::<Map>().and_then(|mut it| it.remove(EXC));
            error = exc.as_ref().map(described).or(error);
        }
        rest.push(to_json(&place, &argument).map_err(problem)?);
    }
    Ok(Arguments { objects, rest, error })
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
