//! The examples that are complete operators.

use serde_json::{Value, json};

use super::{Place, documents, has_condition};

const TENANTS: &str = "tenants.tenancy.example.com";
const CLAIMS: &str = "databaseclaims.databases.example.com";

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn is_ready(object: &Value) -> bool {
    has_condition(object, "Ready", "True", "Provisioned")
}

pub(super) async fn provisioner<P: Place>(run: P) {
    let name = format!("tenant-of-{}", run.namespace());
    let mut tenant = documents("examples/namespace-provisioner/obj.yaml").remove(0);
    tenant["metadata"]["name"] = name.as_str().into();
    run.create(&tenant).await;
    let ready = run.until(TENANTS, &name, "it is ready", is_ready).await;
    assert_eq!(ready["status"]["namespace"], name.as_str());
    assert_eq!(ready["status"]["conditions"][0]["observedGeneration"], 1);
    let within = |it: &str| format!("{name}/{it}");
    let quota = run.get("resourcequotas", &within("tenant")).await.expect("a quota");
    assert_eq!(quota["spec"]["hard"]["pods"], "20");
    let roles = "rolebindings.rbac.authorization.k8s.io";
    let admins = run.get(roles, &within("tenant-admins")).await.expect("a binding");
    assert_eq!(admins["subjects"][1]["name"], "bob@example.com");
    let policies = "networkpolicies.networking.k8s.io";
    run.get(policies, &within("tenant-walls")).await.expect("a policy");

    // Parts that are changed or deleted manually are restored.
    run.delete(policies, &within("tenant-walls")).await;
    run.patch(
        "resourcequotas",
        &within("tenant"),
        &json!({ "spec": { "hard": { "pods": "1000" } } }),
    )
    .await;
    run.until(policies, &within("tenant-walls"), "it comes back", |_| true).await;
    let is_mended = |it: &Value| it["spec"]["hard"]["pods"] == "20";
    run.until("resourcequotas", &within("tenant"), "it is mended", is_mended).await;

    // Changes of the tenant change its parts.
    let open = json!({ "spec": { "isolated": false, "admins": ["carol@example.com"] } });
    run.patch(TENANTS, &name, &open).await;
    run.until_gone(policies, &within("tenant-walls")).await;
    let is_carols = |it: &Value| {
        it["subjects"].as_array().is_some_and(|it| it.len() == 1)
            && it["subjects"][0]["name"] == "carol@example.com"
    };
    run.until(roles, &within("tenant-admins"), "it has the new one", is_carols).await;

    // A namespace of another owner is not touched.
    let taken = format!("taken-of-{}", run.namespace());
    run.create(&namespace(&taken)).await;
    tenant["metadata"]["name"] = taken.as_str().into();
    run.create(&tenant).await;
    let is_refused = |it: &Value| has_condition(it, "Ready", "False", "NamespaceTaken");
    run.until(TENANTS, &taken, "it is refused", is_refused).await;
    run.delete(TENANTS, &taken).await;
    run.until_gone(TENANTS, &taken).await;
    let foreign = run.get("namespaces", &taken).await.expect("it is still there");
    assert_eq!(foreign["metadata"]["deletionTimestamp"], Value::Null);

    run.delete(TENANTS, &name).await;
    run.finish_namespace(&name).await;
    run.until_gone(TENANTS, &name).await;
    assert!(run.get("namespaces", &name).await.is_err());
    run.end().await;
}

pub(super) async fn replicator<P: Place>(run: P) {
    let space = |it: &str| format!("{it}-of-{}", run.namespace());
    let within = |space: &str, name: &str| format!("{space}/{name}");
    let (red, green, shared) = (space("red"), space("green"), space("shared"));
    for name in [&red, &shared] {
        run.create(&namespace(name)).await;
    }
    // An object of the same name that belongs to another owner.
    let foreign = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": { "password": "mine" },
        "metadata": { "name": "registry", "namespace": shared },
    });
    run.create(&foreign).await;
    let patterns = format!("red-of-{0}, gr*-of-{0}, {shared}", run.namespace());
    let source = json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": { "password": "1234" },
        "metadata": {
            "name": "registry", "namespace": run.namespace(),
            "annotations": { "replicator.example.com/to": patterns },
        },
    });
    run.create(&source).await;
    let has = |text: &'static str| move |it: &Value| it["data"]["password"] == text;
    run.until("secrets", &within(&red, "registry"), "it is copied", has("MTIzNA==")).await;

    // New namespaces have it at once, changes are copied, and copies that are deleted manually are restored.
    run.create(&namespace(&green)).await;
    run.until("secrets", &within(&green, "registry"), "it is copied", has("MTIzNA==")).await;
    run.patch("secrets", "registry", &json!({ "data": { "password": "NTY3OA==" } })).await;
    for name in [&red, &green] {
        run.until("secrets", &within(name, "registry"), "it follows", has("NTY3OA==")).await;
    }
    run.delete("secrets", &within(&red, "registry")).await;
    run.until("secrets", &within(&red, "registry"), "it comes back", has("NTY3OA==")).await;
    let theirs = run.get("secrets", &within(&shared, "registry")).await.expect("it is there");
    assert_eq!(theirs["data"]["password"], "bWluZQ==", "objects of others are not touched");

    // Fewer namespaces, then none.
    let fewer = json!({ "metadata": { "annotations": { "replicator.example.com/to": red } } });
    run.patch("secrets", "registry", &fewer).await;
    run.until_gone("secrets", &within(&green, "registry")).await;
    let none = json!({ "metadata": { "annotations": { "replicator.example.com/to": null } } });
    run.patch("secrets", "registry", &none).await;
    run.until_gone("secrets", &within(&red, "registry")).await;

    // The copies of a source are deleted with it.
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "flag": "on" },
        "metadata": {
            "name": "flags", "namespace": run.namespace(),
            "annotations": { "replicator.example.com/to": patterns },
        },
    });
    run.create(&map).await;
    for name in [&red, &green, &shared] {
        let copied = |it: &Value| it["data"]["flag"] == "on";
        run.until("configmaps", &within(name, "flags"), "it is copied", copied).await;
    }
    run.delete("configmaps", "flags").await;
    run.until_gone("configmaps", "flags").await;
    for name in [&red, &green, &shared] {
        run.until_gone("configmaps", &within(name, "flags")).await;
    }
    run.get("secrets", &within(&shared, "registry")).await.expect("the foreign one stays");
    run.end().await;
}

