//! The whole table of settings, through each way to set them: Lua, Rhai, `kopf.yaml`, environment; and its reference.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Parser as _;
use expect_test::expect_file;
use parking_lot::Mutex;
use serde_json::{Value, json};

use kopf::{
    call::{ActivityCause, Callers, Cause, Invocation, Logger, Memo, Scripts as _},
    cli::{
        args::{Command, LowArgs},
        config, environment,
        options::{RunOptions, resolve_run},
        report::Report,
    },
    logic::{
        configure::{self, Setting, SettingShape, TABLE},
        handlers::outcome::CallEnd,
        text::size,
    },
    scripting::{Placement, ScriptHost, Source},
    settings::Settings,
    testing::run_paused,
};

/// Returns a valid value that is not the default, the value that is then read, and an invalid value.
fn samples(setting: &Setting) -> (Value, Value, Value) {
    match (setting.group, setting.name) {
        ("persistence", "finalizer") => {
            (json!("example.com/held"), json!("example.com/held"), json!("held here"))
        }
        ("persistence", "progress_storage") => {
            let storage =
                json!({"StatusProgressStorage": {"field": "status.a", "touch_field": "status.b"}});
            (storage.clone(), storage, json!("StatusDiffBaseStorage"))
        }
        ("persistence", "diffbase_storage") => {
            let storage =
                json!({"StatusDiffBaseStorage": {"field": "status.a", "ignored_fields": []}});
            (storage.clone(), storage, json!("StatusProgressStorage"))
        }
        ("posting", "level") | ("execution", "retry_log_level") => {
            (json!("error"), json!(40), json!("loud"))
        }
        ("sandbox", "call_depth") => (json!(77), json!(77), json!(7)),
        ("admission", "server") => {
            let server = json!({"port": 9443, "extra_sans": ["a"]});
            (server.clone(), server, json!("x"))
        }
        ("admission", "service") => {
            (json!("ops/hooks:8443"), json!("ops/hooks:8443"), json!("ops"))
        }
        ("posting", "condition") => {
            (json!("HandlersReady"), json!("HandlersReady"), json!("not ready"))
        }
        // Without an effect: it keeps its value.
        ("queueing", "batch_window") => (json!(1), json!(0.1), json!("soon")),
        _ => by_type(setting),
    }
}

fn by_type(setting: &Setting) -> (Value, Value, Value) {
    match setting.takes {
        "true or false" => {
            let other = !setting.get(&Settings::default()).as_bool().expect("a truth");
            (json!(other), json!(other), json!(7))
        }
        "true, false or \"all\"" => (json!("all"), json!("all"), json!(7)),
        "\"off\", \"names\" or \"types\"" => (json!("types"), json!("types"), json!("never")),
        "a string" => (json!("some-text"), json!("some-text"), json!(["x"])),
        "an integer" => (json!(-7), json!(-7), json!(1.5)),
        "a non-negative integer" | "a positive integer" => (json!(7), json!(7), json!(-7)),
        "a number of bytes or a size such as \"64Mi\"" => {
            (json!("7Mi"), json!(7 << 20), json!("7 apples"))
        }
        "seconds or a duration such as \"10m\"" => (json!("1500ms"), json!(1.5), json!("soon")),
        "a list of seconds or durations such as \"10m\"" => {
            (json!([1, "2m", 0.5]), json!([1, 120, 0.5]), json!([1, "soon"]))
        }
        "a map from resource selectors to strings" => {
            let map = json!({"v1/pods": "a=b"});
            (map.clone(), map, json!({"v1/pods": 7}))
        }
        other => panic!("no samples for a setting that takes {other}"),
    }
}

