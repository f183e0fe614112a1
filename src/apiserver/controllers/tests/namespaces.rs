//! Namespaces and CRDs, from creation to deletion.

use expect_test::expect;

use super::*;
use crate::resource::CRDS;

const NAMESPACES: Controllers = Controllers {
    garbage: false,
    namespaces: true,
    definitions: true,
    workloads: false,
    kubelet: false,
};

fn namespace() -> Value {
    json!({
        "metadata": { "name": "ns" },
        "spec": { "finalizers": ["kubernetes"] },
        "status": { "phase": "Active" },
    })
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_its_namespaces_with_their_initial_objects() {
    let cluster = TestCluster::new(NAMESPACES);
    cluster
        .check(
            1,
            expect![[r"
        0 + namespaces default Active
        0 + namespaces kube-node-lease Active
        0 + namespaces kube-public Active
        0 + namespaces kube-system Active
        0 + serviceaccounts default/default
        0 + configmaps default/kube-root-ca.crt
        0 + serviceaccounts kube-node-lease/default
        0 + configmaps kube-node-lease/kube-root-ca.crt
        0 + serviceaccounts kube-public/default
        0 + configmaps kube-public/kube-root-ca.crt
        0 + serviceaccounts kube-system/default
        0 + configmaps kube-system/kube-root-ca.crt"]],
        )
        .await;
    cluster.create("namespaces", json!({ "metadata": { "name": "ns" } }));
    cluster
        .check(
            1,
            expect![[r"
                1 + namespaces ns Active
                1 + serviceaccounts ns/default
                1 + configmaps ns/kube-root-ca.crt"]],
        )
        .await;
    cluster.delete("serviceaccounts", "default");
    cluster.check(1, expect![""]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_is_emptied_and_then_removed() {
    let cluster = TestCluster::new(NAMESPACES);
    cluster.create("namespaces", namespace());
    for (name, finalizers) in
        [("a", json!([])), ("b", json!(["x.dev/f"])), ("c", json!(["x.dev/f", "y.dev/f"]))]
    {
        let metadata = json!({ "name": name, "namespace": "ns", "finalizers": finalizers });
        cluster.create("secrets", json!({ "metadata": metadata }));
    }
    cluster.wait(1).await;
    cluster.server.delete("namespaces", "", "ns").expect("a deletion");
    cluster.check(1, expect![[r"
        1 ~ namespaces ns Terminating; NamespaceDeletionDiscoveryFailure=False ResourcesDiscovered, NamespaceDeletionGroupVersionParsingFailure=False ParsedGroupVersions, NamespaceDeletionContentFailure=False ContentDeleted, NamespaceContentRemaining=True SomeResourcesRemain, NamespaceFinalizersRemaining=True SomeFinalizersRemain; deleting
        1 - configmaps ns/kube-root-ca.crt
        1 - secrets ns/a
        1 ~ secrets ns/b held by x.dev/f; deleting
        1 ~ secrets ns/c held by x.dev/f, y.dev/f; deleting
        1 - serviceaccounts ns/default"]]).await;
    let namespace = cluster.server.get("namespaces", "", "ns").expect("a namespace");
    let messages = super::super::conditions::all(&namespace);
    let messages: Vec<&str> = messages.iter().map(|it| text(it, "/message")).collect();
    expect![[r"
        All resources successfully discovered
        All legacy kube types successfully parsed
        All content successfully deleted, may be waiting on finalization
        Some resources are remaining: secrets. has 2 resource instances
        Some content in the namespace has finalizers remaining: x.dev/f in 2 resource instances, y.dev/f in 1 resource instances"]].assert_eq(&messages.join("\n"));
    cluster.merge("secrets", "b", json!({ "metadata": { "finalizers": null } }));
    cluster.check(1, expect!["2 - secrets ns/b"]).await;
    cluster.merge("secrets", "c", json!({ "metadata": { "finalizers": null } }));
    cluster
        .check(
            1,
            expect![[r"
        3 - secrets ns/c
        3 - namespaces ns"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_empty_namespace_is_removed_at_once_unless_it_has_other_finalizers() {
    let cluster = TestCluster::new(NAMESPACES);
    let mut held = namespace();
    held["spec"]["finalizers"] = json!(["kubernetes", "z.dev/f"]);
    cluster.create("namespaces", held);
    cluster.wait(1).await;
    cluster.server.delete("namespaces", "", "ns").expect("a deletion");
    cluster.wait(1).await;
    let left = cluster.server.get("namespaces", "", "ns").expect("a namespace");
    assert_eq!(left["spec"]["finalizers"], json!(["z.dev/f"]));
    cluster
        .server
        .merge("namespaces", "", "ns", json!({ "spec": { "finalizers": [] } }))
        .expect("a change");
    cluster.check(1, expect!["2 - namespaces ns"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_deleted_crd_is_removed_after_its_objects() {
    let cluster = TestCluster::new(NAMESPACES);
    cluster.wait(1).await;
    cluster.create(
        CRDS,
        json!({
            "metadata": { "name": "foos.control.dev" },
            "spec": {
                "group": "control.dev",
                "scope": "Namespaced",
                "names": { "plural": "foos", "kind": "Foo" },
                "versions": [{ "name": "v1", "served": true, "storage": true }],
            },
        }),
    );
    cluster.create("foos.control.dev", json!({ "metadata": meta("f1") }));
    let held = json!({ "name": "f2", "namespace": "ns", "finalizers": ["x.dev/f"] });
    cluster.create("foos.control.dev", json!({ "metadata": held }));
    cluster.wait(1).await;
    cluster.server.delete(CRDS, "", "foos.control.dev").expect("a deletion");
    cluster.check(1, expect![[r"
        2 ~ customresourcedefinitions.apiextensions.k8s.io foos.control.dev held by customresourcecleanup.apiextensions.k8s.io; deleting
        2 - foos.control.dev ns/f1
        2 ~ foos.control.dev ns/f2 held by x.dev/f; deleting"]]).await;
    let definition = cluster.server.get(CRDS, "", "foos.control.dev").expect("a definition");
    let condition =
        super::super::conditions::find(&definition, "Terminating").expect("a condition");
    assert_eq!(condition["reason"], "InstanceDeletionInProgress");
    cluster.merge("foos.control.dev", "f2", json!({ "metadata": { "finalizers": null } }));
    cluster
        .check(1, expect!["3 - customresourcedefinitions.apiextensions.k8s.io foos.control.dev"])
        .await;
}
