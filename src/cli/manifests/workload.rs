//! The Deployment and its related objects.

use std::{collections::BTreeSet, iter};

use serde_json::{Value, json};

use super::{chart::ChartValues, scripts::Mounted};
use crate::cli::{
    options::ScopeOption,
    rbac::{Installer, Survey},
    shared_args::ContentArgs,
};
use crate::logic::access::grants::Permission;

/// The port of probes and metrics.
const HEALTH_PORT: u16 = 8081;
/// The namespaces of an `OperatorGroup`: the environment variable of the pod, and the annotation that OLM sets.
const TARGETS: (&str, &str) =
    ("KOPF_TARGET_NAMESPACES", "metadata.annotations['olm.targetNamespaces']");
/// The files in which OLM mounts the certificate of webhooks and its key.
const CERTIFICATE: (&str, &str) = (
    "/tmp/k8s-webhook-server/serving-certs/tls.crt",
    "/tmp/k8s-webhook-server/serving-certs/tls.key",
);
/// The user of the image.
const USER: u32 = 65532;

/// The operator in the cluster.
pub(super) struct Workload<'a> {
    pub(super) installer: Installer,
    pub(super) args: &'a ContentArgs,
    pub(super) survey: &'a Survey,
    pub(super) mounted: &'a Mounted,
    /// The metadata of its objects.
    pub(super) meta: &'a Value,
    pub(super) values: &'a ChartValues<'a>,
    pub(super) has_webhooks: bool,
}

/// Returns the image of the operator.
pub(super) fn image(args: &ContentArgs) -> String {
    args.image.clone().unwrap_or_else(|| format!("kopf:{}", env!("CARGO_PKG_VERSION")))
}

/// Returns the resources of its container.
pub(super) fn resources() -> Value {
    json!({
        "requests": { "cpu": "10m", "memory": "32Mi" },
        "limits": { "memory": "256Mi" },
    })
}