fn lua(value: &Value) -> String {
    match value {
        Value::Null => "kopf.null".into(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            format!("kopf.array{{{}}}", items.iter().map(lua).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("[{key:?}] = {}", lua(value));
            format!("{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

fn rhai(value: &Value) -> String {
    match value {
        Value::Null => "()".into(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(rhai).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{key:?}: {}", rhai(value));
            format!("#{{{}}}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns a script that sets every setting, and has one handler for each that sets it wrongly.
fn script(language: fn(&Value) -> String, declare: impl Fn(&str, &str) -> String) -> String {
    let mut good = String::new();
    let mut text = String::new();
    for setting in TABLE {
        let (group, name) = (setting.group, setting.name);
        let (value, _, bad) = samples(setting);
        // Even a valid value is rejected for a limit that applies to the scripts themselves.
        let bad = if setting.by_scripts { bad } else { value.clone() };
        if setting.by_scripts {
            writeln!(good, "ctx.settings.{group}.{name} = {};", language(&value)).expect("memory");
        }
        let bad = format!("ctx.settings.{group}.{name} = {};", language(&bad));
        text.push_str(&declare(&format!("{group}_{name}"), &bad));
    }
    text.push_str(&declare("good", &good));
    text
}

/// Calls the start-up handlers of a script, each with fresh settings.
fn check_script(name: &str, text: &str) {
    run_paused(async {
        let source = Source::alone(name, text);
        let (host, handlers) = ScriptHost::load(vec![source], Placement::CurrentRuntime)
            .await
            .unwrap_or_else(|errors| panic!("{}", errors[0]));
        let handlers: BTreeMap<_, _> =
            handlers.into_iter().map(|it| (it.id.to_string(), Arc::new(it))).collect();
        let call = |id: &str, settings: &Arc<Mutex<Settings>>| {
            let settings = Arc::clone(settings);
            host.call(Arc::new(Invocation {
                handler: Arc::clone(&handlers[id]),
                attempt: None,
                cause: Cause::Activity(ActivityCause {
                    activity: "startup",
                    settings,
                    logins: kopf::ports::NativeLogins::default(),
                    server: None,
                    scheduled: None,
                }),
                memo: Memo::default(),
                logger: Logger::of_activity(),
                services: Arc::default(),
                children: None,
                callers: Callers::default(),
            }))
        };
        let settings = Arc::default();
        let ended = call("good", &settings).await;
        assert!(matches!(ended, CallEnd::Returned(_)), "{name}: {ended:?}");
        check_good(name, &settings.lock(), |it| it.by_scripts);
        for setting in TABLE {
            let settings = Arc::default();
            let id = format!("{}_{}", setting.group, setting.name);
            let CallEnd::Raised(raised) = call(&id, &settings).await else {
                panic!("{name} takes a wrong value for {id}")
            };
            let end = if setting.by_scripts { ": " } else { " is a limit for scripts" };
            let expected = format!("settings.{}.{}{end}", setting.group, setting.name);
            assert!(raised.message.contains(&expected), "{name}: {}", raised.message);
            assert_eq!(*settings.lock(), Settings::default(), "{id}");
        }
    });
}

/// Checks that every setting has its valid value.
fn check_good(way: &str, settings: &Settings, may: fn(&Setting) -> bool) {
    for setting in TABLE.iter().filter(|it| may(it)) {
        let (_, expected, _) = samples(setting);
        let found = setting.get(settings);
        // `namespaced` is the opposite of `clusterwide`, and comes after it.
        if setting.name != "clusterwide" {
            assert_eq!(
                as_float(&found),
                as_float(&expected),
                "{way}: {}.{}",
                setting.group,
                setting.name
            );
        }
    }
}

/// Converts integers to floats: Lua has one type of numbers.
fn as_float(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(as_float).collect(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => value.clone(),
    }
}

#[test]
fn lua_sets_every_setting_and_no_wrong_value() {
    let declare = |id: &str, body: &str| {
        format!("kopf.on_startup({{id = {id:?}}}, function(ctx)\n{body}\nend)\n")
    };
    check_script("handlers.lua", &script(lua, declare));
}

#[test]
fn rhai_sets_every_setting_and_no_wrong_value() {
    let declare = |id: &str, body: &str| {
        format!("kopf::on_startup(#{{id: {id:?}}}, |ctx| {{\n{body}\n}});\n")
    };
    check_script("handlers.rhai", &script(rhai, declare));
}

fn resolve(
    typed: &[String],
    variables: &BTreeMap<String, String>,
    file: &str,
) -> Result<RunOptions, Report> {
    let words = ["kopf".to_owned(), "run".to_owned(), "-n=x".to_owned()];
    let args = LowArgs::try_parse_from(words.iter().chain(typed)).expect("well-formed arguments");
    let Command::Run(args) = args.command else { panic!("another command") };
    let config = config::parse(Path::new("kopf.yaml"), file)?;
    resolve_run(args.run, &|name| variables.get(name).cloned(), Some(&config))
}

#[test]
fn a_file_sets_every_setting_and_no_wrong_value() {
    let mut file = json!({});
    for setting in TABLE {
        file["settings"][setting.group][setting.name] = samples(setting).0;
    }
    let yaml = serde_saphyr::to_string(&file).expect("YAML");
    let options = resolve(&[], &BTreeMap::new(), &yaml).unwrap_or_else(|it| panic!("{it}\n{yaml}"));
    check_good("kopf.yaml", &options.settings, |_| true);
    for setting in TABLE {
        let (group, name) = (setting.group, setting.name);
        let yaml = format!("settings:\n  {group}:\n    {name}: {}\n", samples(setting).2);
        let report = resolve(&[], &BTreeMap::new(), &yaml).expect_err(&yaml).to_string();
        let expected = format!("error: kopf.yaml:3: settings.{group}.{name}: ");
        assert!(report.starts_with(&expected), "{report}");
    }
}

/// Returns a value where only strings are possible.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns whether a setting accepts any string, so that none is invalid.
fn takes_all_texts(setting: &Setting) -> bool {
    setting.shape == SettingShape::Text && setting.takes == "a string"
}

#[test]
fn variables_set_every_setting_and_no_wrong_value() {
    let variables =
        TABLE.iter().map(|it| (environment::variable(it), text(&samples(it).0))).collect();
    let options = resolve(&[], &variables, "").unwrap_or_else(|it| panic!("{it}"));
    check_good("the environment", &options.settings, |_| true);
    for setting in TABLE.iter().filter(|it| !takes_all_texts(it)) {
        let name = environment::variable(setting);
        let variables = [(name.clone(), text(&samples(setting).2))].into();
        let report = resolve(&[], &variables, "").expect_err(&name).to_string();
        assert!(report.starts_with(&format!("error: {name}: ")), "{report}");
    }
}

#[test]
fn the_option_set_sets_every_setting_and_no_wrong_value() {
    let typed = |setting: &Setting, value: &Value| {
        format!("--set={}.{}={}", setting.group, setting.name, text(value))
    };
    let all: Vec<_> = TABLE.iter().map(|it| typed(it, &samples(it).0)).collect();
    let options = resolve(&all, &BTreeMap::new(), "").unwrap_or_else(|it| panic!("{it}"));
    check_good("--set", &options.settings, |_| true);
    for setting in TABLE.iter().filter(|it| !takes_all_texts(it)) {
        let wrong = [typed(setting, &samples(setting).2)];
        let report = resolve(&wrong, &BTreeMap::new(), "").expect_err(&wrong[0]).to_string();
        assert!(report.starts_with("error: --set"), "{report}");
    }
}

#[test]
fn the_reference_has_every_setting() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    expect_file![root.join("docs/settings.md")].assert_eq(&reference());
}

/// The text before the tables.
const INTRODUCTION: &str = "\
# Settings

<!-- Made from src/logic/configure/table.rs by the test `cli::settings::the_reference_has_every_setting`. -->

Each setting can be changed in four places. Precedence, lowest to highest:

| place | syntax | if invalid |
|---|---|---|
| `kopf.yaml` | `settings:`, then the group, then the name | an error with the line; the operator does not start |
| environment | `KOPF_SETTINGS_GROUP__NAME=value` (two underscores between group and name) | an error with the variable; it does not start |
| command line | `--set group.name=value` | an error; it does not start |
| startup handlers | `ctx.settings.group.name = value` | the handler fails with an error at this line |

```yaml
# kopf.yaml, in the current directory or next to the scripts, or passed with --config FILE
settings:
  queueing:
    worker_limit: 20
  persistence:
    finalizer: my-operator.example.com/Finalizer
    progress_storage:
      StatusProgressStorage: {field: status.my-operator}
```

```lua
kopf.on_startup(function(ctx)
    ctx.settings.queueing.worker_limit = 20
    ctx.settings.persistence.progress_storage = kopf.StatusProgressStorage({ field = \"status.my-operator\" })
    ctx.settings.watching.label_selectors[\"kopfexamples\"] = \"app=mine\"
end)
```

```rhai
kopf::on_startup(|ctx| {
    ctx.settings.queueing.worker_limit = 20;
    ctx.settings.persistence.progress_storage = kopf::StatusProgressStorage(#{ field: \"status.my-operator\" });
    ctx.settings.watching.label_selectors[\"kopfexamples\"] = \"app=mine\";
});
```

- An unknown name is an error that suggests the nearest one. A value of another type is an error, too.
- Durations are seconds (`1.5`) or strings with a unit: `500ms`, `1.5s`, `10m`, `2h`, `1d`. Scripts read them as seconds.
- Sizes are bytes (`4096`) or strings with a unit: `64Ki`, `64Mi`, `1Gi`. Scripts read them as bytes.
- To disable a limit, use `null` in YAML, `none` in the environment, `kopf.null` or nil in Lua, `()` in Rhai.
- In the environment and with `--set`, values use YAML syntax; a list of durations can be `1, 2s, 3`.
- The keys of the maps below `watching` are resource selectors: `kopfexamples`, `v1/pods`, `kopf.dev/v1/kopfexamples`, or `*` for
  every resource; scripts can also use a list of the parts, or `kopf.EVERYTHING`.
- An object that no longer matches `watching.label_selectors` or `field_selectors` counts as deleted: its daemons and timers stop. A
  finalizer that the operator has put on it stays, as in Kopf: remove it by hand, or let the object match again before you delete it.
- Changes after the startup handlers have no effect.
- The limits of scripts, `sandbox.*` and `execution.cpu_limit`, apply from the moment a script is loaded. Scripts can read them, and
  `execution.event_timeout`, but cannot change them: see [the sandbox](sandbox.md).
";

/// The text after the tables.
const STORAGES: &str = "\
## Storages

Where the operator stores its state on objects, with the names, parameters and defaults of Kopf. Storages of one operator on the same
objects must not change while handlers are in progress: the new storage does not find what the old one has stored, unless both are
members of a Multi storage. `field` is a dotted string or a list of keys; `{name}` in it is replaced by the parameter `name`.

| storage | parameters |
|---|---|
| `AnnotationsProgressStorage` | `prefix = \"kopf.zalando.org\"`, `verbose = false`, `touch_key = \"touch-dummy\"`, `v1 = true` |
| `StatusProgressStorage` | `name = \"kopf\"`, `field = \"status.{name}.progress\"`, `touch_field = \"status.{name}.dummy\"` |
| `SmartProgressStorage` | those of both: written to annotations, also read from the status |
| `MultiProgressStorage` | a list of progress storages: written to all, read from the first one with a value |
| `AnnotationsDiffBaseStorage` | `prefix = \"kopf.zalando.org\"`, `key = \"last-handled-configuration\"`, `ignored_fields = []`, `v1 = true` |
| `StatusDiffBaseStorage` | `name = \"kopf\"`, `field = \"status.{name}.last-handled-configuration\"`, `ignored_fields = []` |
| `MultiDiffBaseStorage` | a list of diff-base storages |
";

fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    let default = Settings::default();
    for group in configure::groups() {
        write!(text, "\n## {group}\n\n| name | takes | default | meaning |\n|---|---|---|---|\n")
            .expect("memory");
        for setting in TABLE.iter().filter(|it| it.group == group) {
            let Setting { name, takes, doc, .. } = setting;
            let value = match setting.get(&default) {
                Value::Null => "none".to_owned(),
                Value::Number(it) if *takes == size::EXPECTED => {
                    let bytes = it.as_u64().and_then(|it| usize::try_from(it).ok());
                    size::shown(bytes.expect("a size")).replace([' ', 'B'], "")
                }
                Value::Object(storage) if !storage.is_empty() => {
                    storage.keys().cloned().collect::<String>()
                }
                value @ (Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Array(_)
                | Value::Object(_)) => value.to_string().replace(',', ", "),
            };
            writeln!(text, "| `{name}` | {takes} | `{value}` | {doc} |").expect("memory");
        }
    }
    text + "\n" + STORAGES
}
