//! The section `kopf`.

use super::{
    Callback, Entry, Item, ItemShape, Language, Parameter, Section, Signature, Spoken, Ty,
    function, optional, required, taking, value,
};
use crate::logic::{
    configure::STORAGES,
    handlers::{
        declare::{OptionSpec, OptionType, options_of},
        handler::{Callback as Combined, Category, Kind},
        lifecycle::Lifecycle,
    },
};
use crate::scripting::{
    functions::{
        declaring,
        hierarchy::{HELPERS, Helper},
        kopf::{self, Body},
        logins,
        names::{DECLARING, Declaring, ERROR_MODES},
        posting,
    },
    surface::types::ctx_class,
};

const DOC: &str = "Declarations of handlers, with the errors, markers and helpers that they use.";

const CONDITION: Ty = Ty::Either(&[Ty::Function(&FILTER), Ty::Class("Condition")]);
/// Called with `ctx` for `when`, with a value and `ctx` for the filters of values.
const FILTER: Callback =
    Callback { parameters: &[("value", Ty::Any), ("ctx", Ty::Any)], returns: Ty::Any };
const FUNCTIONS: Parameter = required(
    "function",
    Ty::Either(&[Ty::Function(&FILTER), Ty::Class("Condition"), Ty::List]),
    "A function, a combination, or a list of them.",
);
const MORE: Parameter = optional("functions", CONDITION, "More functions.");
const MESSAGE: Parameter = optional("message", Ty::Text, "The error message.");
const DELAY: Parameter = optional(
    "delay",
    Ty::Maybe(&Ty::Duration),
    "The pause before the next attempt; default: 60 s.",
);
const CODE: Parameter = optional("code", Ty::Integer, "The HTTP status; default: 500.");
const ERROR: Ty = Ty::Class("Error");
const VALUE: Parameter = required("value", Ty::Any, "Any value, including nil.");
const CHOICE: Callback =
    Callback { parameters: &[("handlers", Ty::List), ("ctx", Ty::Any)], returns: Ty::List };
const LIFECYCLE: Ty = Ty::Either(&[Ty::Text, Ty::Function(&CHOICE)]);

