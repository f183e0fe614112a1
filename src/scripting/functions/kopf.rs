//! The functions of `kopf` that take data and return data: one row each, for both languages.

use std::sync::Arc;

use serde_json::Value;

use super::{
    hierarchy::{HELPERS, Helper},
    logins,
    posting::{self, Described},
};
use crate::call::Invocation;
use crate::logic::{
    access::login::Method,
    configure::{STORAGES, storage},
};
use crate::scripting::values::{HostValue, Passed};

/// One function.
pub(crate) struct HostFunction {
    /// Below `kopf`.
    pub(crate) name: &'static str,
    /// The minimum and maximum number of arguments.
    pub(crate) arguments: (usize, usize),
    body: Body,
}

/// What it does.
enum Body {
    /// Returns a value for `ctx.settings.persistence`.
    Storage,
    ConnectionInfo,
    Login(Method),
    Helper(&'static Helper),
    Post(posting::Function),
}

/// An argument, in the language of the script.
pub(crate) trait Argument: Passed {
    /// Returns the call whose `ctx` it is.
    fn call(&self) -> Option<Arc<Invocation>>;

    /// Whether it is an error of the host.
    fn is_raised(&self) -> bool;

    /// Returns the class and the text of an error.
    fn described(&self) -> Described;

    /// Returns the names in a map, or the first ones of many.
    fn names(&self) -> Option<Vec<String>>;

    /// Returns the error under this name, and the other fields; `None` if there is nothing under it.
    fn split(&self, name: &str, place: &str) -> Result<Option<(Described, Value)>, String>;
}

impl HostFunction {
    /// All of them.
    pub(crate) fn all() -> impl Iterator<Item = HostFunction> {
        const MANY: usize = usize::MAX;
        let of = |name, arguments, body| HostFunction { name, arguments, body };
        let storages = STORAGES.into_iter().map(move |name| of(name, (0, 1), Body::Storage));
        let logins = logins::NATIVE.into_iter();
        let logins = logins.map(move |(name, method)| of(name, (0, 1), Body::Login(method)));
        let helpers = HELPERS.iter().map(move |it| of(it.name, (0, MANY), Body::Helper(it)));
        let posting = posting::FUNCTIONS.iter();
        let posting = posting.map(move |(name, it)| of(name, (0, MANY), Body::Post(*it)));
        let info = of("ConnectionInfo", (1, 1), Body::ConnectionInfo);
        storages.chain(logins).chain(helpers).chain(posting).chain([info])
    }

    /// Whether the host keeps what it is called with.
    pub(crate) fn keeps(&self) -> bool {
        matches!(self.body, Body::Post(_))
    }

    /// Calls it.
    ///
    /// # Errors
    /// What is wrong with the arguments.
    pub(crate) fn call(
        &self,
        arguments: &[&dyn Argument],
        present: Option<&Invocation>,
    ) -> Result<HostValue, String> {
        let place = format!("kopf.{}", self.name);
        let first = || arguments.first().map_or(Ok(Value::Null), |it| it.data(&place));
        match &self.body {
            Body::Storage => storage(self.name, &first()?).map(HostValue::Json),
            Body::ConnectionInfo => logins::connection_info(first()?).map(HostValue::Json),
            Body::Login(method) => {
                let call = arguments.first().and_then(|it| it.call());
                let login = logins::login_with(method, call.as_deref());
                Ok(login.map_or(HostValue::Nil, HostValue::Json))
            }
            Body::Helper(helper) => {
                let before = first()?;
                let read = |it: &&dyn Argument| (!it.is_nil()).then(|| it.data(&place)).transpose();
                let rest = arguments.iter().skip(1).map(read).collect::<Result<_, _>>()?;
                let after = helper.call(before.clone(), rest, present)?;
                Ok(if helper.makes_reference() {
                    HostValue::Json(after)
                } else {
                    HostValue::Changed { before, after }
                })
            }
            Body::Post(function) => {
                posting::post(*function, function.arguments(arguments)?, present)?;
                Ok(HostValue::Nil)
            }
        }
    }
}
