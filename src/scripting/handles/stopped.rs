//! `ctx.stopped` of daemons and timers, and `ctx.stopped.reason`.
//!
//! The flag is created on each read, and compares equal to other flags of the same daemon: a cached one would cost memory for each
//! of the many that wait.

use serde_json::Value;

use super::{Handle, HandleKeys, HandleType, Method, Use};
use crate::call::Stopped;
use crate::logic::background::stopping::{StopReason, StopReasons};
use crate::scripting::values::{
    HostValue, LookupKey, Nested, account::Account, refused::Refused, stopped,
};

/// The flag of a daemon or timer that must stop.
pub(crate) type StopFlag = Stopped;

/// The reasons why it must stop.
pub(crate) type Reasons = StopReasons;

impl Handle for StopFlag {
    fn kind(&self) -> Option<Nested> {
        None
    }

    fn text(&self, _account: &mut Account<'_>) -> Result<String, String> {
        Ok(stopped::shown(self))
    }

    fn get(&self, _key: &LookupKey<'_>) -> Result<HostValue, String> {
        let reasons = stopped::reasons(self);
        Ok(reasons.map_or(HostValue::Nil, |it| HostValue::Handle(it.into())))
    }

    fn is_set(&self) -> bool {
        Stopped::is_set(self)
    }
}

impl HandleType for StopFlag {
    const TYPE: &'static str = "stopped";
    const FIELDS: &'static [&'static str] = &["reason"];
    const METHODS: &'static [Method<Self>] = &[Method {
        name: "is_set",
        shown: "stopped.is_set",
        only: None,
        arguments: (0, 0),
        keeps: false,
        body: |it, _| Ok(HostValue::Json(Stopped::is_set(it).into())),
    }];
    const IS_TEXT: bool = true;
    const USE: Use = Use::Wait;

    fn is(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

impl Handle for Reasons {
    fn kind(&self) -> Option<Nested> {
        Some(Nested::List)
    }

    fn copy(&self, account: &mut Account<'_>, depth: usize) -> Result<Value, Refused> {
        account.copy(&stopped::listed(*self), depth)
    }

    fn text(&self, _account: &mut Account<'_>) -> Result<String, String> {
        Ok(self.to_string())
    }

    fn get(&self, key: &LookupKey<'_>) -> Result<HostValue, String> {
        let LookupKey::Place(_, Some(place)) = key else { return Ok(HostValue::Nil) };
        let reason = self.iter().nth(*place).map(StopReason::as_str);
        Ok(reason.map_or(HostValue::Nil, |it| HostValue::Json(it.into())))
    }

    fn len(&self) -> usize {
        self.iter().count()
    }
}

impl HandleType for Reasons {
    const TYPE: &'static str = "stop reasons";
    const KEYS: HandleKeys = HandleKeys::Places;
    const METHODS: &'static [Method<Self>] = &[Method {
        name: "contains",
        shown: "stopped.reason",
        only: None,
        arguments: (1, 1),
        keeps: false,
        body: |it, given| {
            let contains = stopped::contains(*it, given.first().unwrap_or(&Value::Null));
            contains.map(|it| HostValue::Json(it.into()))
        },
    }];
    const IS_TEXT: bool = true;

    fn is(&self, other: &Self) -> bool {
        self == other
    }
}
