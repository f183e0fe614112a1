//! Results, children and plans.

use std::{num::NonZeroU64, sync::Arc, time::Duration};

use serde_json::{Value, json};

use super::{
    AppliedChild, Child, ChildrenPlan, DesiredState, Family, KnownChildren, Observed, Pace,
    changes, check_finalized, contains, content_after, is_unchanged, plan,
};
use crate::logic::object::{Object, resource::Resource};

fn resource(kind: &str, namespaced: bool) -> Arc<Resource> {
    let plural = format!("{}s", kind.to_lowercase());
    Arc::new(Resource {
        version: "v1".into(),
        plural,
        kind: kind.into(),
        namespaced,
        ..Resource::default()
    })
}

fn parent() -> Object {
    Object::from_value(json!({
        "apiVersion": "kopf.dev/v1", "kind": "Web",
        "metadata": { "name": "web", "namespace": "ns", "uid": "u1", "ownerReferences": [
            { "apiVersion": "v1", "kind": "ConfigMap", "name": "above", "uid": "u0" },
        ] },
    }))
}

fn children(result: &Value, is_held: bool) -> Result<Vec<Child>, String> {
    let (parent, own) = (parent(), resource("Web", true));
    let own = Resource { group: "kopf.dev".into(), ..Resource::clone(&own) };
    let family = Family { handler: "fn", parent: &parent, resource: &own, is_held };
    let wanted = DesiredState::read(Some(result.clone()), 1)?.children.unwrap_or_default();
    let child = |it: super::Manifest| {
        let is_cluster_scoped = it.kind == "Namespace";
        let mut resource = Resource::clone(&resource(&it.kind, !is_cluster_scoped));
        if it.kind == "Web" {
            resource.group = "kopf.dev".into();
        }
        family.child(it, Arc::new(resource))
    };
    wanted.into_iter().map(child).collect()
}

fn map(name: &str, data: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
}

fn one(name: &str, data: &Value) -> Child {
    children(&json!({ "children": [map(name, data)] }), false).expect("a child").remove(0)
}

/// Returns a child as a server shows it.
fn seen(child: &Child, version: u64) -> Observed {
    let mut body = child.body.clone();
    let meta = body["metadata"].as_object_mut().expect("metadata");
    meta.insert("resourceVersion".into(), version.to_string().into());
    meta.insert("uid".into(), format!("uid-{}", child.name).into());
    let object = Arc::new(Object::from_value(body));
    Observed::new(Arc::clone(&child.resource), object).expect("a name")
}

fn edited(observed: &Observed, version: u64, edit: impl FnOnce(&mut Value)) -> Observed {
    let mut body = observed.body().clone();
    body["metadata"]["resourceVersion"] = version.to_string().into();
    edit(&mut body);
    Observed { object: Arc::new(Object::from_value(body)), ..observed.clone() }
}

fn applied(child: &Child, version: u64, at: u64) -> (String, AppliedChild) {
    let content = content_after(seen(child, version).body(), &child.body);
    let (digest, at) = (child.digest, Duration::from_secs(at).into());
    let version = NonZeroU64::new(version);
    let key = child.key.clone();
    (key, AppliedChild { digest, content, fingerprint: None, version, is_seen: false, at })
}

fn planned(
    children: &[Child],
    observed: &[Observed],
    known: &mut KnownChildren,
    now: u64,
) -> ChildrenPlan {
    plan(children, observed, known, ("fn", Duration::from_secs(now))).expect("a plan")
}

