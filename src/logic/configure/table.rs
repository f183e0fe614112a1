//! The table of all settings, one line each. Names, groups and defaults are Kopf's; `docs/settings.md` is generated from it.

use std::time::Duration;

use serde_json::Value;

use super::{
    Setting, SettingShape, check, limits,
    value::{Plain, whole},
};
use crate::logic::{object::conditions, text::size};
use crate::settings::Settings;

/// The line of one setting. Its type determines the accepted values.
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

/// The line of a limit of scripts: how it is read, and which values it accepts if its type does not determine that.
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

const fn takes<T: Plain>(_: fn(&Settings) -> &T) -> &'static str {
    T::TAKES
}

const fn shape<T: Plain>(_: fn(&Settings) -> &T) -> SettingShape {
    T::SHAPE
}

/// All settings, by group.
pub const TABLE: &[Setting] = &[
    setting!(
        process.ultimate_exiting_timeout,
        "Maximum time of a graceful exit after the signal; then the process exits immediately with code 137. It also limits the cleanup after the operator has stopped by itself. None: no limit."
    ),
    setting!(
        process.cleanup_timeout,
        "Maximum time for the `on_cleanup` handlers together; then they are stopped. With leader election, the lease is released after them, so keep this well below the grace period of the pod. None: only `ultimate_exiting_timeout` limits them."
    ),
    setting!(posting.enabled, "Whether to post Kubernetes events, both of scripts and of loggers."),
    setting!(
        posting.loggers,
        "Whether to post log messages about objects as events, both of the operator and of handlers."
    ),
    setting!(
        posting.failures,
        "Whether to post a Kubernetes event about each handler that fails, one per object and handler with a count: `HandlerFailed` while it is retried, `HandlerGaveUp` at the end. At most 20 requests per second. It needs permission to create and patch events."
    ),
    Setting {
        takes: "the type of a condition, such as `HandlersReady`",
        set: |settings, value| {
            let kind = Option::<String>::from_json(value)?;
            kind.iter().try_for_each(|it| conditions::check_kind(it))?;
            settings.posting.condition = kind;
            Ok(())
        },
        ..setting!(
            posting.condition,
            "The type of a condition in the status of objects, such as `HandlersReady`: False while a handler fails, with the reason `HandlerFailed` or `HandlerGaveUp` and the error; True when none fails any more. Objects whose handlers have never failed do not get it. It needs permission to get and to patch the status. None: no condition."
        )
    },
    Setting {
        takes: LEVEL,
        set: |settings, value| {
            settings.posting.level = level(value)?;
            Ok(())
        },
        ..setting!(
            posting.level,
            "Minimum level to post: 10 is debug, 20 info, 30 warning, 40 error, 50 critical; the names are accepted, too."
        )
    },
    setting!(posting.default_backoffs, "Pauses between attempts to post an event of a script."),
    setting!(posting.logging_backoffs, "Pauses between attempts to post a log message."),
    setting!(
        posting.worker_limit,
        "Maximum number of objects whose events are posted concurrently. None: no limit."
    ),
    setting!(
        posting.idle_timeout,
        "Time without events after which the posting worker of an object stops."
    ),
    setting!(
        posting.reporting_component,
        "The `reportingComponent` and `source.component` of posted events."
    ),
    setting!(posting.reporting_instance, "The `reportingInstance` of posted events."),
    setting!(posting.event_name_prefix, "The `metadata.generateName` of posted events."),
    setting!(peering.name, "The name of the peering object. Set by `--peering`."),
    setting!(peering.stealth, "Do not log successful keep-alives."),
    setting!(
        peering.priority,
        "Priority of the operator: operators with a lower priority pause while it runs. Set by `--priority`, and to 666 by `--dev`."
    ),
    setting!(
        peering.lifetime,
        "Time after which other operators consider this one dead, if it does not send another keep-alive."
    ),
    setting!(peering.mandatory, "Pause until the peering object exists. Set by `--peering`."),
    setting!(peering.standalone, "Disable peering. Set by `--standalone`."),
    setting!(
        peering.clusterwide,
        "Use a ClusterKopfPeering. Set by `--all-namespaces`; startup handlers can change it."
    ),
    setting!(
        peering.detect_duplicates,
        "Warn of a second operator with the same resources, namespaces and finalizer: `kopf run` without leader election holds a Lease in its namespace. Set it in `kopf.yaml` or with `--set`."
    ),
    Setting {
        name: "namespaced",
        doc: "Use a KopfPeering in each namespace: the opposite of `clusterwide`.",
        get: |settings| (!settings.peering.clusterwide).into(),
        set: |settings, value| {
            settings.peering.clusterwide = !bool::from_json(value)?;
            Ok(())
        },
        ..setting!(peering.clusterwide, "")
    },
    setting!(
        leadership.enabled,
        "Elect a leader among the replicas: only the leader is active, the others are standbys. Set by `--leader-elect`."
    ),
    setting!(
        leadership.name,
        "Name of the Lease; operators in the same namespace need different names. Set by `--lease`."
    ),
    setting!(
        leadership.namespace,
        "Namespace of the Lease. None: the namespace of the pod or of the kubeconfig."
    ),
    setting!(leadership.duration, "Time without renewal after which another replica takes over."),
    setting!(
        leadership.renew_deadline,
        "Time without successful renewal after which the leader exits immediately with code 1; must be shorter than `duration`."
    ),
    setting!(
        leadership.retry_period,
        "Pause between attempts to acquire or renew the lease; must be shorter than `renew_deadline`."
    ),
    setting!(
        watching.server_timeout,
        "The `timeoutSeconds` of watch requests. None: the server decides."
    ),
    setting!(
        watching.client_timeout,
        "Maximum duration of a watch request on the client side; then it is repeated. None: no limit."
    ),
    setting!(
        watching.connect_timeout,
        "Maximum time to establish the connection of a watch. None: `networking.connect_timeout`."
    ),
    setting!(
        watching.reconnect_backoff,
        "Pause before a stream that has ended restarts with a list."
    ),
    setting!(
        watching.inactivity_timeout,
        "Time without any event or bookmark after which a watch reconnects."
    ),
    setting!(
        watching.chunk_size,
        "The `limit` of list requests: maximum number of objects per response. None: no limit."
    ),
    setting!(
        watching.initial_streaming,
        "Receive the initial objects from the watch (`sendInitialEvents`) instead of a list request."
    ),
    setting!(
        watching.label_selectors,
        "Watch only objects with these labels, by resource: `{\"kopfexamples\": \"app=x\"}`."
    ),
    setting!(
        watching.field_selectors,
        "Watch only objects with these fields, by resource: `{\"pods\": \"spec.nodeName=a\"}`."
    ),
    setting!(
        watching.shard_selectors,
        "The `shardSelector` of lists and watches, by resource. Operators with the same priority that split the objects this way do not pause each other."
    ),
    setting!(
        queueing.worker_limit,
        "Maximum number of objects per resource and namespace that are handled concurrently. None: no limit."
    ),
    setting!(
        queueing.idle_timeout,
        "Time without events after which the worker of an object stops."
    ),
    setting!(
        queueing.exit_timeout,
        "Time that workers have to finish when the operator stops; then they are cancelled."
    ),
    setting!(
        queueing.error_delays,
        "Pauses of an object after errors outside of handlers, such as failed patches. The last one repeats; an empty list: no pauses."
    ),
    BATCH_WINDOW,
    setting!(
        scanning.disabled,
        "Do not watch namespaces and CRDs; no permissions for them are needed then."
    ),
    setting!(
        admission.server,
        "The server of admission webhooks: a map with Kopf's options of `WebhookServer`; see docs/admission.md. `--webhook-url` sets its `url`. `kopf dev` and `kopf test` need none."
    ),
    setting!(
        admission.managed,
        "The name of the webhook configurations that the operator keeps up to date. Give each operator of a cluster a name of its own. None: the server's service determines it, or `auto.kopf.dev` with a URL; otherwise the operator writes none."
    ),
    setting!(
        admission.service,
        "The service in the cluster that leads to the webhook server. Set by `--webhook-service`."
    ),
    setting!(
        admission.secret,
        "The Secret that stores the generated certificates for all replicas, in the namespace of `admission.service`. None: the name of the service with `-webhook`."
    ),
    setting!(
        execution.default_backoff,
        "Pause before a handler without the option `backoff` is retried after an arbitrary error."
    ),
    Setting {
        set: set_max_workers,
        ..setting!(
            execution.max_workers,
            "Maximum number of handlers of one Rhai script that run concurrently; each occupies a thread, also while it waits. None: 64. Lua handlers need no threads."
        )
    },
    limit!(
        execution.cpu_limit,
        |it| limits::time(it, CPU_LEAST),
        "Maximum CPU time of one call of a script: then it is aborted, and the handler fails temporarily. Waiting does not count."
    ),
    limit!(
        execution.event_timeout,
        |it| limits::optional_time(it, EVENT_LEAST),
        "Maximum time of one call of an `on_event` handler or an index function, waiting included: other handlers of the object wait for it. A call that takes longer is dropped, and the handler is not called for this object for ten times as long. None: no limit."
    ),
    Setting {
        takes: LEVEL,
        set: |settings, value| {
            settings.execution.retry_log_level = level(value)?;
            Ok(())
        },
        ..setting!(
            execution.retry_log_level,
            "Level of the log lines about attempts that failed and will be retried, with the same names as `posting.level`. `--log-format kopf` logs them as errors, as Kopf does."
        )
    },
    setting!(
        background.cancellation_polling,
        "Interval at which a stopping daemon without `cancellation_timeout` is checked."
    ),
    setting!(
        background.instant_exit_timeout,
        "Time that a daemon has to stop immediately, before its object is handled further. None: see `instant_exit_zero_time_cycles`."
    ),
    setting!(
        background.instant_exit_zero_time_cycles,
        "Number of scheduler turns that a daemon has to stop immediately, if there is no `instant_exit_timeout`."
    ),
    limit!(
        sandbox.memory_limit,
        |it| limits::bytes(it, MIB),
        "Maximum memory of the virtual machine of one script. A script that exceeds it is restarted.",
        size::EXPECTED
    ),
    limit!(
        sandbox.call_depth,
        |it| limits::count(it, CALL_DEPTHS),
        "Maximum depth of nested calls; from 16 to 1000."
    ),
    limit!(
        sandbox.string_size,
        |it| limits::bytes(it, KIB),
        "Maximum length of a string that a script creates.",
        size::EXPECTED
    ),
    limit!(
        sandbox.coroutines,
        |it| limits::count(it, (1, usize::MAX)),
        "Maximum number of unfinished coroutines of one Lua script, in addition to those of its handlers."
    ),
    limit!(
        sandbox.result_size,
        |it| limits::bytes(it, KIB),
        "Maximum size of a result, a patch and a memo, as JSON. API servers reject objects above about 1.5 MiB.",
        size::EXPECTED
    ),
    limit!(
        sandbox.scratch_size,
        |it| limits::bytes(it, KIB),
        "Maximum size of all scratch files of one script (the option `to` of `http`).",
        size::EXPECTED
    ),
    setting!(
        networking.request_timeout,
        "Maximum time of one attempt of a request, except watches. The default applies to lists; all other requests then have 30 s. Any other value applies to all requests."
    ),
    setting!(networking.connect_timeout, "Maximum time to establish a connection. None: 30 s."),
    setting!(
        networking.error_backoffs,
        "Pauses between attempts of a request that fails because of the network, the server (5xx), its load (429) or permissions (403). A single number is a list with one item; an empty list: no retries. A request that must not be executed twice, such as a POST, is retried only if the server has certainly not received it: no connection, or 429 or 503 with `Retry-After`."
    ),
    setting!(
        networking.repeat_last_backoff,
        "Never give up because of such failures: repeat the last pause of `error_backoffs`. The timeouts of handlers still apply."
    ),
    setting!(
        networking.enforce_retry_after,
        "Use the server's `Retry-After` even if the own pause is longer. Pauses are limited to 60 s."
    ),
    setting!(
        networking.trust_env,
        "Use the proxies in HTTP_PROXY, HTTPS_PROXY and NO_PROXY for connections to the cluster."
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
            "The finalizer that keeps objects until their deletion is handled."
        )
    },
    setting!(persistence.progress_storage, "Where the progress of handlers is stored on objects."),
    setting!(persistence.diffbase_storage, "Where the last handled state of objects is stored."),
    setting!(
        persistence.consistency_timeout,
        "Maximum time to wait until the watch shows the operator's own patch, before handlers are called. 0: do not wait."
    ),
    setting!(
        persistence.remember_failures,
        "Whether permanent failures of handlers are stored on the object, in the annotation `kopf.zalando.org/kopf-failed`, so that the handlers can be retried once their code has changed. Python Kopf ignores the annotation."
    ),
    setting!(
        persistence.plain_secrets,
        "Whether to store the values of Secrets in the last handled state and to log them, as Kopf does. Otherwise only digests are stored, and old values read as nil."
    ),
    setting!(
        persistence.sensitive_fields,
        "Fields whose values are never stored in the last handled state or logged, as those of Secrets, by resource: `{\"databases\": \"spec.password,spec.token\"}`. Of a field in a list, name the list."
    ),
    setting!(
        persistence.digest_secret,
        "Name of the Secret with the key of the digests, in the namespace of the operator; created when it is first needed. None, or without permission to get and create it: digests without a secret key, from which weak values can be guessed."
    ),
    setting!(
        reload.retry_failed,
        "Whether change handlers that failed permanently are retried once their code has changed, also after a restart. `true` excludes `kopf.fail` (`PermanentError`), `\"all\"` includes it. Requires `persistence.remember_failures`."
    ),
    setting!(
        reload.retry_rate,
        "Maximum number of objects per second on which `reload.retry_failed` starts."
    ),
    limit!(
        reload.strict,
        Plain::from_json,
        "Which mistakes inside of functions reject a script, at the start and at a reload: `\"names\"`: names that do not exist; `\"types\"`: also wrong arguments and types, which are warnings otherwise; `\"off\"`: none, all are warnings."
    ),
];