/// Names that do not declare handlers and are not in another table.
#[rustfmt::skip]
pub(crate) const OTHERS: &[Entry] = &[
    value("PRESENT", Ty::Class("Marker"), "In filters: any value, but the field must exist."),
    value("ABSENT", Ty::Class("Marker"), "In filters: the field must not exist."),
    value("EVERYTHING", Ty::Class("Marker"), "As a selector: all resources."),
    function("all_", taking(&[FUNCTIONS]).then(MORE).giving(Ty::Class("Condition")), "Combines predicates for `when` and other filters: all of them must be true.").does(Body::Combine(Combined::All)),
    function("any_", taking(&[FUNCTIONS]).then(MORE).giving(Ty::Class("Condition")), "Combines predicates for `when` and other filters: at least one must be true.").does(Body::Combine(Combined::Any)),
    function("none_", taking(&[FUNCTIONS]).then(MORE).giving(Ty::Class("Condition")), "Combines predicates for `when` and other filters: none may be true.").does(Body::Combine(Combined::None)),
    function("not_", taking(&[required("function", CONDITION, "A function, or a combination.")]).giving(Ty::Class("Condition")), "Negates a predicate for `when` and other filters.").does(Body::Immediate(declaring::negate)),
    function("TemporaryError", taking(&[MESSAGE, DELAY]).giving(ERROR), "Returns an error that lets the handler be retried after a pause. Raise it: `error(kopf.TemporaryError(\"not yet\", 10))` in Lua, `throw` in Rhai; `kopf.retry` does both.").does(Body::Make(kopf::temporary)),
    function("PermanentError", taking(&[MESSAGE]).giving(ERROR), "Returns an error that fails the handler without retries. `kopf.fail` creates and raises it.").does(Body::Make(kopf::permanent)),
    function("AdmissionError", taking(&[MESSAGE, CODE]).giving(ERROR), "Returns an error that rejects the request of an admission handler with this message and code; elsewhere the same as a `PermanentError`.").does(Body::Make(kopf::admission)),
    function("retry", taking(&[MESSAGE, DELAY]), "Raises a `kopf.TemporaryError`: the handler is retried after the delay.").does(Body::Raise(kopf::temporary)),
    function("fail", taking(&[MESSAGE]), "Raises a `kopf.PermanentError`: the handler is not retried.").does(Body::Raise(kopf::permanent)),
    function("get", taking(&[required("value", Ty::Any, "The value to search."), required("path", Ty::Either(&[Ty::Text, Ty::List]), "A string such as `a.b[0].c`, with indexes counted from 0; or a list of keys."), optional("default", Ty::Any, "The result if there is no value.")]).giving(Ty::Any), "Returns the value at a path, or the default if there is none. Never raises an error: `kopf.get(ctx.spec, \"template.replicas\", 1)`.").does(Body::Immediate(kopf::get)),
    function("copy", taking(&[VALUE]).giving(Ty::Any), "Returns a plain copy of a read-only value such as `ctx.spec`, which can be changed.").does(Body::Immediate(kopf::copy)),
    function("array", taking(&[optional("items", Ty::List, "The items.")]).giving(Ty::List), "Returns a list that remains a list when it is empty: `kopf.array({})`. In Rhai, every `[]` does.").does(Body::Immediate(kopf::array)),
    function("values", taking(&[required("index", Ty::Either(&[Ty::Class("Index"), Ty::Class("Store")]), "An index, such as `ctx.my_index`.")]).giving(Ty::Class("Store")), "Returns all values of an index, regardless of their keys.").does(Body::Immediate(kopf::values)),
    function("sleep", taking(&[required("duration", Ty::Duration, "How long to wait.")]), "Suspends this handler for a while; other handlers run meanwhile.").does(Body::Waiting(kopf::sleep)),
    function("lock", taking(&[LOCKED, LOCK_OPTIONS, LOCKING]).giving(Ty::Any), "Calls a function while no other call of this process holds the lock, and returns what the function returns: `kopf.lock(\"pool\", { timeout = \"10s\" }, fn)`. Calls get the lock in the order in which they request it. The lock is released when the function ends, also with an error.").does(Body::Locking(kopf::lock)),
    function("try_call", taking(&[CALLED]).then(ARGUMENTS).giving(Ty::Any), "Calls a function with the arguments, and returns its result and its error: `local value, problem = kopf.try_call(kube.create, object)` in Lua, a map with `value` and `problem` in Rhai.").does(Body::Trying),
    function("try", taking(&[CALLED]).then(ARGUMENTS).giving(Ty::Any), "The same as `kopf.try_call`: in Rhai, `try` is a reserved word.").does(Body::Trying).only(Language::Lua, "`kopf.try_call`"),
    value("null", Ty::Any, "JSON's null: `ctx.patch.spec.field = kopf.null` deletes the field.").only(Language::Lua, "`()`"),
    function("execute", taking(&[]).with(EXECUTE), "Runs the sub-handlers of the running handler now, and waits for them; default: those that were declared.").does(Body::Waiting(declaring::execute)),
    function("set_default_lifecycle", taking(&[required("lifecycle", LIFECYCLE, "One of `kopf.lifecycles`, or a function.")]), "Sets which of the due handlers run first, for all objects. Call it at the top level of a script.").does(Body::Keeping(declaring::set_default_lifecycle)),
    function("ConnectionInfo", taking(&[required("fields", Ty::Map, "`server` and the credentials, with Kopf's names, such as `token` or `ca_path`.")]).giving(Ty::Class("Login")), "Returns explicit credentials, as the result of an `on_login` handler.").does(Body::Immediate(kopf::connection_info)),
    value("lifecycles", Ty::Class("Lifecycles"), "The orders in which due handlers can run."),
    value("ErrorsMode", Ty::Class("ErrorsModes"), "How unexpected errors of a handler can be treated, for the option `errors`."),
    value("on", Ty::Class("Declarations"), "The declaring functions by their short names: `kopf.on.create` is `kopf.on_create`."),
];

