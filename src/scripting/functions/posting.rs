//! `kopf.event`, `kopf.info`, `kopf.warn`, `kopf.exception`: the meaning of their arguments, the same for both languages.
//!
//! `kopf.event(OBJECTS, TYPE, REASON, MESSAGE)` and the like; each of the strings can be an option instead, in a map that comes
//! last: `type`, `reason`, `message`, and `backoffs`, the pauses between attempts. `kopf.exception(OBJECTS, MESSAGE, ERROR)` also
//! takes the error: any value that was caught, or an error of the host at any position, or the option `exc`.

use std::{sync::Arc, time::Duration};

use serde_json::{Map, Value};

use crate::call::{Invocation, QueuedEvent};
use crate::logic::{
    background::posting::{self, Note},
    object::ObjectRef,
    text::nearest::unknown_option,
};
use crate::scripting::{
    functions::kopf::Argument,
    values::{
        Nested, duration,
        errors::{CLASS, CallError, Described},
    },
};
use crate::settings::PostingSettings;

/// One of the functions that post Kubernetes events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PostKind {
    /// An event of any type.
    Event,
    /// An event of the type `Normal`.
    Info,
    /// An event of the type `Warning`.
    Warn,
    /// An event of the type `Error`.
    Exception,
}

/// The functions by their names below `kopf`.
pub(crate) const FUNCTIONS: &[(&str, PostKind)] = &[
    ("event", PostKind::Event),
    ("info", PostKind::Info),
    ("warn", PostKind::Warn),
    ("exception", PostKind::Exception),
];

/// The names of options.
const OPTIONS: &[&str] = &["type", "reason", "message", "backoffs"];
/// The option of `kopf.exception` that is not data.
const EXC: &str = "exc";

/// The arguments of one call, as data.
pub(crate) struct Arguments {
    /// An object, or lists of objects nested to any depth.
    objects: Value,
    /// What follows: strings, and possibly a map of options.
    rest: Vec<Value>,
    /// The error, for `kopf.exception`.
    error: Option<Described>,
}

/// The content of an event, before the settings are applied.
#[derive(Default)]
struct EventText {
    kind: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    backoffs: Option<Vec<Duration>>,
}

/// Posts the events of one call.
///
/// # Errors
/// An argument is invalid.
pub(crate) fn post(
    function: PostKind,
    arguments: Arguments,
    present: Option<&Invocation>,
) -> Result<(), String> {
    let named = |problem: String| format!("kopf.{}: {problem}", function.name());
    let present = present.ok_or_else(|| {
        named(
            "events can only be posted while a handler runs, not at the top level of a script"
                .into(),
        )
    })?;
    let Arguments { objects, rest, error } = arguments;
    let said = function.read(rest).map_err(named)?;
    let mut about = Vec::new();
    collect(&objects, present, &mut about).map_err(named)?;
    let posts = &present.services.posts;
    let settings = posts.settings();
    let backoffs = said.backoffs.clone().unwrap_or_else(|| settings.default_backoffs.clone());
    let Some(note) = function.note(&settings, said, error.as_ref()).map_err(named)? else {
        return Ok(());
    };
    for about in about {
        posts.post(QueuedEvent { about, note: note.clone(), backoffs: backoffs.clone() });
    }
    Ok(())
}

/// Maximum number of objects of one call.
const OBJECTS_MAX: usize = 1_000;
/// Maximum number of pauses between the attempts to post an event.
const PAUSES_MAX: usize = 20;
/// Maximum bytes of a field that identifies an object. Names have 253, and `apiVersion` is a name with a version.
const PART_MAX: usize = 320;

/// Returns the maximum bytes of a string that API servers accept.
fn bytes_max(name: &str) -> Option<usize> {
    match name {
        "type" => Some(64),
        "reason" => Some(128),
        _ => None,
    }
}

