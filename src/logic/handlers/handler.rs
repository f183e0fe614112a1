//! A declared handler: what it reacts to, and how it is called.

pub use super::callback::Callback;
use std::{fmt, sync::Arc, time::Duration};

use serde_json::Value;

use super::{
    function::{Function, ScriptId},
    selector::Selector,
};
use crate::logic::{
    object::reason::Reason,
    schedules::{Cron, due::Missed},
    text::python_text,
};
use crate::settings::FieldPath;

/// The declaration that created a handler.
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
    /// `reconcile`
    Reconcile,
    /// `on_startup`
    Startup,
    /// `on_cleanup`
    Cleanup,
    /// `on_login`
    Login,
    /// `on_probe`
    Probe,
    /// `on_tunnel`
    Tunnel,
    /// `every`
    Every,
    /// `cron`
    Cron,
    /// `test`
    Test,
    /// `on_validate`
    Validate,
    /// `on_mutate`
    Mutate,
    /// `on_convert`
    Convert,
}

/// Handlers of one category are selected and called in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Called for the operator itself.
    Activity,
    /// Fill indexes, which are kept in memory.
    Indexing,
    /// Receive raw watch events.
    Watching,
    /// Run in the background of an object.
    Spawning,
    /// React to changes; their progress is stored on the object.
    Changing,
    /// Respond to admission requests.
    Admission,
    /// Convert objects between versions.
    Conversion,
}

/// The treatment of an error that is neither temporary nor permanent by its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorsMode {
    /// Log it and continue as if the handler had succeeded.
    Ignored,
    /// Retry the handler after its backoff.
    Temporary,
    /// Fail permanently: the handler is not retried.
    Permanent,
}

/// A filter on one value.
#[derive(Clone, Debug, PartialEq)]
pub enum Criterion {
    /// Present with exactly this value.
    Equals(Value),
    /// Present with any value.
    Present,
    /// Absent from the object.
    Absent,
    /// Decided by a function.
    Callback(Callback),
}

/// The filters of a handler: the objects and changes that it applies to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    /// By label, in the order of declaration.
    pub labels: Vec<(String, Criterion)>,
    /// By annotation, in the order of declaration.
    pub annotations: Vec<(String, Criterion)>,
    /// The field that `value`, `old` and `new` apply to; `None` is the whole object.
    pub field: Option<FieldPath>,
    /// For the current value of the field.
    pub value: Option<Criterion>,
    /// For the value before the change.
    pub old: Option<Criterion>,
    /// For the value after the change.
    pub new: Option<Criterion>,
    /// For the whole object.
    pub when: Option<Callback>,
}

/// Limits of the calls of a handler, and how they are retried.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// `None`: the default of the category.
    pub errors: Option<ErrorsMode>,
    /// From the first attempt on, retries and pauses included.
    pub timeout: Option<Duration>,
    /// Maximum number of attempts.
    pub retries: Option<u64>,
    /// The pause before the retry after an arbitrary error.
    pub backoff: Option<Duration>,
}

/// The options of daemons and timers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Background {
    /// The delay of the first call.
    pub initial_delay: Option<InitialDelay>,
    /// Schedules and timers: the times of the calls, instead of an interval.
    pub times: Option<Times>,
    /// Schedules: what happens to missed slots.
    pub missed: Missed,
    /// Schedules and timers: the pause between calls.
    pub interval: Option<Duration>,
    /// Schedules and timers: align calls to multiples of the interval.
    pub sharp: bool,
    /// Timers: call only if the object has not changed for this long.
    pub idle: Option<Duration>,
    /// Timers: not called while a change of the object is being handled, and the other way round.
    pub is_exclusive: bool,
    /// Daemons: time allowed for a graceful exit.
    pub cancellation_backoff: Option<Duration>,
    /// Daemons: time allowed for a forced exit.
    pub cancellation_timeout: Option<Duration>,
    /// Daemons: how often to check whether it has exited.
    pub cancellation_polling: Option<Duration>,
    /// Objects get no finalizer for it.
    pub without_finalizer: bool,
}

