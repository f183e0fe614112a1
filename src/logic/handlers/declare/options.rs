//! All options of declarations, with their documentation.
//!
//! The checks of declarations, the editor stubs and the reference are generated from this table.

use super::super::handler::{Category, Kind};
use crate::logic::text::nearest::nearest;

/// One option of declarations.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name, as in Kopf.
    pub name: &'static str,
    /// The type of its value.
    pub takes: OptionType,
    /// The documentation, as in the reference.
    pub doc: &'static str,
    scope: Scope,
}

/// The type of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionType {
    /// A string.
    Text,
    /// Any data; where values are compared, also a marker or a function.
    Any,
    /// An error mode: `kopf.ErrorsMode`.
    Errors,
    /// A duration.
    Duration,
    /// An integer.
    Integer,
    /// A boolean.
    Boolean,
    /// A map of values, markers and functions.
    Criteria,
    /// A function of `ctx`, or a combination of functions.
    Condition,
    /// A path to a field.
    Path,
    /// A duration, or a function that returns one.
    Delay,
    /// A cron expression, or a function that returns one.
    Times,
    /// A mode for missed slots.
    Missed,
    /// An operation of admission requests.
    Operation,
    /// A list of operations of admission requests.
    Operations,
    /// A list of conditions in CEL: `{ name, expression }`.
    Conditions,
    /// A label selector, or a map of labels.
    Labels,
    /// A match policy of webhooks.
    MatchPolicy,
    /// A list of resources, or one.
    Kinds,
    /// A list of resources, each with an optional function that maps its objects to names.
    Watches,
    /// A function of `ctx`, called as the handler is.
    Call,
    /// A string, or a list of strings.
    Texts,
}

/// The declarations that have an option.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// All declarations have it.
    Every,
    /// All except those whose name is an argument.
    Named,
    /// Those that are retried.
    Retried,
    /// Those whose calls have a timeout.
    Timed,
    /// Those whose handlers are called for objects.
    Objects,
    /// Those that select resources.
    Selecting,
    /// Only the declarations of these kinds.
    Only(&'static [Kind]),
}

const ADMISSION: Scope = Scope::Only(&[Kind::Validate, Kind::Mutate]);
const CONVERT: Scope = Scope::Only(&[Kind::Convert]);
const COMPARING: Scope = Scope::Only(&[Kind::Update, Kind::Field, Kind::Sub]);
const DAEMON: Scope = Scope::Only(&[Kind::Daemon]);
const DELAYED: Scope = Scope::Only(&[Kind::Daemon, Kind::Timer, Kind::Every, Kind::Reconcile]);
const SHARP: Scope = Scope::Only(&[Kind::Timer, Kind::Every]);
const HELD: Scope = Scope::Only(&[Kind::Daemon, Kind::Timer, Kind::Reconcile]);
const ZONED: Scope = Scope::Only(&[Kind::Timer, Kind::Cron]);
const CRON: Scope = Scope::Only(&[Kind::Cron]);
const TIMER: Scope = Scope::Only(&[Kind::Timer]);
const EVENT: Scope = Scope::Only(&[Kind::Event]);
const RECONCILE: Scope = Scope::Only(&[Kind::Reconcile]);

const fn option(
    name: &'static str,
    takes: OptionType,
    scope: Scope,
    doc: &'static str,
) -> OptionSpec {
    OptionSpec { name, takes, doc, scope }
}

