//! The errors of the host: made for `throw`, or raised at once by `kopf.retry` and `kopf.fail`.

use std::time::Duration;

use rhai::{Dynamic, Engine};

use super::HostFn;
use crate::logic::outcome::RaisedKind;
use crate::scripting::{
    rhai::{
        errors::{Thrown, problem},
        value::{text, to_json},
    },
    settings_access,
};

/// The delay of a temporary error that names none, as in Kopf.
const DELAY_DEFAULT: Duration = Duration::from_mins(1);

type Made = Result<Thrown, Box<rhai::EvalAltResult>>;

/// The functions, for both spellings.
pub(super) fn functions() -> Vec<HostFn> {
    let value = |made: Made| made.map(Dynamic::from);
    let raise = |made: Made| Err(made?.into_error());
    vec![
        HostFn::new("TemporaryError", 0..=2, move |_, arguments| value(temporary(&arguments))),
        HostFn::new("PermanentError", 0..=1, move |_, arguments| {
            value(Ok(other(RaisedKind::Permanent, &arguments)))
        }),
        HostFn::new("AdmissionError", 0..=2, move |_, arguments| {
            value(Ok(other(RaisedKind::Arbitrary("AdmissionError".into()), &arguments)))
        }),
        HostFn::new("retry", 0..=2, move |_, arguments| raise(temporary(&arguments))),
        HostFn::new("fail", 0..=1, move |_, arguments| {
            raise(Ok(other(RaisedKind::Permanent, &arguments)))
        }),
    ]
}

/// What a script can do with a caught error of the host.
pub(super) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<Thrown>("error")
        .register_get("message", |error: &mut Thrown| error.message.clone())
        .register_get("delay", |error: &mut Thrown| match error.kind {
            RaisedKind::Temporary(Some(delay)) => Dynamic::from_float(delay.as_secs_f64()),
            RaisedKind::Temporary(None)
            | RaisedKind::Permanent
            | RaisedKind::Arbitrary(_)
            | RaisedKind::Unfinished(_) => Dynamic::UNIT,
        })
        .register_fn("to_string", |error: Thrown| error.message)
        .register_fn("to_debug", |error: Thrown| error.message);
}

fn temporary(arguments: &[Dynamic]) -> Made {
    let delay = match arguments.get(1) {
        None => Some(DELAY_DEFAULT),
        Some(delay) if delay.is_unit() => None,
        Some(delay) => {
            let value = to_json("delay", delay).map_err(problem)?;
            let duration = settings_access::duration_of(&value);
            Some(duration.ok_or_else(|| problem(format!("the delay {value} is no duration")))?)
        }
    };
    Ok(other(RaisedKind::Temporary(delay), arguments))
}

fn other(kind: RaisedKind, arguments: &[Dynamic]) -> Thrown {
    Thrown { kind, message: arguments.first().map(text).unwrap_or_default() }
}
