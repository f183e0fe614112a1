//! What the values of the host have: `ctx.patch`, `ctx.logger`, `ctx.stopped`, indexes and the like.

use super::{Callback, Entry, Section, Spoken, Ty, method, optional, required, taking, value};

/// A class: its name, its documentation, its members, and the type of what is under any other key.
type Class = (&'static str, &'static str, &'static [Entry], Option<Ty>);

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    ("Patch", "A merge-patch under construction. Assigning makes the levels on the way: `ctx.patch.status.phase = \"Ready\"`. Assigning `kopf.null` (Rhai: `()`) deletes a field on the cluster; assigning nil (Rhai: `remove`) withdraws it from the patch. To ask what is in it: `kopf.get(ctx.patch, \"status.phase\")`.", PATCH, Some(Ty::Any)),
    ("PatchFunctions", "Functions that change the object as it is on the server, applied after the merge-patch and again when another writer was faster.", PATCH_FUNCTIONS, None),
    ("Conditions", "The list `status.conditions` of the object. What is set is written with the rest of `ctx.patch`; the conditions of others stay.", CONDITIONS, None),
    ("Memo", "Data that live as long as the process, shared by all handlers of an object and by all scripts; they survive a reload. Any field may be set, to what JSON can hold.", &[], Some(Ty::Any)),
    ("Logger", "Logs about the handled object. A text may have places as in `string.format` (Lua), or be an interpolated text (Rhai); a map at the end adds structured fields.", LOGGER, None),
    ("Stopped", "The stop flag of daemons and timers. It is a function too: `ctx.stopped()` is the same as `is_set`.", STOPPED, None),
    ("StopReasons", "Why a daemon or timer must end. It prints as `RESOURCE_DELETED|DAEMON_SIGNALLED` and can be iterated over.", STOP_REASONS, None),
    ("Index", "A table in memory that the functions of `kopf.index` fill: stores of values by key. Read-only; what was returned without a key is under `kopf.null` (Rhai: `()`).", INDEX, Some(Ty::Maybe(&Ty::Class("Store")))),
    ("Store", "The values under one key of an index, as they were when it was taken: a list, counted from 1 in Lua and from 0 in Rhai.", STORE, Some(Ty::Any)),
    ("Resource", "What the server says about a kind of objects.", RESOURCE, None),
    ("DiffItem", "One difference between the object as it was handled last and as it is now.", DIFF_ITEM, None),
    ("WatchEvent", "A watch event as it came.", WATCH_EVENT, None),
    ("Error", "An error of `kopf.TemporaryError` and its siblings, made to be raised: `error(…)` in Lua, `throw` in Rhai.", ERROR, None),
    ("Refusal", "What a server refused, or could not do: the error of `kube` functions. Caught with `pcall` (Lua) or `try … catch` (Rhai), its fields can be read; it prints as its message.", REFUSAL, None),
    ("Marker", "A constant of declarations: `kopf.PRESENT`, `kopf.ABSENT`, `kopf.EVERYTHING`.", &[], None),
    ("Condition", "A combination of functions: `kopf.all_` and its siblings.", &[], None),
    ("Storage", "A place for the state of the operator, for `ctx.settings.persistence`.", &[], None),
    ("Login", "Something to log in to the cluster with, for handlers of `kopf.on_login`.", &[], None),
];

/// All of them, except those of `ctx` and of the settings.
pub(super) fn sections() -> Vec<Section> {
    let section = |(name, doc, entries, others): &Class| Section {
        others: *others,
        ..Section::of(name, doc, entries)
    };
    CLASSES.iter().map(section).collect()
}

const PATCH: &[Entry] = &[
    value("metadata", Ty::Any, "Changes of the metadata, such as labels and annotations."),
    value("meta", Ty::Any, "The same as `metadata`."),
    value("spec", Ty::Any, "Changes of the spec."),
    value("status", Ty::Any, "Changes of the status."),
    value("fns", Ty::Class("PatchFunctions"), "Functions that change the object."),
];

