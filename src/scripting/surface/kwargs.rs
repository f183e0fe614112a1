//! The fields of `ctx`, and which handlers have them.

use super::{Callback, Section, Ty, types::ctx_class};
use crate::logic::handlers::handler::Category;
use crate::scripting::surface::{Item, ItemShape, Spoken};

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

use Category::{Activity, Admission, Changing, Conversion, Indexing, Spawning, Watching};

const EVERY: &[Category] =
    &[Activity, Indexing, Watching, Spawning, Changing, Admission, Conversion];
const OBJECTS: &[Category] = &[Indexing, Watching, Spawning, Changing, Admission, Conversion];
const COMPARING: &[Category] = &[Changing, Admission];

const fn kwarg(name: &'static str, ty: Ty, of: &'static [Category], doc: &'static str) -> Kwarg {
    Kwarg { name, ty, of, doc }
}

const TEXT: Ty = Ty::Maybe(&Ty::Text);
const WARNING: Callback = Callback { parameters: &[("text", Ty::Text)], returns: Ty::Nothing };

/// All fields, sorted by name.
#[rustfmt::skip]
pub(crate) const KWARGS: &[Kwarg] = &[
    kwarg("activity", Ty::Words(&["startup", "cleanup", "authentication", "probe", "tunnel", "test"]), &[Activity], "The activity that is running."),
    kwarg("annotations", Ty::Map, OBJECTS, "The annotations of the object; an empty map if it has none. Read-only."),
    kwarg("body", Ty::Object, OBJECTS, "The whole object. Read-only: change it through `ctx.patch`."),
    kwarg("children", Ty::Map, &[Spawning], "In `kopf.reconcile`: the existing children, by the plural of their kind and by name: `ctx.children.deployments[ctx.name]`. Those in another namespace than the parent: `[\"NAMESPACE/NAME\"]`. Read-only."),
    kwarg("conditions", Ty::Class("Conditions"), OBJECTS, "The conditions in the status of the object, following the conventions of Kubernetes: `ctx.conditions:set(\"Ready\", true, \"Deployed\", \"3/3 pods\")`."),
    kwarg("diff", Ty::ListOf(&Ty::Class("DiffItem")), COMPARING, "The changes since the object was last handled, as a list. With the option `field`, only the changes of that field. In admission handlers: the changes of the request."),
    kwarg("dry", Ty::Boolean, EVERY, "Whether this is `kopf plan`, which only shows what would change: skip what has effects outside of the cluster."),
    kwarg("dryrun", Ty::Boolean, &[Admission], "Whether the request is a dry run, so that nothing will be stored."),
    kwarg("event", Ty::Class("WatchEvent"), &[Watching], "The raw watch event: `type` and `object`."),
    kwarg("from", Ty::Text, &[Conversion], "The version of the object before this conversion, as in the option `from`."),
    kwarg("headers", Ty::Map, &[Admission], "The HTTP headers of the webhook request, by their names in lower case. Empty on the embedded server."),
    kwarg("labels", Ty::Map, OBJECTS, "The labels of the object; an empty map if it has none. Read-only."),
    kwarg("logger", Ty::Class("Logger"), EVERY, "Logs messages with the name of the object, and posts them as Kubernetes events if `settings.posting.loggers` is true."),
    kwarg("memo", Ty::Class("Memo"), EVERY, "Data of the object, kept as long as the operator runs and shared by all handlers. In activities: the initial data of every object."),
    kwarg("meta", Ty::Map, OBJECTS, "The metadata of the object. Read-only."),
    kwarg("name", Ty::Text, OBJECTS, "The name of the object."),
    kwarg("namespace", TEXT, OBJECTS, "The namespace of the object; nil if it is cluster-scoped."),
    kwarg("new", Ty::Any, COMPARING, "The current object, without its status and the state that the operator stores there; with the option `field`, the value of the field. In admission handlers: the whole object as it will be stored, or nil if it is deleted."),
    kwarg("new_value", Ty::Any, COMPARING, "The same as `new`, a reserved word in Rhai."),
    kwarg("old", Ty::Any, COMPARING, "The last handled state of the object, or nil if it is new; with the option `field`, the value of the field. In admission handlers: the whole stored object, or nil if it is created."),
    kwarg("old_value", Ty::Any, COMPARING, "The same as `old`."),
    kwarg("operation", Ty::Words(&["CREATE", "UPDATE", "DELETE", "CONNECT"]), &[Admission], "What the request does."),
    kwarg("options", Ty::Maybe(&Ty::Map), &[Admission], "The options of the request, such as `propagationPolicy` of a deletion."),
    kwarg("param", Ty::Any, EVERY, "The value of the option `param` of the declaration."),
    kwarg("parent", Ty::Maybe(&Ty::Object), &[Watching], "With the option `parent`: the owner of the object; nil if it is gone. Read-only."),
    kwarg("patch", Ty::Class("Patch"), OBJECTS, "Changes of the object, which are sent when the handlers of this round have finished."),
    kwarg("reason", Ty::Words(&["create", "update", "delete", "resume"]), &[Changing], "The cause of the call: what happened to the object."),
    kwarg("resource", Ty::Class("Resource"), OBJECTS, "The description of the object's resource by the server."),
    kwarg("retry", Ty::Integer, EVERY, "The number of previous attempts of this handler; 0 at the first attempt."),
    kwarg("runtime", Ty::Number, EVERY, "The seconds since the first attempt."),
    kwarg("scheduled", Ty::Text, &[Activity], "In `every` and `cron` handlers: the time that this run was planned for, as RFC 3339."),
    kwarg("server", Ty::Maybe(&Ty::Map), &[Activity], "In `on_tunnel` handlers: the webhook server: `port`, `path`, `insecure`, and `ca`, the certificates that it is trusted by, PEM."),
    kwarg("settings", Ty::Class("Settings"), &[Activity], "The settings of the operator; a startup handler can change them."),
    kwarg("spec", Ty::Map, OBJECTS, "The spec of the object; an empty map if it has none. Read-only."),
    kwarg("sslpeer", Ty::Map, &[Admission], "The verified certificate of the client: `subject`, `issuer`, `serialNumber`, `notBefore`, `notAfter`, `subjectAltName`; empty if there is none."),
    kwarg("started", Ty::Text, EVERY, "The time of the first attempt, as RFC 3339."),
    kwarg("status", Ty::Map, OBJECTS, "The status of the object; an empty map if it has none. Read-only."),
    kwarg("stopped", Ty::Class("Stopped"), &[Spawning], "The stop flag of the daemon or timer, which it can also wait for."),
    kwarg("subresource", TEXT, &[Admission], "The subresource of the request, such as \"status\"; nil for the object itself."),
    kwarg("to", Ty::Text, &[Conversion], "The version of the object after this conversion, as in the option `to`."),
    kwarg("type", Ty::Maybe(&Ty::Words(&["ADDED", "MODIFIED", "DELETED"])), &[Watching], "The type of the watch event; nil for objects that existed at the start."),
    kwarg("uid", Ty::Text, OBJECTS, "The unique id of the object."),
    kwarg("userinfo", Ty::Map, &[Admission], "The user who makes the request: `username`, `uid`, `groups`, `extra`."),
    kwarg("warn", Ty::Function(&WARNING), &[Admission], "Adds a warning to the response, which `kubectl` and other clients print: `ctx.warn(\"use v2\")`."),
    kwarg("warnings", Ty::Class("Warnings"), &[Admission], "The warnings of the response so far."),
];

impl Kwarg {
    fn item(&self) -> Item {
        Item {
            name: self.name,
            doc: self.doc,
            shape: ItemShape::Value(self.ty),
            spoken: Spoken::Both,
        }
    }
}

const CLASSES: &[(Category, &str)] = &[
    (
        Changing,
        "The argument of change handlers: `on_create`, `on_update`, `on_delete`, `on_resume`, `on_field`, and sub-handlers.",
    ),
    (Watching, "The argument of `on_event` handlers."),
    (
        Spawning,
        "The argument of daemons, timers and `kopf.reconcile`. The parts of the object are always current.",
    ),
    (Indexing, "The argument of the functions of `kopf.index`."),
    (Admission, "The argument of `on_validate` and `on_mutate` handlers."),
    (
        Conversion,
        "The argument of `on_convert` handlers, which return the converted object. They cannot change `patch` and `conditions`.",
    ),
    (
        Activity,
        "The argument of `on_startup`, `on_cleanup`, `on_login`, `on_probe`, `on_tunnel`, `every` and `cron` handlers, and of tests.",
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
            items: items(&|it| it.of != EVERY && it.of != OBJECTS && it.of.contains(category)),
            others: None,
            parent: Some(parent),
        });
    }
    sections
}
