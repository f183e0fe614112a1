//! The webhook configurations of the cluster.

use std::sync::Arc;

use kopf::logic::{
    admission::{
        own_objects::{OwnObject, OwnObjects},
        server::Publishing,
    },
    generation::Generation,
};
use kopf::ports::{BoxFuture, Candidate, RunningServer, WebhookParts, WebhookServer, WebhookSetup};
use kopf::reactor::{Operator, OperatorFailure};
use kopf::settings::Settings;
use kopf::testing::{RunningOperator, run_paused};
use kopf::webhooks::LocalWebhooks;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{MUTATING, NAME, VALIDATING, in_both, local_environment, operator, send, started};

const BOTH: &str = r#"
    kopf.on_validate("kopfexamples", { id = "check" }, function(ctx) end)
    kopf.on_validate("kopfexamples", { id = "kept", persistent = true }, function(ctx) end)
    kopf.on_mutate("kopfexamples", { id = "change" }, function(ctx) end)
"#;

fn names(configuration: &Value) -> Vec<&str> {
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.filter_map(|it| it["name"].as_str()).collect()
}

#[test]
fn configurations_are_written_at_the_start_and_cleaned_up_at_the_end() {
    run_paused(async {
        let (env, local) = local_environment();
        let running = started(&env, BOTH, &local).await;
        let validating = env.get(VALIDATING, NAME);
        assert_eq!(names(&validating), ["check.auto.kopf.dev", "kept.auto.kopf.dev"]);
        assert_eq!(names(&env.get(MUTATING, NAME)), ["change.auto.kopf.dev"]);
        running.stop().await;
        assert_eq!(names(&env.get(VALIDATING, NAME)), ["kept.auto.kopf.dev"]);
        assert_eq!(names(&env.get(MUTATING, NAME)), [""; 0]);
    });
}

#[test]
fn an_edited_or_deleted_configuration_is_restored() {
    run_paused(async {
        let (env, local) = local_environment();
        let running = started(&env, BOTH, &local).await;
        env.edit(VALIDATING, NAME, json!({ "webhooks": [] }));
        env.delete(MUTATING, NAME);
        env.until(env.start.elapsed().as_secs() + 5).await;
        assert_eq!(names(&env.get(VALIDATING, NAME)).len(), 2);
        assert_eq!(names(&env.get(MUTATING, NAME)), ["change.auto.kopf.dev"]);
        let writes = env.requests("PATCH", "webhookconfigurations").len();
        env.until(env.start.elapsed().as_secs() + 600).await;
        assert_eq!(env.requests("PATCH", "webhookconfigurations").len(), writes, "nothing else");
        running.stop().await;
    });
}

#[test]
fn an_operator_whose_successor_has_started_leaves_the_configurations_alone() {
    run_paused(async {
        let (env, local) = local_environment();
        let first = Operator {
            identity: kopf::testing::identity("first"),
            ..operator(&env, BOTH, &local).await
        };
        let first = RunningOperator::start(first);
        env.until(5).await;
        let second = Operator {
            identity: kopf::testing::identity("second"),
            ..operator(&env, BOTH, &local).await
        };
        let second = RunningOperator::start(second);
        env.until(10).await;
        first.stop().await;
        assert_eq!(names(&env.get(VALIDATING, NAME)).len(), 2);
        second.stop().await;
        assert_eq!(names(&env.get(VALIDATING, NAME)), ["kept.auto.kopf.dev"]);
    });
}

#[test]
fn the_last_of_several_replicas_removes_the_configurations() {
    run_paused(async {
        let (env, local) = local_environment();
        let start = async |name: &str| {
            let mut replica = operator(&env, BOTH, &local).await;
            replica.identity = kopf::testing::identity(name);
            replica.settings.lock().leadership.enabled = true;
            RunningOperator::start(replica)
        };
        let pass = async |seconds| env.until(env.start.elapsed().as_secs() + seconds).await;
        let leader = start("leader").await;
        pass(5).await;
        let standby = start("standby").await;
        let idle = start("idle").await;
        pass(5).await;
        idle.stop().await;
        assert_eq!(names(&env.get(VALIDATING, NAME)).len(), 2, "it has not led");
        leader.stop().await;
        pass(5).await;
        assert_eq!(names(&env.get(VALIDATING, NAME)).len(), 2, "another replica leads");
        standby.stop().await;
        assert_eq!(names(&env.get(VALIDATING, NAME)), ["kept.auto.kopf.dev"]);
        assert_eq!(names(&env.get(MUTATING, NAME)), [""; 0]);
    });
}

