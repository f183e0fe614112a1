//! The functions of `kopf`: one row each, with its implementation, for both languages.
//!
//! Names, parameters and documentation are in the tables of `names.rs`, `hierarchy.rs`, `posting.rs` and `surface/kopf.rs`. An
//! engine only converts: it implements [`Argument`] and [`Caller`], and converts the result, [`Done`], to a value of the language.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    declaring,
    hierarchy::{HELPERS, Helper},
    locking, logins,
    names::{DECLARING, Declaring},
    posting,
};
use crate::call::{Invocation, Unsent};
use crate::logic::{
    access::login::Method,
    configure::{STORAGES, storage},
    handlers::{declare::DeclareError, function::Function, handler::Callback, outcome::RaisedKind},
};
use crate::ports::BoxFuture;
use crate::scripting::{
    handles::{AnyHandle, values as values_of},
    surface::OTHERS,
    values::{
        Filter, HostValue, Nested, Passed, duration,
        errors::{self, CallError, DELAY_DEFAULT, Described, ErrorValue},
        stopped::SLEEP_MAX,
        text,
    },
};

/// A function of `kopf`.
pub(crate) struct HostFunction {
    /// The name below `kopf`, or below `kopf.on`.
    pub(crate) name: &'static str,
    /// The number of arguments that it accepts.
    pub(crate) arguments: RangeInclusive<usize>,
    body: Body,
}

