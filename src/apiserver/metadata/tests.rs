//! Metadata, compared with the responses of Kubernetes 1.20.2.

use serde_json::{Value, json};

use super::{
    KindFacts, NameFormat, carry_over, check_create, check_manager, check_update, generate_name,
    names, normalize, reset,
};
use crate::refusal::{Refusal, ValidationProblem};

const NATIVE: KindFacts =
    KindFacts { names: NameFormat::Subdomain, namespaced: true, native: true };
const CUSTOM: KindFacts = KindFacts { native: false, ..NATIVE };

fn last(faults: &[String]) -> String {
    faults.last().cloned().unwrap_or_default()
}

/// Abbreviates the rules for names.
fn brief(problems: &[ValidationProblem]) -> String {
    let texts: Vec<String> =
        problems.iter().map(|it| format!("{}: {}", it.field, it.text())).collect();
    let mut text = texts.join(", ");
    let rules = [
        ("NAME", last(&names::qualified_name("-"))),
        ("QUAL", last(&names::qualified_name("a/b/c"))),
        ("SUBDOMAIN", last(&names::dns_subdomain("-"))),
        ("VALUE", last(&names::label_value("-"))),
        ("LABEL", last(&names::dns_label("-"))),
    ];
    for (short, rule) in rules {
        text = text.replace(&rule, short);
    }
    text.replace("metadata.", "")
}

fn object(metadata: &Value) -> Value {
    let mut object = json!({ "metadata": { "name": "m", "namespace": "ns" } });
    for (field, value) in metadata.as_object().into_iter().flatten() {
        object["metadata"][field] = value.clone();
    }
    object
}

#[test]
fn names_have_the_format_of_their_kind() {
    let (long, longer) = ("a".repeat(64), "a".repeat(254));
    let sub =
        ["A", "a_b", "-a", "a-", "a..b", ".a", ".", "..", "a/b", "a%b", "a b", "é", "x:y", "a\n"];
    for name in sub {
        assert_eq!(
            last(&NameFormat::Subdomain.faults(name, false)),
            last(&names::dns_subdomain("-")),
            "{name}"
        );
        assert_eq!(
            last(&NameFormat::Label.faults(name, false)),
            last(&names::dns_label("-")),
            "{name}"
        );
    }
    let cases: [(NameFormat, &str, &str); 19] = [
        (NameFormat::Subdomain, "a.b", ""),
        (NameFormat::Subdomain, "1a", ""),
        (NameFormat::Subdomain, &long, ""),
        (NameFormat::Subdomain, &longer, "must be no more than 253 characters"),
        (NameFormat::Label, "1a", ""),
        (NameFormat::Label, &long, "must be no more than 63 characters"),
        (NameFormat::Label, "a.b", "must not contain dots"),
        (NameFormat::PathSegment, "A", ""),
        (NameFormat::PathSegment, "system:x", ""),
        (NameFormat::PathSegment, "a b", ""),
        (NameFormat::PathSegment, "é", ""),
        (NameFormat::PathSegment, &longer, ""),
        (NameFormat::PathSegment, "..a", ""),
        (NameFormat::PathSegment, ".", "may not be '.'"),
        (NameFormat::PathSegment, "..", "may not be '..'"),
        (NameFormat::PathSegment, "a/b", "may not contain '/'"),
        (NameFormat::PathSegment, "a%b", "may not contain '%'"),
        (NameFormat::PathSegment, "a/%", "may not contain '/', may not contain '%'"),
        (NameFormat::Subdomain, "a", ""),
    ];
    for (format, name, expected) in cases {
        assert_eq!(format.faults(name, false).join(", "), expected, "{name}");
    }
}

#[test]
fn prefixes_of_names_may_end_with_a_dash() {
    for (start, good) in [
        ("a-", true),
        ("a", true),
        ("a.", false),
        ("a_", false),
        ("-a", false),
        ("A", false),
        ("-", false),
        ("a.-", true),
    ] {
        assert_eq!(NameFormat::Subdomain.faults(start, true).is_empty(), good, "{start}");
    }
    let text = "generateName: Invalid value: \"a_\": SUBDOMAIN, name: Invalid value: \"a_w8sh8\": SUBDOMAIN";
    let problems =
        check_create(CUSTOM, &object(&json!({ "generateName": "a_", "name": "a_w8sh8" })));
    assert_eq!(brief(&problems), text);
    assert!(NameFormat::PathSegment.faults("a-", true).is_empty());
}

