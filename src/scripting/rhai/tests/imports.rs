//! Modules next to the script.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::json;

use super::{Fixture, directory};
use crate::logic::handlers::function::ScriptId;
use crate::scripting::{LoadError, Loaded, Modules, Placement, Source};

async fn load_in(directory: &Path, text: &str) -> Result<Loaded, LoadError> {
    let path = directory.join("handlers.rhai");
    let modules = Modules::beside(&path);
    let source = Source { name: "dir/handlers.rhai".into(), text: text.into(), modules };
    super::load(ScriptId(1), &source, &Placement::CurrentRuntime.into()).await
}

#[tokio::test]
async fn modules_beside_the_script_are_found_and_seen_by_handlers() {
    let directory = directory("found");
    fs::create_dir_all(directory.join("lib")).unwrap();
    let text = "import \"lib/words\" as words; fn full(x) { words::prefix(x) }";
    fs::write(directory.join("lib/naming.rhai"), text).unwrap();
    fs::write(directory.join("lib/words.rhai"), "fn prefix(x) { \"kopf-\" + x }").unwrap();
    let text = r#"
        import "lib/naming" as naming;
        import "lib/words" as words;
        fn handler(ctx) { naming::full(ctx.name) + words::prefix("") }
        kopf::on_create("things", handler);
        kopf::on_update("things", |ctx| naming::full("x"));
    "#;
    let loaded = load_in(&directory, text).await.unwrap_or_else(|error| panic!("{error:?}"));
    let fixture = Fixture::of(loaded, json!({ "metadata": { "name": "a" } }));
    assert_eq!(fixture.returned().await, json!("kopf-akopf-"));
    let ended = fixture.call_nth(1).await;
    assert_eq!(ended, crate::logic::handlers::outcome::CallEnd::Returned(Some(json!("kopf-x"))));
    fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn what_leads_out_is_refused() {
    let directory = directory("out");
    fs::create_dir_all(directory.join("scripts")).unwrap();
    fs::write(directory.join("secret.rhai"), "fn x() {}").unwrap();
    symlink("../secret.rhai", directory.join("scripts/link.rhai")).unwrap();
    let absolute = directory.join("secret").display().to_string();
    for (name, reason) in [
        ("../secret", "outside of the script's directory"),
        ("lib/../../secret", "outside of the script's directory"),
        (absolute.as_str(), "relative to the script's directory"),
        ("link", "outside of"),
        ("missing", "module 'missing' not found: there is no dir/missing.rhai"),
    ] {
        let text = format!("let x = 1;\nimport \"{name}\" as x;");
        let error = load_in(&directory.join("scripts"), &text).await.err().unwrap();
        assert!(error.message.contains(reason), "{name}: {error:?}");
        assert_eq!(error.line, Some(2), "{name}");
    }
    fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn the_symlinks_of_a_mounted_config_map_are_followed() {
    let directory = directory("mount");
    fs::create_dir_all(directory.join("..2026/lib")).unwrap();
    fs::write(directory.join("..2026/lib/a.rhai"), "fn f() { 1 }").unwrap();
    symlink("..2026", directory.join("..data")).unwrap();
    symlink("..data/lib", directory.join("lib")).unwrap();
    let text = "import \"lib/a\" as a; kopf::on_create(\"things\", |ctx| a::f());";
    let loaded = load_in(&directory, text).await.unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(Fixture::of(loaded, json!({})).returned().await, json!(1));
    fs::remove_dir_all(directory).unwrap();
}

#[tokio::test]
async fn an_error_in_a_module_is_told_there() {
    let directory = directory("error");
    fs::write(directory.join("a.rhai"), "fn f() {\n  throw \"no\";\n}\nfn g() {}").unwrap();
    fs::write(directory.join("b.rhai"), "\nlet x = ;").unwrap();
    fs::write(directory.join("c.rhai"), "import \"c\" as c;").unwrap();
    let error = load_in(&directory, "import \"b\" as b;").await.err().unwrap();
    assert_eq!((error.file.as_str(), error.line), ("dir/b.rhai", Some(2)));
    let error = load_in(&directory, "import \"c\" as c;").await.err().unwrap();
    assert!(error.message.contains("imports itself"), "{error:?}");
    let text = "import \"a\" as a;\nkopf::on_create(\"things\", |ctx| a::f());";
    let loaded = load_in(&directory, text).await.unwrap_or_else(|error| panic!("{error:?}"));
    let trace = Fixture::of(loaded, json!({})).raised().await.trace.unwrap();
    assert!(
        trace.starts_with("dir/a.rhai:2:3: no\n    throw \"no\";\n")
            && trace.contains("\n    dir/a.rhai:2 function f\n    dir/handlers.rhai:2"),
        "{trace}"
    );
    fs::remove_dir_all(directory).unwrap();
}
