//! The resources that each form of a selector watches, with their versions and namespaces.

use std::{collections::BTreeSet, time::Duration};

use kopf::{
    logic::handlers::{
        declare::{Argument, Marker},
        handler::Kind,
    },
    reactor::NamespaceScope,
    testing::{self, Environment, LogCapture, namespace, object, pass},
};
use kopf_apiserver::{ApiServer, Builder, ResourceDef};

use super::heard::Listener;

/// Returns two versions of one resource, a second group of two resources with a category, and one that can only be listed.
fn environment() -> Environment {
    let mut examples = testing::examples();
    examples.versions.push("v1beta1".into());
    examples.short_names = vec!["kex".into()];
    let mut apples = ResourceDef::new("fruits.dev", "v1", "apples", "Apple");
    let mut pears = ResourceDef::new("fruits.dev", "v1", "pears", "Pear");
    for fruit in [&mut apples, &mut pears] {
        fruit.categories = vec!["fruits".into()];
    }
    let mut plums = ResourceDef::new("fruits.dev", "v1", "plums", "Plum");
    plums.verbs = vec!["list".into()];
    let resources = [examples, apples, pears, plums].into_iter();
    Environment::new(resources.fold(ApiServer::builder(), Builder::resource))
}

fn names(texts: &[&str]) -> Vec<Argument> {
    texts.iter().map(|&it| Argument::Value(it.into())).collect()
}

/// Returns the paths that are watched for handlers of these selectors, without those that the operator itself needs.
async fn watched(selectors: Vec<Argument>, keywords: &[(&str, &str)]) -> BTreeSet<String> {
    let env = environment();
    watched_on(&env, NamespaceScope::Cluster, selectors, keywords).await
}

async fn watched_on(
    env: &Environment,
    scope: NamespaceScope,
    selectors: Vec<Argument>,
    keywords: &[(&str, &str)],
) -> BTreeSet<String> {
    let keywords: Vec<_> =
        keywords.iter().map(|&(key, it)| (key, Argument::Value(it.into()))).collect();
    let operator = Listener::new(scope)
        .hears(("any", Kind::Event), selectors, &keywords, Duration::ZERO)
        .start(env);
    pass(5).await;
    operator.end().await;
    let requests = env.server.requests();
    let watches = requests.iter().filter(|it| it.query.contains("watch=true"));
    let internal =
        |path: &str| path.ends_with("/customresourcedefinitions") || path.ends_with("/namespaces");
    watches.map(|it| it.path.clone()).filter(|it| !internal(it)).collect()
}

fn paths(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|&it| it.to_owned()).collect()
}

const PREFERRED: &str = "/apis/kopf.dev/v1/kopfexamples";
const OTHER: &str = "/apis/kopf.dev/v1beta1/kopfexamples";

