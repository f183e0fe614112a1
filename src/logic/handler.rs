//! A declared handler: what it reacts to, and how its calls are treated.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    function::{Function, ScriptId},
    python_text,
    reason::Reason,
    selector::Selector,
};
use crate::settings::FieldPath;

/// The declaration a handler was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `on_create`
    Create,
    /// `on_update`
    Update,
    /// `on_delete`
    Delete,
    /// `on_resume`
    Resume,
    /// `on_field`
    Field,
    /// `subhandler`, `register`
    Sub,
    /// `on_event`
    Event,
    /// `index`
    Index,
    /// `daemon`
    Daemon,
    /// `timer`
    Timer,
    /// `on_startup`
    Startup,
    /// `on_cleanup`
    Cleanup,
    /// `on_login`
    Login,
    /// `on_probe`
    Probe,
    /// `test`
    Test,
    /// `on_validate`
    Validate,
    /// `on_mutate`
    Mutate,
}

/// Handlers of one category are selected and called alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Of the operator itself.
    Activity,
    /// Fill in-memory tables.
    Indexing,
    /// See raw watch events.
    Watching,
    /// Run in the background of an object.
    Spawning,
    /// React to changes; their progress is kept on the object.
    Changing,
    /// Answer admission requests.
    Admission,
}

/// What an error that is neither temporary nor permanent by its own word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorsMode {
    /// Log it and go on as if the handler succeeded.
    Ignored,
    /// Retry.
    Temporary,
    /// Give up.
    Permanent,
}

/// A condition that is computed by scripts.
#[derive(Clone, Debug, PartialEq)]
pub enum Callback {
    /// One function.
    Function(Function),
    /// `kopf.all_`: none fails; passes when empty.
    All(Vec<Callback>),
    /// `kopf.any_`: one passes; fails when empty.
    Any(Vec<Callback>),
    /// `kopf.none_`: none passes; passes when empty.
    None(Vec<Callback>),
    /// `kopf.not_`.
    Not(Box<Callback>),
}

/// A condition on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Criterion {
    /// Present with this very value.
    Equals(Value),
    /// Present with any value.
    Present,
    /// Not there at all.
    Absent,
    /// As a function decides.
    Callback(Callback),
}

/// Which objects and changes a handler wants.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// By label, in the order of declaration.
    pub labels: Vec<(String, Criterion)>,
    /// By annotation, in the order of declaration.
    pub annotations: Vec<(String, Criterion)>,
    /// The field that `value`, `old` and `new` look at; `None` is the whole object.
    pub field: Option<FieldPath>,
    /// On the present value of the field.
    pub value: Option<Criterion>,
    /// On the value before the change.
    pub old: Option<Criterion>,
    /// On the value after the change.
    pub new: Option<Criterion>,
    /// On everything.
    pub when: Option<Callback>,
}

/// How calls of a handler are limited and repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// `None`: as usual for the category.
    pub errors: Option<ErrorsMode>,
    /// From the first attempt on, retries and pauses included.
    pub timeout: Option<Duration>,
    /// The most calls.
    pub retries: Option<u64>,
    /// The pause before an arbitrary error is retried.
    pub backoff: Option<Duration>,
}

/// The options of daemons and timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// Wait this long before the first call.
    pub initial_delay: Option<InitialDelay>,
    /// Timers: the pause between calls.
    pub interval: Option<Duration>,
    /// Timers: keep to the grid of the interval.
    pub sharp: bool,
    /// Timers: only when the object did not change for this long.
    pub idle: Option<Duration>,
    /// Daemons: how long a graceful exit may take.
    pub cancellation_backoff: Option<Duration>,
    /// Daemons: how long a forced exit may take.
    pub cancellation_timeout: Option<Duration>,
    /// Daemons: how often to look whether it has ended.
    pub cancellation_polling: Option<Duration>,
}

/// The options of admission handlers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// Only these requests; empty is all of them.
    pub operations: Vec<String>,
    /// Only this subresource; `*` is any, `None` is the object itself.
    pub subresource: Option<String>,
    /// Stays configured after the operator exits.
    pub persistent: bool,
    /// Changes something outside, except in dry runs.
    pub side_effects: bool,
    /// Objects are admitted when the webhook cannot be reached.
    pub ignore_failures: bool,
}

