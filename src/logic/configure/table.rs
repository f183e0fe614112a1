//! The table of all settings: one line for each. Names, groups and defaults are Kopf's; `docs/settings.md` is made from it.

use std::time::Duration;

use serde_json::Value;

use super::{
    Setting, Shape, check, limits,
    value::{Plain, whole},
};
use crate::logic::size;
use crate::settings::Settings;

/// The line of one setting: its type says which values it takes.
macro_rules! setting {
    ($group:ident.$name:ident, $doc:expr) => {
        Setting {
            group: stringify!($group),
            name: stringify!($name),
            doc: $doc,
            takes: takes(|it| &it.$group.$name),
            shape: shape(|it| &it.$group.$name),
            by_scripts: true,
            get: |settings| settings.$group.$name.to_json(),
            set: |settings, value| {
                settings.$group.$name = Plain::from_json(value)?;
                Ok(())
            },
        }
    };
}

/// The line of a limit of scripts: how it is read, and what it takes if its type does not say that.
macro_rules! limit {
    ($group:ident.$name:ident, $read:expr, $doc:expr $(, $takes:expr)?) => {
        Setting {
            by_scripts: false,
            set: |settings, value| {
                settings.$group.$name = $read(value)?;
                Ok(())
            },
            $(takes: $takes,)?
            ..setting!($group.$name, $doc)
        }
    };
}

/// A setting of Kopf whose feature is not there: null, its default, is all it takes.
macro_rules! refused {
    ($group:ident.$name:ident, $doc:literal) => {
        Setting {
            group: stringify!($group),
            name: stringify!($name),
            doc: $doc,
            takes: "nothing: this version has no admission handlers yet",
            shape: Shape::Plain,
            by_scripts: true,
            get: |_| Value::Null,
            set: |_, value| {
                if value.is_null() {
                    Ok(())
                } else {
                    Err("this version has no admission handlers yet: leave it unset".to_owned())
                }
            },
        }
    };
}

const fn takes<T: Plain>(_: fn(&Settings) -> &T) -> &'static str {
    T::TAKES
}

const fn shape<T: Plain>(_: fn(&Settings) -> &T) -> Shape {
    T::SHAPE
}