/// The implementation of a function.
#[derive(Clone, Copy)]
pub(crate) enum Body {
    /// Returns a value for `ctx.settings.persistence`.
    Storage,
    Login(&'static Method),
    Helper(&'static Helper),
    Post(posting::PostKind),
    Declare(&'static Declaring),
    Combine(fn(Vec<Callback>) -> Callback),
    /// Returns an error, which the script may raise.
    Make(fn(&HostCall<'_>) -> Result<RaisedKind, CallError>),
    /// Raises an error at once.
    Raise(fn(&HostCall<'_>) -> Result<RaisedKind, CallError>),
    /// Returns a value without waiting.
    Immediate(fn(&HostCall<'_>) -> HostResult),
    /// Returns without waiting, and the host keeps its arguments.
    Keeping(fn(&HostCall<'_>) -> HostResult),
    /// Returns a future that the call waits for.
    Waiting(fn(&HostCall<'_>) -> HostResult),
    /// Returns a wait for a lock; the engine calls a function while it holds the lock.
    Locking(fn(&HostCall<'_>) -> HostResult),
    /// Calls a function and returns its error: implemented by the engine.
    Trying,
}

/// One call of a function.
pub(crate) struct HostCall<'a> {
    /// The name of the function in errors.
    pub(crate) place: String,
    pub(crate) arguments: &'a [&'a dyn Argument],
    pub(crate) caller: &'a dyn Caller,
}

/// The result of a function.
pub(crate) enum Done {
    /// It returns this value.
    Value(HostValue),
    /// It returns the first argument, changed: in place, where a language can do that.
    Changed { before: Value, after: Value },
    /// It returns its arguments as a list of the language, or its only argument, which is a list.
    Listed,
    /// It returns the value of the first argument at this path, or else the third argument.
    Below(Vec<Value>),
    /// The call waits for a lock, which this number releases.
    Lock(u64, BoxFuture<'static, Result<(), CallError>>),
    /// The call waits for this future.
    Wait(BoxFuture<'static, Result<(), CallError>>),
}

/// The result of a call.
pub(crate) type HostResult = Result<Done, CallError>;

/// The script that calls.
pub(crate) trait Caller {
    /// Returns the invocation that is running.
    fn present(&self) -> Option<Arc<Invocation>>;

    /// Returns the declarations of its top level.
    fn top_level(&self) -> &declaring::TopLevel;

    /// Returns `file:line` of the line that calls the host.
    fn location(&self) -> String;

    /// Returns the maximum size of an argument, in bytes of JSON.
    fn string_size(&self) -> usize;
}

/// Visits the parts of a list or a map: fields have a name.
pub(crate) type Visit<'a> = dyn FnMut(Option<&str>, &dyn Argument) -> Result<(), CallError> + 'a;

/// An argument, in the language of the script.
pub(crate) trait Argument: Passed {
    /// Returns whether it stands for an omitted argument: nil in Lua, which has a separate null.
    fn is_left_out(&self) -> bool {
        false
    }

    /// Returns its call, if it is a `ctx`.
    fn call(&self) -> Option<Arc<Invocation>>;

    /// Returns the handle, if it is one.
    fn handle(&self) -> Option<AnyHandle>;

    /// Returns the marker or the combination, if it is one.
    fn filter(&self) -> Option<Filter>;

    /// Returns the name of the library, if it is one.
    fn library(&self) -> Option<&'static str>;

    /// Returns a reference to the function, if it is one.
    ///
    /// # Errors
    /// It is a handler, and has more than one parameter.
    fn function(&self, is_handler: bool) -> Result<Option<Function>, DeclareError>;

    /// Returns whether it is an error of the host.
    fn is_raised(&self) -> bool;

    /// Returns the class and the message of a caught value, whatever it is.
    fn described(&self) -> Described;

    /// Returns the string that it prints as.
    fn text(&self) -> Result<String, String>;

    /// Returns whether it is a list or a map of the language.
    fn inside(&self) -> Option<Nested>;

    /// Visits the items of a list in order, or the fields of a map.
    fn visit(&self, visit: &mut Visit<'_>) -> Result<(), CallError>;
}

impl HostFunction {
    /// Returns the functions below `kopf`.
    pub(crate) fn all() -> impl Iterator<Item = HostFunction> {
        const MANY: usize = usize::MAX;
        let of = |name, arguments, body| HostFunction { name, arguments, body };
        let declaring = DECLARING.iter().map(move |it| of(it.name, 0..=MANY, Body::Declare(it)));
        let storages = STORAGES.into_iter().map(move |name| of(name, 0..=1, Body::Storage));
        let logins = logins::NATIVE.iter();
        let logins = logins.map(move |(name, method)| of(name, 0..=1, Body::Login(method)));
        let helpers = HELPERS.iter().map(move |it| of(it.name, 0..=MANY, Body::Helper(it)));
        let posting = posting::FUNCTIONS.iter();
        let posting = posting.map(move |(name, it)| of(name, 0..=MANY, Body::Post(*it)));
        let others = OTHERS.iter();
        let others = others.filter_map(move |it| Some(of(it.name, it.arguments(), it.body?)));
        declaring.chain(storages).chain(logins).chain(helpers).chain(posting).chain(others)
    }

    /// Returns the functions below `kopf.on`.
    pub(crate) fn short() -> impl Iterator<Item = HostFunction> {
        let short = |it: &'static Declaring| {
            let (name, body) = (it.short?, Body::Declare(it));
            Some(HostFunction { name, arguments: 0..=usize::MAX, body })
        };
        DECLARING.iter().filter_map(short)
    }

    /// Returns whether the host keeps its arguments.
    pub(crate) fn keeps(&self) -> bool {
        let keeping = matches!(self.body, Body::Post(_) | Body::Declare(_) | Body::Keeping(_));
        keeping || self.waits()
    }

    /// Returns whether its calls wait.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.body, Body::Waiting(_) | Body::Locking(_))
    }

    /// Returns whether it calls a function of the script.
    pub(crate) fn calls(&self) -> bool {
        matches!(self.body, Body::Locking(_) | Body::Trying)
    }

    /// Returns whether it raises errors that scripts can inspect.
    pub(crate) fn raises(&self) -> bool {
        self.waits() || matches!(self.body, Body::Raise(_))
    }

    /// Calls the function with these arguments.
    pub(crate) fn call(&self, arguments: &[&dyn Argument], caller: &dyn Caller) -> HostResult {
        let name = if let Body::Declare(it) = &self.body { it.name } else { self.name };
        let call = HostCall { place: format!("kopf.{name}"), arguments, caller };
        let value = |value: Value| Ok(Done::Value(HostValue::Json(value)));
        match &self.body {
            Body::Storage => value(storage(self.name, &call.data(0)?)?),
            Body::Login(method) => {
                let about = arguments.first().and_then(|it| it.call());
                let login = logins::login_with(method, about.as_deref());
                Ok(Done::Value(login.map_or(HostValue::Nil, HostValue::Json)))
            }
            Body::Helper(helper) => {
                let before = call.data(0)?;
                let read =
                    |it: &&dyn Argument| (!it.is_nil()).then(|| it.data(&call.place)).transpose();
                let rest = arguments.iter().skip(1).map(read).collect::<Result<_, _>>()?;
                let after = helper.call(before.clone(), rest, caller.present().as_deref())?;
                if helper.makes_reference() {
                    return value(after);
                }
                Ok(Done::Changed { before, after })
            }
            Body::Post(function) => {
                posting::post(
                    *function,
                    function.arguments(arguments)?,
                    caller.present().as_deref(),
                )?;
                Ok(Done::Value(HostValue::Nil))
            }
            Body::Declare(it) => declaring::declare(it, &call),
            Body::Combine(combine) => declaring::combine(*combine, &call),
            Body::Make(kind) => Ok(Done::Value(HostValue::Error(call.error(*kind)?))),
            Body::Raise(kind) => Err(CallError::Raised(call.error(*kind)?)),
            Body::Trying => Ok(Done::Value(HostValue::Nil)),
            Body::Immediate(body)
            | Body::Keeping(body)
            | Body::Locking(body)
            | Body::Waiting(body) => body(&call),
        }
    }
}

impl HostCall<'_> {
    /// Returns an argument as data; null if it was omitted.
    fn data(&self, index: usize) -> Result<Value, String> {
        self.arguments.get(index).map_or(Ok(Value::Null), |it| it.data(&self.place))
    }

    fn error(
        &self,
        kind: fn(&HostCall<'_>) -> Result<RaisedKind, CallError>,
    ) -> Result<ErrorValue, CallError> {
        let message = self.arguments.first().map(|it| it.text()).transpose()?;
        Ok(ErrorValue::new(kind(self)?, message.unwrap_or_default()))
    }
}

/// Implements `kopf.TemporaryError(MESSAGE, DELAY)`, without the message.
pub(crate) fn temporary(call: &HostCall<'_>) -> Result<RaisedKind, CallError> {
    let delay = match call.arguments.get(1).filter(|it| !it.is_left_out()) {
        None => Some(DELAY_DEFAULT),
        Some(delay) => duration(&delay.data(&call.place)?)
            .map_err(|it| format!("kopf.TemporaryError: {it}"))?,
    };
    Ok(RaisedKind::Temporary(delay))
}

/// Implements `kopf.PermanentError(MESSAGE)`, without the message.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table: others may fail")]
pub(crate) fn permanent(_: &HostCall<'_>) -> Result<RaisedKind, CallError> {
    Ok(RaisedKind::Permanent)
}

/// Implements `kopf.AdmissionError(MESSAGE, CODE)`, without the message.
pub(crate) fn admission(call: &HostCall<'_>) -> Result<RaisedKind, CallError> {
    Ok(errors::admission_error(&call.data(1)?)?)
}

/// Implements `kopf.ConnectionInfo(FIELDS)`: checks the fields.
pub(crate) fn connection_info(call: &HostCall<'_>) -> HostResult {
    Ok(Done::Value(HostValue::Json(logins::connection_info(call.data(0)?)?)))
}

/// Implements `kopf.copy(VALUE)`: copies a live value as data.
pub(crate) fn copy(call: &HostCall<'_>) -> HostResult {
    Ok(Done::Value(HostValue::some(call.data(0)?)))
}

/// Implements `kopf.array(ITEMS)`: a list that stays one if it is empty.
#[expect(clippy::unnecessary_wraps, reason = "a row of the table: others may fail")]
pub(crate) fn array(_: &HostCall<'_>) -> HostResult {
    Ok(Done::Listed)
}

/// Implements `kopf.values(INDEX)`: all values of an index.
pub(crate) fn values(call: &HostCall<'_>) -> HostResult {
    match call.arguments.first().and_then(|it| it.handle()) {
        Some(AnyHandle::Index(index)) => Ok(Done::Value(values_of(&index))),
        Some(store @ AnyHandle::Store(_)) => Ok(Done::Value(HostValue::Handle(store))),
        _ => Err(text::NO_INDEX.to_owned().into()),
    }
}

/// Implements `kopf.sleep(DURATION)`: the call waits.
pub(crate) fn sleep(call: &HostCall<'_>) -> HostResult {
    let duration = duration(&call.data(0)?);
    let duration = duration.map_err(|it| format!("{}: {it}", call.place))?;
    let duration = duration.unwrap_or_default().min(SLEEP_MAX);
    // Created inside: the timer must count from the moment when the wait begins.
    let sleep = async move {
        tokio::time::sleep(duration).await;
        Ok(())
    };
    Ok(Done::Wait(match Unsent::of(call.caller.present().as_ref()) {
        Some(unsent) => Box::pin(unsent.watch(sleep)),
        None => Box::pin(sleep),
    }))
}

/// Implements `kopf.get(VALUE, PATH, DEFAULT)`.
pub(crate) fn get(call: &HostCall<'_>) -> HostResult {
    let wrong = || "kopf.get: the path must be a string such as \"a.b[0]\", or a list".to_owned();
    match call.data(1)? {
        Value::Array(steps) => Ok(Done::Below(steps)),
        // An empty list.
        Value::Object(steps) if steps.is_empty() => Ok(Done::Below(Vec::new())),
        Value::String(path) if path.matches(['.', '[']).nth(STEPS_MAX).is_some() => Err(format!(
            "kopf.get: the path has more than {STEPS_MAX} steps, deeper than objects are nested"
        )
        .into()),
        Value::String(path) => Ok(Done::Below(steps(&path))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(wrong().into()),
    }
}

/// Maximum number of steps of a path.
const STEPS_MAX: usize = 1000;

/// Returns the steps of `a.b[0].c`: indexes of lists count from 0, as everywhere in Kubernetes.
fn steps(path: &str) -> Vec<Value> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|it| !it.is_empty()) {
        let mut key = part;
        let mut places = Vec::new();
        while let Some((before, place)) = key.strip_suffix(']').and_then(|it| it.rsplit_once('['))
            && let Ok(place) = place.parse::<u64>()
        {
            places.push(place.into());
            key = before;
        }
        steps.extend((!key.is_empty()).then(|| key.into()));
        steps.extend(places.into_iter().rev());
    }
    steps
}

/// Returns the index in a list that a step means.
pub(crate) fn place_of(step: &Value) -> Option<usize> {
    let number = step.as_u64().or_else(|| step.as_str()?.parse().ok())?;
    usize::try_from(number).ok()
}

/// The default time limit of waiting for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum length of the name of a lock in bytes.
const LOCK_NAME_MAX: usize = 500;

/// Implements `kopf.lock(NAME, OPTIONS)`: the call waits for the lock.
pub(crate) fn lock(call: &HostCall<'_>) -> HostResult {
    let place = &call.place;
    let present = call.caller.present().filter(|it| it.attempt.is_some());
    let present = present.ok_or_else(|| {
        lock_error(
            place,
            "locks can only be used in handlers, not at the top level of a script or in filters",
        )
    })?;
    let name = lock_name(call)?;
    let timeout = lock_timeout(call)?.unwrap_or(LOCK_TIMEOUT);
    let locks = present.services.locks.clone();
    let wanting = locking::wanting(&present);
    let ticket = locks.enter(&name, wanting).map_err(|it| lock_error(place, &it))?;
    let (number, place) = (ticket.number, place.clone());
    let wait =
        async move { locks.wait(ticket, timeout).await.map_err(|it| lock_error(&place, &it)) };
    Ok(Done::Lock(number, Box::pin(wait)))
}

/// Returns the name of a lock: a string, or derived from an object.
fn lock_name(call: &HostCall<'_>) -> Result<String, CallError> {
    let place = &call.place;
    let first = call.arguments.first();
    let handled = first.and_then(|it| it.call()).and_then(|it| it.object());
    let value = match (handled, first) {
        (Some(object), _) => Value::clone(object.body()),
        (None, Some(it)) => it.data(place)?,
        (None, None) => Value::Null,
    };
    let text = |path: &str| value.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let name = match &value {
        Value::String(name) => name.clone(),
        Value::Object(_) if !text("/metadata/name").is_empty() => {
            let kind = [text("/apiVersion"), text("/kind")].join("/");
            format!("{kind}/{}/{}", text("/metadata/namespace"), text("/metadata/name"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            String::new()
        }
    };
    if name.is_empty() {
        return Err(lock_error(
            place,
            "the first argument must be a name, an object with a name, or ctx",
        ));
    }
    if name.len() > LOCK_NAME_MAX {
        return Err(lock_error(place, &format!("the name is longer than {LOCK_NAME_MAX} bytes")));
    }
    Ok(name)
}

fn lock_timeout(call: &HostCall<'_>) -> Result<Option<Duration>, CallError> {
    let place = &call.place;
    let Some(options) = call.arguments.get(1).filter(|it| !it.is_nil()) else { return Ok(None) };
    if options.inside() != Some(Nested::Map) {
        return Err(lock_error(
            place,
            "the second argument must be a map of options, or a function",
        ));
    }
    let mut timeout = None;
    options.visit(&mut |name, value| {
        if name != Some("timeout") {
            let name = name.unwrap_or_default();
            return Err(lock_error(place, &format!("there is no option `{name}`, only `timeout`")));
        }
        timeout = duration(&value.data(place)?).map_err(|it| lock_error(place, &it))?;
        Ok(())
    })?;
    Ok(timeout)
}

/// Returns an error that scripts can inspect.
fn lock_error(place: &str, text: &str) -> CallError {
    let kind = RaisedKind::Arbitrary("LockError".into());
    CallError::Raised(ErrorValue::new(kind, format!("{place}: {text}")))
}
