//! The fields of `ctx`, and which handlers have them.

use super::{Section, Ty, types::ctx_class};
use crate::logic::handlers::handler::Category;
use crate::scripting::surface::{Item, Shape, Spoken};

/// A field of `ctx`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kwarg {
    /// The name in scripts, as in Kopf.
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

/// All fields, sorted by name.
#[rustfmt::skip]
pub(crate) const KWARGS: &[Kwarg] = &[
    kwarg("activity", Ty::Words(&["startup", "cleanup", "authentication", "probe", "test"]), &[Activity], "The activity that is running."),
    kwarg("annotations", Ty::Map, OBJECTS, "The annotations of the object; an empty map if it has none. Read-only."),
    kwarg("body", Ty::Object, OBJECTS, "The whole object. Read-only: change it through `ctx.patch`."),
    kwarg("conditions", Ty::Class("Conditions"), OBJECTS, "The conditions in the status of the object, following the conventions of Kubernetes: `ctx.conditions:set(\"Ready\", true, \"Deployed\", \"3/3 pods\")`."),
    kwarg("diff", Ty::ListOf(&Ty::Class("DiffItem")), &[Changing], "The changes since the object was last handled, as a list. With the option `field`, only the changes of that field."),
    kwarg("event", Ty::Class("WatchEvent"), &[Watching], "The raw watch event: `type` and `object`."),
    kwarg("labels", Ty::Map, OBJECTS, "The labels of the object; an empty map if it has none. Read-only."),
    kwarg("logger", Ty::Class("Logger"), EVERY, "Logs messages with the name of the object, and posts them as Kubernetes events if `settings.posting.loggers` is true."),
    kwarg("memo", Ty::Class("Memo"), EVERY, "Data of the object, kept as long as the operator runs and shared by all handlers. In activities: the initial data of every object."),
    kwarg("meta", Ty::Map, OBJECTS, "The metadata of the object. Read-only."),
    kwarg("name", Ty::Text, OBJECTS, "The name of the object."),
    kwarg("namespace", TEXT, OBJECTS, "The namespace of the object; nil if it is cluster-scoped."),
    kwarg("new", Ty::Any, &[Changing], "The current object, without its status and the state that the operator stores there; with the option `field`, the value of the field."),
    kwarg("new_value", Ty::Any, &[Changing], "The same as `new`, a reserved word in Rhai."),
    kwarg("old", Ty::Any, &[Changing], "The last handled state of the object, or nil if it is new; with the option `field`, the value of the field."),
    kwarg("old_value", Ty::Any, &[Changing], "The same as `old`."),
    kwarg("param", Ty::Any, EVERY, "The value of the option `param` of the declaration."),
    kwarg("patch", Ty::Class("Patch"), OBJECTS, "Changes of the object, which are sent when the handlers of this round have finished."),
    kwarg("reason", Ty::Words(&["create", "update", "delete", "resume"]), &[Changing], "The cause of the call: what happened to the object."),
    kwarg("resource", Ty::Class("Resource"), OBJECTS, "The description of the object's resource by the server."),
    kwarg("retry", Ty::Integer, EVERY, "The number of previous attempts of this handler; 0 at the first attempt."),
    kwarg("runtime", Ty::Number, EVERY, "The seconds since the first attempt."),
    kwarg("settings", Ty::Class("Settings"), &[Activity], "The settings of the operator; a startup handler can change them."),
    kwarg("spec", Ty::Map, OBJECTS, "The spec of the object; an empty map if it has none. Read-only."),
    kwarg("started", Ty::Text, EVERY, "The time of the first attempt, as RFC 3339."),
    kwarg("status", Ty::Map, OBJECTS, "The status of the object; an empty map if it has none. Read-only."),
    kwarg("stopped", Ty::Class("Stopped"), &[Spawning], "The stop flag of the daemon or timer, which it can also wait for."),
    kwarg("type", Ty::Maybe(&Ty::Words(&["ADDED", "MODIFIED", "DELETED"])), &[Watching], "The type of the watch event; nil for objects that existed at the start."),
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
        "The argument of change handlers: `on_create`, `on_update`, `on_delete`, `on_resume`, `on_field`, and sub-handlers.",
    ),
    (Watching, "The argument of `on_event` handlers."),
    (Spawning, "The argument of daemons and timers. The parts of the object are always current."),
    (Indexing, "The argument of the functions of `kopf.index`."),
    (
        Activity,
        "The argument of `on_startup`, `on_cleanup`, `on_login` and `on_probe` handlers, and of tests.",
    ),
];

/// Returns the class that the arguments of all handlers share, and one class for each category of handlers.
pub(super) fn sections() -> Vec<Section> {
    let items =
        |of: &dyn Fn(&Kwarg) -> bool| KWARGS.iter().filter(|it| of(it)).map(Kwarg::item).collect();
    let mut sections = vec![Section {
        name: "Ctx",
        doc: "The argument of every handler. The id of each index is a field too. A field that this kind of handler does not have is nil; a name that no handler has, and an assignment to `ctx`, are errors.",
        items: items(&|it| it.of == EVERY),
        others: None,
        parent: None,
    }];
    sections.push(Section {
        name: "ObjectCtx",
        doc: "The argument of every handler of objects, and of filter functions.",
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
