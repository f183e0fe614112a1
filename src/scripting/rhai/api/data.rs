//! `kopf.get`, `kopf.copy`, `kopf.array`, `kopf.sleep`.

use std::time::Duration;

use rhai::{Dynamic, Engine, INT};

use super::{HostFn, Outcome, spread};
use crate::scripting::{
    functions::names,
    rhai::{
        control::{self, Until},
        errors::problem,
        handles, store,
        value::{plain, to_json},
        view::View,
    },
};

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    vec![
        HostFn::new("sleep", 1..=1, |_, arguments| {
            arguments.first().map_or(Ok(Dynamic::UNIT), sleep)
        }),
        HostFn::new("copy", 1..=1, |_, arguments| {
            let value = arguments.into_iter().next().unwrap_or_default();
            to_json("kopf.copy", &value).map(|it| plain(&it)).map_err(problem)
        }),
        HostFn::new("array", 0..=super::ARGUMENTS_MAX, |_, arguments| {
            Ok(Dynamic::from_array(spread(arguments)))
        }),
        HostFn::new("values", 1..=1, |_, arguments| {
            store::values(&arguments.into_iter().next().unwrap_or_default())
        }),
        HostFn::new("get", 2..=3, |_, arguments| {
            let mut arguments = arguments.into_iter();
            let value = arguments.next().unwrap_or_default();
            let path = steps(&arguments.next().unwrap_or_default())?;
            let found = path.iter().fold(value, |value, step| item(&value, step));
            Ok(if found.is_unit() { arguments.next().unwrap_or_default() } else { found })
        }),
    ]
}

/// The functions that Rhai has by itself and that would block a thread without asking the runtime.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_fn("sleep", |seconds: INT| sleep(&seconds.into()))
        .register_fn("sleep", |seconds: f64| sleep(&seconds.into()));
}

fn sleep(duration: &Dynamic) -> Outcome {
    let duration = seconds("kopf.sleep", duration)?.unwrap_or_default();
    control::wait(Until::Passed(duration)).map(|()| Dynamic::UNIT)
}

/// A duration that was passed to this function; `()` is none.
pub(super) fn seconds(
    function: &str,
    value: &Dynamic,
) -> Result<Option<Duration>, Box<rhai::EvalAltResult>> {
    let value = to_json(function, value).map_err(problem)?;
    names::duration(&value).map_err(|it| problem(format!("{function}: {it}")))
}

/// A path as a text such as `a.b[0].c`, or as a list of keys.
fn steps(path: &Dynamic) -> Result<Vec<Dynamic>, Box<rhai::EvalAltResult>> {
    if let Ok(list) = path.as_array_ref() {
        return Ok(list.clone());
    }
    let Ok(text) = path.as_immutable_string_ref() else {
        return Err(problem("get: the path is a text such as \"a.b[0]\", or a list"));
    };
    let mut steps = Vec::new();
    for part in text.split('.').filter(|it| !it.is_empty()) {
        control::step()?;
        let mut pieces = part.split('[');
        let key = pieces.next().unwrap_or_default();
        if !key.is_empty() {
            steps.push(key.into());
        }
        for index in pieces {
            let index = index.strip_suffix(']').and_then(|it| it.parse::<INT>().ok());
            let index = index.ok_or_else(|| problem(format!("get: no index in `{part}`")))?;
            steps.push(index.into());
        }
    }
    Ok(steps)
}

/// One step down; `()` where it leads nowhere.
fn item(value: &Dynamic, step: &Dynamic) -> Dynamic {
    if let (Ok(list), Ok(index)) = (value.as_array_ref(), step.as_int()) {
        let item = usize::try_from(index).ok().and_then(|it| list.get(it));
        return item.cloned().unwrap_or_default();
    }
    if let Some(found) = handles::step(value, step) {
        return found;
    }
    let Ok(key) = step.as_immutable_string_ref() else {
        return Dynamic::UNIT;
    };
    if let Some(view) = value.read_lock::<View>() {
        return view.get(&key);
    }
    value.as_map_ref().ok().and_then(|it| it.get(key.as_str()).cloned()).unwrap_or_default()
}
