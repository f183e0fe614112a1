//! Runs the scripts.

use std::{collections::BTreeMap, env, fmt::Write as _, sync::Arc, time::Duration};

use kopf::{
    heap,
    scripting::{Placement, ScriptHost, Source, Terms},
    settings::Settings,
    testing::{EXAMPLES, Environment, LogCapture, RunningOperator, object, pass, run_paused},
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::parsed::{LUA, Language, RHAI, Script, read_all};

/// For experiments: a part of the name of one script. Its log is printed.
const ONLY: &str = "BORDER_ONLY";

/// The kinds of values that scripts can pass; each has scripts in both languages.
const ROWS: [&str; 21] = [
    "answer",
    "argument",
    "compile",
    "ctx",
    "event",
    "filter",
    "index",
    "keys",
    "limit",
    "log",
    "memo",
    "metric",
    "module",
    "patch",
    "pods",
    "result",
    "selector",
    "subhandler",
    "template",
    "timer",
    "waiting",
];
/// Minimum number of scripts of each row, and of each language.
const LEAST: (usize, usize) = (3, 60);

const NEIGHBOUR: &str = r#"
    kopf.on_create("kopfexamples", { id = "neighbour", labels = { role = "good" } }, function() return "served" end)
"#;

#[test]
fn what_lua_scripts_hand_over_is_accepted_or_refused_in_words() {
    run_all(LUA);
}

#[test]
fn what_rhai_scripts_hand_over_is_accepted_or_refused_in_words() {
    run_all(RHAI);
}

#[test]
fn both_languages_have_the_same_scripts() {
    let [lua, rhai] = [LUA, RHAI].map(|it| {
        let scripts = read_all(it).into_iter();
        scripts.map(|it| it.name).collect::<Vec<_>>()
    });
    assert_eq!(lua, rhai);
}

fn run_all(language: Language) {
    let scripts = read_all(language);
    let only = env::vars().find(|(name, _)| name == ONLY).map(|(_, it)| it);
    let mut rows: BTreeMap<&str, usize> = ROWS.iter().map(|it| (*it, 0)).collect();
    let mut problems = Vec::new();
    for script in &scripts {
        *rows.entry(script.row()).or_default() += 1;
        if only.as_ref().is_none_or(|it| script.name.contains(it)) {
            let run = run(script);
            if let Err(problem) = check(script, &run) {
                problems.push(format!("{}: {problem}", script.name));
            } else if only.is_some() {
                problems.push(format!("{} is as expected:\n{}", script.name, run.said));
            }
        }
    }
    let known: Vec<_> = rows.keys().copied().collect();
    assert_eq!(known, ROWS, "a name begins with its row");
    if only.is_none() {
        assert!(rows.values().all(|it| *it >= LEAST.0), "some have too few: {rows:?}");
        assert!(scripts.len() >= LEAST.1, "there are only {}", scripts.len());
    }
    assert!(
        problems.is_empty(),
        "{} of {}:\n{}",
        problems.len(),
        scripts.len(),
        problems.join("\n")
    );
}

/// The result of a run.
struct Run {
    /// The log, or the error of loading.
    said: String,
    /// The responses of the neighbour and of the script itself afterwards.
    answers: [Option<Value>; 2],
    /// The memory that is held additionally, in bytes.
    held: isize,
}

fn check(script: &Script, run: &Run) -> Result<(), String> {
    let alive = if script.at_load { None } else { Some(json!("alive")) };
    let expected = [Some(json!("served")), alive];
    if run.answers != expected {
        return Err(format!("answered {:?}; the log:\n{}", run.answers, run.said));
    }
    for pattern in &script.says {
        if !pattern.is_match(&run.said) {
            return Err(format!("{pattern} is not in the log:\n{}", run.said));
        }
    }
    if run.held > script.holds {
        return Err(format!("the operator holds {} bytes more", run.held));
    }
    Ok(())
}

fn run(script: &Script) -> Run {
    run_paused(async {
        let mut settings = Settings::default();
        if !script.reaches_cpu_limit {
            // A test build on a busy machine takes longer than a second for some calls.
            settings.execution.cpu_limit = Duration::from_mins(1);
        }
        let env = Environment::default();
        let terms = Terms::of(Placement::CurrentRuntime, &settings);
        let neighbour = Source::alone("neighbour.lua", NEIGHBOUR);
        let mut refusal = None;
        let mut sources = vec![neighbour];
        if script.at_load {
            let loaded = ScriptHost::load(vec![script.source.clone()], terms.clone()).await;
            let errors = loaded.err().unwrap_or_default();
            refusal = Some(errors.iter().map(ToString::to_string).collect::<String>());
        } else {
            sources.push(script.source.clone());
        }
        let log = LogCapture::of("");
        let (scripts, handlers) = env.load(sources, terms).await;
        let settings = Arc::new(Mutex::new(settings));
        let running = RunningOperator::start(kopf::reactor::Operator {
            settings,
            ..env.operator(scripts, handlers)
        });
        create(&env, "first", "good");
        pass(2).await;
        let before = heap::held();
        create(&env, "bad", "hostile");
        pass(5).await;
        let held = heap::held() - before;
        create(&env, "second", "good");
        create(&env, "again", "alive");
        pass(5).await;
        let said = refusal.unwrap_or_else(|| text(&log));
        let answers = [result(&env, "second", "neighbour"), result(&env, "again", "alive")];
        running.stop().await;
        Run { said, answers, held }
    })
}

/// Returns the lines of the log with their fields, which include traces.
fn text(log: &LogCapture) -> String {
    let mut text = String::new();
    for line in log.lines() {
        writeln!(text, "{} {}", line.level, line.message).expect("a text takes everything");
        for (name, value) in &line.fields {
            writeln!(text, "    {name}: {value}").expect("a text takes everything");
        }
    }
    text
}

fn create(env: &Environment, name: &str, role: &str) {
    let mut object = object("default", name);
    object["metadata"]["labels"] = json!({ "role": role });
    env.create(object);
}

fn result(env: &Environment, name: &str, id: &str) -> Option<Value> {
    env.server.get(EXAMPLES, "default", name)?["status"].get(id).cloned()
}