#[test]
fn kinds_have_formats() {
    let cases = [
        ("", "namespaces", NameFormat::Label),
        ("", "services", NameFormat::Label),
        ("", "pods", NameFormat::Subdomain),
        ("rbac.authorization.k8s.io", "roles", NameFormat::PathSegment),
        ("x.y", "namespaces", NameFormat::Subdomain),
    ];
    for (group, plural, format) in cases {
        assert_eq!(NameFormat::of(group, plural), format, "{plural}");
    }
}

/// Compares the problems of metadata for native and for custom kinds; `=` means the same.
fn check_new(cases: &[(Value, &str, &str)]) {
    for (metadata, native, custom) in cases {
        let custom = if *custom == "=" { native } else { custom };
        let show = |facts| {
            let text = brief(&check_create(facts, &object(metadata)));
            text.replace(&"x".repeat(64), "X64")
        };
        assert_eq!(show(NATIVE), *native, "{metadata}");
        assert_eq!(show(CUSTOM), *custom, "{metadata}");
    }
}

#[test]
fn labels_and_annotations_are_validated_as_by_the_real_server() {
    let x64 = "x".repeat(64);
    check_new(&[
        (json!({ "labels": { "a b": "c" } }), "labels: Invalid value: \"a b\": NAME", "="),
        (json!({ "labels": { "a": "c d" } }), "labels: Invalid value: \"c d\": VALUE", "="),
        (
            json!({ "labels": { "": "x" } }),
            "labels: Invalid value: \"\": name part must be non-empty, labels: Invalid value: \"\": NAME",
            "=",
        ),
        (json!({ "labels": { "a/b/c": "x" } }), "labels: Invalid value: \"a/b/c\": QUAL", "="),
        (
            json!({ "labels": { "/a": "x" } }),
            "labels: Invalid value: \"/a\": prefix part must be non-empty",
            "=",
        ),
        (
            json!({ "labels": { "A_B/x": "x" } }),
            "labels: Invalid value: \"A_B/x\": prefix part SUBDOMAIN",
            "=",
        ),
        (
            json!({ "labels": { x64.as_str(): "x" } }),
            "labels: Invalid value: \"X64\": name part must be no more than 63 bytes",
            "=",
        ),
        (
            json!({ "labels": { "a": x64 } }),
            "labels: Invalid value: \"X64\": must be no more than 63 bytes",
            "=",
        ),
        (json!({ "labels": { "a": "" } }), "", "="),
        (
            json!({ "labels": { "a b": "c d", "e f": "g h" } }),
            "labels: Invalid value: \"a b\": NAME, labels: Invalid value: \"c d\": VALUE, labels: Invalid value: \"e f\": NAME, labels: Invalid value: \"g h\": VALUE",
            "=",
        ),
        (
            json!({ "annotations": { "a b": "x" } }),
            "annotations: Invalid value: \"a b\": NAME",
            "=",
        ),
        (json!({ "annotations": { "A/B": "x y" } }), "", "="),
        (
            json!({ "annotations": { "a": "x".repeat(262_144) } }),
            "annotations: Too long: may not be more than 262144 bytes",
            "=",
        ),
        (json!({ "annotations": { "a": "x".repeat(262_143) } }), "", "="),
    ]);
}

#[test]
fn new_objects_are_validated_as_by_the_real_server() {
    check_new(&[
        (json!({}), "", "="),
        (json!({ "name": null }), "name: Required value: name or generateName is required", "="),
        (
            json!({ "finalizers": ["x"] }),
            "finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified",
            "",
        ),
        (
            json!({ "finalizers": ["x y"] }),
            "finalizers: Invalid value: \"x y\": NAME, finalizers[0]: Invalid value: \"x y\": name is neither a standard finalizer name nor is it fully qualified",
            "finalizers: Invalid value: \"x y\": NAME",
        ),
        (json!({ "finalizers": ["a/b", "a/b", "kubernetes"] }), "", "="),
        (
            json!({ "finalizers": ["orphan", "foregroundDeletion"] }),
            "finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be both set",
            "=",
        ),
        (
            json!({ "ownerReferences": [{}] }),
            "ownerReferences.apiVersion: Invalid value: \"\": version must not be empty, ownerReferences.kind: Invalid value: \"\": must not be empty, ownerReferences.name: Invalid value: \"\": must not be empty, ownerReferences.uid: Invalid value: \"\": must not be empty",
            "=",
        ),
        (
            json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u" }] }),
            "ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"x\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner",
            "=",
        ),
        (
            json!({ "ownerReferences": [{ "apiVersion": "a/b/c", "kind": "Pod", "name": "x", "uid": "u" }] }),
            "ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
            "=",
        ),
        (
            json!({ "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": true }, { "apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u" }] }),
            "",
            "=",
        ),
        (
            json!({ "generation": -1 }),
            "generation: Invalid value: -1: must be greater than or equal to 0",
            "=",
        ),
        (json!({ "generateName": "A" }), "generateName: Invalid value: \"A\": SUBDOMAIN", "="),
        (json!({ "namespace": "" }), "namespace: Required value", "="),
        (json!({ "namespace": "A" }), "namespace: Invalid value: \"A\": LABEL", "="),
        (
            json!({ "name": "A B", "labels": { "a b": "c" }, "annotations": { "a b": "" }, "finalizers": ["?"] }),
            "name: Invalid value: \"A B\": SUBDOMAIN, labels: Invalid value: \"a b\": NAME, annotations: Invalid value: \"a b\": NAME, finalizers: Invalid value: \"?\": NAME, finalizers[0]: Invalid value: \"?\": name is neither a standard finalizer name nor is it fully qualified",
            "name: Invalid value: \"A B\": SUBDOMAIN, labels: Invalid value: \"a b\": NAME, annotations: Invalid value: \"a b\": NAME, finalizers: Invalid value: \"?\": NAME",
        ),
    ]);
}

