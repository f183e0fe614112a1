//! `kopf.adopt` and its siblings: the meaning of their arguments, the same for both languages.
//!
//! `kopf.adopt(OBJECTS, OWNER, OPTIONS)`: the second argument can be omitted, or passed as an option; it defaults to that of the
//! handled object. Nothing is sent: the functions change objects that a script is about to create. `logic/object/hierarchy.rs`
//! decides what they change.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::call::{Cause, Invocation};
use crate::logic::object::{
    fields,
    hierarchy::{self, Adoption, HierarchyError},
    reference::{self, Ownership},
};
use crate::logic::text::nearest::unknown_option;
use crate::settings::FieldPath;

/// One of the functions that change the hierarchy of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hierarchy {
    /// All of the following at once.
    Adopt,
    /// Adds a reference to the owner.
    AppendOwnerReference,
    /// Removes a reference to the owner.
    RemoveOwnerReference,
    /// Sets the name of the objects.
    HarmonizeNaming,
    /// Sets the namespace of the objects.
    AdjustNamespace,
    /// Adds labels, also to nested objects if requested.
    Label,
    /// Returns a reference for Kubernetes events.
    BuildObjectReference,
    /// Returns a reference for owned objects.
    BuildOwnerReference,
}

/// A function as scripts see it.
pub(crate) struct Helper {
    /// The name below `kopf`.
    pub(crate) name: &'static str,
    pub(crate) function: Hierarchy,
    /// The documentation for the reference.
    pub(crate) doc: &'static str,
    /// The argument after the objects.
    pub(crate) argument: Option<&'static str>,
    /// The options after that argument.
    pub(crate) options: &'static [&'static str],
}

/// All functions, with their arguments.
pub(crate) const HELPERS: &[Helper] = &[
    helper(
        "adopt",
        "Prepares new objects as children of the handled object: owner reference, name, namespace and labels. Kubernetes deletes them with their owner. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::Adopt,
        Some("owner"),
        &["forced", "strict", "nested"],
    ),
    helper(
        "append_owner_reference",
        "Adds an owner reference to objects. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::AppendOwnerReference,
        Some("owner"),
        &["controller", "block_owner_deletion"],
    ),
    helper(
        "remove_owner_reference",
        "Removes the owner reference from objects. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::RemoveOwnerReference,
        Some("owner"),
        &[],
    ),
    helper(
        "harmonize_naming",
        "Sets the name of objects without one, so that it begins with that of the handled object. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::HarmonizeNaming,
        Some("name"),
        &["forced", "strict"],
    ),
    helper(
        "adjust_namespace",
        "Sets the namespace of objects without one to that of the handled object. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::AdjustNamespace,
        Some("namespace"),
        &["forced"],
    ),
    helper(
        "label",
        "Adds labels to objects. Lua changes the objects in place and returns them; Rhai returns changed copies.",
        Hierarchy::Label,
        Some("labels"),
        &["forced", "nested"],
    ),
    helper(
        "build_object_reference",
        "Returns a reference to an object, as in Kubernetes events.",
        Hierarchy::BuildObjectReference,
        None,
        &[],
    ),
    helper(
        "build_owner_reference",
        "Returns an owner reference to an object, as in the objects that it owns.",
        Hierarchy::BuildOwnerReference,
        None,
        &["controller", "block_owner_deletion"],
    ),
];

const fn helper(
    name: &'static str,
    doc: &'static str,
    function: Hierarchy,
    argument: Option<&'static str>,
    options: &'static [&'static str],
) -> Helper {
    Helper { name, function, doc, argument, options }
}

/// The arguments after the objects.
struct Rest {
    /// `None`: omitted, which differs from null.
    argument: Option<Value>,
    options: Map<String, Value>,
}

impl Helper {
    /// Returns whether it returns a reference and changes nothing.
    pub(crate) fn makes_reference(&self) -> bool {
        matches!(self.function, Hierarchy::BuildObjectReference | Hierarchy::BuildOwnerReference)
    }