#[tokio::test(start_paused = true)]
async fn the_preferred_version_is_watched_unless_another_is_named() {
    for selector in [
        &["kopfexamples"][..],
        &["KopfExample"],
        &["kopfexample"],
        &["kex"],
        &["kopfexamples.kopf.dev"],
        &["kopf.dev", "kopfexamples"],
        &["kopf.dev", "v1", "kex"],
    ] {
        assert_eq!(watched(names(selector), &[]).await, paths(&[PREFERRED]), "{selector:?}");
    }
    for selector in [
        &["kopfexamples.v1beta1.kopf.dev"][..],
        &["kopfexamples.v1beta1"],
        &["kopf.dev/v1beta1", "kopfexamples"],
        &["kopf.dev", "v1beta1", "kopfexamples"],
    ] {
        assert_eq!(watched(names(selector), &[]).await, paths(&[OTHER]), "{selector:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn each_keyword_means_its_own_name() {
    for keyword in [
        ("plural", "kopfexamples"),
        ("singular", "kopfexample"),
        ("kind", "KopfExample"),
        ("shortcut", "kex"),
    ] {
        assert_eq!(watched(vec![], &[keyword]).await, paths(&[PREFERRED]), "{keyword:?}");
    }
    // A name of another kind does not match.
    for keyword in [("plural", "kex"), ("kind", "kopfexample"), ("shortcut", "kopfexamples")] {
        assert_eq!(watched(vec![], &[keyword]).await, paths(&[]), "{keyword:?}");
    }
    let with = |more: &'static [(&str, &str)]| async {
        let keywords = [&[("plural", "kopfexamples")][..], more].concat();
        watched(vec![], &keywords).await
    };
    assert_eq!(with(&[("version", "v1beta1")]).await, paths(&[OTHER]));
    assert_eq!(with(&[("group", "kopf.dev")]).await, paths(&[PREFERRED]));
    assert_eq!(with(&[("group", "other.dev")]).await, paths(&[]));
}

#[tokio::test(start_paused = true)]
async fn core_resources_have_the_empty_group_and_singulars_of_their_kinds() {
    let pods = paths(&["/api/v1/pods"]);
    // Kubernetes reports no singular for its built-in resources.
    for selector in [&["v1", "pods"][..], &["", "v1", "pods"], &["", "pods"], &["pod"], &["po"]] {
        assert_eq!(watched(names(selector), &[]).await, pods, "{selector:?}");
    }
    assert_eq!(watched(vec![], &[("singular", "pod")]).await, pods);
}

#[tokio::test(start_paused = true)]
async fn a_version_alone_leaves_the_group_open_so_that_all_groups_are_read() {
    for (selector, is_read) in [("pods.v1", true), ("pods.v1.", false)] {
        let env = environment();
        // Missing in the aggregated document then, so that it is read separately if it is needed.
        env.refuse(503, "GET", "/apis/fruits.dev/v1");
        let watched = watched_on(&env, NamespaceScope::Cluster, names(&[selector]), &[]).await;
        assert_eq!(watched, paths(&["/api/v1/pods"]), "{selector}");
        let requests = env.server.requests();
        assert_eq!(requests.iter().any(|it| it.path == "/apis/fruits.dev/v1"), is_read);
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_a_category_are_watched_and_all_of_a_group_that_can_be() {
    let fruits = paths(&["/apis/fruits.dev/v1/apples", "/apis/fruits.dev/v1/pears"]);
    assert_eq!(watched(vec![], &[("category", "fruits")]).await, fruits);
    let log = LogCapture::of("kopf.discovery");
    let everything = |mut before: Vec<Argument>| {
        before.push(Argument::Marker(Marker::Everything));
        before
    };
    for before in [names(&["fruits.dev"]), names(&["fruits.dev/v1"])] {
        assert_eq!(watched(everything(before), &[]).await, fruits);
    }
    assert_eq!(watched(everything(vec![]), &[("group", "fruits.dev")]).await, fruits);
    assert!(log.has("Non-watchable resources will not be served: {plums.v1.fruits.dev}"));
    let all = watched(everything(vec![]), &[]).await;
    assert!(all.is_superset(&fruits) && all.contains(PREFERRED) && all.contains("/api/v1/pods"));
    assert!(!all.contains(OTHER), "versions that nobody prefers are only seen by functions");
}

#[tokio::test(start_paused = true)]
async fn the_whole_cluster_is_watched_at_once_and_no_namespace_is_looked_at() {
    let env = environment();
    let watched = watched_on(&env, NamespaceScope::Cluster, names(&["kex"]), &[]).await;
    assert_eq!(watched, paths(&[PREFERRED]));
    assert!(!env.server.requests().iter().any(|it| it.path.contains("/namespaces")));
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_served_that_match_any_of_the_patterns_and_no_others() {
    let env = environment();
    for name in ["one", "two-a", "two-b", "two-c", "other"] {
        env.create(namespace(name));
        env.create(object(name, name));
    }
    let patterns = ["one", "two-[ab], !*-b", "not-there"].map(Into::into);
    let scope = NamespaceScope::Namespaces(patterns.into());
    let served = watched_on(&env, scope, names(&["kex"]), &[]).await;
    let path = |it: &str| format!("/apis/kopf.dev/v1/namespaces/{it}/kopfexamples");
    assert_eq!(served, BTreeSet::from([path("one"), path("two-a")]));
}

#[tokio::test(start_paused = true)]
async fn patterns_that_match_no_namespace_are_told() {
    for (disabled, told) in [
        (false, "No namespace matches 'app-*' or 'other': nothing is served until one does."),
        (
            true,
            "No namespace can be served: scanning is disabled, so only exact names work, not 'app-*'.",
        ),
    ] {
        let env = environment();
        let patterns =
            if disabled { vec!["app-*".into()] } else { vec!["app-*".into(), "other".into()] };
        let mut listener = Listener::new(NamespaceScope::Namespaces(patterns)).hears_events("kex");
        listener.settings.scanning.disabled = disabled;
        let log = LogCapture::of("kopf.discovery");
        let operator = listener.start(&env);
        pass(5).await;
        operator.end().await;
        assert!(log.has(told), "{:?}", log.lines());
    }
}