#[test]
fn mistakes_in_results_are_told_with_their_path() {
    let named = |fields: Value| {
        let mut object = map("a", &json!({}));
        for (key, value) in fields.as_object().expect("fields") {
            object[key] = value.clone();
        }
        json!({ "children": [map("z", &json!({})), object] })
    };
    let cases = [
        (json!(5), "it returned 5, not a map"),
        (json!([1]), "it returned a list, not a map"),
        (map("a", &json!({})), "it returned a whole object"),
        (json!({ "childs": [] }), "unknown field `childs`, did you mean `children`?"),
        (json!({ "children": { "a": 1 } }), "children: expected a list, got a map"),
        (json!({ "children": [1] }), "children[1]: expected an object, got 1"),
        (named(json!({ "kind": null })), "children[2].kind is missing"),
        (named(json!({ "apiVersion": 5 })), "children[2].apiVersion: expected a string, got 5"),
        (named(json!({ "metadata": {} })), "children[2].metadata.name is missing"),
        (named(json!({ "metadata": { "generateName": "x-" } })), "children need fixed names"),
        (
            named(json!({ "metadata": { "name": "a", "labels": [1] } })),
            "children[2].metadata.labels: expected a map",
        ),
        (named(json!({ "data": { "x": "y".repeat(2 << 20) } })), "children[2]: 2097"),
        (json!({ "children": vec![Value::Null; 2001] }), "children: 2001 objects, at most 2000"),
        (json!({ "status": 5 }), "status: expected a map, got 5"),
        (json!({ "status": { "conditions": [] } }), "status.conditions"),
        (json!({ "conditions": [{ "status": true }] }), "conditions[1].type is missing"),
        (json!({ "conditions": [{ "type": "Ready" }] }), "conditions[1]: the status must be"),
        (
            json!({ "conditions": [{ "type": "A", "status": true }, { "type": "A", "status": true }] }),
            "conditions[2].type: there are two",
        ),
        (json!({ "conditions": [{ "type": "A", "state": true }] }), "conditions[1].state"),
        (
            json!({ "requeue": "soon" }),
            "requeue: expected seconds or a duration such as \"10m\", got \"soon\"",
        ),
    ];
    for (result, expected) in cases {
        let problem = DesiredState::read(Some(result), 1).expect_err(expected);
        assert!(problem.contains(expected), "{problem}: {expected}");
    }
    let problem = DesiredState::read(Some(json!({ "children": [1] })), 0).expect_err("no object");
    assert!(problem.starts_with("children[0]"), "Rhai counts from 0: {problem}");
}

#[test]
fn nothing_is_no_change_and_an_empty_list_is_no_children() {
    for nothing in [None, Some(Value::Null), Some(json!({}))] {
        let wanted = DesiredState::read(nothing, 1).expect("nothing");
        assert_eq!(wanted, DesiredState::default());
    }
    // Lua has one empty table.
    for empty in [json!([]), json!({}), json!([null])] {
        let wanted =
            DesiredState::read(Some(json!({ "children": empty })), 1).expect("no children");
        assert_eq!(wanted.children, Some(Vec::new()));
    }
}

#[test]
fn children_that_cannot_be_children_are_refused() {
    let with = |kind: &str, api: &str, meta: Value| json!({ "children": [{ "apiVersion": api, "kind": kind, "metadata": meta }] });
    let cases = [
        (with("Web", "kopf.dev/v1", json!({ "name": "web" })), "children[1]: it is its own parent"),
        (with("ConfigMap", "v1", json!({ "name": "above" })), "owns the parent"),
        (with("Namespace", "v1", json!({ "name": "a", "namespace": "b" })), "is cluster-scoped"),
        (with("Namespace", "v1", json!({ "name": "a" })), "`finalizer = true`"),
        (
            with("ConfigMap", "v1", json!({ "name": "a", "namespace": "b" })),
            "is in the namespace \"b\"",
        ),
    ];
    for (result, expected) in cases {
        let problem = children(&result, false).expect_err(expected);
        assert!(problem.contains(expected), "{problem}: {expected}");
    }
    let unowned = with("ConfigMap", "v1", json!({ "name": "above", "namespace": "b" }));
    let unowned = children(&unowned, true).expect("a child without owner").remove(0);
    assert_eq!(unowned.body.pointer("/metadata/ownerReferences"), None);
    assert_eq!(unowned.body.pointer("/metadata/labels/kopf.dev~1parent"), Some(&json!("u1")));
}

