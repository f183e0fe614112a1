//! The classes of host values: `ctx.patch`, `ctx.logger`, `ctx.stopped`, indexes and others.

use super::{Callback, Entry, Language, Section, Ty, method, optional, required, taking, value};

/// A class: its name, its documentation, its members, and the type of values under any other key.
type Class = (&'static str, &'static str, &'static [Entry], Option<Ty>);

#[rustfmt::skip]
const CLASSES: &[Class] = &[
    ("Patch", "A merge-patch under construction. Assigning creates the missing levels: `ctx.patch.status.phase = \"Ready\"`. Assigning `kopf.null` (Rhai: `()`) deletes a field on the cluster; assigning nil (Rhai: `remove`) removes it from the patch. To read the patch: `kopf.get(ctx.patch, \"status.phase\")`.", PATCH, Some(Ty::Any)),
    ("PatchFunctions", "Functions that change the current object on the server, applied after the merge-patch, and again if another client has changed the object meanwhile.", PATCH_FUNCTIONS, None),
    ("Conditions", "The list `status.conditions` of the object. Changes are sent with the rest of `ctx.patch`; conditions of other controllers are kept.", CONDITIONS, None),
    ("Warnings", "The warnings of an admission response, in the order in which they were added.", WARNINGS, None),
    ("Memo", "Data that is kept as long as the process runs, shared by all handlers of an object and by all scripts; it survives a reload. Any field can be set, to anything that JSON can represent.", &[], Some(Ty::Any)),
    ("Logger", "Logs messages about the handled object. A message can have placeholders as in `string.format` (Lua), or be an interpolated string (Rhai); a map at the end adds structured fields.", LOGGER, None),
    ("Stopped", "The stop flag of daemons and timers. It can be called: `ctx.stopped()` is the same as `is_set`.", STOPPED, None),
    ("StopReasons", "The reasons why a daemon or timer must stop. It prints as `RESOURCE_DELETED|DAEMON_SIGNALLED` and can be iterated over.", STOP_REASONS, None),
    ("Index", "An in-memory index that the functions of `kopf.index` fill: stores of values by key. Read-only; values that were returned without a key are under `kopf.null` (Rhai: `()`).", INDEX, Some(Ty::Maybe(&Ty::Class("Store")))),
    ("Store", "A snapshot of the values under one key of an index: a list, counted from 1 in Lua and from 0 in Rhai.", STORE, Some(Ty::Any)),
    ("Resource", "The description of a resource by the server.", RESOURCE, None),
    ("DiffItem", "One difference between the last handled state of the object and its current state.", DIFF_ITEM, None),
    ("WatchEvent", "The raw watch event.", WATCH_EVENT, None),
    ("Error", "An error of `kopf.TemporaryError` and similar functions, to be raised: `error(…)` in Lua, `throw` in Rhai.", ERROR, None),
    ("Refusal", "A request that the server has rejected, or that has failed: the error of `kube` functions. If you catch it with `pcall` (Lua) or `try … catch` (Rhai), you can read its fields; it prints as its message.", REFUSAL, None),
    ("Marker", "A constant for declarations: `kopf.PRESENT`, `kopf.ABSENT`, `kopf.EVERYTHING`.", &[], None),
    ("Condition", "A combination of predicates, by `kopf.all_` and similar functions.", &[], None),
    ("Storage", "A storage for the state of the operator, for `ctx.settings.persistence`.", &[], None),
    ("Login", "Credentials for the cluster, to be returned by handlers of `kopf.on_login`.", &[], None),
];

/// Returns the sections of all classes, except those of `ctx` and of the settings.
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
        "Called with the object, which it changes.",
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
                "One word in CamelCase; default: derived from the type and the status.",
            ),
            optional("message", Ty::Text, "A message for people; default: the reason."),
        ]),
        "Sets a condition. The time of its last transition changes only if its status changes.",
    ),
    method(
        "get",
        taking(&[TYPE]).giving(Ty::Any),
        "Returns the condition as a map; nil if it does not exist.",
    ),
    method(
        "is",
        taking(&[TYPE]).giving(Ty::Boolean),
        "Returns whether the condition exists and is true.",
    )
    .only(Language::Lua, "`is_true`, which both have, since `is` is reserved"),
    method(
        "is_true",
        taking(&[TYPE]).giving(Ty::Boolean),
        "The same as `is`, a reserved word in Rhai.",
    ),
    method("remove", taking(&[TYPE]), "Removes the condition."),
];

const WARNINGS: &[Entry] = &[
    method(
        "append",
        taking(&[required("text", Ty::Text, "The warning; at most 256 characters are shown.")]),
        "Adds a warning, as `ctx.warn` does.",
    ),
    method(
        "push",
        taking(&[required("text", Ty::Text, "The warning.")]),
        "The same as `append`, by the name that lists of Rhai use.",
    ),
];

const MESSAGE: super::Parameter = required("message", Ty::Any, "The message.");
const REST: super::Parameter = optional(
    "values",
    Ty::Any,
    "Values for the placeholders of the message; then a map of fields.",
);

const fn logging(name: &'static str, doc: &'static str) -> Entry {
    method(name, taking(&[MESSAGE]).then(REST), doc)
}

const LOGGER: &[Entry] = &[
    logging("debug", "Logs details for debugging, visible with `--verbose`.")
        .only(Language::Lua, "`dbg`, which both have, since `debug` is reserved"),
    logging("dbg", "The same as `debug`, a reserved word in Rhai."),
    logging("info", "Logs normal operation."),
    logging("warning", "Logs a possible problem."),
    logging("warn", "The same as `warning`."),
    logging("error", "Logs a failure."),
    logging("exception", "Logs a failure, with the stack trace of the script."),
];