/// The options of admission handlers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Admission {
    /// The operations it handles; empty is all of them.
    pub operations: Vec<String>,
    /// The subresource it handles; `*` is any, `None` is the object itself.
    pub subresource: Option<String>,
    /// The webhook configuration stays after the operator exits.
    pub persistent: bool,
    /// The handler has side effects, except in dry runs.
    pub side_effects: bool,
    /// Objects are admitted if the webhook cannot be reached.
    pub ignore_failures: bool,
    /// CEL conditions that API servers check, as in `matchConditions`.
    pub match_conditions: Option<Value>,
    /// The namespaces whose objects are reviewed, as in `namespaceSelector`.
    pub namespace_selector: Option<Value>,
    /// `Exact` or `Equivalent`, the default.
    pub match_policy: Option<String>,
    /// Mutating handlers: called again if later webhooks change the object.
    pub reinvocation: bool,
    /// Conversion handlers: the versions that they convert.
    pub conversion: Option<Conversion>,
}

/// The versions of a conversion handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The version of the objects before.
    pub from: String,
    /// The version of the objects afterwards.
    pub to: String,
}

/// The options of `kopf.reconcile`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reconcile {
    /// The kinds of the children.
    pub owns: Vec<Named>,
    /// Other kinds whose changes wake the object.
    pub watches: Vec<Watched>,
    /// The maximum pause between two calls.
    pub resync: Option<Duration>,
    /// Called when the object is deleted; blocks the deletion until it has succeeded.
    pub finalize: Option<Function>,
    /// The object has the finalizer even without `finalize`.
    pub finalizer: bool,
    /// Earlier ids of the handler, whose children it takes over.
    pub formerly: Vec<String>,
}

/// A kind, as the script names it.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The string of the selector.
    pub text: String,
    /// The selector that the string was parsed into.
    pub selector: Selector,
}

/// A kind whose objects wake a reconcile handler.
#[derive(Clone, Debug, PartialEq)]
pub struct Watched {
    /// The kind whose objects are watched.
    pub kind: Named,
    /// Returns the names of the objects to wake; `None` wakes all of them.
    pub map: Option<Function>,
}

/// The purpose of a derived index handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relation {
    /// The reconcile handler, by [`Handler::reconciler_key`].
    pub reconciler: Arc<str>,
    /// The label values of its children: the present one, then the earlier ones.
    pub labels: Arc<[String]>,
    /// How the objects are related to the parents.
    pub role: Role,
}

/// The relation of objects to those that a reconcile handler is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Children, by their labels.
    Owned,
    /// The function of the handler returns the names of the related objects.
    Mapped,
    /// Related to every object.
    All,
    /// Parents of the objects of an event handler, by their uid.
    Parent,
}

/// The times of calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    /// Those of a cron expression.
    Cron(Arc<Cron>),
    /// Those of the cron expression that a function returns, in this time zone.
    Computed(Function, Option<String>),
}

/// A fixed delay, or one computed from the object.
#[derive(Clone, Debug, PartialEq)]
pub enum InitialDelay {
    /// The same for all objects.
    Fixed(Duration),
    /// A function that returns seconds.
    Computed(Function),
}

/// A declared script function.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    /// Identifies the handler in logs, in stored progress and in results. Stable across restarts and languages.
    pub id: Arc<str>,
    /// The function to call.
    pub function: Function,
    /// The function of `kopf` that has declared it.
    pub kind: Kind,
    /// The resources; `None` for activities and sub-handlers.
    pub selector: Option<Selector>,
    /// The objects and changes.
    pub filters: Filters,
    /// Timeout, retries, backoff and error mode.
    pub limits: Limits,
    /// The kwarg `param`, as the declaration sets it.
    pub param: Option<Value>,
    /// `on_resume`: also for objects that are being deleted.
    pub deleted: bool,
    /// `on_delete`: adds no finalizer by itself.
    pub optional: bool,
    /// Sub-handlers: whether the parent reacts to changes of a field.
    pub parent_needs_change: bool,
    /// Sub-handlers: the nesting level.
    pub level: u8,
    /// Options of daemons and timers.
    pub background: Background,
    /// Options of admission handlers.
    pub admission: Admission,
    /// Options of `kopf.reconcile`; `None` for all other handlers.
    pub reconcile: Option<Arc<Reconcile>>,
    /// `on_event`: the kind of the owner that objects must have.
    pub parent: Option<Named>,
    /// Index handlers that belong to a reconcile handler: which one, and how.
    pub relation: Option<Relation>,
    /// The location of the declaration, `file:line`; for messages only.
    pub location: Arc<str>,
    /// A fingerprint of the code of its function and of everything that the code refers to. Equal in two generations if none of it
    /// was edited; 0 if unknown.
    pub code: u64,
    /// Fingerprints of its selector and of its filters, which show whether functions in them are unchanged in another generation.
    pub parts: Parts,
    /// The same handler with functions that do not keep their script alive; see [`Handler::for_scripts`].
    pub(in crate::logic) for_scripts: Option<Arc<Handler>>,
}

