//! Every option of declarations, with the line that documents it.
//!
//! The checks of declarations, the editor stubs and the reference are made of this one table.

use super::super::handler::{Category, Kind};

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// As users write it: Kopf's name.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it does.
    pub doc: &'static str,
    scope: Scope,
}

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A text.
    Text,
    /// Any data; also a marker or a function where a value is compared.
    Any,
    /// An error mode.
    Errors,
    /// A duration.
    Duration,
    /// A number of times.
    Integer,
    /// True or false.
    Boolean,
    /// A map of values, markers and functions.
    Criteria,
    /// A function of `ctx`, or a combination of such.
    Condition,
    /// A path to a field.
    Path,
    /// A duration, or a function that gives one.
    Delay,
    /// One operation of admission requests.
    Operation,
    /// A list of such.
    Operations,
}

/// Which declarations have an option.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// All of them.
    Every,
    /// All whose name is not an argument.
    Named,
    /// Those that are retried.
    Retried,
    /// Those whose calls end in time.
    Timed,
    /// Those about objects.
    Objects,
    /// Those that name resources.
    Selecting,
    /// Only these.
    Only(&'static [Kind]),
}

const ADMISSION: Scope = Scope::Only(&[Kind::Validate, Kind::Mutate]);
const COMPARING: Scope = Scope::Only(&[Kind::Update, Kind::Field, Kind::Sub]);
const SPAWNING: Scope = Scope::Only(&[Kind::Daemon, Kind::Timer]);
const DAEMON: Scope = Scope::Only(&[Kind::Daemon]);
const TIMER: Scope = Scope::Only(&[Kind::Timer]);

const fn option(name: &'static str, takes: Takes, scope: Scope, doc: &'static str) -> OptionSpec {
    OptionSpec { name, takes, doc, scope }
}

#[rustfmt::skip]
const OPTIONS: &[OptionSpec] = &[
    option("id", Takes::Text, Scope::Named, "The handler id in logs and in the stored progress; default: the name of the function."),
    option("param", Takes::Any, Scope::Every, "Any data; handlers read it as `ctx.param`."),
    option("errors", Takes::Errors, Scope::Retried, "How other errors are handled: \"temporary\" retries, \"permanent\" fails, \"ignored\" continues as after a success."),
    option("timeout", Takes::Duration, Scope::Timed, "Maximum time since the first attempt, pauses included; then a running attempt is interrupted, and there are no more retries."),
    option("retries", Takes::Integer, Scope::Retried, "Maximum number of attempts."),
    option("backoff", Takes::Duration, Scope::Retried, "The pause after an unexpected error; default: `settings.execution.default_backoff`."),
    option("labels", Takes::Criteria, Scope::Objects, "Only objects with matching labels: for each a value, `kopf.PRESENT`, `kopf.ABSENT` or a function."),
    option("annotations", Takes::Criteria, Scope::Objects, "Only objects with matching annotations; syntax as for `labels`."),
    option("when", Takes::Condition, Scope::Objects, "Only if this function of `ctx` returns true."),
    option("field", Takes::Path, Scope::Objects, "Only if this field exists: a dotted path, or a list of keys."),
    option("value", Takes::Any, Scope::Objects, "Only if the field has this value: data, a marker or a function."),
    option("old", Takes::Any, COMPARING, "Only if the field had this value before: data, a marker or a function."),
    option("new", Takes::Any, COMPARING, "Only if the field has this value now: data, a marker or a function."),
    option("deleted", Takes::Boolean, Scope::Only(&[Kind::Resume]), "Also for objects that are being deleted."),
    option("optional", Takes::Boolean, Scope::Only(&[Kind::Delete]), "Do not hold the object with a finalizer for this handler."),
    option("initial_delay", Takes::Delay, SPAWNING, "Wait this long before the first call."),
    option("cancellation_backoff", Takes::Duration, DAEMON, "Time for a graceful exit, before the daemon is cancelled."),
    option("cancellation_timeout", Takes::Duration, DAEMON, "Time for a cancelled daemon to exit, before it is abandoned."),
    option("cancellation_polling", Takes::Duration, DAEMON, "Interval at which it is checked whether the daemon has exited."),
    option("interval", Takes::Duration, TIMER, "The pause from the end of one call to the start of the next."),
    option("sharp", Takes::Boolean, TIMER, "Measure the interval from the start of the previous call."),
    option("idle", Takes::Duration, TIMER, "Only when the object has been unchanged for this long."),
    option("operations", Takes::Operations, ADMISSION, "Only these requests: \"CREATE\", \"UPDATE\", \"DELETE\", \"CONNECT\"."),
    option("operation", Takes::Operation, ADMISSION, "One operation; the same as `operations` with one item."),
    option("subresource", Takes::Text, ADMISSION, "Only this subresource; \"*\" matches all of them, and the object itself."),
    option("persistent", Takes::Boolean, ADMISSION, "Keep the webhook configured after the operator exits."),
    option("side_effects", Takes::Boolean, ADMISSION, "The handler has side effects, except in dry runs."),
    option("ignore_failures", Takes::Boolean, ADMISSION, "Admit the object if the webhook cannot be reached."),
    option("group", Takes::Text, Scope::Selecting, "The API group of the resource; empty for the core group."),
    option("version", Takes::Text, Scope::Selecting, "The version of the resource; default: the preferred one."),
    option("kind", Takes::Text, Scope::Selecting, "The kind of the resource, such as \"Pod\"."),
    option("plural", Takes::Text, Scope::Selecting, "The plural of the resource, such as \"pods\"."),
    option("singular", Takes::Text, Scope::Selecting, "The singular of the resource, such as \"pod\"."),
    option("shortcut", Takes::Text, Scope::Selecting, "A short name of the resource, such as \"po\"."),
    option("category", Takes::Text, Scope::Selecting, "All resources of a category, such as \"all\"."),
];

/// The options of one kind of declaration.
pub fn options_of(kind: Kind) -> impl Iterator<Item = &'static OptionSpec> {
    OPTIONS.iter().filter(move |it| it.scope.includes(kind))
}

impl Scope {
    fn includes(self, kind: Kind) -> bool {
        let category = kind.category();
        match self {
            Scope::Every => true,
            Scope::Named => kind != Kind::Test,
            Scope::Retried => {
                !matches!(category, Category::Watching | Category::Admission) && kind != Kind::Test
            }
            Scope::Timed => Scope::Retried.includes(kind) || kind == Kind::Test,
            Scope::Objects => category != Category::Activity,
            Scope::Selecting => category != Category::Activity && kind != Kind::Sub,
            Scope::Only(kinds) => kinds.contains(&kind),
        }
    }
}
