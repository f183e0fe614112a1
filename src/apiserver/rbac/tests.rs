//! Policies without a server.

use serde_json::{Value, json};

use super::{
    AccessRecord, Accesses, Attributes, User,
    policy::{Decision, Policy, RbacObjects},
    rule::PolicyRule,
};

fn role(name: &str, rules: &Value) -> Value {
    json!({ "metadata": { "name": name }, "rules": rules })
}

fn binding(name: &str, (kind, role): (&str, &str), subjects: &Value) -> Value {
    json!({ "metadata": { "name": name }, "roleRef": { "kind": kind, "name": role }, "subjects": subjects })
}

fn inside(namespace: &str, mut object: Value) -> Value {
    object["metadata"]["namespace"] = namespace.into();
    object
}

fn decide(objects: &RbacObjects, user: &User, method: &str, url: &str) -> Decision {
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    Policy::new(objects).decide(user, &Attributes::of(method, path, query))
}

fn operator() -> User {
    User::service_account("ns1", "op")
}

fn of_account() -> Value {
    json!([{ "kind": "ServiceAccount", "namespace": "ns1", "name": "op" }])
}

#[test]
fn requests_have_the_verbs_of_rules() {
    let shown = |method: &str, url: &str| {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let it = Attributes::of(method, path, query);
        let path = it.path.clone();
        let parts = [it.group.clone(), it.combined(), it.namespace, it.name, path];
        format!("{} {}", it.verb, parts.join("|"))
    };
    for (method, url, expected) in [
        ("GET", "/api/v1/pods", "list |pods|||"),
        ("GET", "/api/v1/pods?watch=true", "watch |pods|||"),
        ("GET", "/api/v1/pods?watch=false", "list |pods|||"),
        ("GET", "/api/v1/watch/pods", "watch |pods|||"),
        ("HEAD", "/api/v1/namespaces/n/pods/p", "get |pods|n|p|"),
        ("GET", "/api/v1/namespaces/n", "get |namespaces|n|n|"),
        ("PUT", "/api/v1/namespaces/n/finalize", "update |namespaces/finalize|n|n|"),
        ("GET", "/api/v1/pods?fieldSelector=metadata.name%3Dx&watch=1", "watch |pods||x|"),
        ("PATCH", "/apis/g/v1/things/t/status", "patch g|things/status||t|"),
        ("DELETE", "/apis/g/v1/namespaces/n/things", "deletecollection g|things|n||"),
        ("DELETE", "/apis/g/v1/namespaces/n/things/t", "delete g|things|n|t|"),
        ("POST", "/api/v1/namespaces/n/pods/p/eviction", "create |pods/eviction|n|p|"),
        ("GET", "/api/v1/namespaces/n/services/s/proxy/a/b", "get |services/proxy|n|s|"),
        ("GET", "/apis/g/v1", "get ||||/apis/g/v1"),
        ("POST", "/version", "post ||||/version"),
    ] {
        assert_eq!(shown(method, url), expected, "{method} {url}");
    }
}

#[test]
fn cluster_roles_bound_in_a_namespace_count_only_there() {
    let objects = RbacObjects {
        cluster_roles: vec![role(
            "reader",
            &json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"] }]),
        )],
        bindings: vec![inside("ns2", binding("b", ("ClusterRole", "reader"), &of_account()))],
        ..RbacObjects::default()
    };
    let decide = |method: &str, url: &str| decide(&objects, &operator(), method, url);
    let allowed = decide("GET", "/api/v1/namespaces/ns2/pods");
    let reason = r#"RBAC: allowed by RoleBinding "b/ns2" of ClusterRole "reader" to ServiceAccount "op/ns1""#;
    assert_eq!(allowed, Decision { allowed: true, reason: reason.into() });
    for (method, url) in [
        ("GET", "/api/v1/pods"),
        ("GET", "/api/v1/namespaces/ns1/pods"),
        ("GET", "/api/v1/namespaces/ns2/pods/p/log"),
        ("DELETE", "/api/v1/namespaces/ns2/pods/p"),
        ("GET", "/api/v1/namespaces/ns2/pods?watch=1"),
        ("GET", "/apis/apps/v1/namespaces/ns2/pods"),
    ] {
        assert_eq!(decide(method, url), Decision::default(), "{method} {url}");
    }
}

