//! The names below `kopf`, and the errors of their wrong use: the same in both languages.

use serde_json::{Map, Value};

use crate::logic::handlers::{
    declare::{DeclareError, Marker},
    handler::{Category, Kind},
    lifecycle::Lifecycle,
    outcome::LogLevel,
};
use crate::scripting::{
    functions::kopf::{Argument, HostFunction},
    surface::OTHERS,
    values::{limits, text::did_you_mean},
};

/// A function that declares handlers.
pub(crate) struct Declaring {
    /// The name, in `kopf.NAME`.
    pub(crate) name: &'static str,
    /// The name in `kopf.on.NAME`, if it exists there, too.
    pub(crate) short: Option<&'static str>,
    /// The kind of its handlers; `None` if this version does not run them yet.
    pub(crate) kind: Option<Kind>,
    /// The documentation for the reference.
    pub(crate) doc: &'static str,
}

const fn declaring(
    name: &'static str,
    short: &'static str,
    kind: Option<Kind>,
    doc: &'static str,
) -> Declaring {
    Declaring { name, short: Some(short), kind, doc }
}

/// All functions that declare handlers.
pub(crate) const DECLARING: &[Declaring] = &[
    declaring(
        "on_create",
        "create",
        Some(Kind::Create),
        "Calls a function when an object is created, or is seen for the first time.",
    ),
    declaring(
        "on_update",
        "update",
        Some(Kind::Update),
        "Calls a function when an object has changed.",
    ),
    declaring(
        "on_delete",
        "delete",
        Some(Kind::Delete),
        "Calls a function when an object is being deleted. A finalizer blocks the deletion until the function has succeeded.",
    ),
    declaring(
        "on_resume",
        "resume",
        Some(Kind::Resume),
        "Calls a function for each object that exists when the operator starts.",
    ),
    declaring(
        "on_field",
        "field",
        Some(Kind::Field),
        "Calls a function when one field of an object has changed, given by the option `field`.",
    ),
    declaring(
        "on_event",
        "event",
        Some(Kind::Event),
        "Calls a function for each watch event of an object. No state is stored, and there are no retries.",
    ),
    declaring(
        "on_startup",
        "startup",
        Some(Kind::Startup),
        "Calls a function when the operator starts, before anything is watched.",
    ),
    declaring(
        "on_cleanup",
        "cleanup",
        Some(Kind::Cleanup),
        "Calls a function when the operator stops.",
    ),
    declaring(
        "daemon",
        "daemon",
        Some(Kind::Daemon),
        "Runs a function in the background for each object, as long as the object exists; `ctx.stopped` signals when to stop.",
    ),
    declaring(
        "timer",
        "timer",
        Some(Kind::Timer),
        "Calls a function periodically for each object; the option `interval` is the pause between the calls.",
    ),
    declaring(
        "reconcile",
        "reconcile",
        Some(Kind::Reconcile),
        "Calls a function with the current state of an object whenever the object, one of its children or a watched object changes. The function returns the children that must exist; they are applied, repaired and deleted accordingly.",
    ),
    declaring(
        "index",
        "index",
        Some(Kind::Index),
        "Fills an in-memory index with the values that a function returns for each object. All handlers can read it as a field of `ctx`, under the id of the handler.",
    ),
    declaring(
        "on_login",
        "login",
        Some(Kind::Login),
        "Calls a function to authenticate to the cluster.",
    ),
    declaring(
        "on_probe",
        "probe",
        Some(Kind::Probe),
        "Calls a function when the liveness endpoint is requested; the response contains its result.",
    ),
    declaring(
        "on_tunnel",
        "tunnel",
        Some(Kind::Tunnel),
        "Calls a function to find the URL by which API servers reach the webhook server, such as that of a tunnel; the function returns it, or a map with `url` and `caBundle`.",
    ),
    declaring(
        "every",
        "every",
        Some(Kind::Every),
        "Calls a function at an interval, for the operator itself. Each run is recorded in a Lease first: if there are several replicas, only one runs it.",
    ),
    declaring(
        "cron",
        "cron",
        Some(Kind::Cron),
        "Calls a function at the times of a cron expression, for the operator itself: `kopf.cron(\"0 3 * * *\", {timezone = \"Europe/Berlin\"}, fn)`. Each time runs once, regardless of the number of replicas and restarts.",
    ),
    Declaring {
        name: "test",
        short: None,
        kind: Some(Kind::Test),
        doc: "Declares a test of an operator, which `kopf test` runs with its own API server. The test acts as a user with `kube`, and asserts the outcome with `check`.",
    },
    declaring(
        "on_validate",
        "validate",
        Some(Kind::Validate),
        "Calls a function before an object is stored or deleted: raising an error, such as a `kopf.AdmissionError`, rejects the request.",
    ),
    declaring(
        "on_mutate",
        "mutate",
        Some(Kind::Mutate),
        "Calls a function before an object is stored: `ctx.patch` changes the object, and raising an error rejects the request.",
    ),
    declaring(
        "on_convert",
        "convert",
        Some(Kind::Convert),
        "Calls a function to convert an object from one version of its CRD to another: the function returns the converted object. Only its labels and annotations may differ in the metadata.",
    ),
    declaring(
        "subhandler",
        "subhandler",
        Some(Kind::Sub),
        "Declares a sub-handler of the running handler. It has a separate id, progress and retries.",
    ),
    Declaring {
        name: "register",
        short: None,
        kind: Some(Kind::Sub),
        doc: "Declares a sub-handler of the running handler, as `kopf.subhandler` does.",
    },
];

