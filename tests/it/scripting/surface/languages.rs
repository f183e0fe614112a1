//! No name exists in one language only: where only one of them has a name, the other has a part of the language.

use std::{fmt::Write as _, sync::Arc};

use kopf::{
    call::{Scripts as _, SharedPatch},
    logic::handlers::outcome::CallEnd,
    scripting::{
        Placement, ScriptHost, Source,
        surface::{Item, ItemShape, Language, Parameter, Spoken, Surface, pages},
    },
    testing::{creation, run_paused},
};
use serde_json::json;

/// The values of the host with methods in a change handler.
const HANDLES: [(&str, &str); 3] =
    [("logger", "Logger"), ("conditions", "Conditions"), ("patch.fns", "PatchFunctions")];

fn check_names(prefix: &str, items: &[Item], documented: &str) {
    for item in items {
        let path = format!("{prefix}.{}", item.name);
        if let ItemShape::Table(inner) = &item.shape {
            check_names(&path, inner, documented);
        }
        if let Spoken::Only(_, instead) = item.spoken {
            assert!(instead.contains('`'), "{path}: nothing in the other language: {instead:?}");
            assert!(documented.contains(instead), "{path}: the reference does not say {instead}");
        }
    }
}

#[test]
fn a_name_of_one_language_is_a_part_of_the_other() {
    let surface = Surface::new();
    let pages: String = pages(&surface).into_iter().map(|it| it.text).collect();
    for section in surface.sections() {
        check_names(section.name, &section.items, &pages);
    }
}

fn separator(language: Language) -> &'static str {
    match language {
        Language::Lua => ":",
        Language::Rhai => ".",
    }
}

/// Returns as many arguments as a method needs. It may reject their types.
fn arguments(item: &Item, language: Language) -> String {
    let signature = item.signature().expect("a method");
    let needed = signature.parameters.iter().filter(|it| it.required);
    let one = |it: &Parameter| match (it.name, language) {
        ("function", Language::Lua) => "function() end",
        ("function", Language::Rhai) => "|it| it",
        _ => "`x`",
    };
    needed.map(one).collect::<Vec<_>>().join(", ")
}

/// Returns the missing methods, of those that both languages should have.
fn missing(language: Language) -> Vec<String> {
    let surface = Surface::new();
    let mut calls = String::new();
    for (handle, class) in HANDLES {
        let section = surface.classes.iter().find(|it| it.name == class).expect("a class");
        for item in section.items.iter().filter(|it| it.spoken.in_language(language)) {
            let call = format!("ctx.{handle}{}{}", separator(language), item.name);
            let arguments = arguments(item, language);
            let written = match language {
                Language::Lua => {
                    writeln!(calls, "try('{call}', function() {call}({arguments}) end)")
                }
                Language::Rhai => writeln!(
                    calls,
                    "try {{ {call}({arguments}); }} catch (e) {{ told.push(`{call}: ` + e); }}"
                ),
            };
            written.expect("a text takes everything");
        }
    }
    let source = match language {
        Language::Lua => Source::alone(
            "all.lua",
            format!(
                "kopf.on_create('kopfexamples', function(ctx)
                    local told = {{}}
                    local function try(name, call)
                        local fine, problem = pcall(call)
                        if not fine then table.insert(told, name .. ': ' .. tostring(problem)) end
                    end
                    {calls} return told end)"
            ),
        ),
        Language::Rhai => Source::alone(
            "all.rhai",
            format!("kopf::on_create(`kopfexamples`, |ctx| {{ let told = []; {calls} told }});"),
        ),
    };
    let ended = run_paused(async {
        let loaded = ScriptHost::load(vec![source], Placement::CurrentRuntime).await;
        let (host, handlers) = loaded.unwrap_or_else(|errors| panic!("{errors:?}"));
        let handler = Arc::new(handlers.into_iter().next().expect("a handler"));
        let body = json!({ "metadata": { "name": "x", "namespace": "y" } });
        let call = Arc::new(creation(&handler, body, SharedPatch::default()));
        host.call(call).await
    });
    let CallEnd::Returned(Some(told)) = ended else { panic!("{ended:?}") };
    let told = told.as_array().cloned().unwrap_or_default();
    let told = told.iter().filter_map(|it| it.as_str());
    // Some reject the arguments, which is fine.
    let is_missing = |it: &&str| {
        it.contains("there is no")
            || it.contains("missing method")
            || it.contains("Function not found")
    };
    told.filter(is_missing).map(str::to_owned).collect()
}

#[test]
fn every_method_is_there_in_both_languages() {
    for language in [Language::Lua, Language::Rhai] {
        assert_eq!(missing(language), Vec::<String>::new(), "{language:?}");
    }
}