/// Fingerprints of parts of a declaration; 0 if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The fingerprint of the selector.
    pub selector: u64,
    /// The fingerprint of the filters.
    pub filters: u64,
}

/// Identifies a handler and its code without keeping its script alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    id: Arc<str>,
    kind: Kind,
    code: u64,
    /// The loaded function: compared if the fingerprint of the code is unknown.
    place: (ScriptId, u32),
}

impl Kind {
    /// Returns the short name of the declaration, which is also the name of anonymous functions.
    pub fn name(self) -> &'static str {
        let function = self.declared_by();
        function.strip_prefix("on_").unwrap_or(function)
    }

    /// Returns the function of `kopf` that declares it.
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
            Kind::Reconcile => "reconcile",
            Kind::Startup => "on_startup",
            Kind::Cleanup => "on_cleanup",
            Kind::Login => "on_login",
            Kind::Probe => "on_probe",
            Kind::Tunnel => "on_tunnel",
            Kind::Every => "every",
            Kind::Cron => "cron",
            Kind::Test => "test",
            Kind::Validate => "on_validate",
            Kind::Mutate => "on_mutate",
            Kind::Convert => "on_convert",
        }
    }

    /// Returns whether it runs on a schedule, for the operator itself.
    pub fn is_scheduled(self) -> bool {
        matches!(self, Kind::Every | Kind::Cron)
    }

    /// Returns the category of the handlers that it declares.
    pub fn category(self) -> Category {
        match self {
            Kind::Create | Kind::Update | Kind::Delete | Kind::Resume | Kind::Field | Kind::Sub => {
                Category::Changing
            }
            Kind::Event => Category::Watching,
            Kind::Index => Category::Indexing,
            Kind::Daemon | Kind::Timer | Kind::Reconcile => Category::Spawning,
            Kind::Startup
            | Kind::Cleanup
            | Kind::Login
            | Kind::Probe
            | Kind::Tunnel
            | Kind::Every
            | Kind::Cron
            | Kind::Test => Category::Activity,
            Kind::Validate | Kind::Mutate => Category::Admission,
            Kind::Convert => Category::Conversion,
        }
    }
}

impl Category {
    /// Those whose handlers API servers call through webhooks.
    pub const WEBHOOKS: [Category; 2] = [Category::Admission, Category::Conversion];

    /// Returns the error mode of handlers that do not set one.
    pub fn default_errors(self) -> ErrorsMode {
        match self {
            Category::Indexing | Category::Watching => ErrorsMode::Ignored,
            Category::Activity | Category::Spawning | Category::Changing => ErrorsMode::Temporary,
            Category::Admission | Category::Conversion => ErrorsMode::Permanent,
        }
    }
}

impl Handler {
    /// Returns the file of the script that declares it.
    pub fn file(&self) -> &str {
        self.location.rsplit_once(':').map_or(&*self.location, |(file, _)| file)
    }