/// Error modes by their names in `kopf.ErrorsMode`.
pub(crate) const ERROR_MODES: &[(&str, &str)] =
    &[("IGNORED", "ignored"), ("TEMPORARY", "temporary"), ("PERMANENT", "permanent")];

/// The markers below `kopf`.
pub(crate) const MARKERS: [(&str, Marker); 3] =
    [("PRESENT", Marker::Present), ("ABSENT", Marker::Absent), ("EVERYTHING", Marker::Everything)];

/// A table of words below `kopf`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Words {
    ErrorsMode,
    Lifecycles,
}

impl Words {
    /// Both tables, with their names below `kopf`.
    pub(crate) const ALL: [(&'static str, Words); 2] =
        [("ErrorsMode", Words::ErrorsMode), ("lifecycles", Words::Lifecycles)];

    /// Returns the names and the words.
    pub(crate) fn entries(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Words::ErrorsMode => ERROR_MODES.to_vec(),
            Words::Lifecycles => Lifecycle::ALL.iter().map(|(name, _)| (*name, *name)).collect(),
        }
    }

    /// Returns a word.
    ///
    /// # Errors
    /// There is none of this name; the error suggests the nearest one.
    pub(crate) fn get(self, name: &str) -> Result<&'static str, String> {
        let entries = self.entries();
        let found = entries.iter().find(|(it, _)| *it == name).map(|(_, word)| *word);
        found.ok_or_else(|| {
            let table = Words::ALL.iter().find(|(_, it)| *it as u8 == self as u8);
            let table = format!("kopf.{}.", table.map_or("", |(name, _)| name));
            let near = did_you_mean(name, entries.iter().map(|(it, _)| *it), &table);
            format!("there is no {table}{name}{near}")
        })
    }
}

fn known() -> impl Iterator<Item = &'static str> {
    HostFunction::all().map(|it| it.name).chain(OTHERS.iter().map(|it| it.name))
}

/// Returns whether `kopf.NAME` exists.
pub(crate) fn is_known(name: &str) -> bool {
    known().any(|it| it == name)
}