const KIB: usize = 1 << 10;
/// The unit of the limits in bytes. A script and the host library of its language need a third of it.
const MIB: usize = 1 << 20;
/// Minimum CPU time: one time slice of a call. Shorter times cannot be measured.
const CPU_LEAST: Duration = Duration::from_millis(10);
/// Minimum event timeout. A shorter one would end legitimate requests.
const EVENT_LEAST: Duration = Duration::from_secs(1);
/// Below the minimum, the host's own functions would not work; above the maximum, the stack of a thread would overflow.
const CALL_DEPTHS: (usize, usize) = (16, 1000);

/// Kopf accepts this setting without any effect.
const BATCH_WINDOW: Setting = Setting {
    group: "queueing",
    name: "batch_window",
    doc: "Deprecated; has no effect.",
    takes: Duration::TAKES,
    shape: SettingShape::Plain,
    by_scripts: true,
    get: |_| 0.1.into(),
    set: |_, value| Duration::from_json(value).map(|_unused| ()),
};

const LEVEL: &str = "a level: 10, 20, 30, 40, 50, or debug, info, warning, error, critical";

/// Python's logging levels by name.
const LEVELS: [(&str, u32); 5] =
    [("debug", 10), ("info", 20), ("warning", 30), ("error", 40), ("critical", 50)];

fn level(value: &Value) -> Result<u32, String> {
    let by_name = |name: &str| LEVELS.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    let named = value.as_str().and_then(by_name).map(|(_, level)| *level);
    let level = named.or_else(|| u32::from_json(value).ok());
    level.ok_or_else(|| format!("expected {LEVEL}, got {value}"))
}

fn set_max_workers(settings: &mut Settings, value: &Value) -> Result<(), String> {
    if whole(value).is_some_and(|it| it < 1) {
        return Err("Can't set thread pool limit lower than 1.".to_owned());
    }
    settings.execution.max_workers = Plain::from_json(value)?;
    Ok(())
}
