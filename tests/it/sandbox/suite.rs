//! Runs the hostile scripts of one language.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use kopf::{
    logic::{
        function::ScriptId,
        outcome::{Ended, RaisedKind},
    },
    ports::{Scripts as _, SharedPatch},
    scripting::{Modules, Placement, Source, Terms},
    settings::{Sandbox, Settings},
};
use regex::Regex;
use serde_json::json;
use tokio::{task::LocalSet, time::Instant};

use crate::lua::{Script, sample, try_load_all};

/// The running time of one call. Short, because there are many.
const CPU_LIMIT: Duration = Duration::from_millis(200);
/// What the end of a call may take on top of it.
const GRACE: Duration = Duration::from_millis(50);
/// The same where making and dropping the VM is measured too.
const GRACE_OF_LOADING: Duration = Duration::from_millis(150);
/// Little, so that it is full before the time is over.
const MEMORY_LIMIT: usize = 16 << 20;
/// Other processes disturb a measurement; they do not disturb all of them.
const ATTEMPTS: usize = 4;
/// A call that takes longer than this shows whether a script beside it goes on.
const LONG: Duration = Duration::from_millis(100);

/// What is different between the languages.
pub(super) struct Language {
    /// The folder of its scripts, and their extension.
    pub(super) name: &'static str,
    /// Makes limits smaller that its scripts would not reach in time.
    pub(super) limit: fn(&mut Sandbox),
    /// What begins a comment.
    pub(super) comment: &'static str,
    /// Declares a handler of the id `alive` that gives "alive".
    pub(super) alive: &'static str,
    /// The names of the threads that a script computes on.
    pub(super) threads: fn(ScriptId) -> String,
}

/// One file.
struct Hostile {
    path: PathBuf,
    text: String,
    expect: String,
    limit: String,
    at_load: bool,
}

/// How it went, once.
struct Run {
    /// Nothing if it ended well.
    message: Option<String>,
    is_temporary: bool,
    /// Running time of the script's threads, if these can still be seen.
    computed: Option<Duration>,
    elapsed: Duration,
    /// Answers of the script beside it meanwhile.
    answers: usize,
    /// What the script itself answers afterwards.
    next: Option<Ended>,
}

/// Runs all scripts of a language; panics with the list of those that are not as they say.
pub(super) fn run_all(language: &Language, least: usize) {
    let all = read_all(language);
    assert!(all.len() >= least, "there are only {} hostile scripts", all.len());
    // For trying out: a part of the name of one.
    let only = std::env::vars().find(|(name, _)| name == "SANDBOX_ONLY").map(|(_, it)| it);
    let mut problems = Vec::new();
    for hostile in &all {
        let name = hostile.path.file_name().expect("a name").to_string_lossy();
        if only.as_ref().is_some_and(|it| !name.contains(it)) {
            continue;
        }
        if let Err(problem) = check(language, hostile) {
            problems.push(format!("{name}: {problem}"));
        }
    }
    assert!(problems.is_empty(), "{} of {}:\n{}", problems.len(), all.len(), problems.join("\n"));
}

fn read_all(language: &Language) -> Vec<Hostile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sandbox").join(language.name);
    let entries = fs::read_dir(folder).expect("the folder of hostile scripts");
    let paths = entries.map(|it| it.expect("an entry").path());
    let mut paths: Vec<_> =
        paths.filter(|it| it.extension().is_some_and(|it| it == language.name)).collect();
    paths.sort();
    paths.into_iter().map(|it| read(language, it)).collect()
}

fn read(language: &Language, path: PathBuf) -> Hostile {
    let text = fs::read_to_string(&path).expect("a text");
    let header = |key: &str| {
        let lines = text.lines().map_while(|it| it.strip_prefix(language.comment));
        let values = lines.filter_map(|it| it.trim().strip_prefix(key)?.strip_prefix(':'));
        values.map(|it| it.trim().to_owned()).next()
    };
    let needed = |key: &str| header(key).unwrap_or_else(|| panic!("{}: no {key}", path.display()));
    Hostile {
        expect: needed("expect"),
        limit: needed("limit"),
        at_load: header("at").is_some_and(|it| it == "load"),
        path,
        text,
    }
}

fn check(language: &Language, hostile: &Hostile) -> Result<(), String> {
    let mut slow = String::new();
    for _ in 0..ATTEMPTS {
        let run = run(language, hostile);
        check_error(hostile, &run)?;
        if !hostile.at_load && run.next != Some(Ended::Returned(Some(json!("alive")))) {
            return Err(format!("the next call ended so: {:?}", run.next));
        }
        let took = run.computed.unwrap_or(run.elapsed);
        let grace = if hostile.at_load { GRACE_OF_LOADING } else { GRACE };
        let is_late = took > CPU_LIMIT + grace;
        let is_alone = run.elapsed > LONG && run.answers < 3;
        if !is_late && !is_alone {
            return Ok(());
        }
        slow = format!(
            "computed {:?} in {:?}, and the script beside it gave {} answers meanwhile",
            run.computed, run.elapsed, run.answers
        );
    }
    Err(slow)
}