const TRANSFORMATION: Callback = Callback { parameters: &[("body", Ty::Any)], returns: Ty::Any };

const PATCH_FUNCTIONS: &[Entry] = &[method(
    "append",
    taking(&[required(
        "function",
        Ty::Function(&TRANSFORMATION),
        "Changes the object that it gets.",
    )]),
    "Adds a function.",
)];

const TYPE: super::Parameter = required("type", Ty::Text, "The type, such as \"Ready\".");

const CONDITIONS: &[Entry] = &[
    method(
        "set",
        taking(&[
            TYPE,
            required("status", Ty::Any, "true, false, or \"Unknown\"."),
            optional(
                "reason",
                Ty::Text,
                "One word in CamelCase; by default it follows from the type and the status.",
            ),
            optional("message", Ty::Text, "For people; by default the reason."),
        ]),
        "Sets a condition. The time of its last transition changes only with its status.",
    ),
    method(
        "get",
        taking(&[TYPE]).giving(Ty::Any),
        "The condition as a map; nothing if it is not there.",
    ),
    method("is", taking(&[TYPE]).giving(Ty::Boolean), "Whether the condition is there and true."),
    method(
        "is_true",
        taking(&[TYPE]).giving(Ty::Boolean),
        "The same as `is`, which is a word of Rhai.",
    ),
    method("remove", taking(&[TYPE]), "Takes the condition out."),
];

const MESSAGE: super::Parameter = required("message", Ty::Any, "The text.");
const REST: super::Parameter =
    optional("values", Ty::Any, "What fills the places of the text; then a map of fields.");

const fn logging(name: &'static str, doc: &'static str) -> Entry {
    method(name, taking(&[MESSAGE]).then(REST), doc)
}

const LOGGER: &[Entry] = &[
    logging("debug", "Logs for those who look for mistakes, with `--verbose`.").only(Spoken::Lua),
    logging("dbg", "The same as `debug`, which Rhai reserves."),
    logging("info", "Logs what happened."),
    logging("warning", "Logs what might need attention."),
    logging("warn", "The same as `warning`."),
    logging("error", "Logs what went wrong."),
    logging("exception", "Logs what went wrong, with the stack of the script."),
];

const STOPPED: &[Entry] = &[
    method(
        "wait",
        taking(&[optional("timeout", Ty::Duration, "How long; without it, for ever.")])
            .giving(Ty::Boolean),
        "Sleeps until the handler must end, or for so long. Gives true if it must end.",
    ),
    method("is_set", taking(&[]).giving(Ty::Boolean), "Whether the handler must end."),
    value(
        "reason",
        Ty::Maybe(&Ty::Class("StopReasons")),
        "Why it must end; nothing while it need not.",
    ),
];

const REASONS: &[&str] = &[
    "DONE",
    "FILTERS_MISMATCH",
    "RESOURCE_DELETED",
    "OPERATOR_PAUSING",
    "OPERATOR_EXITING",
    "DAEMON_SIGNALLED",
    "DAEMON_CANCELLED",
    "DAEMON_ABANDONED",
];

const STOP_REASONS: &[Entry] = &[method(
    "contains",
    taking(&[required("reason", Ty::Words(REASONS), "The name of a reason.")]).giving(Ty::Boolean),
    "Whether this reason is among them.",
)];

const KEY: super::Parameter = required("key", Ty::Any, "The key.");
const DEFAULT: super::Parameter = optional("default", Ty::Any, "What to give if it is not there.");

