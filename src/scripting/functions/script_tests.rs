//! The libraries as scripts see them, in both languages: `stdlib/tests`, and wrong arguments of every function.

use std::{fs, path::Path, time::Duration};

use super::{LIBRARIES, embedded};
use crate::heap;
use crate::logic::handlers::function::ScriptId;
use crate::ports::Clock;
use crate::scripting::{
    LoadError, Placement, Source, Terms,
    functions::types::{Body, Function, Library, Parameter, Type},
    lua, rhai,
    script::modules::Modules,
    terms::Language,
};

/// Returns the modules that scripts of tests import: nothing else, so that a library cannot be shadowed by a script of its name.
pub(crate) fn checks() -> Modules {
    let texts = [
        ("lib/checks.lua", include_str!("../../../stdlib/tests/lib/checks.lua")),
        ("lib/checks.rhai", include_str!("../../../stdlib/tests/lib/checks.rhai")),
    ];
    Modules::of_texts(texts.map(|(file, text)| (file.into(), text.to_owned())).into())
}

/// Runs scripts one after the other, on a clock that advances with the waiting of each.
fn run_all(scripts: Vec<(String, String)>) -> Vec<Result<(), LoadError>> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().expect("a runtime");
    let set = tokio::task::LocalSet::new();
    let results = set.run_until(async {
        let mut results = Vec::new();
        for (name, text) in scripts {
            let base = "2026-01-01T00:00:00.5Z".parse().expect("a moment");
            // Debug builds are slow.
            let cpu_limit = Duration::from_mins(1);
            let clock = Clock::starting_at(base);
            let terms = Terms { cpu_limit, clock, ..Placement::CurrentRuntime.into() };
            let load = if name.strip_suffix(".lua").is_some() { lua::load } else { rhai::load };
            let source = Source { modules: checks(), ..Source::alone(name, text) };
            let loaded = load(ScriptId(1), &source, &terms).await;
            results.push(loaded.map(drop));
        }
        results
    });
    runtime.block_on(results)
}

#[test]
fn the_scripts_of_stdlib_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("stdlib/tests");
    let mut scripts = Vec::new();
    let entries = fs::read_dir(folder).expect("the folder of tests").flatten();
    for entry in entries.filter(|it| it.path().is_file()) {
        let name = format!("stdlib/tests/{}", entry.file_name().to_string_lossy());
        scripts.push((name, fs::read_to_string(entry.path()).expect("a script")));
    }
    scripts.sort();
    let names: Vec<_> = scripts.iter().map(|(name, _)| name.clone()).collect();
    for name in &names {
        let stem = name.rsplit_once('.').expect("an extension").0;
        for language in ["lua", "rhai"] {
            assert!(names.contains(&format!("{stem}.{language}")), "{stem} is there in {language}");
        }
    }
    let failed: Vec<_> = run_all(scripts).into_iter().filter_map(Result::err).collect();
    let errors: Vec<_> = failed.iter().map(ToString::to_string).collect();
    assert!(errors.is_empty(), "\n{}\n", errors.join("\n"));
}

/// Returns a value that matches a type, as it is written.
fn right(kind: Type, language: Language) -> &'static str {
    match (kind, language) {
        (Type::Any | Type::Integer | Type::Number | Type::Duration | Type::Count, _) => "1",
        (Type::Boolean, _) => "true",
        (Type::Name | Type::Text | Type::Bytes | Type::Selector | Type::Labels, _) => "\"x\"",
        (Type::Test, _) => "\"created\"",
        (Type::Map | Type::Object, Language::Lua) => "{ a = 1 }",
        (Type::Map | Type::Object, Language::Rhai) => "#{ a: 1 }",
        (Type::List, Language::Lua) => "{ 1 }",
        (Type::List, Language::Rhai) => "[1]",
        (Type::Function, Language::Lua) => "function() end",
        (Type::Function, Language::Rhai) => "|x| x",
        (Type::Nothing, Language::Lua) => "nil",
        (Type::Nothing, Language::Rhai) => "()",
    }
}

/// Returns values that do not match a type.
fn wrong(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Any => &[],
        Type::Boolean => &["5", "\"true\""],
        Type::Name | Type::Test => &["5", "true", "\"\""],
        Type::Text | Type::Bytes | Type::Labels => &["5", "true"],
        Type::Map | Type::List => &["5", "\"x\"", "false"],
        Type::Count => &["\"1\"", "1.5", "-1"],
        Type::Selector => &["5", "\"\"", "true"],
        Type::Integer => &["\"1\"", "1.5", "true"],
        Type::Number => &["\"1\"", "true"],
        Type::Duration => &["\"soon\"", "true", "-1"],
        Type::Function | Type::Nothing | Type::Object => &["5", "\"x\""],
    }
}

/// A wrong call: its source in both languages, and the start of its error.
struct Case {
    texts: [String; 2],
    error: String,
}

/// Returns a call of a function.
fn written(
    library: &Library,
    function: &Function,
    arguments: &[String],
    language: Language,
) -> String {
    let dot = if language == Language::Lua { "." } else { "::" };
    let end = if language == Language::Lua { "" } else { ";" };
    let call = format!("{}{dot}{}({}){end}", library.name, function.name, arguments.join(", "));
    let remark = if language == Language::Lua { "--" } else { "//" };
    format!("{remark} The call is in the second line.\n{call}\n")
}

