//! The line at the start of `kopf run`: the program, the server, the served objects, and the identity.

use serde_json::Value;

use crate::cli::{
    options::{RunOptions, ScopeOption},
    scripts::First,
};
use crate::cluster::KubeCluster;
use crate::logic::{handlers::handler::Kind, replicas::peering::PeeringIdentity};
use crate::ports::Cluster as _;

/// The properties that are known before the operator connects.
pub(super) struct Summary {
    /// The context of the kubeconfig; `None` if scripts or the service account of the pod log in.
    context: Option<String>,
    scope: String,
    scripts: usize,
    handlers: usize,
    identity: String,
}

impl Summary {
    pub(super) fn new(options: &RunOptions, first: &First, identity: &PeeringIdentity) -> Self {
        let registry = &first.registry;
        let is_scripted = registry.handlers().iter().any(|it| it.kind == Kind::Login);
        Summary {
            context: if is_scripted { None } else { options.cluster.context_name() },
            scope: match &options.scope {
                ScopeOption::Cluster | ScopeOption::Unsaid => "all namespaces".to_owned(),
                ScopeOption::Namespaces(patterns) => format!("namespaces {}", patterns.join(", ")),
            },
            scripts: first.scripts,
            handlers: registry.handlers().len(),
            identity: identity.peer.clone(),
        }
    }

    /// Returns the namespaces for messages.
    pub(super) fn scope(&self) -> &str {
        &self.scope
    }

    /// Logs the line about an operator that has connected, with the version of the server if it returns one.
    pub(super) async fn log(self, cluster: &KubeCluster) {
        let version = cluster.version().await.ok().and_then(|it| git_version(&it));
        tracing::info!(target: "kopf.reactor", "{}", self.line(cluster.server(), version.as_deref()));
    }

    fn line(&self, server: &str, version: Option<&str>) -> String {
        let Summary { context, scope, scripts, handlers, identity } = self;
        let version = version.map(|it| format!(", Kubernetes {it}")).unwrap_or_default();
        let context = context.as_ref().map(|it| format!(", context {it}")).unwrap_or_default();
        let program = env!("CARGO_PKG_VERSION");
        let (scripts, handlers) = (count(*scripts, "script"), count(*handlers, "handler"));
        format!(
            "kopf {program} on {server}{version}{context}: {scope}, {scripts}, {handlers}, identity {identity}."
        )
    }
}

fn count(number: usize, word: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// Returns the version in a response to `/version`.
fn git_version(response: &[u8]) -> Option<String> {
    let response: Value = serde_json::from_slice(response).ok()?;
    Some(response.get("gitVersion")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Summary, git_version};

    #[test]
    fn the_line_names_the_cluster_the_scope_and_the_scripts() {
        let summary = |context: Option<&str>, scripts| Summary {
            context: context.map(str::to_owned),
            scope: "namespaces shop-*".into(),
            scripts,
            handlers: 7,
            identity: "me@host".into(),
        };
        let line = summary(Some("kind-dev"), 1).line("https://a:6443", Some("v1.36.3"));
        let program = env!("CARGO_PKG_VERSION");
        let expected = format!(
            "kopf {program} on https://a:6443, Kubernetes v1.36.3, context kind-dev: namespaces shop-*, 1 script, 7 handlers, identity me@host."
        );
        assert_eq!(line, expected);
        let line = summary(None, 2).line("https://a:6443", None);
        assert!(line.contains("on https://a:6443: namespaces shop-*, 2 scripts, "), "{line}");
    }

    #[test]
    fn a_response_without_a_version_is_not_an_error() {
        assert_eq!(git_version(br#"{"gitVersion": "v1.36.3"}"#).as_deref(), Some("v1.36.3"));
        for response in [&b"{}"[..], b"<html>", b"[]", br#"{"gitVersion": 1}"#] {
            assert_eq!(git_version(response), None);
        }
    }
}
