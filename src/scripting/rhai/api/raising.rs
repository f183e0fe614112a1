//! The errors of the host: made for `throw`, or raised at once by `kopf.retry` and `kopf.fail`.

use rhai::{Dynamic, Engine};
use serde_json::Value;

use super::{HostFn, data::seconds};
use crate::logic::handlers::outcome::RaisedKind;
use crate::scripting::{
    functions::names::{self, DELAY_DEFAULT},
    rhai::{
        errors::{Thrown, problem},
        value::{text, to_json},
    },
};

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
        HostFn::new("AdmissionError", 0..=2, move |_, arguments| value(admission(&arguments))),
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
            RaisedKind::Temporary(Some(delay)) | RaisedKind::Aborted(Some(delay)) => {
                Dynamic::from_float(delay.as_secs_f64())
            }
            RaisedKind::Temporary(None)
            | RaisedKind::Aborted(None)
            | RaisedKind::Permanent
            | RaisedKind::Admission(_)
            | RaisedKind::Arbitrary(_)
            | RaisedKind::Unfinished(_) => Dynamic::UNIT,
        })
        .register_get("code", |error: &mut Thrown| {
            names::code(&error.kind).map_or(Dynamic::UNIT, |it| Dynamic::from_int(it.into()))
        })
        .register_fn("to_string", |error: Thrown| error.message)
        .register_fn("to_debug", |error: Thrown| error.message);
}

fn temporary(arguments: &[Dynamic]) -> Made {
    let delay = match arguments.get(1) {
        None => Some(DELAY_DEFAULT),
        Some(delay) => seconds("kopf.TemporaryError", delay)?,
    };
    Ok(other(RaisedKind::Temporary(delay), arguments))
}

fn admission(arguments: &[Dynamic]) -> Made {
    let code = arguments.get(1).map_or(Ok(Value::Null), |it| to_json("kopf.AdmissionError", it));
    let kind = names::admission_error(&code.map_err(problem)?).map_err(problem)?;
    Ok(other(kind, arguments))
}

fn other(kind: RaisedKind, arguments: &[Dynamic]) -> Thrown {
    Thrown { kind, message: arguments.first().map(text).unwrap_or_default() }
}