#[test]
fn each_child_is_compared_with_the_observed_one_of_its_name() {
    let all = ["a", "b", "c"].map(|it| one(it, &json!({ "x": "1" })));
    let mut known = KnownChildren::default();
    known.extend(all.iter().map(|it| applied(it, 5, 0)));
    let changed = |it: &Child| edited(&seen(it, 5), 8, |body| body["data"]["x"] = json!("2"));
    let observed = [changed(&all[2]), seen(&all[1], 5), changed(&all[0])];
    let plan = planned(&all, &observed, &mut known, 1);
    let applies: Vec<_> = plan.applies.iter().map(|it| (it.child, it.present)).collect();
    assert_eq!(applies, [(0, Some(2)), (2, Some(0))]);
}

#[test]
fn a_child_is_applied_once_and_again_only_if_something_has_changed() {
    let (child, mut known) = (one("a", &json!({ "x": "1" })), KnownChildren::default());
    let own = std::slice::from_ref(&child);
    let plan = planned(own, &[], &mut known, 0);
    assert_eq!((plan.applies.len(), plan.applies[0].present), (1, None));
    known.extend([applied(&child, 5, 0)]);
    let plan = planned(own, &[], &mut known, 1);
    assert!(plan.applies.is_empty(), "the watch has not shown it yet");
    assert_eq!(plan.recheck, Some(Duration::from_secs(10)));
    assert_eq!(planned(own, &[], &mut known, 10).applies.len(), 1, "nor later");
    let present = seen(&child, 5);
    assert_eq!(
        planned(own, std::slice::from_ref(&present), &mut known, 1),
        ChildrenPlan::default()
    );
    let busy = edited(&present, 6, |it| it["status"] = json!({ "ready": true }));
    assert_eq!(planned(own, &[busy], &mut known, 1), ChildrenPlan::default(), "its status");
    let defaulted = edited(&present, 7, |it| it["data"]["more"] = json!("2"));
    assert_eq!(
        planned(own, &[defaulted], &mut known, 1),
        ChildrenPlan::default(),
        "fields of others"
    );
    let changed = edited(&present, 8, |it| it["data"]["x"] = json!("2"));
    let plan = planned(own, &[changed], &mut known, 1);
    assert_eq!(plan.applies[0].present, Some(0));
    assert_eq!(planned(own, &[], &mut known, 1).applies.len(), 1, "somebody has deleted it");
    let newer = one("a", &json!({ "x": "3" }));
    let plan = planned(&[newer], &[present], &mut known, 1);
    assert_eq!(plan.applies[0].present, Some(0));
}

#[test]
fn the_watch_may_be_older_than_our_own_request() {
    let (before, after) = (one("a", &json!({ "x": "1" })), one("a", &json!({ "x": "2" })));
    let mut known = KnownChildren::default();
    known.extend([applied(&after, 9, 0)]);
    let old = seen(&before, 5);
    assert_eq!(planned(&[after], &[old], &mut known, 1), ChildrenPlan::default());
}

#[test]
fn after_a_restart_only_what_differs_is_applied() {
    let child = one("a", &json!({ "x": "1", "list": [{ "name": "b", "v": 1 }] }));
    let own = std::slice::from_ref(&child);
    let same = edited(&seen(&child, 5), 6, |it| {
        it["data"]["list"] =
            json!([{ "name": "side", "v": 0 }, { "name": "b", "v": 1, "default": true }]);
    });
    let mut known = KnownChildren::default();
    assert_eq!(planned(own, &[same], &mut known, 0), ChildrenPlan::default());
    assert_eq!(known.len(), 1);
    for edit in [json!([]), json!([{ "name": "b", "v": 2 }])] {
        let other = edited(&seen(&child, 5), 6, |it| it["data"]["list"] = edit);
        assert_eq!(planned(own, &[other], &mut KnownChildren::default(), 0).applies.len(), 1);
    }
    // A field that was applied before is not wanted any more: only an application can remove it.
    let less = one("a", &json!({ "x": "1" }));
    assert_eq!(
        planned(&[less], &[seen(&child, 5)], &mut KnownChildren::default(), 0).applies.len(),
        1
    );
}

