//! The names below `kopf`, and what is said about wrong uses of them: the same in both languages.

use std::time::Duration;

use serde_json::Value;

use super::text::did_you_mean;
use crate::logic::{
    configure::STORAGES,
    declare::DeclareError,
    duration,
    handler::{Category, Kind},
    lifecycle::Lifecycle,
};

/// One declaring function.
pub(crate) struct Declaring {
    /// `kopf.NAME`
    pub(crate) name: &'static str,
    /// `kopf.on.NAME`, if it is there too.
    pub(crate) short: Option<&'static str>,
    /// What it declares; `None` if this version does not run it yet.
    pub(crate) kind: Option<Kind>,
}

const fn declaring(name: &'static str, short: &'static str, kind: Option<Kind>) -> Declaring {
    Declaring { name, short: Some(short), kind }
}

/// All declaring functions.
pub(crate) const DECLARING: &[Declaring] = &[
    declaring("on_create", "create", Some(Kind::Create)),
    declaring("on_update", "update", Some(Kind::Update)),
    declaring("on_delete", "delete", Some(Kind::Delete)),
    declaring("on_resume", "resume", Some(Kind::Resume)),
    declaring("on_field", "field", Some(Kind::Field)),
    declaring("on_event", "event", Some(Kind::Event)),
    declaring("on_startup", "startup", Some(Kind::Startup)),
    declaring("on_cleanup", "cleanup", Some(Kind::Cleanup)),
    declaring("daemon", "daemon", Some(Kind::Daemon)),
    declaring("timer", "timer", Some(Kind::Timer)),
    declaring("index", "index", Some(Kind::Index)),
    declaring("on_login", "login", Some(Kind::Login)),
    declaring("on_probe", "probe", Some(Kind::Probe)),
    declaring("on_validate", "validate", None),
    declaring("on_mutate", "mutate", None),
    declaring("subhandler", "subhandler", Some(Kind::Sub)),
    Declaring { name: "register", short: None, kind: Some(Kind::Sub) },
];

/// The names that declare nothing.
const OTHERS: &[&str] = &[
    "ABSENT",
    "AdmissionError",
    "ConnectionInfo",
    "ErrorsMode",
    "EVERYTHING",
    "PRESENT",
    "PermanentError",
    "TemporaryError",
    "all_",
    "any_",
    "array",
    "copy",
    "execute",
    "fail",
    "get",
    "lifecycles",
    "login_with_kubeconfig",
    "login_with_service_account",
    "none_",
    "not_",
    "on",
    "retry",
    "set_default_lifecycle",
    "sleep",
    "values",
];

/// The delay of a temporary error that names none, as in Kopf.
pub(crate) const DELAY_DEFAULT: Duration = Duration::from_mins(1);

/// Error modes by their names in `kopf.ErrorsMode`.
pub(crate) const ERROR_MODES: &[(&str, &str)] =
    &[("IGNORED", "ignored"), ("TEMPORARY", "temporary"), ("PERMANENT", "permanent")];

fn known() -> impl Iterator<Item = &'static str> {
    DECLARING.iter().map(|it| it.name).chain(OTHERS.iter().copied()).chain(STORAGES)
}

/// Whether there is `kopf.NAME`.
pub(crate) fn is_known(name: &str) -> bool {
    known().any(|it| it == name)
}

/// There is no `kopf.NAME`; names the nearest one.
pub(crate) fn unknown(name: &str) -> String {
    format!("there is no kopf.{name}{}", did_you_mean(name, known(), "kopf."))
}

/// `kopf.NAME` is no part of this version.
pub(crate) fn not_built(name: &str) -> DeclareError {
    format!("kopf.{name} is not supported yet by this version").into()
}

/// A declaration without a function.
pub(crate) fn no_handler(name: &str, kind: Kind) -> DeclareError {
    let is_about_resources = kind.category() != Category::Activity && kind != Kind::Sub;
    let selector = if is_about_resources { "SELECTOR, " } else { "" };
    DeclareError {
        message: format!("kopf.{name}: the last argument must be the handler function"),
        hint: Some(format!(
            "kopf.{name}({selector}OPTIONS, FUNCTION), where the options may be left out"
        )),
    }
}

/// A function of `kopf` that takes nothing but options.
pub(crate) fn no_options(name: &str) -> DeclareError {
    DeclareError {
        message: format!("kopf.{name} takes nothing but options"),
        hint: Some("they are named: fns, handlers, lifecycle".into()),
    }
}

/// A declaration by a handler.
pub(crate) fn too_late(name: &str) -> DeclareError {
    DeclareError {
        message: format!("kopf.{name} was called after the script was loaded"),
        hint: Some("call it at the top level of the file".into()),
    }
}

/// There is no `kopf.lifecycles.NAME`.
pub(crate) fn unknown_lifecycle(name: &str) -> String {
    let known = Lifecycle::ALL.map(|(name, _)| name);
    let hint = did_you_mean(name, known.into_iter(), "kopf.lifecycles.");
    format!("there is no kopf.lifecycles.{name}{hint}")
}

/// A combination of something else than functions.
pub(crate) fn no_callbacks(name: &str) -> String {
    format!("kopf.{name}: expected functions")
}

/// A duration as scripts write it; null is none. The error says what is expected.
pub(crate) fn duration(value: &Value) -> Result<Option<Duration>, String> {
    if value.is_null() {
        return Ok(None);
    }
    let expected = || format!("expected {}, got {value}", duration::EXPECTED);
    duration::parse(value).map(Some).ok_or_else(expected)
}
