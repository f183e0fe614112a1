//! The guard of scripts in `ConfigMap`s, on the embedded server.

use std::sync::Arc;

use kopf::logic::admission::server::Publishing;
use kopf::ports::{
    BoxFuture, RunningServer, ScriptGuard, WebhookParts, WebhookServer, WebhookSetup,
};
use kopf::reactor::Operator;
use kopf::scripting::{Placement, Terms};
use kopf::settings::Settings;
use kopf::sources::{MapGuard, MapOption, Maps};
use kopf::testing::{Environment, RunningOperator, client, namespace, run_paused};
use kopf::webhooks::{GuardedWebhooks, HttpsWebhooks, LocalWebhooks};
use kopf_apiserver::{ApiServer, Post};
use serde_json::{Value, json};

use super::{NAME, VALIDATING, operator, send};

/// The webhooks of this process, with a guard.
struct Guarded(LocalWebhooks, GuardedWebhooks);

impl WebhookServer for Guarded {
    fn guard(&self) -> Option<Arc<dyn ScriptGuard>> {
        self.1.guard()
    }

    fn setup(&self, settings: &Settings, publishing: Publishing) -> Result<WebhookSetup, String> {
        self.0.setup(settings, publishing)
    }

    fn start(&self, parts: WebhookParts) -> BoxFuture<'static, Result<RunningServer, String>> {
        self.0.start(parts)
    }
}

fn map(name: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": { "name": name, "namespace": "ops", "labels": { "app": name } },
    })
}

fn refuses_broken_edits(
    file: &'static str,
    fine: &'static str,
    broken: &'static str,
    why: &'static str,
) {
    run_paused(async move {
        let local = LocalWebhooks::default();
        let posting = local.clone();
        let post = Post::new(move |target, body| {
            let local = posting.clone();
            async move { local.review(&target.url, &body).await.unwrap_or_else(|| Err("nobody".into())) }
        });
        let env = Environment::new(ApiServer::builder().cluster(true).webhooks(post));
        // Through the API, which labels it with its name.
        send(&env, "POST", "/api/v1/namespaces", &namespace("ops")).await;
        let data = |text: &str| json!({ file: text });
        for name in ["scripts", "labelled", "other"] {
            env.create(map(name, &data(fine)));
        }
        let settings = Settings::default();
        let cluster =
            kopf::cluster::KubeCluster::over(client(&env.server), Arc::new(settings.clone()));
        let named =
            |name: &str| MapOption::Named { namespace: Some("ops".into()), name: name.into() };
        let maps = Maps::open(&cluster, &[named("scripts"), named("labelled")], &settings).await;
        let maps = maps.map_err(|it| it.to_string()).expect("the maps");
        let guard = MapGuard::new(maps.guarded(), Terms::of(Placement::CurrentRuntime, &settings));
        let webhooks = Arc::new(Guarded(
            local.clone(),
            GuardedWebhooks { server: HttpsWebhooks::default(), guard: Arc::new(guard) },
        ));
        let running = RunningOperator::start(Operator {
            webhooks: Some(webhooks),
            ..operator(&env, "", &local).await
        });
        env.until(5).await;
        let webhooks = env.get(VALIDATING, NAME)["webhooks"].clone();
        assert_eq!(
            (&webhooks[0]["name"], &webhooks[0]["failurePolicy"]),
            (&json!("script-guard-0.auto.kopf.dev"), &json!("Ignore"))
        );
        assert_eq!(
            webhooks[0]["matchConditions"][0]["expression"],
            "object.metadata.name == 'scripts'"
        );
        let path = |name: &str| format!("/api/v1/namespaces/ops/configmaps/{name}");
        let edit = async |name: &str, text: &str| {
            send(&env, "PATCH", &path(name), &json!({ "data": data(text) })).await
        };
        for name in ["scripts", "labelled"] {
            let (status, body) = edit(name, broken).await;
            let message = body["message"].as_str().expect("a message");
            assert_eq!(status, 422, "{body}");
            assert!(
                message.contains(&format!("configmap/ops/{name}/{file}:2"))
                    && message.contains(why),
                "{message}"
            );
            let (status, body) = edit(name, &format!("{fine}\n")).await;
            assert_eq!(status, 200, "{body}");
        }
        let (status, body) = edit("other", broken).await;
        assert_eq!(status, 200, "it belongs to nobody: {body}");
        let (status, _) =
            send(&env, "PATCH", &path("scripts"), &json!({ "data": { file: null } })).await;
        assert_eq!(status, 422, "without any script");
        running.stop().await;
        let left = env.get(VALIDATING, NAME)["webhooks"].clone();
        assert!(left.as_array().is_none_or(Vec::is_empty), "{left}");
    });
}

#[test]
fn edits_that_do_not_load_are_refused_in_lua() {
    let fine = "kopf.on_create('kex', function(ctx) end)";
    refuses_broken_edits("a.lua", fine, "local x = 1\nkopf.on_create('kex', {", "Expected");
}

#[test]
fn edits_that_do_not_load_are_refused_in_rhai() {
    let fine = "kopf::on_create(\"kex\", |ctx| 1);";
    refuses_broken_edits("a.rhai", fine, "let x = 1;\nkopf::on_create(\"kex\", #{", "");
}