/// Returns the error of an unknown `kopf.NAME`, which suggests the nearest name.
pub(crate) fn unknown(name: &str) -> String {
    format!("there is no kopf.{name}{}", did_you_mean(name, known(), "kopf."))
}

/// Returns the error of a `kopf.NAME` that this version does not have.
pub(crate) fn not_built(name: &str) -> DeclareError {
    format!("kopf.{name} is not supported yet by this version").into()
}

/// The hint about a name without a value.
pub(crate) const IS_DEFINED: &str = "check the spelling, and define the function above this line";

/// What was passed in place of a function.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NoHandler<'a> {
    /// Another value, such as a string.
    Other,
    /// No value, such as that of a variable that is not set yet.
    Nothing,
    /// A library, which has the name of a function of the script.
    Library(&'a str),
}

/// Returns the error of a declaration without a function.
pub(crate) fn no_handler(name: &str, kind: Kind, given: NoHandler<'_>) -> DeclareError {
    match given {
        NoHandler::Nothing => {
            return DeclareError {
                message: format!(
                    "kopf.{name}: the last argument must be the handler function, but it is not set"
                ),
                hint: Some(IS_DEFINED.into()),
            };
        }
        NoHandler::Library(library) => {
            return DeclareError {
                message: format!(
                    "kopf.{name}: the last argument must be the handler function, but `{library}` is a library"
                ),
                hint: Some(format!("rename the function, for example to `on_{library}`")),
            };
        }
        NoHandler::Other => {}
    }
    let is_about_resources = kind.category() != Category::Activity && kind != Kind::Sub;
    let selector = if kind == Kind::Test {
        "\"DESCRIPTION\", "
    } else if kind == Kind::Every {
        "\"15m\", "
    } else if kind == Kind::Cron {
        "\"0 3 * * *\", "
    } else if is_about_resources {
        "SELECTOR, "
    } else {
        ""
    };
    DeclareError {
        message: format!("kopf.{name}: the last argument must be the handler function"),
        hint: Some(format!("kopf.{name}({selector}OPTIONS, FUNCTION); OPTIONS can be omitted")),
    }
}

/// Returns the error of arguments to a function of `kopf` that takes only options.
pub(crate) fn no_options(name: &str) -> DeclareError {
    DeclareError {
        message: format!("kopf.{name} takes only options"),
        hint: Some("the options are fns, handlers and lifecycle".into()),
    }
}

/// Returns the error of a declaration in a handler.
pub(crate) fn too_late(name: &str) -> DeclareError {
    DeclareError {
        message: format!("kopf.{name} was called after the script was loaded"),
        hint: Some("call it at the top level of the file".into()),
    }
}

/// The methods of `ctx.logger` that write a line. Lua also has `debug`, a reserved word of Rhai.
pub(crate) const LOG_METHODS: [(&str, LogLevel); 5] = [
    ("dbg", LogLevel::Debug),
    ("info", LogLevel::Info),
    ("warning", LogLevel::Warning),
    ("warn", LogLevel::Warning),
    ("error", LogLevel::Error),
];

/// Returns the structured fields of a log line; `None` if the value has none. The line matters more than its fields: a value that
/// JSON cannot hold is replaced by the reason.
pub(crate) fn log_fields(value: &dyn Argument) -> Option<Map<String, Value>> {
    match value.read() {
        Ok(Value::Object(fields)) => return Some(limits::cut_fields(fields)),
        Ok(_) => return None,
        Err(refused) if refused.is_bound() => {
            let reason = refused.at("the fields");
            return Some(Map::from_iter([("fields_left_out".to_owned(), reason.into())]));
        }
        Err(_) => {}
    }
    let mut fields = Map::new();
    let visited = value.visit(&mut |name, value| {
        if let Some(name) = name {
            let field = value.read().unwrap_or_else(|it| it.at(name).into());
            fields.insert(name.to_owned(), field);
        }
        Ok(())
    });
    visited.is_ok().then(|| limits::cut_fields(fields))
}
