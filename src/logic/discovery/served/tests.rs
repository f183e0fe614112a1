//! The resources that are served.

use std::collections::BTreeSet;

use super::{ServedResources, choose};
use crate::logic::{
    change::registry::Registry,
    handlers::{
        declare::{Argument, Declaration, declare},
        function::{Function, ScriptId},
        handler::Kind,
    },
    object::resource::Resource,
};

fn resource(group: &str, plural: &str, verbs: &str) -> Resource {
    Resource {
        group: group.into(),
        version: "v1".into(),
        plural: plural.into(),
        kind: plural.to_uppercase(),
        singular: plural.trim_end_matches('s').into(),
        preferred: true,
        verbs: verbs.split(' ').map(str::to_owned).collect(),
        ..Resource::default()
    }
}

fn served(wishes: &[(Kind, &str)], known: &[Resource]) -> ServedResources {
    let handlers = wishes.iter().zip(0..).map(|((kind, name), slot)| {
        let declaration = Declaration {
            kind: *kind,
            selectors: vec![Argument::Value((*name).into())],
            options: Vec::new(),
            function: Function::new(ScriptId(0), slot, format!("fn{slot}")),
            location: "test:1".into(),
        };
        declare(declaration).unwrap()
    });
    choose(&Registry::new(handlers.collect()).unwrap(), known, &|_, _| false)
}

fn names(served: &ServedResources) -> BTreeSet<String> {
    served.resources.iter().map(ToString::to_string).collect()
}

const ALL: &str = "list watch patch";

#[test]
fn selected_and_existing_resources_are_served() {
    let served = served(
        &[(Kind::Create, "apples")],
        &[resource("a.dev", "apples", ALL), resource("b.dev", "pears", ALL)],
    );
    assert_eq!(names(&served), BTreeSet::from(["apples.v1.a.dev".into()]));
    assert!(served.warnings.is_empty());
}

#[test]
fn a_name_that_two_groups_have_serves_neither() {
    let served = served(
        &[(Kind::Create, "apples")],
        &[resource("a.dev", "apples", ALL), resource("b.dev", "apples", ALL)],
    );
    assert!(served.resources.is_empty());
    assert!(
        served.warnings[0].starts_with("Ambiguous resources will not be served"),
        "{:?}",
        served.warnings
    );
    assert!(served.warnings[0].contains("{apples.v1.a.dev, apples.v1.b.dev}"));
}

#[test]
fn the_core_group_wins_over_others() {
    let served = served(
        &[(Kind::Create, "pods")],
        &[resource("", "pods", ALL), resource("metrics.k8s.io", "pods", ALL)],
    );
    assert_eq!(names(&served), BTreeSet::from(["pods.v1".into()]));
}

#[test]
fn missing_resources_are_named() {
    let served = served(
        &[(Kind::Create, "apples"), (Kind::Event, "pears")],
        &[resource("b.dev", "pears", ALL)],
    );
    assert_eq!(names(&served), BTreeSet::from(["pears.v1.b.dev".into()]));
    assert_eq!(
        served.warnings,
        [
            "The cluster has no resource for 'apples': these handlers are not called until it has. Apply the CRD, or correct the name."
        ]
    );
}

#[test]
fn resources_without_watch_are_not_served() {
    let served = served(&[(Kind::Event, "apples")], &[resource("a.dev", "apples", "list get")]);
    assert!(served.resources.is_empty());
    assert_eq!(served.warnings, ["Non-watchable resources will not be served: {apples.v1.a.dev}"]);
}

#[test]
fn resources_without_patch_are_served_for_handlers_that_do_not_patch() {
    let known = [resource("a.dev", "apples", "list watch")];
    assert_eq!(names(&served(&[(Kind::Event, "apples")], &known)).len(), 1);
    let changing = served(&[(Kind::Create, "apples")], &known);
    assert!(changing.resources.is_empty());
    assert_eq!(
        changing.warnings,
        ["Non-patchable resources will not be served: {apples.v1.a.dev}"]
    );
}