fn options(name: &str, value: &str, language: Language) -> String {
    match language {
        Language::Lua => format!("{{ {name} = {value} }}"),
        Language::Rhai => format!("#{{ {name}: {value} }}"),
    }
}

fn cases(library: &Library, function: &Function) -> Vec<Case> {
    let mut cases = Vec::new();
    let place = format!("{}.{}", library.name, function.name);
    let mut add = |arguments: &dyn Fn(Language) -> Vec<String>, error: String| {
        let text = |it| written(library, function, &arguments(it), it);
        let texts = [text(Language::Lua), text(Language::Rhai)];
        cases.push(Case { texts, error: format!("{place}: {error}") });
    };
    let fitting = |count: usize, language| -> Vec<String> {
        let parameters = function.parameters.iter().take(count);
        parameters.map(|it| right(it.kind, language).to_owned()).collect()
    };
    let all = function.parameters.len();
    let expected = |it: &Parameter| format!("`{}`: expected {}, got ", it.name, it.kind.expected());
    for (index, parameter) in function.parameters.iter().enumerate() {
        for value in wrong(parameter.kind) {
            let arguments = |it| [fitting(index, it), vec![(*value).to_owned()]].concat();
            add(&arguments, expected(parameter));
        }
        if parameter.required {
            let missing =
                format!("`{}` is missing: expected {}", parameter.name, parameter.kind.expected());
            add(&|it| fitting(index, it), missing);
        }
    }
    for option in function.options {
        for value in wrong(option.kind) {
            add(
                &|it| [fitting(all, it), vec![options(option.name, value, it)]].concat(),
                expected(option),
            );
        }
    }
    if !function.options.is_empty() {
        let unknown = |it| [fitting(all, it), vec![options("zzz", "1", it)]].concat();
        add(&unknown, "there is no option `zzz`".into());
    }
    let count = all + usize::from(!function.options.is_empty()) + 1;
    let many = |it| [fitting(all, it), vec!["1".to_owned(); count - all]].concat();
    add(&many, "too many arguments, ".into());
    cases
}

#[test]
fn wrong_arguments_of_every_function_are_reported_where_they_are_passed() {
    /// Names of internal types.
    const INTERNAL: [&str; 8] =
        ["::", "Dynamic", "Value(", "Datum", "serde", "mlua", "rhai", "panicked"];
    let cases: Vec<_> = LIBRARIES
        .iter()
        .flat_map(|library| library.functions.iter().flat_map(move |it| cases(library, it)))
        // Rhai reserves the word; the same function is also available as `dbg`.
        .filter(|case| !case.error.starts_with("log.debug:"))
        .collect();
    let scripts = cases.iter().flat_map(|case| {
        let [lua, rhai] = &case.texts;
        [("wrong.lua".to_owned(), lua.clone()), ("wrong.rhai".to_owned(), rhai.clone())]
    });
    let results = run_all(scripts.collect());
    assert!(cases.len() > 500, "{} cases", cases.len());
    let mut failed = Vec::new();
    for (case, outcome) in cases.iter().zip(results.chunks(2)) {
        let texts = case.texts.join("");
        let [Err(lua), Err(rhai)] = outcome else {
            failed.push(format!("{texts}is accepted: {outcome:?}"));
            continue;
        };
        let is_right = |it: &LoadError| it.message.starts_with(&case.error) && it.line == Some(2);
        let leaks = INTERNAL.iter().any(|it| lua.message.contains(it));
        if !is_right(lua) || !is_right(rhai) || lua.message != rhai.message || leaks {
            failed.push(format!("{texts}expected: {}\n{lua}\n{rhai}", case.error));
        }
    }
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cases.len(), failed.join("\n"));
}

#[test]
fn the_rhai_parts_of_libraries_compile() {
    let mut engine = ::rhai::Engine::new();
    engine.set_max_expr_depths(64, 64);
    for (library, file, text) in embedded::rhai() {
        let compiled = engine.compile(text).unwrap_or_else(|it| panic!("{file}: {it}"));
        for function in library.functions.iter().filter(|it| matches!(it.body, Body::Script)) {
            let name = embedded::rhai_name(library.name, function.name);
            let count = function.parameters.len() + usize::from(!function.options.is_empty());
            let is_there =
                compiled.iter_functions().any(|it| it.name == name && it.params.len() == count);
            assert!(is_there, "{name} with {count} parameters");
        }
    }
}

/// Returns the bytes that a Lua script holds when its top level has run.
fn held_by(text: String) -> isize {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let set = tokio::task::LocalSet::new();
    runtime.block_on(set.run_until(async {
        let before = heap::held();
        let terms = Terms::from(Placement::CurrentRuntime);
        let loaded = lua::load(ScriptId(1), &Source::alone("t.lua", text), &terms).await;
        let held = heap::held() - before;
        drop(loaded.expect("it loads"));
        held
    }))
}

#[test]
fn libraries_cost_next_to_nothing_in_a_vm_that_does_not_use_them() {
    // What is created once per process is created here.
    held_by(String::new());
    let names: Vec<_> = LIBRARIES.iter().map(|it| it.name).collect();
    let without = held_by("local all = { }".into());
    let with = held_by(format!("local all = {{ {} }}", names.join(", ")));
    assert!(with - without > 20_000, "they are made on first use: {without} and {with}");
}
