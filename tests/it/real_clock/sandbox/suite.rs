//! Runs the hostile scripts of one language.
//!
//! Of all limits, only the one that a script names is near; the others are far away, so that it is always the same one that is
//! reached. Time is the CPU time of the threads of the script, as the kernel counts it: neither the load of the machine nor the
//! speed of the build matters, and one attempt is enough. To distinguish these threads from those of other tests, the scripts run
//! in a separate process.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use kopf::{
    call::{Scripts as _, SharedPatch},
    logic::handlers::{
        function::ScriptId,
        outcome::{CallEnd, RaisedKind},
    },
    scripting::{Modules, Placement, Source, Terms},
    settings::{Sandbox, Settings},
};
use regex::Regex;
use serde_json::json;
use tokio::time::Instant;

use crate::scripting::engines::{Script, sample, try_load_all};

/// The CPU limit of one call, for scripts that name this limit. Short, because there are many.
const CPU_LIMIT: Duration = Duration::from_millis(200);
/// Additional time that the end of a call may take, including everything that is dropped then. Without optimization, leaving 200
/// protected levels of Lua takes 50 to 90 ms, as measured on an idle machine: each level is a C++ exception.
const GRACE: Duration = Duration::from_millis(if cfg!(debug_assertions) { 100 } else { 50 });
/// Although CPU time is measured, a call of Lua is interrupted by a thread that needs a processor: if hundreds of tests compete for
/// two of them, that may take a while.
const ATTEMPTS: u32 = 12;
/// Small, so that it is full soon.
const MEMORY_LIMIT: usize = 16 << 20;
/// Never reached by scripts that name another limit.
const FAR: (Duration, usize) = (Duration::from_secs(30), 512 << 20);
/// A call that takes longer than this shows whether a script next to it keeps running.
const LONG: Duration = Duration::from_millis(100);
/// Set in the process that runs the scripts.
const ALONE: &str = "KOPF_TEST_RUNS_HOSTILE_SCRIPTS";
/// For experiments: a part of the name of one script.
const ONLY: &str = "SANDBOX_ONLY";

/// The differences between the languages.
pub(super) struct Language {
    /// The folder of its scripts, and their extension.
    pub(super) name: &'static str,
    /// Lowers limits that its scripts would not reach in time.
    pub(super) limit: fn(&mut Sandbox),
    /// The start of a comment.
    pub(super) comment: &'static str,
    /// Declares a handler with the id `alive` that returns "alive".
    pub(super) alive: &'static str,
    /// The names of the threads that a script computes on.
    pub(super) threads: fn(ScriptId) -> String,
}

/// One file.
struct Hostile {
    path: PathBuf,
    text: String,
    expect: String,
    limit: Limit,
    at_load: bool,
}

/// The limit that stops a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    Cpu,
    Memory,
    Depth,
    String,
    Coroutines,
    Result,
    /// An error of the language, or a limit that is not a setting.
    None,
}

impl Limit {
    const ALL: [(&str, Limit); 7] = [
        ("cpu", Limit::Cpu),
        ("memory", Limit::Memory),
        ("depth", Limit::Depth),
        ("string", Limit::String),
        ("coroutines", Limit::Coroutines),
        ("result", Limit::Result),
        ("none", Limit::None),
    ];

    /// Returns the setting that the error must name.
    fn setting(self) -> Option<&'static str> {
        match self {
            Limit::Cpu => Some("settings.execution.cpu_limit"),
            Limit::Memory => Some("settings.sandbox.memory_limit"),
            Limit::Depth => Some("settings.sandbox.call_depth"),
            Limit::String => Some("settings.sandbox.string_size"),
            Limit::Coroutines => Some("settings.sandbox.coroutines"),
            Limit::Result => Some("settings.sandbox.result_size"),
            Limit::None => None,
        }
    }
}

/// The result of a run.
struct Run {
    /// The message; `None` if it succeeded.
    message: Option<String>,
    is_temporary: bool,
    /// The CPU time of the threads of the script.
    computed: Duration,
    elapsed: Duration,
    /// The number of responses of the script next to it meanwhile.
    answers: usize,
    /// The result of the next call of the script itself.
    next: Option<CallEnd>,
}