#[test]
fn a_value_that_the_server_normalizes_is_applied_once() {
    let child = one("a", &json!({ "cpu": "1000m" }));
    let normal = edited(&seen(&child, 5), 5, |it| it["data"]["cpu"] = json!("1"));
    let (key, own) = applied(&child, 5, 0);
    let own = AppliedChild { content: content_after(normal.body(), &child.body), ..own };
    let mut known = KnownChildren::default();
    known.extend([(key, own)]);
    assert_eq!(planned(&[child], &[normal], &mut known, 1), ChildrenPlan::default());
}

#[test]
fn a_status_that_was_applied_may_be_changed_by_others() {
    let with = |phase: &str| {
        let mut object = map("a", &json!({ "x": "1" }));
        object["status"] = json!({ "phase": phase });
        children(&json!({ "children": [object] }), false).expect("a child").remove(0)
    };
    let child = with("New");
    let own = std::slice::from_ref(&child);
    let (present, mut known) = (seen(&child, 5), KnownChildren::default());
    assert_eq!(
        planned(own, std::slice::from_ref(&present), &mut known, 0),
        ChildrenPlan::default()
    );
    let ready = edited(&present, 6, |it| it["status"]["phase"] = json!("Ready"));
    assert_eq!(planned(own, std::slice::from_ref(&ready), &mut known, 1), ChildrenPlan::default());
    let changed = edited(&ready, 7, |it| it["data"]["x"] = json!("2"));
    assert_eq!(planned(own, &[changed], &mut known, 2).applies.len(), 1);
}

#[test]
fn another_text_of_the_same_version_is_compared() {
    let text = |it: &Observed| {
        let object = Object::parse(it.body().to_string().into()).expect("an object");
        Observed { object: Arc::new(object), ..it.clone() }
    };
    let child = one("a", &json!({ "x": "1" }));
    let present = text(&seen(&child, 5));
    let mut known = KnownChildren::default();
    known.extend([applied(&child, 5, 0)]);
    let children = std::slice::from_ref(&child);
    for _ in 0..2 {
        let present = std::slice::from_ref(&present);
        assert_eq!(planned(children, present, &mut known, 1), ChildrenPlan::default());
    }
    // A restored server counts its versions from an earlier one again.
    let restored = text(&edited(&present, 5, |it| it["data"]["x"] = json!("0")));
    assert_eq!(planned(children, &[restored], &mut known, 2).applies.len(), 1);
}

#[test]
fn a_child_is_unchanged_until_the_watch_shows_what_others_have_made_of_it() {
    let text = |it: &Observed| {
        let object = Object::parse(it.body().to_string().into()).expect("an object");
        Observed { object: Arc::new(object), ..it.clone() }
    };
    let child = one("a", &json!({ "x": "1" }));
    let mut known = KnownChildren::default();
    known.extend([applied(&child, 5, 0)]);
    let at = |version| text(&seen(&child, version));
    assert!(is_unchanged(&at(4), &mut known), "the watch is late");
    assert!(!known.get(&child.key).unwrap().is_seen);
    assert!(!is_unchanged(&at(6), &mut known), "another client was faster than the watch");
    assert!(is_unchanged(&at(5), &mut known) && is_unchanged(&at(5), &mut known));
    assert!(known.get(&child.key).unwrap().is_seen);
    let ending = |it: &mut Value| it["metadata"]["deletionTimestamp"] = json!("now");
    for (what, present) in [
        ("a change", at(6)),
        ("a restored server", text(&edited(&at(5), 5, |it| it["data"]["x"] = json!("0")))),
        ("a deletion", text(&edited(&at(5), 5, ending))),
        ("an unknown child", text(&seen(&one("b", &json!({})), 5))),
    ] {
        assert!(!is_unchanged(&present, &mut known), "{what}");
    }
}

