//! Every option of declarations, with the line that documents it.
//!
//! The checks of declarations, the editor stubs and the reference are made of this one table.

use super::super::handler::{Category, Kind};

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// As users write it: Kopf's name.
    pub name: &'static str,
    /// What it takes, for stubs and messages.
    pub takes: &'static str,
    /// What it does.
    pub doc: &'static str,
    scope: Scope,
}

/// Which declarations have an option.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// All of them.
    Every,
    /// Those that are retried.
    Retried,
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

const fn option(
    name: &'static str,
    takes: &'static str,
    scope: Scope,
    doc: &'static str,
) -> OptionSpec {
    OptionSpec { name, takes, doc, scope }
}

#[rustfmt::skip]
const OPTIONS: &[OptionSpec] = &[
    option("id", "string", Scope::Every, "Names the handler in logs and in stored progress; by default the name of the function."),
    option("param", "any", Scope::Every, "Any data; the handler gets it as `ctx.param`."),
    option("errors", "string", Scope::Retried, "What an arbitrary error means: \"temporary\", \"permanent\" or \"ignored\"."),
    option("timeout", "duration", Scope::Retried, "The time from the first attempt on, pauses included: then a running attempt is interrupted, and no new one starts."),
    option("retries", "integer", Scope::Retried, "The most attempts."),
    option("backoff", "duration", Scope::Retried, "The pause after an arbitrary error; by default `settings.execution.default_backoff`."),
    option("labels", "map", Scope::Objects, "Only objects whose labels pass: a value, `kopf.PRESENT`, `kopf.ABSENT` or a function for each."),
    option("annotations", "map", Scope::Objects, "Only objects whose annotations pass, as with `labels`."),
    option("when", "function", Scope::Objects, "Only if this function of `ctx` says so."),
    option("field", "string or list", Scope::Objects, "Only if this field is there: a dotted path, or a list of keys."),
    option("value", "any", Scope::Objects, "Only if the field has this value: data, a marker or a function."),
    option("old", "any", COMPARING, "Only if the field had this value before: data, a marker or a function."),
    option("new", "any", COMPARING, "Only if the field has this value now: data, a marker or a function."),
    option("deleted", "boolean", Scope::Only(&[Kind::Resume]), "Also for objects that are being deleted."),
    option("optional", "boolean", Scope::Only(&[Kind::Delete]), "Do not hold the object only for this handler."),
    option("initial_delay", "duration or function", SPAWNING, "Wait this long before the first call."),
    option("cancellation_backoff", "duration", DAEMON, "How long a graceful exit may take before the daemon is cancelled."),
    option("cancellation_timeout", "duration", DAEMON, "How long a cancelled daemon may take before it is abandoned."),
    option("cancellation_polling", "duration", DAEMON, "How often to look whether the daemon has exited."),
    option("interval", "duration", TIMER, "The pause from the end of one call to the start of the next."),
    option("sharp", "boolean", TIMER, "Count the interval from the start of the last call."),
    option("idle", "duration", TIMER, "Only when the object did not change for this long."),
    option("operations", "list", ADMISSION, "Only these requests: \"CREATE\", \"UPDATE\", \"DELETE\", \"CONNECT\"."),
    option("operation", "string", ADMISSION, "One operation; the same as `operations` with one item."),
    option("subresource", "string", ADMISSION, "Only this subresource; \"*\" is any, and the object itself."),
    option("persistent", "boolean", ADMISSION, "Keep the webhook configured after the operator exits."),
    option("side_effects", "boolean", ADMISSION, "The handler changes something outside, except in dry runs."),
    option("ignore_failures", "boolean", ADMISSION, "Admit the object when the webhook cannot be reached."),
    option("group", "string", Scope::Selecting, "The API group of the resource; empty is the core group."),
    option("version", "string", Scope::Selecting, "The version of the resource; by default the preferred one."),
    option("kind", "string", Scope::Selecting, "The kind of the resource, such as \"Pod\"."),
    option("plural", "string", Scope::Selecting, "The plural of the resource, such as \"pods\"."),
    option("singular", "string", Scope::Selecting, "The singular of the resource, such as \"pod\"."),
    option("shortcut", "string", Scope::Selecting, "A short name of the resource, such as \"po\"."),
    option("category", "string", Scope::Selecting, "All resources of a category, such as \"all\"."),
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
            Scope::Retried => !matches!(category, Category::Watching | Category::Admission),
            Scope::Objects => category != Category::Activity,
            Scope::Selecting => category != Category::Activity && kind != Kind::Sub,
            Scope::Only(kinds) => kinds.contains(&kind),
        }
    }
}