impl PostKind {
    fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, it)| *it == self).map_or("", |(name, _)| name)
    }

    /// Returns the documentation for the reference.
    pub(crate) fn doc(self) -> &'static str {
        match self {
            PostKind::Event => "Posts a Kubernetes event about objects.",
            PostKind::Info => "Posts a Kubernetes event of the type `Normal` about objects.",
            PostKind::Warn => "Posts a Kubernetes event of the type `Warning` about objects.",
            PostKind::Exception => {
                "Posts a Kubernetes event of the type `Error` about objects, with the error that was caught."
            }
        }
    }

    /// Returns the name of an argument in messages: `index` counts those after the objects.
    fn argument(self, index: usize) -> &'static str {
        self.positions().get(index).copied().unwrap_or("the options")
    }

    /// Returns whether the argument at this position is the error, whatever its type: after the message, unless it is a map of options.
    fn is_error(self, index: usize, option_names: Option<&[String]>) -> bool {
        let is_options = option_names.is_some_and(|names| {
            names.iter().all(|it| it == EXC || OPTIONS.contains(&it.as_str()))
        });
        self == PostKind::Exception && index == self.positions().len() && !is_options
    }

    /// Reads the arguments of one call.
    pub(crate) fn arguments(self, given: &[&dyn Argument]) -> Result<Arguments, CallError> {
        let place = format!("kopf.{}", self.name());
        let objects = given.first().map(|it| it.data(&format!("{place}: the object")));
        let objects = objects.transpose()?.unwrap_or_default();
        let (mut rest, mut error) = (Vec::new(), None);
        for (index, argument) in given.iter().skip(1).enumerate() {
            let place = format!("{place}: `{}`", self.argument(index));
            if self == PostKind::Exception {
                // An error of the host is recognized anywhere.
                if argument.is_raised()
                    || self.is_error(rest.len(), names_in(*argument)?.as_deref())
                {
                    error = (!argument.is_nil()).then(|| argument.described()).or(error);
                    continue;
                }
                // An error is not data: it is removed, and the rest is read.
                if let Some((exc, options)) = split(*argument, &place)? {
                    error = Some(exc);
                    rest.push(options);
                    continue;
                }
            }
            rest.push(argument.data(&place)?);
        }
        Ok(Arguments { objects, rest, error })
    }

    /// Returns the names of the positional strings, in order.
    pub(crate) fn positions(self) -> &'static [&'static str] {
        match self {
            PostKind::Event => &["type", "reason", "message"],
            PostKind::Info | PostKind::Warn => &["reason", "message"],
            PostKind::Exception => &["message"],
        }
    }

    fn read(self, mut rest: Vec<Value>) -> Result<EventText, String> {
        let mut said = EventText::default();
        let options = match rest.pop_if(|it| it.is_object()) {
            Some(Value::Object(options)) => options,
            // One of the languages writes an empty map as an empty list.
            Some(_) | None => Map::new(),
        };
        let positions = self.positions();
        if rest.len() > positions.len() {
            let last = if self == PostKind::Exception { ", the error" } else { "" };
            return Err(format!(
                "too many arguments: after the object it takes {}{last} and a map of options; format the message before the call",
                positions.join(", ")
            ));
        }
        for (name, value) in positions.iter().zip(rest) {
            said.set(name, value)?;
        }
        for (name, value) in options {
            if name == "type" && self != PostKind::Event {
                return Err("only kopf.event has the option `type`".into());
            }
            said.set(&name, value)?;
        }
        Ok(said)
    }

    fn note(
        self,
        settings: &PostingSettings,
        said: EventText,
        error: Option<&Described>,
    ) -> Result<Option<Note>, String> {
        let required = |name: &str, value: Option<String>| {
            let value = value.filter(|it| !it.is_empty());
            value.ok_or_else(|| format!("`{name}` is missing: pass a short word in CamelCase"))
        };
        let EventText { kind, reason, message, .. } = said;
        let message = message.unwrap_or_default();
        Ok(match self {
            PostKind::Event => {
                let (kind, reason) = (required("type", kind)?, required("reason", reason)?);
                posting::event(settings, Note { kind, reason, message })
            }
            PostKind::Info => posting::info(settings, &required("reason", reason)?, &message),
            PostKind::Warn => posting::warn(settings, &required("reason", reason)?, &message),
            PostKind::Exception => {
                let error = error.map(|(class, text)| (class.as_str(), text.as_str()));
                let class = error.map_or(CLASS, |(class, _)| class);
                let reason = reason.filter(|it| !it.is_empty());
                let reason = reason.as_deref().unwrap_or(class);
                // The class of an error is chosen by the script.
                let end = reason.floor_char_boundary(bytes_max("reason").unwrap_or_default());
                let reason = reason.get(..end).unwrap_or_default();
                let note = posting::exception(settings, Some(reason), &message, error);
                note.map(|it| Note { message: posting::shortened(&it.message).into_owned(), ..it })
            }
        })
    }
}

/// Returns the names in a map.
fn names_in(argument: &dyn Argument) -> Result<Option<Vec<String>>, CallError> {
    let mut names = Vec::new();
    argument.visit(&mut |name, _| {
        names.extend(name.map(str::to_owned));
        Ok(())
    })?;
    Ok((argument.inside() == Some(Nested::Map)).then_some(names))
}

