//! Documents, generated CRDs and command-line options.

use std::path::{Path, PathBuf};

use clap::Parser as _;
use serde_json::{Value, json};

use super::{
    documents::{self, FileObject},
    kinds::{self, Definition},
    options::{self, DevOptions, KubeconfigOption},
    quoted,
};
use crate::cli::args::{Command, LowArgs};
use crate::logic::{
    change::registry::Registry,
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::Kind,
    },
    object::resource::Resource,
};

/// Returns a registry with a handler for each of these selectors.
fn registry(selectors: &[&[&str]]) -> Registry {
    let handlers = selectors.iter().enumerate().map(|(slot, names)| {
        declare(Declaration {
            kind: Kind::Event,
            selectors: names.iter().map(|it| Argument::Value(json!(it))).collect(),
            options: Vec::new(),
            function: Function::new(ScriptId(0), u32::try_from(slot).expect("few"), "fn"),
            location: "handlers.lua:1".into(),
        })
        .expect("a handler")
    });
    Registry::new(handlers.collect()).expect("no clash")
}

fn resource(group: &str, version: &str, plural: &str, kind: &str) -> Resource {
    Resource {
        group: group.into(),
        version: version.into(),
        plural: plural.into(),
        kind: kind.into(),
        singular: kind.to_lowercase(),
        preferred: true,
        ..Resource::default()
    }
}

fn object(api_version: &str, kind: &str) -> FileObject {
    let object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": "x" } });
    FileObject { place: "x.yaml:1".into(), object }
}

/// Returns the generated CRDs as strings: `plural.group kind versions`.
fn missing(selectors: &[&[&str]], objects: &[FileObject]) -> Vec<String> {
    let known =
        [resource("", "v1", "pods", "Pod"), resource("apps", "v1", "deployments", "Deployment")];
    let text = |it: &Definition| {
        let versions: Vec<&str> = it.versions.iter().map(String::as_str).collect();
        format!("{} {} {}", it.name(), it.kind, versions.join(","))
    };
    kinds::missing(&registry(selectors), &known, objects).iter().map(text).collect()
}

#[test]
fn a_plural_without_a_group_becomes_a_kind_of_the_default_group() {
    let cases = [
        ("kopfexamples", "kopfexamples.kopf.dev KopfExample v1"),
        ("cronjobs", "cronjobs.kopf.dev Cronjob v1"),
        ("policies", "policies.kopf.dev Policy v1"),
        ("boxes", "boxes.kopf.dev Box v1"),
        ("classes", "classes.kopf.dev Class v1"),
        ("databases", "databases.kopf.dev Database v1"),
        ("glass", "glass.kopf.dev Glass v1"),
        ("sheep", "sheep.kopf.dev Sheep v1"),
        ("s", "s.kopf.dev S v1"),
        ("ies", "ies.kopf.dev Ie v1"),
        ("big-things", "big-things.kopf.dev Big-thing v1"),
        ("KopfExample", "kopfexamples.kopf.dev KopfExample v1"),
        ("NetworkPolicy", "networkpolicies.kopf.dev NetworkPolicy v1"),
    ];
    for (name, expected) in cases {
        assert_eq!(missing(&[&[name]], &[]), [expected], "{name}");
    }
}

#[test]
fn groups_and_versions_of_handlers_count() {
    assert_eq!(missing(&[&["acme.io", "widgets"]], &[]), ["widgets.acme.io Widget v1"]);
    assert_eq!(missing(&[&["acme.io/v2", "widgets"]], &[]), ["widgets.acme.io Widget v2"]);
    assert_eq!(missing(&[&["widgets.v3.acme.io"]], &[]), ["widgets.acme.io Widget v3"]);
    let several: &[&[&str]] = &[
        &["widgets"],
        &["acme.io/v2", "widgets"],
        &["acme.io/v1", "widgets"],
        &["acme.io", "widgets"],
    ];
    assert_eq!(missing(several, &[]), ["widgets.acme.io Widget v1,v2"], "one kind for all of them");
}

#[test]
fn objects_provide_the_names_that_handlers_do_not() {
    let objects = [object("v1", "ConfigMap"), object("acme.io/v1beta1", "BigWidget")];
    let expected = ["bigwidgets.acme.io BigWidget v1beta1"];
    assert_eq!(missing(&[&["bigwidgets"]], &objects), expected);
    assert_eq!(missing(&[&["acme.io", "bigwidgets"]], &objects), expected);
    assert_eq!(missing(&[&["BigWidget"]], &objects), expected);
    // Another group or version is another kind.
    let other = missing(&[&["other.io", "bigwidgets"]], &objects);
    assert_eq!(other, ["bigwidgets.other.io Bigwidget v1"]);
}

#[test]
fn the_same_kind_can_be_named_in_the_singular_and_in_the_plural() {
    let expected = ["apples.kopf.dev Apple v1"];
    assert_eq!(missing(&[&["apple"], &["apples"]], &[]), expected);
    assert_eq!(missing(&[&["apples"], &["apple"], &["Apple"]], &[]), expected);
    let objects = [object("kopf.dev/v1", "Apple")];
    assert_eq!(missing(&[&["apple"], &["apples"]], &objects), expected);
}