pub(super) async fn database_claim<P: Place>(run: P) {
    // Another test may have created it.
    if run.get("namespaces", "databases").await.is_err() {
        run.create_or_leave(&namespace("databases")).await;
    }
    let claim = |name: &str, policy: &str| {
        json!({
            "apiVersion": "databases.example.com/v1", "kind": "DatabaseClaim",
            "metadata": { "name": name }, "spec": { "deletionPolicy": policy },
        })
    };
    for (name, policy) in [("shop", "Delete"), ("archive", "Retain")] {
        run.create(&claim(name, policy)).await;
        let waits = |it: &Value| has_condition(it, "Ready", "False", "Creating");
        let waiting = run.until(CLAIMS, name, "it waits for its Job", waits).await;
        let uid = waiting["metadata"]["uid"].as_str().expect("a uid").to_owned();
        run.finish_job(&format!("databases/create-{uid}")).await;
        let ready = run.until(CLAIMS, name, "it is ready", is_ready).await;
        let database = ready["status"]["database"].as_str().expect("a name");
        assert_eq!(database, format!("{name}_{}", uid.get(..8).expect("a uid")));
        let secret = run.get("secrets", &format!("{name}-database")).await.expect("a secret");
        assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], uid.as_str());
        let login = format!("databases/login-{uid}");
        assert_eq!(run.get("secrets", &login).await.expect("a login")["data"], secret["data"]);
        assert!(secret["data"]["DB_PASSWORD"].as_str().is_some_and(|it| it.len() > 40));

        run.delete(CLAIMS, name).await;
        if policy == "Delete" {
            let drops = |it: &Value| has_condition(it, "Ready", "False", "Dropping");
            if P::IS_REAL {
                run.until(CLAIMS, name, "it drops the database", drops).await;
            }
            run.finish_job(&format!("databases/drop-{uid}")).await;
        }
        run.until_gone(CLAIMS, name).await;
        assert_eq!(run.get("secrets", &login).await.is_ok(), policy == "Retain");
        run.until_job_deleted(&format!("databases/create-{uid}")).await;
    }
    run.end().await;
}

pub(super) async fn ttl_cleaner<P: Place>(run: P) {
    let map = |name: &str, ttl: Option<&str>| {
        let annotations = ttl.map_or_else(|| json!({}), |it| json!({ "ttl": it }));
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "annotations": annotations },
        })
    };
    run.create(&map("short", Some("3s"))).await;
    run.create(&map("long", Some("7d"))).await;
    run.create(&map("odd", Some("soon"))).await;
    run.create(&map("plain", None)).await;
    run.until_gone("configmaps", "short").await;
    let place = run.namespace().to_owned();
    run.until_says(&format!("[{place}/odd] The annotation ttl is not a duration: soon")).await;
    for name in ["long", "odd", "plain"] {
        let is_right = |it: &Value| {
            let is_held = it["metadata"]["finalizers"].is_array();
            it["metadata"]["deletionTimestamp"].is_null() && is_held == (name != "plain")
        };
        run.until("configmaps", name, "it stays; only what has a ttl is held", is_right).await;
    }
    // The next check reads the current annotation.
    let patch = json!({ "metadata": { "annotations": { "ttl": "1s" } } });
    run.patch("configmaps", "odd", &patch).await;
    run.until_gone("configmaps", "odd").await;
    let ended = run.end().await;
    ended.assert_count(&format!("[{place}/short] Deleted: its time to live, 3s, is over."), 1);
    ended.assert_count("is not a duration", 1);
}