const LOCKED: Parameter = required("name", Ty::Any, "A name, an object, or `ctx` for its object.");
const LOCK_OPTIONS: Parameter = optional(
    "options",
    Ty::Any,
    "`timeout`: the maximum time to wait; default: 30 s. May be omitted: the function is the last argument.",
);
const LOCKING: Parameter = optional("function", Ty::Function(&PLAIN), "The function to call.");
const CALLED: Parameter = required("function", Ty::Function(&PLAIN), "The function to call.");
const ARGUMENTS: Parameter = optional("arguments", Ty::Any, "Its arguments.");
const PLAIN: Callback = Callback { parameters: &[], returns: Ty::Any };

const EXECUTE: &[Parameter] = &[
    optional(
        "fns",
        Ty::Any,
        "A list of functions, or a map from ids to functions, to run instead.",
    ),
    optional("handlers", Ty::List, "A list of `{OPTIONS, FUNCTION}` to run instead."),
    optional(
        "lifecycle",
        LIFECYCLE,
        "Which of them run first; default: as for the handlers of the operator.",
    ),
];

/// The arguments of the helpers, by name: they have the same meaning in each helper.
const HELPED: &[Parameter] = &[
    optional("owner", Ty::Object, "The object that owns the others; default: the handled object."),
    optional("name", Ty::Maybe(&Ty::Text), "The name; default: that of the handled object."),
    optional(
        "namespace",
        Ty::Maybe(&Ty::Text),
        "The namespace; default: that of the handled object.",
    ),
    optional("labels", Ty::Map, "The labels; default: those of the handled object."),
    optional("forced", Ty::Boolean, "Replace existing values; default: false."),
    optional(
        "strict",
        Ty::Boolean,
        "Use the exact name, instead of a prefix for a generated name; default: false.",
    ),
    optional(
        "nested",
        Ty::Either(&[Ty::Text, Ty::List]),
        "Also label the templates at these paths, such as `spec.template`.",
    ),
    optional(
        "controller",
        Ty::Maybe(&Ty::Boolean),
        "Whether the owner is the controller of the object; default: true.",
    ),
    optional(
        "block_owner_deletion",
        Ty::Maybe(&Ty::Boolean),
        "Whether the deletion of the owner waits for the deletion of the object; default: true.",
    ),
];

const POSTED: &[Parameter] = &[
    optional("type", Ty::Text, "`Normal`, `Warning` or another word."),
    optional("reason", Ty::Text, "The reason, as a word in CamelCase."),
    optional("message", Ty::Any, "The message."),
];
const REPORTED_ERROR: Parameter = optional("exc", Ty::Any, "The error that was caught.");
const BACKOFFS: Parameter = optional(
    "backoffs",
    Ty::Either(&[Ty::Duration, Ty::ListOf(&Ty::Duration)]),
    "The pauses between attempts; default: `settings.posting.default_backoffs`.",
);
const OBJECTS: Parameter =
    required("objects", Ty::Either(&[Ty::Object, Ty::List]), "An object, or a list of objects.");

/// Returns the section, combined from its tables.
pub(super) fn section() -> Section {
    let others = OTHERS.iter().map(|it| match it.name {
        "on" => table(it, DECLARING.iter().filter_map(short)),
        "lifecycles" => table(it, Lifecycle::ALL.into_iter().map(lifecycle)),
        "ErrorsMode" => table(it, ERROR_MODES.iter().map(mode)),
        _ => Item::of(it),
    });
    let items = DECLARING
        .iter()
        .map(|it| declaring(it.name, it))
        .chain(others)
        .chain(posting::FUNCTIONS.iter().map(|(name, it)| posted(name, *it)))
        .chain(HELPERS.iter().map(helper))
        .chain(STORAGES.into_iter().map(storage))
        .chain(logins::NATIVE.iter().map(|(name, _)| login(name)));
    Section { name: "kopf", doc: DOC, items: items.collect(), others: None, parent: None }
}

fn table(entry: &Entry, items: impl Iterator<Item = Item>) -> Item {
    Item { shape: ItemShape::Table(items.collect()), ..Item::of(entry) }
}

fn text(name: &'static str, doc: &'static str) -> Item {
    Item { name, doc, shape: ItemShape::Value(Ty::Text), spoken: Spoken::Both }
}