#[rustfmt::skip]
const OPTIONS: &[OptionSpec] = &[
    option("id", OptionType::Text, Scope::Named, "Id of the handler in logs and in stored progress; default: the name of the function."),
    option("param", OptionType::Any, Scope::Every, "Any data, passed to the handler as `ctx.param`."),
    option("errors", OptionType::Errors, Scope::Retried, "How to treat arbitrary errors: \"temporary\", \"permanent\" or \"ignored\"."),
    option("timeout", OptionType::Duration, Scope::Timed, "Maximum time since the first attempt, pauses included. After that, a running attempt is interrupted, and no new one starts."),
    option("retries", OptionType::Integer, Scope::Retried, "Maximum number of attempts."),
    option("backoff", OptionType::Duration, Scope::Retried, "Pause after an arbitrary error; default: `settings.execution.default_backoff`."),
    option("labels", OptionType::Criteria, Scope::Objects, "Only for objects whose labels match: a value, `kopf.PRESENT`, `kopf.ABSENT` or a function for each."),
    option("annotations", OptionType::Criteria, Scope::Objects, "Only for objects whose annotations match, as with `labels`."),
    option("when", OptionType::Condition, Scope::Objects, "Only if this function of `ctx` returns true."),
    option("field", OptionType::Path, Scope::Objects, "Only if this field exists: a dotted path, or a list of keys."),
    option("value", OptionType::Any, Scope::Objects, "Only if the field has this value: data, a marker or a function."),
    option("old", OptionType::Any, COMPARING, "Only if the field had this value before: data, a marker or a function."),
    option("new", OptionType::Any, COMPARING, "Only if the field has this value now: data, a marker or a function."),
    option("deleted", OptionType::Boolean, Scope::Only(&[Kind::Resume]), "Also for objects that are being deleted."),
    option("optional", OptionType::Boolean, Scope::Only(&[Kind::Delete]), "Do not add the finalizer only for this handler."),
    option("initial_delay", OptionType::Delay, DELAYED, "Delay before the first call."),
    option("cancellation_backoff", OptionType::Duration, DAEMON, "Maximum time of a graceful exit before the daemon is cancelled."),
    option("cancellation_timeout", OptionType::Duration, DAEMON, "Maximum time of a cancelled daemon before it is abandoned."),
    option("cancellation_polling", OptionType::Duration, DAEMON, "Interval at which a stopping daemon is checked."),
    option("interval", OptionType::Duration, TIMER, "Pause from the end of one call to the start of the next."),
    option("sharp", OptionType::Boolean, SHARP, "Measure the interval from the start of the last call."),
    option("idle", OptionType::Duration, TIMER, "Only if the object has not changed for this long."),
    option("exclusive", OptionType::Boolean, TIMER, "Do not call the timer while change handlers of the object run or are retried; these also wait until a call of the timer has ended."),
    option("schedule", OptionType::Times, TIMER, "Call at the times of a cron expression, instead of an interval: a string, or a function of `ctx` that returns one, such as a field of the object."),
    option("finalizer", OptionType::Boolean, HELD, "Whether to add a finalizer, which blocks the deletion of the object. For daemons and timers: until they have stopped; default: true; if false, they are stopped as soon as the deletion is noticed. For reconcile handlers: also without `finalize`, to delete children without an owner reference: cluster-scoped ones and those in other namespaces."),
    option("timezone", OptionType::Text, ZONED, "The time zone, such as \"Europe/Berlin\" or \"+02:00\"; default: UTC."),
    option("owns", OptionType::Kinds, RECONCILE, "The kinds of the children, such as \"deployments\" or \"apps/v1/deployments\": a list, or one. The function returns children of these kinds, and is called when one of them changes."),
    option("watches", OptionType::Watches, RECONCILE, "Other kinds whose changes call the function: a list of names, each with an optional `map`, a function of `ctx` that returns the objects to call it for: `{ name, namespace }`, or a list of them. Without `map`: all objects."),
    option("resync", OptionType::Duration, RECONCILE, "Maximum pause between two calls for an object; default: no limit."),
    option("finalize", OptionType::Call, RECONCILE, "A function of `ctx` for objects that are being deleted. The deletion is blocked until it has succeeded."),
    option("formerly", OptionType::Texts, RECONCILE, "Earlier ids of the handler, whose children it takes over: a string, or a list of strings."),
    option("parent", OptionType::Text, EVENT, "Only for objects with an owner of this kind, which is `ctx.parent`."),
    option("owner", OptionType::Text, EVENT, "The same as `parent`."),
    option("missed", OptionType::Missed, CRON, "What happens to the times that were missed while no operator was running: \"skip\" (default): they do not run; \"once\": the last of them runs at the start."),
    option("operations", OptionType::Operations, ADMISSION, "Only for these requests: \"CREATE\", \"UPDATE\", \"DELETE\", \"CONNECT\"."),
    option("operation", OptionType::Operation, ADMISSION, "One operation; the same as `operations` with one item."),
    option("subresource", OptionType::Text, ADMISSION, "Only for this subresource; \"*\" is any, including the object itself."),
    option("persistent", OptionType::Boolean, ADMISSION, "Keep the webhook configured after the operator exits."),
    option("side_effects", OptionType::Boolean, ADMISSION, "The handler has side effects, except in dry runs."),
    option("ignore_failures", OptionType::Boolean, ADMISSION, "Admit the object if the webhook cannot be reached."),
    option("match_conditions", OptionType::Conditions, ADMISSION, "Only if all of these CEL expressions are true, which the API server evaluates: `{ name, expression }` for each."),
    option("namespace_selector", OptionType::Labels, ADMISSION, "Only for objects in namespaces with these labels: a map of labels, or a label selector with `matchLabels` and `matchExpressions`."),
    option("match_policy", OptionType::MatchPolicy, ADMISSION, "\"Exact\": only for requests in the selected version; \"Equivalent\" (default): in any version."),
    option("reinvocation", OptionType::Boolean, Scope::Only(&[Kind::Mutate]), "Call the handler again if a later webhook changes the object."),
    option("from", OptionType::Text, CONVERT, "The version of the objects before the conversion, such as \"v1\"; required."),
    option("to", OptionType::Text, CONVERT, "The version of the objects after the conversion, such as \"v2\"; required."),
    option("group", OptionType::Text, Scope::Selecting, "The API group of the resource; empty is the core group."),
    option("version", OptionType::Text, Scope::Selecting, "The version of the resource; default: the preferred one."),
    option("kind", OptionType::Text, Scope::Selecting, "The kind of the resource, such as \"Pod\"."),
    option("plural", OptionType::Text, Scope::Selecting, "The plural of the resource, such as \"pods\"."),
    option("singular", OptionType::Text, Scope::Selecting, "The singular of the resource, such as \"pod\"."),
    option("shortcut", OptionType::Text, Scope::Selecting, "A short name of the resource, such as \"po\"."),
    option("category", OptionType::Text, Scope::Selecting, "All resources of a category, such as \"all\"."),
];

