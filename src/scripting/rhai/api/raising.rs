//! The errors of the host: made for `throw`, or raised at once by `kopf.retry` and `kopf.fail`.

use rhai::{Dynamic, Engine};

use super::{HostFn, data::seconds};
use crate::logic::handlers::outcome::RaisedKind;
use crate::scripting::{
    functions::names::DELAY_DEFAULT,
    rhai::{errors::Thrown, value::text},
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
            RaisedKind::Temporary(Some(delay)) | RaisedKind::Aborted(Some(delay)) => {
                Dynamic::from_float(delay.as_secs_f64())
            }
            RaisedKind::Temporary(None)
            | RaisedKind::Aborted(None)
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
        Some(delay) => seconds("kopf.TemporaryError", delay)?,
    };
    Ok(other(RaisedKind::Temporary(delay), arguments))
}

fn other(kind: RaisedKind, arguments: &[Dynamic]) -> Thrown {
    Thrown { kind, message: arguments.first().map(text).unwrap_or_default() }
}
