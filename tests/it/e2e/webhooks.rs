//! Admission webhooks over HTTPS, called by a real API server.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::namespace::Namespace;
use super::operator::{Operator, kopf};
use super::until;
use crate::ports::free_port;

const LUA: &str = r#"
    local here = { ["kubernetes.io/metadata.name"] = "NAMESPACE" }
    kopf.on_validate("configmaps", { id = "check", namespace_selector = here }, function(ctx)
        local data = ctx.body.data or {}
        ctx.warn("seen by check")
        if data.size == "large" and not ctx.dryrun then error(kopf.AdmissionError("too large", 422)) end
        if ctx.operation == "DELETE" and data.keep then error(kopf.AdmissionError("it is kept", 403)) end
    end)
    kopf.on_mutate("configmaps", { id = "change", namespace_selector = here, labels = { change = "yes" }, ignore_failures = true }, function(ctx)
        ctx.patch.data.changed = ctx.userinfo.username
    end)
    kopf.on_validate("deployments.apps", { id = "scale", subresource = "scale", namespace_selector = here }, function(ctx)
        if ctx.subresource == "scale" and ctx.spec.replicas > 3 then error(kopf.AdmissionError("too many", 422)) end
    end)
"#;

const RHAI: &str = r#"
    let here = #{ "kubernetes.io/metadata.name": "NAMESPACE" };
    kopf::on_validate("configmaps", #{ id: "check", namespace_selector: here }, |ctx| {
        let data = ctx.body.data ?? #{};
        ctx.warn("seen by check");
        if data.size == "large" && !ctx.dryrun { throw kopf::AdmissionError("too large", 422); }
        if ctx.operation == "DELETE" && data.keep != () { throw kopf::AdmissionError("it is kept", 403); }
    });
    kopf::on_mutate("configmaps", #{ id: "change", namespace_selector: here, labels: #{ change: "yes" }, ignore_failures: true }, |ctx| {
        ctx.patch.data.changed = ctx.userinfo.username;
    });
    kopf::on_validate("deployments.apps", #{ id: "scale", subresource: "scale", namespace_selector: here }, |ctx| {
        if ctx.subresource == "scale" && ctx.spec.replicas > 3 { throw kopf::AdmissionError("too many", 422); }
    });
"#;

/// A namespace with an operator whose webhooks apply only there.
struct Place {
    namespace: Namespace,
    script: PathBuf,
}

impl Place {
    async fn new(test: &str, language: &str, text: &str) -> Option<Self> {
        let namespace = Namespace::for_test(&format!("{test}-{language}")).await?;
        let directory =
            std::env::temp_dir().join(format!("kopf-{}-{}", namespace.name, std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let script = directory.join(format!("handlers.{language}"));
        std::fs::write(&script, text.replace("NAMESPACE", &namespace.name)).expect("it is written");
        Some(Place { namespace, script })
    }

    fn name(&self) -> String {
        format!("{}.kopf.dev", self.namespace.name)
    }

    /// Starts an operator, and waits until its webhooks are configured.
    async fn start(&self) -> Operator {
        let port = free_port().to_string();
        let (url, managed) =
            (format!("https://127.0.0.1:{port}"), format!("admission.managed={}", self.name()));
        let mut command = kopf(
            &self.namespace.kubeconfig(),
            &["--standalone", "--verbose", "-n", &self.namespace.name, "--set", &managed],
        );
        command.args(["--webhook-url", &url, "--webhook-port", &port]).arg(&self.script);
        let operator = Operator::start(&mut command);
        for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
            until("the webhooks are configured", async || {
                let shown = self.webhooks(kind).await?;
                if shown.contains(&url) { Ok(()) } else { Err(shown) }
            })
            .await;
        }
        operator
    }

    async fn webhooks(&self, kind: &str) -> Result<String, String> {
        let path = "jsonpath={.webhooks[*].clientConfig.url}";
        self.namespace.try_kubectl(&["get", kind, &self.name(), "-o", path], "").await
    }

    /// Creates a `ConfigMap`. API servers use changed webhooks after a short delay.
    async fn create(
        &self,
        name: &str,
        data: serde_json::Value,
        more: &[&str],
    ) -> Result<String, String> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": { "name": name, "labels": { "change": "yes" } },
        });
        let args = [&["create", "-f", "-", "-o", "json"], more].concat();
        self.namespace.try_kubectl(&args, &object.to_string()).await
    }

    /// Waits until the API server calls the webhooks.
    async fn until_called(&self) {
        until("the webhooks are called", async || {
            let created = self.create("probe", json!({}), &["--dry-run=server"]).await?;
            if created.contains("changed") { Ok(()) } else { Err(created) }
        })
        .await;
    }
}