/// Returns the options of one kind of declaration.
pub fn options_of(kind: Kind) -> impl Iterator<Item = &'static OptionSpec> {
    OPTIONS.iter().filter(move |it| it.scope.includes(kind))
}

/// Returns the hint for an option that a kind of declaration does not have: why it has none, or a similar one.
pub fn hint(kind: Kind, name: &str) -> Option<String> {
    reason(kind, name).or_else(|| {
        let nearest = nearest(name, options_of(kind).map(|it| it.name))?;
        Some(format!("did you mean `{nearest}`?"))
    })
}

/// Returns why a kind of declaration does not have an option that others have.
fn reason(kind: Kind, name: &str) -> Option<String> {
    let option = OPTIONS.iter().find(|it| it.name == name && !it.scope.includes(kind))?;
    match option.scope {
        Scope::Retried => Some("its handlers are called once, without retries".to_owned()),
        Scope::Timed => Some("its handlers have no timeout".to_owned()),
        Scope::Objects => Some("its handlers do not handle single objects".to_owned()),
        Scope::Only(kinds) => {
            let names = kinds.iter().map(|it| format!("kopf.{}", it.declared_by()));
            Some(format!("this is an option of {}", names.collect::<Vec<_>>().join(", ")))
        }
        Scope::Every | Scope::Named | Scope::Selecting => None,
    }
}

impl Scope {
    fn includes(self, kind: Kind) -> bool {
        let category = kind.category();
        match self {
            Scope::Every => true,
            Scope::Named => kind != Kind::Test,
            Scope::Retried => {
                let is_once = matches!(
                    category,
                    Category::Watching | Category::Admission | Category::Conversion
                );
                !is_once && kind != Kind::Test
            }
            Scope::Timed => {
                Scope::Retried.includes(kind)
                    || category == Category::Admission
                    || kind == Kind::Test
            }
            Scope::Objects => !matches!(category, Category::Activity | Category::Conversion),
            Scope::Selecting => category != Category::Activity && kind != Kind::Sub,
            Scope::Only(kinds) => kinds.contains(&kind),
        }
    }
}