/// The webhooks of this process, for an operator in the namespace `pods` whose scripts are in `ConfigMap`s.
struct InPod(LocalWebhooks);

impl WebhookServer for InPod {
    fn own_objects(&self) -> OwnObjects {
        let objects = vec![
            OwnObject::config_map("scripts", "handlers"),
            OwnObject::labelled_config_maps("labelled", "app=own,tier in (a, b),zone!=x,!old,kept"),
        ];
        OwnObjects { namespace: Some("pods".into()), objects }
    }

    fn setup(&self, settings: &Settings, publishing: Publishing) -> Result<WebhookSetup, String> {
        self.0.setup(settings, publishing)
    }

    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>> {
        self.0.start(parts)
    }
}

#[test]
fn with_a_url_the_objects_that_the_operator_needs_are_not_reviewed() {
    const SCRIPT: &str = r#"
        local function deny() error(kopf.AdmissionError("never")) end
        kopf.on_validate("coordination.k8s.io", "v1", "leases", { id = "leases" }, deny)
        kopf.on_validate("", "v1", "configmaps", { id = "maps" }, deny)
        kopf.on_validate("kopfexamples", { id = "others" }, deny)
    "#;
    run_paused(async {
        let (env, local) = local_environment();
        let webhooks: Option<Arc<dyn WebhookServer>> = Some(Arc::new(InPod(local.clone())));
        let operator = Operator { webhooks, ..operator(&env, SCRIPT, &local).await };
        {
            let mut settings = operator.settings.lock();
            settings.leadership.enabled = true;
            settings.leadership.name = "mine".into();
            settings.leadership.namespace = Some("elections".into());
        }
        let running = RunningOperator::start(operator);
        env.until(60).await;
        assert_eq!(names(&env.get(VALIDATING, NAME)).len(), 3, "it leads");
        assert_eq!(env.get(VALIDATING, NAME)["webhooks"][2]["matchConditions"], Value::Null);
        let create = async |group: &str, kind: &str, plural: &str, namespace: &str, name: &str| {
            let object = json!({
                "apiVersion": group, "kind": kind, "metadata": { "name": name, "namespace": namespace },
            });
            let root = if group == "v1" { "/api" } else { "/apis" };
            let path = format!("{root}/{group}/namespaces/{namespace}/{plural}");
            send(&env, "POST", &path, &object).await.0
        };
        let lease = async |namespace: &str, name: &str| {
            create("coordination.k8s.io/v1", "Lease", "leases", namespace, name).await
        };
        let map = async |namespace: &str, name: &str| {
            create("v1", "ConfigMap", "configmaps", namespace, name).await
        };
        // Namespaces are selected by their labels.
        let own =
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "pods" } });
        assert_eq!(send(&env, "POST", "/api/v1/namespaces", &own).await.0, 201);
        assert_eq!(lease("elections", "mine-schedules").await, 201);
        assert_eq!(lease("elections", "other").await, 500);
        assert_eq!(lease("pods", "other").await, 201, "the namespace of the pod");
        assert_eq!(map("scripts", "handlers").await, 201);
        assert_eq!(map("scripts", "other").await, 500);
        let labelled = async |labels: Value| {
            let name = labels["name"].as_str().unwrap_or("plain");
            let object = json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": name, "namespace": "labelled", "labels": labels },
            });
            send(&env, "POST", "/api/v1/namespaces/labelled/configmaps", &object).await.0
        };
        for (labels, status) in [
            (Value::Null, 500),
            (json!({ "app": "own" }), 500),
            (json!({ "app": "own", "tier": "a", "kept": "", "name": "a" }), 201),
            (json!({ "app": "own", "tier": "b", "kept": "", "zone": "y", "name": "b" }), 201),
            (json!({ "app": "own", "tier": "c", "kept": "" }), 500),
            (json!({ "app": "own", "tier": "a", "kept": "", "zone": "x" }), 500),
            (json!({ "app": "own", "tier": "a", "kept": "", "old": "" }), 500),
        ] {
            assert_eq!(labelled(labels.clone()).await, status, "{labels}");
        }
        let path = "/api/v1/namespaces/labelled/configmaps/a";
        assert_eq!(send(&env, "PATCH", path, &json!({ "data": { "b": "" } })).await.0, 200);
        assert_eq!(send(&env, "DELETE", path, &json!({})).await.0, 200);
        running.stop().await;
    });
}