#[test]
fn no_crd_is_generated_where_it_would_hide_a_mistake() {
    let cases: &[&[&str]] = &[
        &["pods"],                   // served
        &["apps", "deployments"],    // served
        &["v1", "podz"],             // the core group belongs to Kubernetes
        &["apps/v1", "deploymentz"], // and so does any other group without a dot
        &["rbac.authorization.k8s.io", "rolez"],
        &["my_things"], // not a valid name for a CRD
        &["-"],
    ];
    for names in cases {
        assert_eq!(missing(&[names], &[]), [""; 0], "{names:?}");
    }
    let known = [resource("acme.io", "v1", "widgets", "Widget")];
    let other_version = registry(&[&["acme.io/v2", "widgets"]]);
    assert_eq!(kinds::missing(&other_version, &known, &[]), []);
}

fn places(path: &str, text: &str) -> Vec<(String, Value)> {
    let parsed = documents::parse(Path::new(path), text).expect("objects");
    parsed.into_iter().map(|it| (it.place, it.object["metadata"]["name"].clone())).collect()
}

#[test]
fn documents_have_the_line_where_they_start() {
    let one = "apiVersion: v1\nkind: A\nmetadata: {name: one}\n";
    let two = "apiVersion: v1\nkind: A\nmetadata: {name: two}\n";
    let text = format!("# Head\n\n{one}---\n# Nothing\n---  # comment\n{two}...\n---\n");
    assert_eq!(
        places("x.yaml", &text),
        [("x.yaml:3".into(), json!("one")), ("x.yaml:9".into(), json!("two"))]
    );
    let inside = "--- {apiVersion: v1, kind: A, metadata: {name: one}}\n";
    assert_eq!(places("x.yaml", inside), [("x.yaml:1".into(), json!("one"))]);
}

#[test]
fn the_objects_of_a_list_are_taken_one_by_one() {
    let list = json!({
        "apiVersion": "v1",
        "kind": "List",
        "items": [
            { "apiVersion": "v1", "kind": "A", "metadata": { "name": "one" } },
            { "apiVersion": "v1", "kind": "B", "metadata": { "name": "two" } },
        ],
    });
    let names: Vec<Value> =
        places("x.json", &list.to_string()).into_iter().map(|(_, it)| it).collect();
    assert_eq!(names, ["one", "two"]);
}

fn dev(typed: &[&str], variables: &[(&str, &str)]) -> DevOptions {
    let args = LowArgs::try_parse_from([&["kopf", "dev"], typed].concat()).expect("arguments");
    let Command::Dev(args) = args.command else { panic!("another command") };
    let lookup = |name: &str| {
        variables.iter().find(|(it, _)| *it == name).map(|(_, value)| (*value).to_owned())
    };
    options::resolve(args, &lookup, None).expect("options")
}

#[test]
fn options_can_be_repeated_and_have_useful_defaults() {
    let options = dev(&["x.lua", "--apply", "a", "--crd", "b", "--apply", "c"], &[]);
    assert_eq!(options.objects, [PathBuf::from("a"), PathBuf::from("c")]);
    assert_eq!(options.definitions, [PathBuf::from("b")]);
    assert_eq!(options.run.paths, [PathBuf::from("x.lua")]);
    assert_eq!((options.port, options.controllers), (0, true));
    assert!(!dev(&["--no-controllers"], &[]).controllers);
}

#[test]
fn the_generated_kubeconfig_is_private_to_its_user() {
    let place = |variables| dev(&[], variables).kubeconfig;
    let within = |path: &str| KubeconfigOption::Within(PathBuf::from(path));
    let all = [("XDG_RUNTIME_DIR", "/run/1"), ("XDG_CACHE_HOME", "/c"), ("HOME", "/h")];
    assert_eq!(place(&all), within("/run/1/kopf"));
    assert_eq!(place(&all[1..]), within("/c/kopf"));
    assert_eq!(place(&all[2..]), within("/h/.cache/kopf"));
    assert_eq!(place(&[("HOME", "not/absolute")]), place(&[]));
    assert_eq!(
        dev(&["--write-kubeconfig", "k"], &all).kubeconfig,
        KubeconfigOption::File(PathBuf::from("k"))
    );
}

#[test]
fn a_kubeconfig_to_use_is_rejected_with_what_to_write_instead() {
    let typed = ["kopf", "dev", "--kubeconfig", "k"];
    let Command::Dev(args) = LowArgs::try_parse_from(typed).expect("known options").command else {
        panic!("another command");
    };
    let report = super::resolve(args, &|_| None, None).expect_err("a kubeconfig to use");
    let text = report.to_string();
    assert!(text.contains("kopf dev has its own API server"), "{text}");
    assert!(text.contains("hint: --write-kubeconfig FILE"), "{text}");
}

#[test]
fn the_line_for_the_shell_can_be_pasted() {
    assert_eq!(quoted("/run/user/1000/kopf/dev.kubeconfig"), "/run/user/1000/kopf/dev.kubeconfig");
    assert_eq!(quoted("/my files/it's"), r"'/my files/it'\''s'");
}
