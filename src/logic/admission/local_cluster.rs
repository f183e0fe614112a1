//! Detects which local cluster an API server belongs to, as Kopf's `WebhookAutoServer` does, and how it reaches this machine.
//!
//! API servers of local clusters run in a container or a virtual machine, where `localhost` is not this machine.

use serde_json::Value;

use crate::settings::LocalCluster;

/// The properties of an API server from which its local cluster is detected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// The common names of its certificate.
    pub names: Vec<String>,
    /// The organizations of its certificate.
    pub organizations: Vec<String>,
    /// The common names of the CA that has signed the certificate.
    pub issuers: Vec<String>,
    /// The host names that the certificate is valid for.
    pub hosts: Vec<String>,
    /// `gitVersion` in its response to `/version`.
    pub version: Option<String>,
}

impl ServerFacts {
    /// Returns the local cluster of the server; `None` if it is another one.
    pub fn cluster(&self) -> Option<LocalCluster> {
        let has = |all: &[String], wanted: &str| all.iter().any(|it| it == wanted);
        let is_k3s = has(&self.names, "k3s")
            || has(&self.organizations, "k3s")
            || self.issuers.iter().any(|it| it.starts_with("k3s-"));
        let is_minikube = has(&self.names, "minikube") || has(&self.issuers, "minikubeCA");
        // Nodes of clusters that kind has created have such names.
        let is_kind = self.hosts.iter().any(|it| it.ends_with("-control-plane"));
        let is_docker = has(&self.hosts, "docker-for-desktop");
        let is_k3s_version = self.version.as_ref().is_some_and(|it| it.contains("+k3s"));
        let all = [
            (is_k3s, LocalCluster::K3d),
            (is_minikube, LocalCluster::Minikube),
            (is_docker, LocalCluster::DockerDesktop),
            (is_kind, LocalCluster::Kind),
            (is_k3s_version, LocalCluster::K3d),
        ];
        all.into_iter().find(|(is_it, _)| *is_it).map(|(_, it)| it)
    }
}

/// Returns the host name of this machine on the nodes of a local cluster; `None` if there is only an address.
pub fn host(cluster: LocalCluster) -> Option<&'static str> {
    match cluster {
        LocalCluster::DockerDesktop => Some("host.docker.internal"),
        LocalCluster::K3d => Some("host.k3d.internal"),
        LocalCluster::Minikube => Some("host.minikube.internal"),
        LocalCluster::Auto | LocalCluster::Kind => None,
    }
}

/// Returns `gitVersion` of the response to `/version`.
pub fn version(response: &[u8]) -> Option<String> {
    let response: Value = serde_json::from_slice(response).ok()?;
    response.get("gitVersion")?.as_str().map(str::to_owned)
}

/// Returns the first address of the API server itself, from an `EndpointSlice`.
pub fn node_address(slice: &Value) -> Option<&str> {
    let endpoints = slice.get("endpoints")?.as_array()?;
    endpoints.first()?.get("addresses")?.as_array()?.first()?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LocalCluster, ServerFacts, node_address, version};

    #[test]
    fn local_clusters_are_detected_by_their_certificates_and_versions() {
        let list = |it: &str| vec!["other".to_owned(), it.to_owned()];
        let none = ServerFacts::default();
        let cases = [
            (ServerFacts { names: list("k3s"), ..none.clone() }, Some(LocalCluster::K3d)),
            (ServerFacts { organizations: list("k3s"), ..none.clone() }, Some(LocalCluster::K3d)),
            (
                ServerFacts { issuers: list("k3s-server-ca@1700000000"), ..none.clone() },
                Some(LocalCluster::K3d),
            ),
            (
                ServerFacts { version: Some("v1.36.3+k3s1".into()), ..none.clone() },
                Some(LocalCluster::K3d),
            ),
            (ServerFacts { names: list("minikube"), ..none.clone() }, Some(LocalCluster::Minikube)),
            (
                ServerFacts { issuers: list("minikubeCA"), ..none.clone() },
                Some(LocalCluster::Minikube),
            ),
            (
                ServerFacts { hosts: list("docker-for-desktop"), ..none.clone() },
                Some(LocalCluster::DockerDesktop),
            ),
            (
                ServerFacts { hosts: list("kind-control-plane"), ..none.clone() },
                Some(LocalCluster::Kind),
            ),
            (ServerFacts { version: Some("v1.36.3".into()), ..none.clone() }, None),
            (none, None),
        ];
        for (facts, expected) in cases {
            assert_eq!(facts.cluster(), expected, "{facts:?}");
        }
    }

    #[test]
    fn unexpected_responses_tell_nothing() {
        assert_eq!(version(br#"{"gitVersion": "v1.36.3"}"#).as_deref(), Some("v1.36.3"));
        for text in ["", "[]", "{}", r#"{"gitVersion": 1}"#] {
            assert_eq!(version(text.as_bytes()), None, "{text}");
        }
        let slice = json!({"endpoints": [{"addresses": ["172.18.0.2"]}]});
        assert_eq!(node_address(&slice), Some("172.18.0.2"));
        for slice in
            [json!({}), json!({"endpoints": []}), json!({"endpoints": [{"addresses": [1]}]})]
        {
            assert_eq!(node_address(&slice), None, "{slice}");
        }
    }
}
