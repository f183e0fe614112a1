//! Deletion of dependents and owners.

use expect_test::expect;

use super::*;

const GARBAGE: Controllers = Controllers {
    garbage: true,
    namespaces: false,
    definitions: false,
    workloads: false,
    kubelet: false,
};

fn config_map(name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    json!({ "metadata": {
        "name": name,
        "namespace": "ns",
        "ownerReferences": owners,
        "finalizers": finalizers,
    } })
}

/// Creates an owner with three dependents: one that blocks, one with a finalizer that does not block, one with both.
fn family(cluster: &TestCluster) {
    let owner = cluster.create("configmaps", config_map("owner", &[], &[]));
    cluster.create("configmaps", config_map("d1", &[owned_by(&owner, true)], &[]));
    cluster.create("configmaps", config_map("d2", &[owned_by(&owner, false)], &["x.dev/f"]));
    cluster.create("configmaps", config_map("d3", &[owned_by(&owner, true)], &["x.dev/f"]));
}

#[tokio::test(start_paused = true)]
async fn a_background_deletion_removes_the_owner_before_its_dependents() {
    let cluster = TestCluster::new(GARBAGE);
    family(&cluster);
    cluster.wait(1).await;
    cluster.delete("configmaps", "owner");
    cluster
        .check(
            1,
            expect![[r"
        1 - configmaps ns/owner
        1 - configmaps ns/d1
        1 ~ configmaps ns/d2 held by x.dev/f; deleting
        1 ~ configmaps ns/d3 held by x.dev/f; deleting"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_blocking_dependents() {
    let cluster = TestCluster::new(GARBAGE);
    family(&cluster);
    cluster.merge(
        "configmaps",
        "owner",
        json!({ "metadata": { "finalizers": ["foregroundDeletion"] } }),
    );
    cluster.wait(1).await;
    cluster.delete("configmaps", "owner");
    cluster
        .check(
            1,
            expect![[r"
        1 ~ configmaps ns/owner held by foregroundDeletion; deleting
        1 - configmaps ns/d1
        1 ~ configmaps ns/d2 held by x.dev/f; deleting
        1 ~ configmaps ns/d3 held by x.dev/f; deleting"]],
        )
        .await;
    cluster.merge("configmaps", "d3", json!({ "metadata": { "finalizers": null } }));
    cluster
        .check(
            1,
            expect![[r"
        2 - configmaps ns/d3
        2 - configmaps ns/owner"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn orphans_lose_their_owner_reference() {
    let cluster = TestCluster::new(GARBAGE);
    family(&cluster);
    cluster.merge("configmaps", "owner", json!({ "metadata": { "finalizers": ["orphan"] } }));
    cluster.wait(1).await;
    cluster.delete("configmaps", "owner");
    cluster.check(1, expect!["1 - configmaps ns/owner"]).await;
    assert_eq!(cluster.get("configmaps", "d1")["metadata"].get("ownerReferences"), None);
}

#[tokio::test(start_paused = true)]
async fn one_existing_owner_is_enough_and_references_to_others_are_removed() {
    let cluster = TestCluster::new(GARBAGE);
    let [a, b] = ["a", "b"].map(|it| cluster.create("configmaps", config_map(it, &[], &[])));
    let owners = [owned_by(&a, true), owned_by(&b, true)];
    cluster.create("configmaps", config_map("d", &owners, &[]));
    cluster.delete("configmaps", "a");
    cluster.wait(1).await;
    assert_eq!(cluster.get("configmaps", "d")["metadata"]["ownerReferences"], json!([owners[1]]));
    cluster.delete("configmaps", "b");
    cluster
        .check(
            1,
            expect![[r"
        1 - configmaps ns/b
        1 - configmaps ns/d"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_owner_is_identified_by_uid_and_namespace() {
    let cluster = TestCluster::new(GARBAGE);
    let here = cluster.create("configmaps", config_map("here", &[], &[]));
    let mut other = config_map("other", &[], &[]);
    other["metadata"]["namespace"] = json!("elsewhere");
    let other = cluster.create("configmaps", other);
    let node = cluster.create("nodes", json!({ "metadata": { "name": "node" } }));
    let with = |field: &str, value: Value| {
        let mut owner = owned_by(&here, true);
        owner[field] = value;
        owner
    };
    for (name, owner) in [
        ("alive", with("uid", here["metadata"]["uid"].clone())),
        ("wide", owned_by(&node, true)),
        ("unknown-kind", with("kind", json!("Nothing"))),
        ("unknown-version", with("apiVersion", json!("v2"))),
        ("other-uid", with("uid", json!("u"))),
        ("other-name", with("name", json!("n"))),
        ("other-namespace", owned_by(&other, true)),
    ] {
        cluster.create("configmaps", config_map(name, &[owner], &[]));
    }
    // A cluster-scoped object cannot have an owner in a namespace: it is kept.
    let owners = json!([with("uid", json!("u"))]);
    cluster.create("nodes", json!({ "metadata": { "name": "n2", "ownerReferences": owners } }));
    cluster.wait(1).await;
    let left = cluster.names("configmaps").join(" ");
    assert_eq!(left, "other alive here unknown-kind unknown-version wide");
    assert_eq!(cluster.names("nodes"), ["n2", "node"]);
}

#[tokio::test(start_paused = true)]
async fn a_cycle_can_be_deleted_in_the_foreground() {
    let cluster = TestCluster::new(GARBAGE);
    let a = cluster.create("configmaps", config_map("a", &[], &[]));
    let b = cluster.create("configmaps", config_map("b", &[owned_by(&a, true)], &[]));
    let circle = json!({ "metadata": {
        "ownerReferences": [owned_by(&b, true)],
        "finalizers": ["foregroundDeletion"],
    } });
    cluster.merge("configmaps", "a", circle);
    cluster.wait(1).await;
    cluster.delete("configmaps", "a");
    cluster.wait(1).await;
    assert_eq!(cluster.names("configmaps"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_of_a_chain_starts_at_its_end() {
    let cluster = TestCluster::new(GARBAGE);
    let a = cluster.create("configmaps", config_map("a", &[], &["foregroundDeletion"]));
    let b = cluster.create("configmaps", config_map("b", &[owned_by(&a, true)], &[]));
    cluster.create("configmaps", config_map("c", &[owned_by(&b, true)], &["x.dev/f"]));
    cluster.wait(1).await;
    cluster.delete("configmaps", "a");
    cluster
        .check(
            1,
            expect![[r"
        1 ~ configmaps ns/a held by foregroundDeletion; deleting
        1 ~ configmaps ns/b held by foregroundDeletion; deleting
        1 ~ configmaps ns/c held by x.dev/f; deleting"]],
        )
        .await;
    cluster.merge("configmaps", "c", json!({ "metadata": { "finalizers": null } }));
    cluster
        .check(
            1,
            expect![[r"
        2 - configmaps ns/c
        2 - configmaps ns/b
        2 - configmaps ns/a"]],
        )
        .await;
}

#[tokio::test(start_paused = true)]
async fn garbage_is_collected_at_the_start() {
    let cluster = TestCluster::new(Controllers::default());
    family(&cluster);
    cluster.delete("configmaps", "owner");
    cluster.server.compact();
    let mut tasks = JoinSet::new();
    tasks.spawn(run(cluster.server.clone(), GARBAGE));
    cluster
        .check(
            1,
            expect![[r"
                0 + configmaps ns/d2 held by x.dev/f; deleting
                0 + configmaps ns/d3 held by x.dev/f; deleting"]],
        )
        .await;
}