/// Runs all scripts of a language, in a separate process for this test; panics with the list of those that differ from their
/// comments.
pub(super) fn run_all(language: &Language, (test, least): (&str, usize)) {
    if env::var_os(ALONE).is_none() {
        let child = Command::new(env::current_exe().expect("a path"))
            .args([test, "--exact", "--test-threads=1"])
            .env(ALONE, "1")
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let all = read_all(language);
    assert!(all.len() >= least, "there are only {} hostile scripts", all.len());
    let only = env::vars().find(|(name, _)| name == ONLY).map(|(_, it)| it);
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
    let text = fs::read_to_string(&path).expect("a string");
    let header = |key: &str| {
        let lines = text.lines().map_while(|it| it.strip_prefix(language.comment));
        let values = lines.filter_map(|it| it.trim().strip_prefix(key)?.strip_prefix(':'));
        values.map(|it| it.trim().to_owned()).next()
    };
    let needed = |key: &str| header(key).unwrap_or_else(|| panic!("{}: no {key}", path.display()));
    Hostile {
        expect: needed("expect"),
        limit: limit(&needed("limit")),
        at_load: header("at").is_some_and(|it| it == "load"),
        path,
        text,
    }
}

fn limit(name: &str) -> Limit {
    let found = Limit::ALL.iter().find(|(it, _)| *it == name);
    found.unwrap_or_else(|| panic!("there is no limit {name}")).1
}

/// Checks a script. The best time of some attempts counts; everything else must be right in each of them.
fn check(language: &Language, hostile: &Hostile) -> Result<(), String> {
    let mut computed = Duration::MAX;
    for _ in 0..ATTEMPTS {
        computed = computed.min(check_once(language, hostile)?);
        if computed <= CPU_LIMIT + GRACE {
            return Ok(());
        }
    }
    Err(format!("computed for {computed:?} with a limit of {CPU_LIMIT:?}"))
}

/// Returns the CPU time, if it is limited.
fn check_once(language: &Language, hostile: &Hostile) -> Result<Duration, String> {
    let run = run(language, hostile);
    check_error(hostile, &run)?;
    if !hostile.at_load && run.next != Some(CallEnd::Returned(Some(json!("alive")))) {
        return Err(format!("the next call ended so: {:?}", run.next));
    }
    if run.computed > LONG && run.answers == 0 {
        return Err(format!("the script beside it was not served within {:?}", run.elapsed));
    }
    Ok(if hostile.limit == Limit::Cpu { run.computed } else { Duration::ZERO })
}

fn check_error(hostile: &Hostile, run: &Run) -> Result<(), String> {
    let ends_well = hostile.expect == "ok";
    match &run.message {
        None if ends_well => Ok(()),
        None => Err("it ended well".into()),
        Some(message) => {
            let pattern = Regex::new(&hostile.expect).map_err(|it| it.to_string())?;
            if ends_well || !pattern.is_match(message) {
                return Err(format!("expected {}, got: {message}", hostile.expect));
            }
            if let Some(setting) = hostile.limit.setting()
                && !message.contains(setting)
            {
                return Err(format!("the error does not name {setting}: {message}"));
            }
            // Errors that the script may catch are its own.
            let is_aborted = message.contains("was aborted") || message.contains("needs more than");
            let must_be_temporary =
                is_aborted && matches!(hostile.limit, Limit::Cpu | Limit::Memory);
            if must_be_temporary && !hostile.at_load && !run.is_temporary {
                return Err(format!("the error is not temporary: {message}"));
            }
            Ok(())
        }
    }
}

fn run(language: &Language, hostile: &Hostile) -> Run {
    let mut settings = Settings::default();
    let (cpu_limit, memory_limit) = match hostile.limit {
        Limit::Cpu => (CPU_LIMIT, FAR.1),
        Limit::Memory => (FAR.0, MEMORY_LIMIT),
        Limit::Depth | Limit::String | Limit::Coroutines | Limit::Result | Limit::None => FAR,
    };
    settings.execution.cpu_limit = cpu_limit;
    settings.sandbox.memory_limit = memory_limit;
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
    let terms = Terms::of(Placement::Threads, &settings);
    runtime.block_on(async {
        if hostile.at_load {
            return load(language, source, terms).await;
        }
        match try_load_all(vec![source, beside], terms).await {
            Ok(script) => call(language, &script).await,
            Err(error) => panic!("{}: {error}", hostile.path.display()),
        }
    })
}

/// Loads a script. The threads end with the attempt, and their times with them, so these are read meanwhile.
async fn load(language: &Language, source: Source, terms: Terms) -> Run {
    let threads = format!("{}-", language.name);
    let (mut most, began) = (Duration::ZERO, Instant::now());
    let loading = try_load_all(vec![source], terms);
    tokio::pin!(loading);
    let loaded = loop {
        // With a pause between two readings: reading the times takes time.
        if let Ok(loaded) = tokio::time::timeout(Duration::from_millis(1), &mut loading).await {
            break loaded;
        }
        most = most.max(running_time(|it| it.starts_with(&threads) && it != WATCHDOG));
    };
    Run {
        message: loaded.err().map(|it| it.message),
        is_temporary: false,
        computed: most,
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
    let (before, began) = (running_time(|it| it == thread), Instant::now());
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
                assert_eq!(answer, CallEnd::Returned(Some(json!("beside"))), "the script beside it");
                answers += 1;
            }
        }
        // Regularly, and not a moment longer than the attempt takes.
        let pause = Duration::from_millis(1);
        if let Ok(ended) = tokio::time::timeout(pause, &mut attempt).await {
            break ended;
        }
    };
    let (after, elapsed) = (running_time(|it| it == thread), began.elapsed());
    let patch = SharedPatch::default();
    let next = script.host.call(script.change("alive", &sample(), &patch)).await;
    let (message, is_temporary) = match ended {
        CallEnd::Raised(it) => (Some(it.message), matches!(it.kind, RaisedKind::Aborted(_))),
        CallEnd::Returned(_) | CallEnd::Keyed(_) => (None, false),
    };
    let computed = after.saturating_sub(before);
    Run { message, is_temporary, computed, elapsed, answers, next: Some(next) }
}

/// The thread that watches each Lua VM.
const WATCHDOG: &str = "lua-watchdog";

/// Returns the CPU time of the threads with these names so far, as the kernel counts it.
fn running_time(is_meant: impl Fn(&str) -> bool) -> Duration {
    let tasks = fs::read_dir("/proc/self/task").expect("the threads of this process");
    let of_task = |task: PathBuf| {
        let comm = fs::read_to_string(task.join("comm")).ok()?;
        let times = fs::read_to_string(task.join("schedstat")).ok()?;
        let computed = times.split(' ').next()?.parse().ok()?;
        is_meant(comm.trim_end()).then_some(Duration::from_nanos(computed))
    };
    tasks.filter_map(|it| of_task(it.ok()?.path())).sum()
}