fn check_error(hostile: &Hostile, run: &Run) -> Result<(), String> {
    let setting = match hostile.limit.as_str() {
        "cpu" => Some("settings.execution.cpu_limit"),
        "memory" => Some("settings.sandbox.memory_limit"),
        "depth" => Some("settings.sandbox.call_depth"),
        "string" => Some("settings.sandbox.string_size"),
        "coroutines" => Some("settings.sandbox.coroutines"),
        "result" => Some("settings.sandbox.result_size"),
        "none" => None,
        other => return Err(format!("there is no limit {other}")),
    };
    let (may_end_well, errors) = match hostile.expect.strip_prefix("ok") {
        Some("") => (true, "^$"),
        Some(rest) => (true, rest.trim_start_matches('|')),
        None => (false, &*hostile.expect),
    };
    match &run.message {
        None if may_end_well => Ok(()),
        None => Err("it ended well".into()),
        Some(message) => {
            let pattern = Regex::new(errors).map_err(|it| it.to_string())?;
            if !pattern.is_match(message) {
                return Err(format!("expected {}, got: {message}", hostile.expect));
            }
            if let Some(setting) = setting
                && !message.contains(setting)
            {
                return Err(format!("the error does not name {setting}: {message}"));
            }
            let must_be_temporary = matches!(hostile.limit.as_str(), "cpu" | "memory");
            if must_be_temporary && !hostile.at_load && !run.is_temporary {
                return Err(format!("the error is not temporary: {message}"));
            }
            Ok(())
        }
    }
}

fn run(language: &Language, hostile: &Hostile) -> Run {
    let mut settings = Settings::default();
    settings.execution.cpu_limit = CPU_LIMIT;
    settings.sandbox.memory_limit = MEMORY_LIMIT;
    (language.limit)(&mut settings.sandbox);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let extension = language.name;
    let beside =
        Source::alone(format!("beside.{extension}"), language.alive.replace("alive", "beside"));
    let text = format!("{}\n{}", hostile.text, language.alive);
    let source = Source {
        modules: Modules::beside(&hostile.path),
        ..Source::alone(format!("hostile.{extension}"), text)
    };
    if hostile.at_load {
        let terms = Terms::of(Placement::CurrentRuntime, &settings);
        return LocalSet::new().block_on(&runtime, load(source, terms));
    }
    let terms = Terms::of(Placement::Threads, &settings);
    runtime.block_on(async {
        match try_load_all(vec![source, beside], terms).await {
            Ok(script) => call(language, &script).await,
            Err(error) => panic!("{}: {error}", hostile.path.display()),
        }
    })
}

/// On this thread, whose running time can be measured to the end.
async fn load(source: Source, terms: Terms) -> Run {
    let (before, began) = (own_running_time(), Instant::now());
    let loaded = try_load_all(vec![source], terms).await;
    Run {
        message: loaded.err().map(|it| it.message),
        is_temporary: false,
        computed: Some(own_running_time().saturating_sub(before)),
        elapsed: began.elapsed(),
        answers: usize::MAX,
        next: None,
    }
}

async fn call(language: &Language, script: &Script) -> Run {
    let hostile = script.handler("hostile");
    let thread = (language.threads)(hostile.function.script);
    let patch = SharedPatch::default();
    let invocation = script.change("hostile", &sample(), &patch);
    let (before, began) = (running_time(&thread), Instant::now());
    let attempt = script.host.call(invocation);
    tokio::pin!(attempt);
    let mut answers = 0;
    let ended = loop {
        let patch = SharedPatch::default();
        let answer = script.host.call(script.change("beside", &sample(), &patch));
        tokio::select! {
            biased;
            ended = &mut attempt => break ended,
            answer = answer => {
                assert_eq!(answer, Ended::Returned(Some(json!("beside"))), "the script beside it");
                answers += 1;
            }
        }
        // At its pace, and not a moment longer than the attempt takes.
        let pause = Duration::from_millis(1);
        if let Ok(ended) = tokio::time::timeout(pause, &mut attempt).await {
            break ended;
        }
    };
    let (after, elapsed) = (running_time(&thread), began.elapsed());
    let patch = SharedPatch::default();
    let next = script.host.call(script.change("alive", &sample(), &patch)).await;
    let (message, is_temporary) = match ended {
        Ended::Raised(it) => (Some(it.message), matches!(it.kind, RaisedKind::Temporary(_))),
        Ended::Returned(_) | Ended::Keyed(_) => (None, false),
    };
    let computed = after.checked_sub(before).filter(|it| !it.is_zero());
    Run { message, is_temporary, computed, elapsed, answers, next: Some(next) }
}

fn own_running_time() -> Duration {
    let times = fs::read_to_string("/proc/thread-self/schedstat").expect("times of this thread");
    let computed = times.split(' ').next().and_then(|it| it.parse().ok());
    Duration::from_nanos(computed.expect("a number"))
}

/// What the threads of this name have computed so far, as the kernel counts it.
fn running_time(name: &str) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads of this process");
    let of_task = |task: PathBuf| {
        let comm = fs::read_to_string(task.join("comm")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).ok()?;
        let computed = times.split(' ').next()?.parse().ok()?;
        (comm.trim_end() == name).then_some(Duration::from_nanos(computed))
    };
    tasks.filter_map(|it| of_task(it.ok()?.path())).sum()
}