/// A fixed delay, or one computed from the object.
#[derive(Clone, Debug, PartialEq)]
pub enum InitialDelay {
    /// Always the same.
    Fixed(Duration),
    /// A function that returns seconds.
    Computed(Function),
}

/// A declared script function.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Names the handler in logs, in stored progress and in results. Stable across restarts and languages.
    pub id: Arc<str>,
    /// What is called.
    pub function: Function,
    /// How it was declared.
    pub kind: Kind,
    /// Which resources; `None` for activities and sub-handlers.
    pub selector: Option<Selector>,
    /// Which objects.
    pub filters: Filters,
    /// Limits and repeats.
    pub limits: Limits,
    /// The `param` kwarg.
    pub param: Option<Value>,
    /// `on_resume`: also for objects that are being deleted.
    pub deleted: bool,
    /// `on_delete`: does not hold the object by itself.
    pub optional: bool,
    /// Sub-handlers: whether the parent reacts to changes of a field.
    pub parent_needs_change: bool,
    /// Sub-handlers: how many handlers are around it.
    pub level: u8,
    /// Daemons and timers.
    pub background: Background,
    /// Admission handlers.
    pub admission: Admission,
    /// Where it was declared, `file:line`; for messages only.
    pub location: Arc<str>,
    /// What its function does, as a fingerprint of its code and of what that refers to. Equal in two generations if nothing of
    /// it was edited; 0 if nobody can tell.
    pub code: u64,
    /// The same of its selector alone, and of its filters alone: so that functions in them, which differ in two generations, can
    /// be told to be the same.
    pub parts: Parts,
    /// The same handler with functions that do not keep their script; see [`Handler::inside`].
    pub(super) inside: Option<Arc<Handler>>,
}

/// Fingerprints of parts of a declaration; 0 if nobody can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Which resources it wants.
    pub selector: u64,
    /// Which objects and changes.
    pub filters: u64,
}

/// Tells a handler from others, and from itself as it is after an edit, without keeping anything of its script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    id: Arc<str>,
    kind: Kind,
    code: u64,
    /// Where it is loaded: what counts if nobody can tell the code.
    place: (ScriptId, u32),
}

impl Kind {
    /// The word of the declaration: the name of anonymous functions.
    pub fn name(self) -> &'static str {
        let function = self.declared_by();
        function.strip_prefix("on_").unwrap_or(function)
    }

    /// The function of `kopf` that declares it.
    pub fn declared_by(self) -> &'static str {
        match self {
            Kind::Create => "on_create",
            Kind::Update => "on_update",
            Kind::Delete => "on_delete",
            Kind::Resume => "on_resume",
            Kind::Field => "on_field",
            Kind::Sub => "subhandler",
            Kind::Event => "on_event",
            Kind::Index => "index",
            Kind::Daemon => "daemon",
            Kind::Timer => "timer",
            Kind::Startup => "on_startup",
            Kind::Cleanup => "on_cleanup",
            Kind::Login => "on_login",
            Kind::Probe => "on_probe",
            Kind::Test => "test",
            Kind::Validate => "on_validate",
            Kind::Mutate => "on_mutate",
        }
    }

    /// The category it belongs to.
    pub fn category(self) -> Category {
        match self {
            Kind::Create | Kind::Update | Kind::Delete | Kind::Resume | Kind::Field | Kind::Sub => {
                Category::Changing
            }
            Kind::Event => Category::Watching,
            Kind::Index => Category::Indexing,
            Kind::Daemon | Kind::Timer => Category::Spawning,
            Kind::Startup | Kind::Cleanup | Kind::Login | Kind::Probe | Kind::Test => {
                Category::Activity
            }
            Kind::Validate | Kind::Mutate => Category::Admission,
        }
    }
}