const STOPPED: &[Entry] = &[
    method(
        "wait",
        taking(&[optional("timeout", Ty::Duration, "The maximum time; default: unlimited.")])
            .giving(Ty::Boolean),
        "Waits until the handler must stop, or until the timeout. Returns true if it must stop.",
    ),
    method("is_set", taking(&[]).giving(Ty::Boolean), "Returns whether the handler must stop."),
    value(
        "reason",
        Ty::Maybe(&Ty::Class("StopReasons")),
        "The reasons why it must stop; nil while it need not stop.",
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
    "Returns whether this is one of the reasons.",
)];

const KEY: super::Parameter = required("key", Ty::Any, "The key.");
const DEFAULT: super::Parameter =
    optional("default", Ty::Any, "The result if there is no such key.");

const INDEX: &[Entry] = &[
    method("len", taking(&[]).giving(Ty::Integer), "Returns the number of keys.")
        .only(Language::Rhai, "`#it`"),
    method("is_empty", taking(&[]).giving(Ty::Boolean), "Returns whether there are no keys.")
        .only(Language::Rhai, "`#it == 0`"),
    method("keys", taking(&[]).giving(Ty::List), "Returns all keys.")
        .only(Language::Rhai, "`pairs(it)`"),
    method("values", taking(&[]).giving(Ty::List), "Returns all values.")
        .only(Language::Rhai, "`kopf.values(it)`"),
    method("contains", taking(&[KEY]).giving(Ty::Boolean), "Returns whether the key exists.")
        .only(Language::Rhai, "`it[key] ~= nil`"),
    method("get", taking(&[KEY, DEFAULT]).giving(Ty::Any), "Returns the store of a key.")
        .only(Language::Rhai, "`it[key]`"),
];

const VALUE: super::Parameter = required("value", Ty::Any, "A value.");
const PLACE: super::Parameter = required("place", Ty::Integer, "The position, counted from 0.");

const STORE: &[Entry] = &[
    method("len", taking(&[]).giving(Ty::Integer), "Returns the number of values.")
        .only(Language::Rhai, "`#it`"),
    method("is_empty", taking(&[]).giving(Ty::Boolean), "Returns whether there are no values.")
        .only(Language::Rhai, "`#it == 0`"),
    method(
        "contains",
        taking(&[VALUE]).giving(Ty::Boolean),
        "Returns whether it contains this value.",
    )
    .only(Language::Rhai, "`table.find(it, value)`"),
    method("get", taking(&[PLACE]).giving(Ty::Any), "Returns the value at a position.")
        .only(Language::Rhai, "`it[place]`"),
    method(
        "index_of",
        taking(&[VALUE]).giving(Ty::Integer),
        "Returns the position of a value; -1 if it is missing.",
    )
    .only(Language::Rhai, "`table.find(it, value)`"),
    method("to_array", taking(&[]).giving(Ty::List), "Returns the values as an array.")
        .only(Language::Rhai, "`kopf.copy(it)`"),
];

const RESOURCE: &[Entry] = &[
    value("group", Ty::Text, "The API group; empty for the core group."),
    value("version", Ty::Text, "The version."),
    value("plural", Ty::Text, "The name in URLs, such as `pods`."),
    value("kind", Ty::Maybe(&Ty::Text), "The kind, such as `Pod`."),
    value("singular", Ty::Maybe(&Ty::Text), "The singular, such as `pod`."),
    value("shortcuts", Ty::ListOf(&Ty::Text), "The short names, such as `po`."),
    value("categories", Ty::ListOf(&Ty::Text), "The categories, such as `all`."),
    value("subresources", Ty::ListOf(&Ty::Text), "The subresources, such as `status`."),
    value("namespaced", Ty::Boolean, "Whether its objects are in namespaces."),
    value("preferred", Ty::Boolean, "Whether the server prefers this version."),
    value("verbs", Ty::ListOf(&Ty::Text), "The supported verbs, such as `list`."),
];

const DIFF_ITEM: &[Entry] = &[
    value("op", Ty::Words(&["add", "change", "remove"]), "How the field has changed."),
    value(
        "field",
        Ty::ListOf(&Ty::Text),
        "The path of the field, as a list of keys; empty for the whole object.",
    ),
    value("old", Ty::Any, "The old value; nil if the field was added."),
    value("new", Ty::Any, "The new value; nil if the field was removed."),
];

const WATCH_EVENT: &[Entry] = &[
    value(
        "type",
        Ty::Maybe(&Ty::Words(&["ADDED", "MODIFIED", "DELETED"])),
        "The type of the event.",
    ),
    value("object", Ty::Object, "The object."),
];

const ERROR: &[Entry] = &[
    value("message", Ty::Text, "The error message."),
    value(
        "delay",
        Ty::Maybe(&Ty::Number),
        "For temporary errors: the seconds until the next attempt.",
    ),
];

const REFUSAL: &[Entry] = &[
    value("status", Ty::Maybe(&Ty::Integer), "The HTTP status; nil if there was no response."),
    value("reason", Ty::Text, "The reason in one word, such as `Conflict`."),
    value(
        "message",
        Ty::Text,
        "The full message: what was attempted, why it failed, and what to do.",
    ),
    value("details", Ty::Any, "Details from the server; nil if there are none."),
];