/// All settings, by group.
pub const TABLE: &[Setting] = &[
    setting!(
        process.ultimate_exiting_timeout,
        "The longest that a graceful exit may take, from the signal on. Then the process ends at once with exit code 137. It is the limit, too, of the clean-up after the operator has ended by itself. None: it may take forever."
    ),
    setting!(
        process.cleanup_timeout,
        "Maximum time for the `on_cleanup` handlers together; then they are stopped. With leader election, the lease is given back after them, so keep this well below the grace period of the pod. None: only `ultimate_exiting_timeout` limits them."
    ),
    setting!(
        posting.enabled,
        "Whether Kubernetes events are posted at all, those that scripts ask for and those of loggers."
    ),
    setting!(
        posting.loggers,
        "Whether lines of the loggers of objects are posted as events too, the operator's own and those of handlers."
    ),
    Setting {
        takes: LEVEL,
        set: set_level,
        ..setting!(
            posting.level,
            "The least level that is posted: 10 is debug, 20 info, 30 warning, 40 error, 50 critical; the words do as well."
        )
    },
    setting!(
        posting.default_backoffs,
        "The pauses between the attempts to post an event that a script asked for."
    ),
    setting!(
        posting.logging_backoffs,
        "The pauses between the attempts to post a line of a logger."
    ),
    setting!(
        posting.worker_limit,
        "The most objects whose events are posted at the same time. None: no limit."
    ),
    setting!(
        posting.idle_timeout,
        "The worker that posts the events of one object ends after this time without events."
    ),
    setting!(
        posting.reporting_component,
        "The `reportingComponent` and `source.component` of posted events."
    ),
    setting!(posting.reporting_instance, "The `reportingInstance` of posted events."),
    setting!(posting.event_name_prefix, "The `metadata.generateName` of posted events."),
    setting!(peering.name, "The name of the peering object. Set by `--peering`."),
    setting!(peering.stealth, "Do not log the operator's successful signs of life."),
    setting!(
        peering.priority,
        "The operator's priority: those of lower priority pause while it lives. Set by `--priority`, and to 666 by `--dev`."
    ),
    setting!(
        peering.lifetime,
        "How long others believe a sign of life; the next one comes earlier."
    ),
    setting!(
        peering.mandatory,
        "Start paused, and stay so until the peering object exists. Set by `--peering`."
    ),
    setting!(peering.standalone, "Ignore all other operators. Set by `--standalone`."),
    setting!(
        peering.clusterwide,
        "Meet others at a ClusterKopfPeering. Set by `--all-namespaces`; a start-up handler may change it."
    ),
    Setting {
        name: "namespaced",
        doc: "Meet others at a KopfPeering in each namespace: the opposite of `clusterwide`.",
        get: |settings| (!settings.peering.clusterwide).into(),
        set: |settings, value| {
            settings.peering.clusterwide = !bool::from_json(value)?;
            Ok(())
        },
        ..setting!(peering.clusterwide, "")
    },
    setting!(
        leadership.enabled,
        "Elect a leader among the replicas: only the leader acts, the others stand by. Set by `--leader-elect`."
    ),
    setting!(
        leadership.name,
        "The name of the Lease; operators in one namespace need one each. Set by `--lease`."
    ),
    setting!(
        leadership.namespace,
        "The namespace of the Lease. None: that of the pod or of the kubeconfig."
    ),
    setting!(
        leadership.duration,
        "Another replica takes over when the lease has not been renewed for so long."
    ),
    setting!(
        leadership.renew_deadline,
        "A leader that could not renew the lease for so long ends at once, with exit code 1; shorter than `duration`."
    ),
    setting!(
        leadership.retry_period,
        "The pause between attempts to get the lease, or to renew it; shorter than `renew_deadline`."
    ),
    setting!(
        watching.server_timeout,
        "The `timeoutSeconds` of watch requests. None: the server decides."
    ),
    setting!(
        watching.client_timeout,
        "The longest life of one watch request on our side; another one carries on. None: no limit."
    ),
    setting!(
        watching.connect_timeout,
        "The longest that a connection for a watch may take to be made. None: as `networking.connect_timeout`."
    ),
    setting!(
        watching.reconnect_backoff,
        "The pause before a stream that ended starts over with a new list."
    ),
    setting!(
        watching.inactivity_timeout,
        "A watch without a sound for this long is connected anew; bookmarks are sounds."
    ),
    setting!(
        watching.chunk_size,
        "The `limit` of list requests: how many objects one answer brings. None: all at once."
    ),
    setting!(
        watching.initial_streaming,
        "Get the objects of the start from the watch itself (`sendInitialEvents`) instead of a list request."
    ),
    setting!(
        watching.label_selectors,
        "Ask the server only for objects with these labels, by resource: `{\"kopfexamples\": \"app=x\"}`."
    ),
    setting!(
        watching.field_selectors,
        "Ask the server only for objects with these fields, by resource: `{\"pods\": \"spec.nodeName=a\"}`."
    ),
    setting!(
        watching.shard_selectors,
        "The `shardSelector` of lists and watches, by resource. Operators of one priority that share the objects this way do not pause each other."
    ),
    setting!(
        queueing.worker_limit,
        "The most objects of one resource and namespace that are handled at the same time. None: no limit."
    ),
    setting!(
        queueing.idle_timeout,
        "The worker of one object ends after this time without events."
    ),
    setting!(
        queueing.exit_timeout,
        "How long the workers may go on when the operator stops; then they are cut off."
    ),
    setting!(
        queueing.error_delays,
        "The pauses of one object after errors that are not its handlers' (such as refused patches). The last one repeats; an empty list: no pauses."
    ),
    BATCH_WINDOW,
    setting!(
        scanning.disabled,
        "Do not look for new namespaces and resource definitions at run time; no rights to see them are needed then."
    ),
    refused!(
        admission.server,
        "The server of admission webhooks. Refused: this version has no admission handlers yet."
    ),
    refused!(
        admission.managed,
        "The name of the webhook configurations to keep up to date. Refused: this version has no admission handlers yet."
    ),
    setting!(
        execution.default_backoff,
        "The pause before a handler without a `backoff` of its own is tried again after an arbitrary error."
    ),
    Setting {
        set: set_max_workers,
        ..setting!(
            execution.max_workers,
            "The most handlers of one Rhai script that run at the same time; each holds a thread, also while it waits. None: 64. Handlers in Lua need no threads."
        )
    },
    limit!(
        execution.cpu_limit,
        |it| limits::time(it, CPU_LEAST),
        "How long one call of a script may compute: then it is aborted, and the handler fails as temporary. Waiting does not count."
    ),
    limit!(
        execution.event_timeout,
        |it| limits::optional_time(it, EVENT_LEAST),
        "Maximum time of one call of an `on_event` handler or an index function, waiting included: other handlers of the object wait for it. A call that takes longer is dropped, and the handler is not called for this object for ten times as long. None: no limit."
    ),
    setting!(
        background.cancellation_polling,
        "How often a daemon that does not stop is looked at again, if it has no `cancellation_timeout`."
    ),
    setting!(
        background.instant_exit_timeout,
        "How long a daemon may take to end right after it was told to stop, before it is left to end by itself. None: see `instant_exit_zero_time_cycles`."
    ),
    setting!(
        background.instant_exit_zero_time_cycles,
        "How many turns of the scheduler a daemon has to end at once, if there is no `instant_exit_timeout`."
    ),
    limit!(
        sandbox.memory_limit,
        |it| limits::bytes(it, MIB),
        "The memory of the virtual machine of one script. A script that needs more is started afresh.",
        size::EXPECTED
    ),
    limit!(
        sandbox.call_depth,
        |it| limits::count(it, CALL_DEPTHS),
        "How deep calls may be nested in one call of a handler; from 16 to 1000."
    ),
    limit!(
        sandbox.string_size,
        |it| limits::bytes(it, KIB),
        "The longest text that a script may make.",
        size::EXPECTED
    ),
    limit!(
        sandbox.coroutines,
        |it| limits::count(it, (1, usize::MAX)),
        "The most coroutines of one Lua script that have not ended, besides those of its handlers."
    ),
    limit!(
        sandbox.result_size,
        |it| limits::bytes(it, KIB),
        "The largest result of one handler, the largest patch and the largest memo, as JSON. API servers refuse objects above 1.5 MiB or so.",
        size::EXPECTED
    ),
    setting!(
        networking.request_timeout,
        "Maximum time of one attempt of a request, watches excepted. The default holds for lists; all other requests have 30 s then. Any other value holds for all of them."
    ),
    setting!(networking.connect_timeout, "Maximum time to establish a connection. None: 30 s."),
    setting!(
        networking.error_backoffs,
        "The pauses between the attempts of one request that fails by the network, the server (5xx), its load (429) or for rights (403). One number is a list of one; an empty list: no further attempts. A request that must not be carried out twice, such as a POST, is repeated only if the server has surely not received it: no connection, or 429 or 503 with `Retry-After`."
    ),
    setting!(
        networking.enforce_retry_after,
        "Follow the server's `Retry-After` even if our own pause would be longer. Pauses above 60 s are cut to that."
    ),
    setting!(
        networking.trust_env,
        "Use the proxies of HTTP_PROXY, HTTPS_PROXY and NO_PROXY for the connection to the cluster."
    ),
    Setting {
        takes: "a domain and a name such as \"my-operator.example.com/Finalizer\"; for custom resources also a name alone",
        set: |settings, value| {
            let text = String::from_json(value)?;
            check::finalizer(&text)?;
            settings.persistence.finalizer = text;
            Ok(())
        },
        ..setting!(
            persistence.finalizer,
            "The finalizer that holds objects until their deletion is handled."
        )
    },
    setting!(persistence.progress_storage, "Where the progress of handlers is kept on objects."),
    setting!(
        persistence.diffbase_storage,
        "Where the last handled state of objects is kept, for telling what has changed."
    ),
    setting!(
        persistence.consistency_timeout,
        "How long to wait until the operator's own patch comes back before handlers run. 0: do not wait."
    ),
    setting!(
        persistence.remember_failures,
        "Whether permanent failures of handlers are stored on the object, in the annotation `kopf.zalando.org/kopf-failed`, so that the handlers can be retried once their code has changed. Python Kopf ignores the annotation."
    ),
    setting!(
        reload.retry_failed,
        "Whether change handlers that failed permanently are retried once their code has changed, also after a restart. `true` excludes `kopf.fail` (`PermanentError`), `\"all\"` includes it. Requires `persistence.remember_failures`."
    ),
    setting!(
        reload.retry_rate,
        "Maximum number of objects per second on which `reload.retry_failed` starts."
    ),
];