impl Category {
    /// The mode of handlers that do not say.
    pub fn default_errors(self) -> ErrorsMode {
        match self {
            Category::Indexing | Category::Watching => ErrorsMode::Ignored,
            Category::Activity | Category::Spawning | Category::Changing => ErrorsMode::Temporary,
            Category::Admission => ErrorsMode::Permanent,
        }
    }
}

impl Handler {
    /// Whether it is declared as this one is: what is kept of the one belongs to the other.
    ///
    /// Functions are functions here: which one a selector has says its code.
    pub fn is_namesake(&self, other: &Handler) -> bool {
        let selects_alike = match (&self.selector, &other.selector) {
            (Some(one), Some(other)) => one.is_alike(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.id == other.id && self.kind == other.kind && selects_alike
    }

    /// Whether both want the same resources for certain, also if functions of two generations choose them.
    pub fn selects_same(&self, other: &Handler) -> bool {
        let is_edited = self.parts.selector == 0 || self.parts.selector != other.parts.selector;
        self.selector == other.selector || (!is_edited && self.is_namesake(other))
    }

    /// Whether both want the same objects and changes of a resource for certain, also if functions of two generations choose them.
    pub fn filters_same(&self, other: &Handler) -> bool {
        let is_edited = self.parts.filters == 0 || self.parts.filters != other.parts.filters;
        self.filters == other.filters || (!is_edited && self.filters.is_alike(&other.filters))
    }

    /// Whether it does the same as this one of another generation, so that it need not start anew. In doubt it does not.
    pub fn is_same(&self, other: &Handler) -> bool {
        // The code covers the declaration and thus the options.
        let does_the_same =
            self.function == other.function || (self.code != 0 && self.code == other.code);
        self.is_namesake(other) && does_the_same
    }

    /// What is left to remember it by.
    pub fn mark(&self) -> Mark {
        let place = (self.function.script, self.function.slot);
        Mark { id: Arc::clone(&self.id), kind: self.kind, code: self.code, place }
    }

    /// What an arbitrary error means for it.
    pub fn errors(&self) -> ErrorsMode {
        self.limits.errors.unwrap_or(self.kind.category().default_errors())
    }

    /// The reason it is limited to, if any.
    pub fn reason(&self) -> Option<Reason> {
        let limited = [
            (Kind::Create, Reason::Create),
            (Kind::Update, Reason::Update),
            (Kind::Delete, Reason::Delete),
        ];
        limited.into_iter().find(|(kind, _)| *kind == self.kind).map(|(_, reason)| reason)
    }

    /// Whether it runs only for objects that are new to this process.
    pub fn is_initial(&self) -> bool {
        self.kind == Kind::Resume
    }

    /// Whether its field must have changed.
    pub fn needs_change(&self) -> bool {
        matches!(self.kind, Kind::Update | Kind::Field)
            || (self.kind == Kind::Sub && self.parent_needs_change)
    }

    /// Whether objects must not go before it had its say.
    pub fn requires_finalizer(&self) -> bool {
        matches!(self.kind, Kind::Daemon | Kind::Timer)
            || (self.kind == Kind::Delete && !self.optional)
    }
}

impl Mark {
    /// The id of the handler.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Whether the handler is declared as the one that is remembered, by kind and id.
    pub fn is_namesake_of(&self, handler: &Handler) -> bool {
        self.id == handler.id && self.kind == handler.kind
    }

    /// Whether the handler does the same as the one that is remembered. In doubt it does not.
    pub fn is_of(&self, handler: &Handler) -> bool {
        let Mark { id, kind, code, place } = handler.mark();
        let does_the_same = self.place == place || (code != 0 && self.code == code);
        self.id == id && self.kind == kind && does_the_same
    }
}

impl fmt::Display for Handler {
    /// As log lines call it: `Handler 'create_fn'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.kind.category() {
            Category::Activity => "Activity",
            Category::Indexing => "Indexer",
            Category::Admission => "Webhook",
            Category::Spawning if self.kind == Kind::Timer => "Timer",
            Category::Spawning => "Daemon",
            Category::Watching | Category::Changing => "Handler",
        };
        write!(f, "{noun} {}", python_text::quoted(&self.id))
    }
}