fn mode((name, mode): &(&'static str, &str)) -> Item {
    let (ty, doc) = match *mode {
        "ignored" => (
            Ty::Words(&["ignored"]),
            "Log the error, and continue as if the handler had succeeded.",
        ),
        "temporary" => (Ty::Words(&["temporary"]), "Retry after the `backoff`."),
        _ => (Ty::Words(&["permanent"]), "Do not retry."),
    };
    Item { name, doc, shape: ItemShape::Value(ty), spoken: Spoken::Both }
}

fn lifecycle((name, lifecycle): (&'static str, Lifecycle)) -> Item {
    text(
        name,
        match lifecycle {
            Lifecycle::Asap => "One at a time, those with the fewest attempts first. The default.",
            Lifecycle::OneByOne => "One at a time, in the order of their declarations.",
            Lifecycle::AllAtOnce => "All of them, one after another.",
            Lifecycle::Shuffled => "All of them, in random order.",
            Lifecycle::Randomized => "One of them at random.",
        },
    )
}

fn short(it: &Declaring) -> Option<Item> {
    it.short.map(|short| declaring(short, it))
}

fn declaring(name: &'static str, it: &Declaring) -> Item {
    let mut signature = Signature { rest: None, ..Signature::default() };
    if let Some(kind) = it.kind {
        signature.selects = kind.category() != Category::Activity && kind != Kind::Sub;
        signature.parameters.extend(first_argument(kind));
        signature.handler = Some(Ty::Handler(kind));
        signature.options = options_of(kind).map(|it| option(kind, it)).collect();
    }
    let spoken = if it.kind.is_some() { Spoken::Both } else { Spoken::Later };
    Item { name, doc: it.doc, shape: ItemShape::Function(signature), spoken }
}

/// Returns the argument of a declaration that selects no resource.
fn first_argument(kind: Kind) -> Option<Parameter> {
    let arguments = [(Kind::Test, SHOWN), (Kind::Every, INTERVAL), (Kind::Cron, EXPRESSION)];
    arguments.into_iter().find(|(it, _)| *it == kind).map(|(_, argument)| argument)
}

const INTERVAL: Parameter = required(
    "interval",
    Ty::Duration,
    "The pause from the end of one run to the start of the next.",
);
const EXPRESSION: Parameter = required(
    "expression",
    Ty::Text,
    "Minute, hour, day of the month, month and day of the week, or a name such as `@daily`.",
);
const SHOWN: Parameter =
    required("shown", Ty::Text, "The name of the test: a description of the expected behavior.");
const CRITERIA: Ty = Ty::Map;
const ERRORS: &[&str] = &["ignored", "temporary", "permanent"];
const OPERATIONS: &[&str] = &["CREATE", "UPDATE", "DELETE", "CONNECT"];

fn option(kind: Kind, spec: &OptionSpec) -> Parameter {
    let ty = match spec.takes {
        OptionType::Text => Ty::Text,
        OptionType::Any => Ty::Any,
        OptionType::Errors => Ty::Words(ERRORS),
        OptionType::Duration => Ty::Duration,
        OptionType::Integer => Ty::Integer,
        OptionType::Boolean => Ty::Boolean,
        OptionType::Criteria => CRITERIA,
        OptionType::Condition => match ctx_class(kind.category()) {
            // In a filter, `ctx` is the same as in the handler, without the fields about attempts.
            "ChangeCtx" => Ty::Either(&[Ty::Function(&OF_CHANGE), Ty::Class("Condition")]),
            "EventCtx" => Ty::Either(&[Ty::Function(&OF_EVENT), Ty::Class("Condition")]),
            "AdmissionCtx" => Ty::Either(&[Ty::Function(&OF_REQUEST), Ty::Class("Condition")]),
            _ => Ty::Either(&[Ty::Function(&OF_OBJECT), Ty::Class("Condition")]),
        },
        OptionType::Path | OptionType::Kinds | OptionType::Texts => {
            Ty::Either(&[Ty::Text, Ty::ListOf(&Ty::Text)])
        }
        OptionType::Delay => Ty::Either(&[Ty::Duration, Ty::Function(&DELAYING)]),
        OptionType::Times => Ty::Either(&[Ty::Text, Ty::Function(&TIMES)]),
        OptionType::Missed => Ty::Words(&["skip", "once"]),
        OptionType::Operation => Ty::Words(OPERATIONS),
        OptionType::Operations => Ty::ListOf(&Ty::Words(OPERATIONS)),
        OptionType::Conditions => Ty::ListOf(&Ty::Map),
        OptionType::Labels => Ty::Map,
        OptionType::Watches => Ty::Either(&[Ty::Text, Ty::List]),
        OptionType::Call => Ty::Function(&FINALIZING),
        OptionType::MatchPolicy => Ty::Words(&["Exact", "Equivalent"]),
    };
    Parameter { name: spec.name, ty, required: false, doc: spec.doc }
}

const OF_CHANGE: Callback =
    Callback { parameters: &[("ctx", Ty::Class("ChangeCtx"))], returns: Ty::Any };
const OF_EVENT: Callback =
    Callback { parameters: &[("ctx", Ty::Class("EventCtx"))], returns: Ty::Any };
const OF_REQUEST: Callback =
    Callback { parameters: &[("ctx", Ty::Class("AdmissionCtx"))], returns: Ty::Any };
const OF_OBJECT: Callback =
    Callback { parameters: &[("ctx", Ty::Class("ObjectCtx"))], returns: Ty::Any };
const FINALIZING: Callback =
    Callback { parameters: &[("ctx", Ty::Class("BackgroundCtx"))], returns: Ty::Nothing };
const TIMES: Callback =
    Callback { parameters: &[("ctx", Ty::Class("ObjectCtx"))], returns: Ty::Text };
const DELAYING: Callback =
    Callback { parameters: &[("ctx", Ty::Class("ObjectCtx"))], returns: Ty::Duration };

fn posted(name: &'static str, function: posting::PostKind) -> Item {
    let by_place = function.positions();
    let mut signature = Signature { parameters: vec![OBJECTS], ..Signature::default() };
    signature.parameters.extend(POSTED.iter().filter(|it| by_place.contains(&it.name)));
    let is_exception = function == posting::PostKind::Exception;
    if is_exception {
        signature.parameters.push(REPORTED_ERROR);
    }
    let is_option = |it: &&Parameter| it.name != "type" || by_place.contains(&"type");
    signature.options = POSTED.iter().filter(is_option).copied().collect();
    signature.options.extend(is_exception.then_some(REPORTED_ERROR));
    signature.options.push(BACKOFFS);
    Item { name, doc: function.doc(), shape: ItemShape::Function(signature), spoken: Spoken::Both }
}

fn helper(helper: &Helper) -> Item {
    let named = |name: &str| HELPED.iter().find(|it| it.name == name).copied();
    let builds = helper.argument.is_none();
    let objects =
        if builds { required("object", Ty::Object, "The object to refer to.") } else { OBJECTS };
    let signature = Signature {
        parameters: [objects].into_iter().chain(helper.argument.and_then(named)).collect(),
        options: helper.options.iter().filter_map(|it| named(it)).collect(),
        returns: Some(if builds { Ty::Map } else { Ty::Any }),
        ..Signature::default()
    };
    Item {
        name: helper.name,
        doc: helper.doc,
        shape: ItemShape::Function(signature),
        spoken: Spoken::Both,
    }
}

fn storage(name: &'static str) -> Item {
    let parameters =
        optional("parameters", Ty::Either(&[Ty::Map, Ty::List]), "See the reference of settings.");
    let signature = Signature {
        parameters: vec![parameters],
        returns: Some(Ty::Class("Storage")),
        ..Signature::default()
    };
    let doc = if name.contains("Progress") {
        "A value for `ctx.settings.persistence.progress_storage`."
    } else {
        "A value for `ctx.settings.persistence.diffbase_storage`."
    };
    Item { name, doc, shape: ItemShape::Function(signature), spoken: Spoken::Both }
}

fn login(name: &'static str) -> Item {
    let ctx = optional(
        "ctx",
        Ty::Class("ActivityCtx"),
        "The `ctx` of the handler: with it, the function returns nil if there are no credentials.",
    );
    let signature = Signature {
        parameters: vec![ctx],
        returns: Some(Ty::Maybe(&Ty::Class("Login"))),
        ..Signature::default()
    };
    let doc = if name.ends_with("kubeconfig") {
        "Returns the credentials of the kubeconfig. The script does not see them."
    } else {
        "Returns the credentials of the pod's service account. The script does not see them."
    };
    Item { name, doc, shape: ItemShape::Function(signature), spoken: Spoken::Both }
}