impl Workload<'_> {
    /// The port of webhooks.
    pub(super) const WEBHOOK_PORT: u16 = 9443;

    /// Returns the objects, each with the stem of its file.
    pub(super) fn objects(&self) -> Vec<(&'static str, Value)> {
        let mut objects = vec![("deployment", self.deployment())];
        if self.args.install.replicas > 1 {
            let spec =
                json!({ "maxUnavailable": 1, "selector": { "matchLabels": self.selector() } });
            objects.push((
                "poddisruptionbudget",
                self.object("policy/v1", "PodDisruptionBudget", &spec),
            ));
        }
        if self.has_webhooks {
            let port = json!({ "name": "webhooks", "port": 443, "targetPort": "webhooks" });
            let spec = json!({
                "ipFamilyPolicy": "PreferDualStack",
                "selector": self.selector(),
                "ports": [port],
            });
            objects.push(("service", self.object("v1", "Service", &spec)));
        }
        if self.args.pod_monitor {
            let spec = json!({
                "selector": { "matchLabels": self.selector() },
                "podMetricsEndpoints": [{ "port": "health", "path": "/metrics" }],
            });
            let monitor = self.object("monitoring.coreos.com/v1", "PodMonitor", &spec);
            objects.push(("podmonitor", monitor));
        }
        objects
    }

    fn object(&self, api_version: &str, kind: &str, spec: &Value) -> Value {
        json!({ "apiVersion": api_version, "kind": kind, "metadata": self.meta, "spec": spec })
    }

    fn selector(&self) -> Value {
        json!({ "app.kubernetes.io/name": self.meta["name"] })
    }

    fn deployment(&self) -> Value {
        // Two active pods would do everything twice; with an election, they may overlap.
        let strategy = if self.args.install.replicas > 1 {
            // Set explicitly: a default would be kept, and rejected, when the number of pods becomes one.
            let rolling = json!({ "maxSurge": "25%", "maxUnavailable": "25%" });
            json!({ "type": "RollingUpdate", "rollingUpdate": rolling })
        } else {
            json!({ "type": "Recreate" })
        };
        let spec = json!({
            "replicas": self.args.install.replicas,
            "strategy": strategy,
            "selector": { "matchLabels": self.selector() },
            "template": {
                "metadata": { "labels": self.meta["labels"] },
                "spec": {
                    "serviceAccountName": self.meta["name"],
                    "securityContext": {
                        "runAsNonRoot": true,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "seccompProfile": { "type": "RuntimeDefault" },
                    },
                    "containers": [self.container()],
                    "volumes": self.volumes(),
                },
            },
        });
        self.object("apps/v1", "Deployment", &spec)
    }

    fn container(&self) -> Value {
        let mut ports = vec![json!({ "name": "health", "containerPort": HEALTH_PORT })];
        if self.has_webhooks {
            ports.push(json!({ "name": "webhooks", "containerPort": Self::WEBHOOK_PORT }));
        }
        let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "health" } });
        let mut container = json!({
            "name": "kopf",
            "image": self.values.image,
            "args": self.command_line(),
            "ports": ports,
            "livenessProbe": probe("/livez"),
            "readinessProbe": probe("/readyz"),
            "resources": self.values.resources,
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": { "drop": ["ALL"] },
            },
            "volumeMounts": self.mounts(),
        });
        if self.has_targets() {
            let (name, field) = TARGETS;
            let source = json!({ "fieldRef": { "fieldPath": field } });
            let env = json!([{ "name": name, "valueFrom": source }]);
            if let Some(fields) = container.as_object_mut() {
                fields.insert("env".into(), env);
            }
        }
        container
    }

    /// Returns the directories for scratch files: the image is read-only.
    fn scratch(&self) -> Vec<String> {
        let grants = &self.survey.options.grants;
        let scripts = grants.scripts.iter().map(|(_, access)| access);
        let granted =
            iter::once(&grants.all).chain(scripts).flat_map(|it| it.granted(Permission::Scratch));
        let granted: BTreeSet<_> = granted.collect();
        granted.into_iter().collect()
    }

    fn volumes(&self) -> Vec<Value> {
        let empty = |(number, _): (usize, String)| json!({ "name": format!("scratch-{number}"), "emptyDir": {} });
        let scratch = self.scratch().into_iter().enumerate().map(empty);
        iter::once(self.mounted.volume(&self.meta["name"])).chain(scratch).collect()
    }

    fn mounts(&self) -> Vec<Value> {
        let mount = |(number, path): (usize, String)| json!({ "name": format!("scratch-{number}"), "mountPath": path });
        let scratch = self.scratch().into_iter().enumerate().map(mount);
        iter::once(Mounted::mount()).chain(scratch).collect()
    }

    /// Returns whether an `OperatorGroup` determines the namespaces.
    fn has_targets(&self) -> bool {
        let is_limited = matches!(self.survey.options.scope, ScopeOption::Namespaces(_));
        self.installer == Installer::Olm && is_limited
    }

    /// Returns the arguments of the container.
    fn command_line(&self) -> Vec<String> {
        let mut words = vec!["run".to_owned()];
        match &self.survey.options.scope {
            ScopeOption::Cluster | ScopeOption::Unsaid => words.push("--all-namespaces".into()),
            ScopeOption::Namespaces(_) if self.has_targets() => {
                words.push(format!("--namespace=$({})", TARGETS.0));
            }
            ScopeOption::Namespaces(patterns) => {
                words.extend(patterns.iter().map(|it| format!("--namespace={it}")));
            }
        }
        let peering = &self.survey.options.settings.peering;
        if !peering.mandatory && !peering.standalone {
            words.push("--standalone".into());
        }
        if self.args.install.replicas > 1 {
            words.push("--leader-elect".into());
            // Operators that share a namespace need different leases.
            words.push(format!("--lease={}", self.meta["name"].as_str().unwrap_or_default()));
        }
        words.push(format!("--health=:{HEALTH_PORT}"));
        if self.has_webhooks && self.installer == Installer::Olm {
            let (file, key) = CERTIFICATE;
            let server = json!({ "port": Self::WEBHOOK_PORT, "certfile": file, "pkeyfile": key });
            words.push(format!("--set=admission.server={server}"));
        } else if self.has_webhooks {
            let part = |key: &str| self.meta[key].as_str().unwrap_or_default().to_owned();
            words.push(format!("--webhook-service={}/{}", part("namespace"), part("name")));
        }
        let terms = &self.args.install.terms;
        let repeated = [
            ("set", &terms.settings),
            ("allow-net", &terms.grants.allow_net),
            ("allow-env", &terms.grants.allow_env),
            ("allow-read", &terms.grants.allow_read),
            ("allow-insecure", &terms.grants.allow_insecure),
            ("allow-scratch", &terms.grants.allow_scratch),
        ];
        for (option, values) in repeated {
            words.extend(values.iter().map(|it| format!("--{option}={it}")));
        }
        if self.mounted.has_configuration {
            words.push(format!("--config={}", Mounted::configuration()));
        }
        words.extend(self.mounted.paths.iter().cloned());
        words
    }
}
