//! The fields of `ctx`, and which handlers have them.

use super::{Section, Ty, types::ctx_class};
use crate::logic::handler::Category;
use crate::scripting::surface::{Item, Shape, Spoken};

/// A field of `ctx`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kwarg {
    /// As scripts write it: Kopf's name.
    pub(crate) name: &'static str,
    ty: Ty,
    /// The handlers that have it.
    of: &'static [Category],
    doc: &'static str,
}

use Category::{Activity, Changing, Indexing, Spawning, Watching};

const EVERY: &[Category] = &[Activity, Indexing, Watching, Spawning, Changing];
const OBJECTS: &[Category] = &[Indexing, Watching, Spawning, Changing];

const fn kwarg(name: &'static str, ty: Ty, of: &'static [Category], doc: &'static str) -> Kwarg {
    Kwarg { name, ty, of, doc }
}

const TEXT: Ty = Ty::Maybe(&Ty::Text);

/// All of them, by name.
#[rustfmt::skip]
pub(crate) const KWARGS: &[Kwarg] = &[
    kwarg("activity", Ty::Words(&["startup", "cleanup", "authentication", "probe", "test"]), &[Activity], "What the operator is doing."),
    kwarg("annotations", Ty::Map, OBJECTS, "The annotations of the object; an empty map if it has none. Read-only."),
    kwarg("body", Ty::Object, OBJECTS, "The whole object. Read-only: change it through `ctx.patch`."),
    kwarg("conditions", Ty::Class("Conditions"), OBJECTS, "The conditions in the status of the object, by the conventions of Kubernetes: `ctx.conditions:set(\"Ready\", true, \"Deployed\", \"3/3 pods\")`."),
    kwarg("diff", Ty::ListOf(&Ty::Class("DiffItem")), &[Changing], "What has changed since the last handling, as a list. With the option `field` it is about that field only."),
    kwarg("event", Ty::Class("WatchEvent"), &[Watching], "The watch event as it came: `type` and `object`."),
    kwarg("labels", Ty::Map, OBJECTS, "The labels of the object; an empty map if it has none. Read-only."),
    kwarg("logger", Ty::Class("Logger"), EVERY, "Logs with the name of the object, and posts Kubernetes events of it if `settings.posting.loggers` says so."),
    kwarg("memo", Ty::Class("Memo"), EVERY, "Data that you keep for the object as long as the operator runs, shared by all handlers of it. In activities: the data that each object starts with."),
    kwarg("meta", Ty::Map, OBJECTS, "The metadata of the object. Read-only."),
    kwarg("name", Ty::Text, OBJECTS, "The name of the object."),
    kwarg("namespace", TEXT, OBJECTS, "The namespace of the object; nothing if it is in none."),
    kwarg("new", Ty::Any, &[Changing], "The object as it is now, without its status and what the operator stores there; with the option `field` the value of the field."),
    kwarg("new_value", Ty::Any, &[Changing], "The same as `new`, which Rhai reserves."),
    kwarg("old", Ty::Any, &[Changing], "The object as it was handled last, or nothing if it is new; with the option `field` the value of the field."),
    kwarg("old_value", Ty::Any, &[Changing], "The same as `old`."),
    kwarg("param", Ty::Any, EVERY, "The value of the option `param` of the declaration."),
    kwarg("patch", Ty::Class("Patch"), OBJECTS, "Changes of the object that are sent when the handlers of this turn are through."),
    kwarg("reason", Ty::Words(&["create", "update", "delete", "resume"]), &[Changing], "Why the handlers are called: what happened to the object."),
    kwarg("resource", Ty::Class("Resource"), OBJECTS, "What the server says about the kind of the object."),
    kwarg("retry", Ty::Integer, EVERY, "How often this handler was tried before; 0 at the first attempt."),
    kwarg("runtime", Ty::Number, EVERY, "The seconds since the first attempt."),
    kwarg("settings", Ty::Class("Settings"), &[Activity], "The settings of the operator; a start-up handler may change them."),
    kwarg("spec", Ty::Map, OBJECTS, "The spec of the object; an empty map if it has none. Read-only."),
    kwarg("started", Ty::Text, EVERY, "The time of the first attempt, as RFC 3339."),
    kwarg("status", Ty::Map, OBJECTS, "The status of the object; an empty map if it has none. Read-only."),
    kwarg("stopped", Ty::Class("Stopped"), &[Spawning], "Tells a daemon or a timer that it must end, and lets it wait for that."),
    kwarg("type", Ty::Maybe(&Ty::Words(&["ADDED", "MODIFIED", "DELETED"])), &[Watching], "The type of the watch event; nothing for objects that were there already."),
    kwarg("uid", Ty::Text, OBJECTS, "The unique id of the object."),
];

impl Kwarg {
    fn item(&self) -> Item {
        Item { name: self.name, doc: self.doc, shape: Shape::Value(self.ty), spoken: Spoken::Both }
    }
}

const CLASSES: &[(Category, &str)] = &[
    (
        Changing,
        "The argument of handlers of changes: `on_create`, `on_update`, `on_delete`, `on_resume`, `on_field`, and sub-handlers.",
    ),
    (Watching, "The argument of `on_event` handlers."),
    (
        Spawning,
        "The argument of daemons and timers. The parts of the object are those of the moment.",
    ),
    (Indexing, "The argument of the functions of `kopf.index`."),
    (
        Activity,
        "The argument of `on_startup`, `on_cleanup`, `on_login` and `on_probe` handlers, and of tests.",
    ),
];

/// The class that all arguments of handlers have in common, and one for each category of handlers.
pub(super) fn sections() -> Vec<Section> {
    let items =
        |of: &dyn Fn(&Kwarg) -> bool| KWARGS.iter().filter(|it| of(it)).map(Kwarg::item).collect();
    let mut sections = vec![Section {
        name: "Ctx",
        doc: "The argument of every handler. The id of each index is a field too. A field that the kind of handler does not have is nothing; a name that no handler has, and assigning to `ctx`, are errors.",
        items: items(&|it| it.of == EVERY),
        others: None,
        parent: None,
    }];
    sections.push(Section {
        name: "ObjectCtx",
        doc: "The argument of every handler of objects, and of functions that filter.",
        items: items(&|it| it.of == OBJECTS),
        others: None,
        parent: Some("Ctx"),
    });
    for (category, doc) in CLASSES {
        let parent = if *category == Activity { "Ctx" } else { "ObjectCtx" };
        sections.push(Section {
            name: ctx_class(*category),
            doc,
            items: items(&|it| it.of == [*category]),
            others: None,
            parent: Some(parent),
        });
    }
    sections
}