    /// Returns the changed objects, or the reference. `rest` has `None` for omitted arguments.
    ///
    /// # Errors
    /// An argument is invalid.
    pub(crate) fn call(
        &self,
        objects: Value,
        rest: Vec<Option<Value>>,
        present: Option<&Invocation>,
    ) -> Result<Value, String> {
        let named = |problem: String| format!("kopf.{}: {problem}", self.name);
        let rest = self.read(rest).map_err(named)?;
        match self.function {
            Hierarchy::BuildObjectReference => {
                Ok(reference::object(&object_ref(&complete(&objects, present))).into())
            }
            Hierarchy::BuildOwnerReference => {
                let ownership = rest.ownership().map_err(named)?;
                Ok(reference::owner(&complete(&objects, present), ownership).into())
            }
            Hierarchy::Adopt
            | Hierarchy::AppendOwnerReference
            | Hierarchy::RemoveOwnerReference
            | Hierarchy::HarmonizeNaming
            | Hierarchy::AdjustNamespace
            | Hierarchy::Label => {
                let mut objects = objects;
                mend_references(&mut objects);
                self.change(&mut objects, &rest, present).map_err(named)?;
                Ok(objects)
            }
        }
    }

    fn change(
        &self,
        objects: &mut Value,
        rest: &Rest,
        present: Option<&Invocation>,
    ) -> Result<(), String> {
        let handled = present.and_then(handled);
        let handled = || {
            hierarchy::implicit_owner(handled.as_ref()).map_err(|it: HierarchyError| it.to_string())
        };
        let owner = || match &rest.argument {
            Some(owner @ Value::Object(_)) => Ok(complete(owner, present)),
            Some(other) => Err(format!("the owner must be an object, not {other}")),
            None => handled().map(Cow::Borrowed),
        };
        let text = |it: &Value| match it {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err(format!("expected a string, not {it}"))
            }
        };
        let (forced, strict) = (rest.flag("forced")?, rest.flag("strict")?);
        let changed = match self.function {
            Hierarchy::Adopt => {
                let how = Adoption { forced, strict, nested: rest.nested()? };
                hierarchy::adopt(objects, owner()?.as_ref(), &how)
            }
            Hierarchy::AppendOwnerReference => {
                hierarchy::append_owner_reference(objects, owner()?.as_ref(), rest.ownership()?)
            }
            Hierarchy::RemoveOwnerReference => {
                hierarchy::remove_owner_reference(objects, owner()?.as_ref())
            }
            Hierarchy::HarmonizeNaming => {
                let name = match &rest.argument {
                    Some(name) => text(name)?,
                    None => hierarchy::name_of(handled()?).map(str::to_owned),
                };
                hierarchy::harmonize_naming(objects, name.as_deref(), forced, strict)
            }
            Hierarchy::AdjustNamespace => {
                let namespace = match &rest.argument {
                    Some(namespace) => text(namespace)?,
                    None => hierarchy::namespace_of(handled()?).map(str::to_owned),
                };
                hierarchy::adjust_namespace(objects, namespace.as_deref(), forced)
            }
            Hierarchy::Label => {
                let labels = match &rest.argument {
                    Some(labels) => labels.clone(),
                    None => hierarchy::labels_of(handled()?),
                };
                hierarchy::label(objects, &labels, forced, &rest.nested()?)
            }
            Hierarchy::BuildObjectReference | Hierarchy::BuildOwnerReference => Ok(()),
        };
        changed.map_err(|it: HierarchyError| it.to_string())
    }

    fn read(&self, mut rest: Vec<Option<Value>>) -> Result<Rest, String> {
        let most = if self.argument.is_some() { 2 } else { 1 };
        if rest.len() > most {
            return Err(format!("too many arguments: at most {most} after the objects"));
        }
        let is_second = rest.len() == most;
        let options = rest.pop_if(|it| match it {
            Some(Value::Object(map)) => is_second || self.are_options(map),
            Some(_) => false,
            None => is_second,
        });
        let mut options = match options.flatten() {
            Some(Value::Object(options)) => options,
            Some(_) | None => Map::new(),
        };
        let mut argument = rest.pop().flatten();
        if !rest.is_empty() {
            return Err("the options come last, in a map".into());
        }
        if self.takes_owner() && argument.as_ref().is_some_and(is_empty) {
            argument = None;
        }
        if let Some(named) = self.argument.and_then(|it| options.shift_remove(it)) {
            argument = Some(named);
        }
        if let Some(unknown) = options.keys().find(|it| !self.options.contains(&it.as_str())) {
            let known = self.options.iter().copied().chain(self.argument).collect::<Vec<_>>();
            return Err(unknown_option(unknown, &known));
        }
        Ok(Rest { argument, options })
    }

    fn takes_owner(&self) -> bool {
        match self.function {
            Hierarchy::Adopt
            | Hierarchy::AppendOwnerReference
            | Hierarchy::RemoveOwnerReference => true,
            Hierarchy::HarmonizeNaming
            | Hierarchy::AdjustNamespace
            | Hierarchy::Label
            | Hierarchy::BuildObjectReference
            | Hierarchy::BuildOwnerReference => false,
        }
    }

    /// Returns whether a map that could be the argument is the options: if all its keys are names of options. Labels are strings
    /// and may have any name, so a map of labels is the options only if a value has another type.
    fn are_options(&self, map: &Map<String, Value>) -> bool {
        let is_option =
            |it: &String| self.options.contains(&it.as_str()) || self.argument == Some(it.as_str());
        let could_be_labels =
            self.function == Hierarchy::Label && map.values().all(Value::is_string);
        self.argument.is_none() || (map.keys().all(is_option) && !could_be_labels)
    }
}