#[test]
fn what_is_not_wanted_is_pruned_but_not_what_is_being_deleted() {
    let (a, b, c) = (one("a", &json!({})), one("b", &json!({})), one("c", &json!({})));
    let ending = edited(&seen(&c, 3), 4, |it| it["metadata"]["deletionTimestamp"] = json!("now"));
    let observed = [seen(&a, 1), seen(&b, 2), ending];
    let plan = planned(&[b], &observed, &mut KnownChildren::default(), 0);
    assert_eq!((plan.applies.len(), plan.prunes), (0, vec![0]));
    let plan = planned(&[c], &observed, &mut KnownChildren::default(), 0);
    assert!(plan.applies.is_empty(), "it is created again when its deletion has ended");
}

#[test]
fn two_children_of_one_name_are_refused() {
    let twice = [one("a", &json!({})), one("a", &json!({ "x": "1" }))];
    let problem = plan(&twice, &[], &mut KnownChildren::default(), ("fn", Duration::ZERO));
    assert_eq!(problem, Err("children[1]: ConfigMap ns/a is already wanted by children[1]".into()));
}

#[test]
fn children_of_an_earlier_id_are_taken_over() {
    let child = one("a", &json!({}));
    let former = edited(&seen(&child, 1), 1, |it| {
        it["metadata"]["labels"]["kopf.dev/reconciler"] = json!("old");
    });
    let plan = planned(&[child], &[former], &mut KnownChildren::default(), 0);
    assert_eq!(plan.applies[0].former.as_deref(), Some("old"));
}

#[test]
fn only_changes_of_the_status_are_sent() {
    let status = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "other": true });
    let of =
        |wanted: Value| Value::Object(changes(Some(&status), wanted.as_object().expect("a map")));
    assert_eq!(of(json!({ "a": 1, "b": { "c": 2, "d": 3 } })), json!({}));
    assert_eq!(of(json!({ "a": 2 })), json!({ "a": 2 }));
    assert_eq!(of(json!({ "b": { "c": 2 } })), json!({ "b": { "d": null } }));
    assert_eq!(of(json!({ "a": null, "none": null })), json!({ "a": null }));
}

#[test]
fn lists_contain_items_by_their_names() {
    let has = |object: Value, part: Value| contains(&object, &part);
    assert!(has(json!([1, 2]), json!([1, 2])) && !has(json!([1, 2, 3]), json!([1, 2])));
    assert!(has(json!({ "a": 1 }), json!({ "b": {}, "c": [], "d": null })));
    assert!(!has(json!({ "a": 1 }), json!({ "b": 0 })));
    assert!(!has(json!([{ "name": "a" }]), json!([{ "name": "b" }])));
}

#[test]
fn what_changes_again_and_again_is_slowed_down() {
    let mut pace = Pace::default();
    let at = Duration::from_secs;
    for call in 0..12 {
        assert_eq!(pace.note(["a".to_owned(), format!("other-{call}")], at(call)), None);
    }
    let pauses: Vec<_> =
        (12..22).filter_map(|call| pace.note(["a".to_owned()], at(call))).collect();
    let seconds: Vec<_> = pauses.iter().map(|it| it.pause.as_secs()).collect();
    assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    assert!(pauses[0].is_first && !pauses[1].is_first);
    assert_eq!((pauses[0].what.as_str(), pauses[0].count), ("a", 13));
    for call in 1..20 {
        let slow =
            pace.note(["a".to_owned()], at(60 * call)).expect("a change each minute is not calm");
        assert!(!slow.is_first, "{slow:?}");
    }
    assert_eq!(pace.note([], at(10_000)), None);
    assert_eq!(pace.note([], at(20_000)), None);
    assert_eq!(pace.note(["a".to_owned()], at(20_001)), None, "it is calm again");
}

#[test]
fn the_value_of_the_last_statement_of_finalize_is_ignored() {
    let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "status": {} });
    for ignored in [None, Some(&json!(true)), Some(&json!({ "a": 1 })), Some(&object)] {
        assert_eq!(check_finalized(ignored), Ok(()));
    }
    for field in ["children", "status", "conditions", "requeue"] {
        let refused = check_finalized(Some(&json!({ field: null }))).expect_err("refused");
        assert!(refused.contains(&format!("`{field}`")), "{refused}");
    }
}