const KIB: usize = 1 << 10;
/// A script and the host's own library in its language need a third of it.
const MIB: usize = 1 << 20;
/// One turn of a call among its neighbours: shorter times cannot be told apart.
const CPU_LEAST: Duration = Duration::from_millis(10);
/// A shorter time would end honest requests.
const EVENT_LEAST: Duration = Duration::from_secs(1);
/// Below, the host's own functions would not get through; above, the stack of a thread would not hold it.
const CALL_DEPTHS: (usize, usize) = (16, 1000);

/// Kopf reads and takes it, without an effect.
const BATCH_WINDOW: Setting = Setting {
    group: "queueing",
    name: "batch_window",
    doc: "Has no effect; a thing of the past.",
    takes: Duration::TAKES,
    shape: Shape::Plain,
    by_scripts: true,
    get: |_| 0.1.into(),
    set: |_, value| Duration::from_json(value).map(|_unused| ()),
};

const LEVEL: &str = "a level: 10, 20, 30, 40, 50, or debug, info, warning, error, critical";

/// Python's logging levels by their names.
const LEVELS: [(&str, u32); 5] =
    [("debug", 10), ("info", 20), ("warning", 30), ("error", 40), ("critical", 50)];

fn set_level(settings: &mut Settings, value: &Value) -> Result<(), String> {
    let by_name = |name: &str| LEVELS.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    let named = value.as_str().and_then(by_name).map(|(_, level)| *level);
    let level = named.or_else(|| u32::from_json(value).ok());
    settings.posting.level = level.ok_or_else(|| format!("expected {LEVEL}, got {value}"))?;
    Ok(())
}

fn set_max_workers(settings: &mut Settings, value: &Value) -> Result<(), String> {
    if whole(value).is_some_and(|it| it < 1) {
        return Err("Can't set thread pool limit lower than 1.".to_owned());
    }
    settings.execution.max_workers = Plain::from_json(value)?;
    Ok(())
}