impl Rest {
    fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.tristate(name, Some(false))?.unwrap_or(false))
    }

    /// Returns true, false, or `None` for null.
    fn tristate(&self, name: &str, default: Option<bool>) -> Result<Option<bool>, String> {
        match self.options.get(name) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(Value::Bool(it)) => Ok(Some(*it)),
            Some(other) => Err(format!("`{name}` must be true or false, not {other}")),
        }
    }

    fn ownership(&self) -> Result<Ownership, String> {
        Ok(Ownership {
            controller: self.tristate("controller", Some(true))?,
            block_owner_deletion: self.tristate("block_owner_deletion", Some(true))?,
        })
    }

    /// Returns one dotted path, or a list of paths; each is a string or a list of keys.
    fn nested(&self) -> Result<Vec<FieldPath>, String> {
        let path = |it: &Value| {
            fields::parse(it).map_err(|_not_a_path| {
                format!(
                    "`nested` is a path such as \"spec.template\", or a list of paths, not {it}"
                )
            })
        };
        match self.options.get("nested") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(paths)) => paths.iter().map(path).collect(),
            Some(one) => path(one).map(|it| vec![it]),
        }
    }
}

/// Returns whether a map is empty: it names no owner. In Lua, it looks like an empty list.
fn is_empty(argument: &Value) -> bool {
    match argument {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns the handled object, with the fields that are read of an owner.
fn handled(present: &Invocation) -> Option<Value> {
    let Cause::Object(cause) = &present.cause else { return None };
    let object = cause.current();
    let header = object.header();
    let mut owner = json!({
        "apiVersion": header.api_version,
        "kind": header.kind,
        "metadata": {
            "name": header.name,
            "uid": header.uid,
            "namespace": header.namespace,
            "labels": header.labels,
        },
    });
    // Objects in listings have no kind; that of the handled one is known.
    if let (Some(known), Some(owner)) = (present.logger.object(), owner.as_object_mut()) {
        owner.insert("apiVersion".into(), known.api_version.as_str().into());
        owner.insert("kind".into(), known.kind.as_str().into());
    }
    Some(owner)
}

/// Returns an object that a script passes; the handled one with its kind, which listings omit.
fn complete<'a>(object: &'a Value, present: Option<&Invocation>) -> Cow<'a, Value> {
    let uid = object.pointer("/metadata/uid").and_then(Value::as_str);
    let known = present.and_then(|it| it.logger.object());
    let known = known.filter(|it| Some(it.uid.as_str()) == uid && !it.uid.is_empty());
    let (Some(known), Some(fields)) = (known, object.as_object()) else {
        return Cow::Borrowed(object);
    };
    if fields.contains_key("kind") && fields.contains_key("apiVersion") {
        return Cow::Borrowed(object);
    }
    let mut fields = fields.clone();
    fields.insert("apiVersion".into(), known.api_version.as_str().into());
    fields.insert("kind".into(), known.kind.as_str().into());
    Cow::Owned(fields.into())
}

fn object_ref(object: &Value) -> crate::logic::object::ObjectRef {
    let part =
        |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    crate::logic::object::ObjectRef {
        api_version: part("/apiVersion"),
        kind: part("/kind"),
        name: part("/metadata/name"),
        uid: part("/metadata/uid"),
        namespace: Some(part("/metadata/namespace")).filter(|it| !it.is_empty()),
    }
}

/// Restores an empty list that was read as an empty map: one language writes both alike.
fn mend_references(objects: &mut Value) {
    match objects {
        Value::Array(items) => items.iter_mut().for_each(mend_references),
        Value::Object(_) => {
            if let Some(references) = objects.pointer_mut("/metadata/ownerReferences")
                && references.as_object().is_some_and(Map::is_empty)
            {
                *references = Value::Array(Vec::new());
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