    /// Returns whether both have the same declaration, so that state stored for one belongs to the other.
    ///
    /// Does not compare the functions of selectors: their fingerprints are a part of the code.
    pub fn is_namesake(&self, other: &Handler) -> bool {
        let selects_alike = || match (&self.selector, &other.selector) {
            (Some(one), Some(other)) => one.is_alike(other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.id == other.id && self.kind == other.kind && selects_alike()
    }

    /// Returns whether a function selects its resources.
    pub fn is_chosen_by_function(&self) -> bool {
        self.selector.as_ref().is_some_and(|it| it.function.is_some())
    }

    /// Returns whether both certainly select the same resources, even if the functions belong to two generations.
    pub fn selects_same(&self, other: &Handler) -> bool {
        let is_edited = self.parts.selector == 0 || self.parts.selector != other.parts.selector;
        self.selector == other.selector || (!is_edited && self.is_namesake(other))
    }

    /// Returns whether both certainly have the same filters, even if the functions belong to two generations.
    pub fn filters_same(&self, other: &Handler) -> bool {
        let is_edited = self.parts.filters == 0 || self.parts.filters != other.parts.filters;
        self.filters == other.filters || (!is_edited && self.filters.is_alike(&other.filters))
    }

    /// Returns whether it does the same as this handler of another generation, so that it need not restart. False if unknown.
    pub fn is_same(&self, other: &Handler) -> bool {
        // The fingerprint covers the declaration and thus the options.
        let does_the_same =
            self.function == other.function || (self.code != 0 && self.code == other.code);
        self.is_namesake(other) && does_the_same
    }

    /// Returns the mark that identifies the handler and its code.
    pub fn mark(&self) -> Mark {
        let place = (self.function.script, self.function.slot);
        Mark { id: Arc::clone(&self.id), kind: self.kind, code: self.code, place }
    }

    /// Returns how it treats arbitrary errors.
    pub fn errors(&self) -> ErrorsMode {
        self.limits.errors.unwrap_or(self.kind.category().default_errors())
    }

    /// Returns the only reason it is called for, if there is one.
    pub fn reason(&self) -> Option<Reason> {
        let limited = [
            (Kind::Create, Reason::Create),
            (Kind::Update, Reason::Update),
            (Kind::Delete, Reason::Delete),
        ];
        limited.into_iter().find(|(kind, _)| *kind == self.kind).map(|(_, reason)| reason)
    }

    /// Returns whether it runs only for objects that are new to this process.
    pub fn is_initial(&self) -> bool {
        self.kind == Kind::Resume
    }

    /// Returns whether it runs only if its field has changed.
    pub fn needs_change(&self) -> bool {
        matches!(self.kind, Kind::Update | Kind::Field)
            || (self.kind == Kind::Sub && self.parent_needs_change)
    }

    /// Returns whether its times depend on when its object has changed.
    pub fn follows_changes(&self) -> bool {
        let Background { idle, times, .. } = &self.background;
        idle.is_some() || matches!(times, Some(Times::Computed(..)))
    }

    /// Returns whether objects must have the finalizer for it.
    pub fn requires_finalizer(&self) -> bool {
        let is_spawned = matches!(self.kind, Kind::Daemon | Kind::Timer);
        (is_spawned && !self.background.without_finalizer)
            || (self.kind == Kind::Delete && !self.optional)
            || self.finalizes()
    }
}

impl Mark {
    /// Returns the id of the handler.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// Returns whether the handler has the same kind and id.
    pub fn is_namesake_of(&self, handler: &Handler) -> bool {
        self.id == handler.id && self.kind == handler.kind
    }

    /// Returns whether the handler has the same code. False if unknown.
    pub fn is_of(&self, handler: &Handler) -> bool {
        let place = (handler.function.script, handler.function.slot);
        let code = handler.code;
        let does_the_same = self.place == place || (code != 0 && self.code == code);
        self.is_namesake_of(handler) && does_the_same
    }
}

impl fmt::Display for Handler {
    /// Formats the handler for log lines: `Handler 'create_fn'`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = match self.kind.category() {
            Category::Activity if self.kind.is_scheduled() => "Schedule",
            Category::Activity => "Activity",
            Category::Indexing => "Indexer",
            Category::Admission => "Webhook",
            Category::Conversion => "Converter",
            Category::Spawning if self.kind == Kind::Timer => "Timer",
            Category::Spawning if self.kind == Kind::Reconcile => "Reconciler",
            Category::Spawning => "Daemon",
            Category::Watching | Category::Changing => "Handler",
        };
        write!(f, "{noun} {}", python_text::quoted(&self.id))
    }
}