/// Returns the error in a map of options, and the other options; `None` if there is no error.
fn split(argument: &dyn Argument, place: &str) -> Result<Option<(Described, Value)>, CallError> {
    let mut error = None;
    argument.visit(&mut |name, value| {
        let is_error = name == Some(EXC) && !value.is_nil();
        error = is_error.then(|| value.described()).or(error.take());
        Ok(())
    })?;
    let Some(error) = error else { return Ok(None) };
    let mut options = Map::new();
    argument.visit(&mut |name, value| {
        if let Some(name) = name.filter(|it| *it != EXC) {
            options.insert(name.to_owned(), value.data(place)?);
        }
        Ok(())
    })?;
    Ok(Some((error, options.into())))
}

impl EventText {
    fn set(&mut self, name: &str, value: Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        match name {
            "type" => self.kind = Some(text(name, value)?),
            "reason" => self.reason = Some(text(name, value)?),
            "message" => self.message = Some(text(name, value)?),
            "backoffs" => self.backoffs = Some(backoffs(&value)?),
            _ => return Err(unknown_option(name, OPTIONS)),
        }
        Ok(())
    }
}

fn text(name: &str, value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => match bytes_max(name) {
            Some(max) if text.len() > max => Err(format!(
                "`{name}` has {} bytes: the API server accepts at most {max}",
                text.len()
            )),
            // Long messages are shortened when they are posted; they must not wait in full length until then.
            _ => Ok(posting::shortened(&text).into_owned()),
        },
        Value::Number(_) | Value::Bool(_) if name == "message" => Ok(value.to_string()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(format!("`{name}` must be a string, not {value}"))
        }
    }
}

/// Returns one pause or a list of pauses.
fn backoffs(value: &Value) -> Result<Vec<Duration>, String> {
    let one = |it: &Value| {
        let pause = duration(it).map_err(|it| format!("`backoffs`: {it}"))?;
        Ok(pause.unwrap_or_default())
    };
    match value {
        // One of the languages writes an empty list like this.
        Value::Object(fields) if fields.is_empty() => Ok(Vec::new()),
        Value::Array(items) if items.len() > PAUSES_MAX => {
            Err(format!("`backoffs`: {} pauses, more than {PAUSES_MAX}", items.len()))
        }
        Value::Array(items) => items.iter().map(one).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            one(value).map(|it| vec![it])
        }
    }
}

/// Returns the objects in nested lists. Nulls are skipped.
fn collect(
    objects: &Value,
    present: &Invocation,
    found: &mut Vec<Arc<ObjectRef>>,
) -> Result<(), String> {
    match objects {
        Value::Null => Ok(()),
        Value::Array(items) => items.iter().try_for_each(|it| collect(it, present, found)),
        Value::Object(object) if object.is_empty() => Ok(()),
        Value::Object(_) => {
            if found.len() >= OBJECTS_MAX {
                return Err(format!("events about more than {OBJECTS_MAX} objects"));
            }
            found.push(reference(objects, present)?);
            Ok(())
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => Err(format!(
            "the first argument must be an object such as ctx.body, or a list of objects, not {objects}"
        )),
    }
}

fn reference(object: &Value, present: &Invocation) -> Result<Arc<ObjectRef>, String> {
    let part = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let reference = ObjectRef {
        api_version: part("/apiVersion").to_owned(),
        kind: part("/kind").to_owned(),
        name: part("/metadata/name").to_owned(),
        uid: part("/metadata/uid").to_owned(),
        namespace: Some(part("/metadata/namespace").to_owned()).filter(|it| !it.is_empty()),
    };
    // Objects in listings have no kind; that of the handled one is known.
    let own = present.logger.object().filter(|own| {
        own.uid == reference.uid
            && own.name == reference.name
            && own.namespace == reference.namespace
    });
    if let Some(own) = own {
        return Ok(own);
    }
    let ObjectRef { api_version, kind, name, uid, namespace } = &reference;
    let namespace = namespace.as_deref().unwrap_or_default();
    if [&**api_version, kind, name, uid, namespace].iter().any(|it| it.len() > PART_MAX) {
        return Err(format!("a name of the object has more than {PART_MAX} bytes"));
    }
    if reference.kind.is_empty() || reference.api_version.is_empty() || reference.name.is_empty() {
        return Err("the object needs apiVersion, kind and metadata.name".into());
    }
    Ok(Arc::new(reference))
}