const INDEX: &[Entry] = &[
    method("len", taking(&[]).giving(Ty::Integer), "How many keys there are. In Lua: `#index`.")
        .only(Spoken::Rhai),
    method("is_empty", taking(&[]).giving(Ty::Boolean), "Whether there are no keys.")
        .only(Spoken::Rhai),
    method("keys", taking(&[]).giving(Ty::List), "All keys. In Lua: `pairs(index)`.")
        .only(Spoken::Rhai),
    method("values", taking(&[]).giving(Ty::List), "All values. In Lua: `kopf.values(index)`.")
        .only(Spoken::Rhai),
    method("contains", taking(&[KEY]).giving(Ty::Boolean), "Whether there is this key.")
        .only(Spoken::Rhai),
    method("get", taking(&[KEY, DEFAULT]).giving(Ty::Any), "The store of a key.")
        .only(Spoken::Rhai),
];

const VALUE: super::Parameter = required("value", Ty::Any, "A value.");
const PLACE: super::Parameter = required("place", Ty::Integer, "From 0.");

const STORE: &[Entry] = &[
    method("len", taking(&[]).giving(Ty::Integer), "How many values there are. In Lua: `#store`.")
        .only(Spoken::Rhai),
    method("is_empty", taking(&[]).giving(Ty::Boolean), "Whether there are none.")
        .only(Spoken::Rhai),
    method("contains", taking(&[VALUE]).giving(Ty::Boolean), "Whether this value is there.")
        .only(Spoken::Rhai),
    method("get", taking(&[PLACE]).giving(Ty::Any), "The value at a place.").only(Spoken::Rhai),
    method(
        "index_of",
        taking(&[VALUE]).giving(Ty::Integer),
        "The place of a value; -1 if it is not there.",
    )
    .only(Spoken::Rhai),
    method("to_array", taking(&[]).giving(Ty::List), "The values as an array.").only(Spoken::Rhai),
];

const RESOURCE: &[Entry] = &[
    value("group", Ty::Text, "The API group; empty is the core group."),
    value("version", Ty::Text, "The version."),
    value("plural", Ty::Text, "The name in URLs, such as `pods`."),
    value("kind", Ty::Maybe(&Ty::Text), "The kind, such as `Pod`."),
    value("singular", Ty::Maybe(&Ty::Text), "The singular, such as `pod`."),
    value("shortcuts", Ty::ListOf(&Ty::Text), "The short names, such as `po`."),
    value("categories", Ty::ListOf(&Ty::Text), "The categories, such as `all`."),
    value("subresources", Ty::ListOf(&Ty::Text), "The subresources, such as `status`."),
    value("namespaced", Ty::Boolean, "Whether its objects are in namespaces."),
    value("preferred", Ty::Boolean, "Whether the server prefers this version."),
    value("verbs", Ty::ListOf(&Ty::Text), "What can be done, such as `list`."),
];

const DIFF_ITEM: &[Entry] = &[
    value("op", Ty::Words(&["add", "change", "remove"]), "What happened to the field."),
    value(
        "field",
        Ty::ListOf(&Ty::Text),
        "The path of the field, as a list of keys; empty is the whole.",
    ),
    value("old", Ty::Any, "The value before; nothing if it was added."),
    value("new", Ty::Any, "The value now; nothing if it was removed."),
];

const WATCH_EVENT: &[Entry] = &[
    value("type", Ty::Maybe(&Ty::Words(&["ADDED", "MODIFIED", "DELETED"])), "What happened."),
    value("object", Ty::Object, "The object."),
];

const ERROR: &[Entry] = &[
    value("message", Ty::Text, "What went wrong."),
    value(
        "delay",
        Ty::Maybe(&Ty::Number),
        "Of temporary errors: the seconds until the next attempt.",
    ),
];

const REFUSAL: &[Entry] = &[
    value("status", Ty::Maybe(&Ty::Integer), "The HTTP status; nothing if there was no answer."),
    value("reason", Ty::Text, "Why, in one word, such as `Conflict`."),
    value("message", Ty::Text, "What was attempted, why it failed, and what to do about it."),
    value("details", Ty::Any, "More of it, as the server gives it; nothing if there is no more."),
];