#[test]
fn only_one_owner_is_the_controller() {
    let owner = |name: &str| json!({ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u", "controller": true });
    let problems =
        check_create(NATIVE, &object(&json!({ "ownerReferences": [owner("x"), owner("y")] })));
    let text = brief(&problems);
    assert!(text.starts_with("ownerReferences: Invalid value: [{\"apiVersion\":\"v1\","), "{text}");
    let end = "Only one reference can have Controller set to true. Found \"true\" in references for Pod/x and Pod/y";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn problems_of_a_long_list_do_not_repeat_it_for_each_item() {
    let owners: Vec<Value> = (0..5_000).map(|_| json!({ "controller": true })).collect();
    let problems = check_create(NATIVE, &object(&json!({ "ownerReferences": owners })));
    let reported: usize = problems.iter().map(|it| it.text().len()).sum();
    assert!(reported < 20_000_000, "{reported}");

    let problems = check_manager(&"\u{1}".repeat(100_000));
    assert!(problems.len() < 200, "{}", problems.len());
}

#[test]
#[expect(clippy::disallowed_types, reason = "it measures the time of the machine")]
fn finalizers_are_compared_quickly() {
    let many = |from: usize| (from..from + 100_000).map(|it| format!("a/b{it}"));
    let marked = |from: usize| {
        let finalizers: Vec<String> = many(from).collect();
        object(&json!({ "finalizers": finalizers, "deletionTimestamp": "2026-01-01T00:00:00Z" }))
    };
    let started = std::time::Instant::now();
    assert!(!check_update(NATIVE, &marked(50_000), &marked(0)).is_empty());
    assert!(started.elapsed().as_secs() < 60, "it is quadratic");
}

#[test]
fn objects_without_namespaces_have_none() {
    let facts = KindFacts { namespaced: false, ..NATIVE };
    assert_eq!(
        brief(&check_create(facts, &object(&json!({})))),
        "namespace: Forbidden: not allowed on this type"
    );
    assert_eq!(check_create(facts, &object(&json!({ "namespace": null }))), []);
}

fn old() -> Value {
    object(&json!({
        "uid": "u", "resourceVersion": "5", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 3,
        "finalizers": ["a/b"],
    }))
}

fn update(old: &Value, changes: &Value) -> Vec<ValidationProblem> {
    let mut new = old.clone();
    json_patch::merge(&mut new, &json!({ "metadata": changes }));
    carry_over(&mut new, old);
    check_update(NATIVE, &new, old)
}

#[test]
fn changes_are_refused_or_undone_as_by_the_real_server() {
    let cases = [
        (json!({}), ""),
        (json!({ "uid": "zz" }), "uid: Invalid value: \"zz\": field is immutable"),
        (json!({ "uid": null, "namespace": null, "resourceVersion": null }), ""),
        (
            json!({ "generation": 7, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "/x" }),
            "",
        ),
        (
            json!({ "deletionTimestamp": "2020-01-01T00:00:00Z" }),
            "deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": field is immutable",
        ),
        (
            json!({ "deletionGracePeriodSeconds": 7 }),
            "deletionGracePeriodSeconds: Invalid value: 7: field is immutable",
        ),
        (
            json!({ "finalizers": ["x"] }),
            "finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified",
        ),
        (
            json!({ "finalizers": ["foregroundDeletion", "orphan"] }),
            "finalizers: Invalid value: [\"foregroundDeletion\",\"orphan\"]: finalizer orphan and foregroundDeletion cannot be both set",
        ),
        (json!({ "finalizers": null, "labels": { "a": "b" }, "generateName": "x-", "foo": 1 }), ""),
        (json!({ "labels": { "a b": "c" } }), "labels: Invalid value: \"a b\": NAME"),
    ];
    for (changes, expected) in cases {
        let mut problems = update(&old(), &changes);
        problems.dedup_by(|a, b| a == b);
        let refusal = Refusal::invalid("", "K", "m", &problems).message;
        let got = if problems.is_empty() { String::new() } else { brief(&problems[..1]) };
        assert_eq!(got, expected, "{changes}: {refusal}");
    }
}

#[test]
fn a_deleted_object_stays_deleted_and_gets_no_new_finalizers() {
    let mut marked = old();
    marked["metadata"]["deletionTimestamp"] = "2026-02-02T00:00:00Z".into();
    marked["metadata"]["deletionGracePeriodSeconds"] = 0.into();
    let cases = [
        (json!({ "deletionTimestamp": null, "deletionGracePeriodSeconds": null }), ""),
        (json!({ "deletionTimestamp": "2020-01-01T00:00:00Z" }), ""),
        (
            json!({ "deletionGracePeriodSeconds": 7 }),
            "deletionGracePeriodSeconds: Invalid value: 7: field is immutable",
        ),
        (
            json!({ "finalizers": ["a/b", "c/d"] }),
            "finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"c/d\"}",
        ),
        (json!({ "finalizers": null }), ""),
    ];
    for (changes, expected) in cases {
        let problems = update(&marked, &changes);
        assert_eq!(brief(problems.get(..1).unwrap_or_default()), expected, "{changes}");
    }
}

#[test]
fn a_refused_update_repeats_its_causes_like_the_real_server() {
    // Recorded: the causes of a refused change of a Deployment.
    let problems = update(
        &old(),
        &json!({
            "uid": "x", "labels": { "a b": "c" }, "annotations": { "q r": "" }, "finalizers": ["x y"],
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Event", "name": "x", "uid": "y" }],
            "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 4,
        }),
    );
    let fields: Vec<&str> =
        problems.iter().map(|it| it.field.trim_start_matches("metadata.")).collect();
    let changed = [
        "uid",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
    ];
    let first = ["labels", "annotations", "ownerReferences", "finalizers"];
    assert_eq!(fields, [&first[..], &changed, &changed, &["finalizers[0]"]].concat());
}

#[test]
fn generated_names_are_short_and_random() {
    let mut turn = 0;
    let mut random = |below: usize| {
        turn += 7;
        turn % below
    };
    let name = generate_name("a-", &mut random);
    assert_eq!(name, "a-ks4cl");
    assert_ne!(generate_name("a-", &mut random), name);
    assert_eq!(generate_name(&"b".repeat(60), |_| 0), format!("{}bbbbb", "b".repeat(58)));
    assert_eq!(generate_name(&"é".repeat(60), |_| 26).len(), 63);
    assert_eq!(generate_name("", |_| usize::MAX), "77777");
}

#[test]
fn clients_cannot_set_the_fields_of_the_server() {
    let mut new = object(&json!({
        "uid": "u", "resourceVersion": "x", "selfLink": "x", "clusterName": "c", "creationTimestamp": "2020-01-01T00:00:00Z",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5, "generation": 7, "labels": { "a": "b" },
    }));
    reset(&mut new);
    assert_eq!(new, object(&json!({ "generation": 7, "labels": { "a": "b" } })));
}

#[test]
fn nulls_count_as_missing_or_as_empty_strings() {
    let mut new = object(&json!({
        "labels": { "a": null }, "annotations": null, "finalizers": [], "ownerReferences": null, "creationTimestamp": null,
    }));
    normalize(&mut new);
    assert_eq!(new, object(&json!({ "labels": { "a": "" } })));
}

#[test]
fn managers_have_short_printable_names() {
    let text = |name: &str| brief(&check_manager(name));
    assert_eq!(text("é"), "");
    assert_eq!(text(&"a".repeat(128)), "");
    assert_eq!(text(&"a".repeat(129)), "fieldManager: Too long: may not be more than 128 bytes");
    assert_eq!(
        text("\u{1}"),
        "fieldManager: Invalid value: \"\\x01\": invalid character U+0001 (at position 0)"
    );
}