fn remove(script: &Path) {
    let directory = script.parent().expect("a directory");
    std::fs::remove_dir_all(directory).expect("it is removed");
}

#[tokio::test]
async fn requests_are_denied_changed_and_warned_of() {
    for (language, script) in [("lua", LUA), ("rhai", RHAI)] {
        let Some(place) = Place::new("admission", language, script).await else { return };
        let operator = place.start().await;
        place.until_called().await;
        let created =
            place.create("a", json!({ "keep": "yes" }), &[]).await.expect("it is admitted");
        assert!(created.contains("\"changed\""), "{created}");
        let denied = place.create("b", json!({ "size": "large" }), &[]).await.expect_err("denied");
        let by =
            format!("admission webhook \"check.{}\" denied the request: too large", place.name());
        assert!(denied.contains(&by), "{denied}");
        assert!(denied.contains("Warning: seen by check"), "{denied}");
        let dry = place.create("b", json!({ "size": "large" }), &["--dry-run=server"]).await;
        dry.expect("a dry run is admitted");
        let kept = place.namespace.try_kubectl(&["delete", "configmap", "a"], "").await;
        let kept = kept.expect_err("denied");
        assert!(kept.contains("it is kept"), "{kept}");
        let image = "--image=registry.example.com/web";
        place.namespace.kubectl(&["create", "deployment", "web", "--replicas=9", image]).await;
        let scale = async |replicas: &str| {
            let args = ["scale", "deployment", "web", &format!("--replicas={replicas}")];
            place.namespace.try_kubectl(&args, "").await
        };
        scale("2").await.expect("it is admitted");
        let many = scale("5").await.expect_err("denied");
        assert!(many.contains("too many"), "{many}");
        operator.stop().await.assert_code(0);
        // The webhooks are no longer called.
        place.namespace.kubectl(&["delete", "configmap", "a"]).await;
        assert_eq!(place.webhooks("validatingwebhookconfiguration").await, Ok(String::new()));
        remove(&place.script);
    }
}

#[tokio::test]
async fn a_crash_blocks_requests_or_not_as_the_handler_says() {
    let Some(place) = Place::new("admission-crash", "lua", LUA).await else { return };
    let operator = place.start().await;
    place.until_called().await;
    operator.crash().await;
    let failed = place.create("a", json!({}), &[]).await.expect_err("nobody answers");
    assert!(
        failed.contains("failed calling webhook \"check."),
        "the other one is ignored: {failed}"
    );
    // The next process takes over.
    let operator = place.start().await;
    place.until_called().await;
    place.create("a", json!({}), &[]).await.expect("it is admitted");
    operator.stop().await.assert_code(0);
    remove(&place.script);
}

#[tokio::test]
async fn no_request_passes_unchecked_during_a_rolling_update() {
    let Some(place) = Place::new("admission-rolling", "lua", LUA).await else { return };
    let first = place.start().await;
    place.until_called().await;
    let second = place.start().await;
    first.stop().await.assert_code(0);
    for number in 0..20 {
        let name = format!("large-{number}");
        let denied = place.create(&name, json!({ "size": "large" }), &[]).await;
        let denied = denied.expect_err("it is not admitted");
        assert!(denied.contains("too large") || denied.contains("failed calling"), "{denied}");
    }
    second.stop().await.assert_code(0);
    remove(&place.script);
}