#[test]
fn a_reload_changes_the_configurations() {
    run_paused(async {
        let (env, local) = local_environment();
        let running =
            started(&env, r#"kopf.on_create("kopfexamples", function(ctx) end)"#, &local).await;
        assert!(env.requests("", "webhookconfigurations").is_empty(), "nobody needs them");
        let next = operator(&env, BOTH, &local).await;
        let (verdict, answer) = oneshot::channel();
        let generation = Generation::new(next.registry, None);
        let withdrawn = CancellationToken::new();
        let candidate = Candidate { generation, verdict, withdrawn };
        running.reloads.send(candidate).await.expect("the operator runs");
        answer.await.expect("an answer").expect("it takes over");
        env.until(env.start.elapsed().as_secs() + 5).await;
        assert_eq!(names(&env.get(MUTATING, NAME)), ["change.auto.kopf.dev"]);
        running.stop().await;
    });
}

#[test]
fn all_options_reach_the_configurations() {
    const LUA: &str = r#"
        kopf.on_mutate("kopfexamples", {
            id = "all", operations = { "CREATE", "UPDATE" }, subresource = "status", persistent = true, side_effects = true,
            ignore_failures = true, labels = { app = "web", tier = kopf.PRESENT, old = kopf.ABSENT }, annotations = { note = kopf.PRESENT },
            match_conditions = { { name = "own", expression = "object.metadata.name != 'x'" } },
            namespace_selector = { matchLabels = { team = "a" } }, match_policy = "Exact", timeout = 7, reinvocation = true,
        }, function(ctx) end)
        kopf.on_validate("kopfexamples", { id = "any", subresource = "*" }, function(ctx) end)
        kopf.on_validate("kopfexamples", { id = "plain" }, function(ctx) end)
    "#;
    const RHAI: &str = r#"
        kopf::on_mutate("kopfexamples", #{
            id: "all", operations: ["CREATE", "UPDATE"], subresource: "status", persistent: true, side_effects: true,
            ignore_failures: true, labels: #{ app: "web", tier: kopf::PRESENT, old: kopf::ABSENT }, annotations: #{ note: kopf::PRESENT },
            match_conditions: [#{ name: "own", expression: "object.metadata.name != 'x'" }],
            namespace_selector: #{ matchLabels: #{ team: "a" } }, match_policy: "Exact", timeout: 7, reinvocation: true,
        }, |ctx| ());
        kopf::on_validate("kopfexamples", #{ id: "any", subresource: "*" }, |ctx| ());
        kopf::on_validate("kopfexamples", #{ id: "plain" }, |ctx| ());
    "#;
    in_both(LUA, RHAI, async |case| {
        let mutating = case.env.get(MUTATING, NAME)["webhooks"][0].clone();
        let labels = json!([
            { "key": "app", "operator": "In", "values": ["web"] },
            { "key": "tier", "operator": "Exists" },
            { "key": "old", "operator": "DoesNotExist" },
        ]);
        for (field, expected) in [
            ("name", json!("all.auto.kopf.dev")),
            ("sideEffects", json!("NoneOnDryRun")),
            ("failurePolicy", json!("Ignore")),
            ("matchPolicy", json!("Exact")),
            ("timeoutSeconds", json!(7)),
            ("reinvocationPolicy", json!("IfNeeded")),
            (
                "matchConditions",
                json!([{ "name": "own", "expression": "object.metadata.name != 'x'" }]),
            ),
            ("namespaceSelector", json!({ "matchLabels": { "team": "a" } })),
        ] {
            assert_eq!(mutating[field], expected, "{field}");
        }
        let found = mutating["objectSelector"]["matchExpressions"].as_array().expect("a list");
        assert!(
            labels.as_array().expect("a list").iter().all(|it| found.contains(it)),
            "{found:?}"
        );
        let rule = &mutating["rules"][0];
        assert_eq!(rule["operations"], json!(["CREATE", "UPDATE"]));
        assert_eq!(rule["resources"], json!(["kopfexamples/status"]));
        let validating = case.env.get(VALIDATING, NAME)["webhooks"].clone();
        assert_eq!(
            validating[0]["rules"][0]["resources"],
            json!(["kopfexamples", "kopfexamples/*"])
        );
        assert_eq!(validating[1]["rules"][0]["resources"], json!(["kopfexamples"]));
        assert_eq!(validating[1]["rules"][0]["operations"], json!(["*"]));
        case
    });
}

#[test]
fn admission_handlers_without_a_server_end_the_operator() {
    run_paused(async {
        let (env, local) = local_environment();
        let without = Operator { webhooks: None, ..operator(&env, BOTH, &local).await };
        let ended = kopf::reactor::run(without, CancellationToken::new()).await;
        let Err(OperatorFailure::Webhooks(text)) = ended else { panic!("it runs: {ended:?}") };
        assert!(text.starts_with("Admission handlers exist, but no admission server"), "{text}");
    });
}