#[test]
fn rules_match_wildcards_names_and_subresources() {
    let cases = [
        (json!({ "apiGroups": ["*"], "resources": ["*/status"], "verbs": ["patch"] }), true),
        (json!({ "apiGroups": ["kopf.dev"], "resources": ["things/*"], "verbs": ["*"] }), false),
        (json!({ "apiGroups": ["kopf.dev"], "resources": ["things"], "verbs": ["patch"] }), false),
        (json!({ "apiGroups": ["kopf.dev"], "resources": ["*"], "verbs": ["patch"] }), true),
        (json!({ "apiGroups": [""], "resources": ["*"], "verbs": ["patch"] }), false),
        (
            json!({ "apiGroups": ["kopf.dev"], "resources": ["things/status"], "resourceNames": ["t"], "verbs": ["patch"] }),
            true,
        ),
        (
            json!({ "apiGroups": ["kopf.dev"], "resources": ["things/status"], "resourceNames": ["u"], "verbs": ["patch"] }),
            false,
        ),
    ];
    let wanted = Attributes::of("PATCH", "/apis/kopf.dev/v1/namespaces/n/things/t/status", "");
    for (rule, expected) in cases {
        let rules = PolicyRule::all(&json!({ "rules": [rule] }));
        assert_eq!(rules.iter().any(|it| it.allows(&wanted)), expected, "{rule}");
    }
}

#[test]
fn aggregated_roles_have_the_rules_of_those_they_select_at_once() {
    let labelled = |name: &str, label: &str, mut role: Value| {
        role["metadata"] = json!({ "name": name, "labels": { label: "true" } });
        role
    };
    let selects =
        |label: &str| json!({ "clusterRoleSelectors": [{ "matchLabels": { label: "true" } }] });
    let rules = json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]);
    let objects = RbacObjects {
        cluster_roles: vec![
            json!({ "metadata": { "name": "all" }, "aggregationRule": selects("to-all"), "rules": null }),
            labelled("some", "to-all", json!({ "aggregationRule": selects("to-some") })),
            labelled("one", "to-some", json!({ "rules": rules })),
        ],
        cluster_bindings: vec![binding("b", ("ClusterRole", "all"), &of_account())],
        ..RbacObjects::default()
    };
    assert!(decide(&objects, &operator(), "GET", "/api/v1/namespaces/x/pods/p").allowed);
    assert!(!decide(&objects, &operator(), "GET", "/api/v1/namespaces/x/secrets/p").allowed);
}

#[test]
fn missing_roles_are_named_in_the_reason() {
    let objects = RbacObjects {
        cluster_bindings: vec![
            binding("a", ("ClusterRole", "x"), &of_account()),
            binding("b", ("ClusterRole", "y"), &of_account()),
        ],
        ..RbacObjects::default()
    };
    let reason = decide(&objects, &operator(), "GET", "/api/v1/pods").reason;
    let problem = |name: &str| format!("clusterrole.rbac.authorization.k8s.io {name:?} not found");
    assert_eq!(reason, format!("RBAC: [{}, {}]", problem("x"), problem("y")));
}

#[test]
fn only_service_accounts_have_the_groups_of_their_namespace() {
    assert_eq!(operator().as_service_account(), Some(("ns1", "op")));
    let groups = ["system:serviceaccounts", "system:serviceaccounts:ns1", "system:authenticated"];
    assert_eq!(operator().groups, groups);
    for name in [
        "op",
        "system:serviceaccount:ns1",
        "system:serviceaccount:a:b:c",
        "system:serviceaccount::b",
    ] {
        assert_eq!(User::named(name).as_service_account(), None, "{name}");
        assert_eq!(User::named(name).groups, ["system:authenticated"], "{name}");
    }
    assert_eq!(User::named("system:anonymous").groups, ["system:unauthenticated"]);
}

#[test]
fn a_rule_covers_what_it_allows_and_no_more() {
    let rule = |it: Value| PolicyRule::all(&json!({ "rules": [it] })).remove(0);
    let all = rule(json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }));
    let named = rule(
        json!({ "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"], "verbs": ["get"] }),
    );
    let plain = rule(json!({ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }));
    let paths = rule(json!({ "nonResourceURLs": ["/x/*"], "verbs": ["get"] }));
    assert!(all.covers(&named) && plain.covers(&named) && !named.covers(&plain));
    assert!(
        !all.covers(&paths)
            && paths.covers(&rule(json!({ "nonResourceURLs": ["/x/y"], "verbs": ["get"] })))
    );
}

#[test]
fn the_record_counts_repeated_accesses_and_is_bounded() {
    let mut accesses = Accesses::default();
    let access = |name: &str| AccessRecord {
        user: "bob".into(),
        attributes: Attributes { name: name.into(), ..Attributes::of("GET", "/api/v1/pods", "") },
        allowed: true,
    };
    for index in 0..10_005 {
        accesses.add(access(&index.to_string()));
    }
    accesses.add(access("7"));
    assert_eq!((accesses.counts.len(), accesses.dropped), (10_000, 5));
    assert_eq!(accesses.counts[&access("7")], 2);
}
