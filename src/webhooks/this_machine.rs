//! Finds the host by which the API server of a local cluster reaches this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use super::{connection::TARGET, peer};
use crate::logic::{
    admission::local_cluster::{self, ServerFacts},
    object::resource::Resource,
};
use crate::ports::{Address, ApiError, Cluster};
use crate::settings::LocalCluster;

/// The `EndpointSlice` with the addresses of the API servers.
const SERVERS: &str = "kubernetes";

/// Any port: nothing is sent there.
const ANY_PORT: u16 = 9;

/// Returns the host; `None`: unknown, so that the server is published as on the machine of the API server.
pub(super) async fn host(wanted: LocalCluster, cluster: &dyn Cluster) -> Option<String> {
    let found = match wanted {
        LocalCluster::Auto => facts(cluster).await.cluster(),
        LocalCluster::DockerDesktop
        | LocalCluster::K3d
        | LocalCluster::Kind
        | LocalCluster::Minikube => Some(wanted),
    };
    let Some(found) = found else {
        tracing::info!(target: TARGET, "Cluster detection failed, running a simple local server.");
        return None;
    };
    let host = match local_cluster::host(found) {
        Some(host) => Ok(host.to_owned()),
        None => own_address(cluster).await,
    };
    match host {
        Ok(host) => {
            tracing::info!(target: TARGET, "Cluster detection found the hostname: {host}");
            Some(host)
        }
        Err(problem) => {
            tracing::error!(
                target: TARGET,
                "Cannot find the address of this machine in the network of the cluster, running a simple local server: {problem}. \
                 Set `host` of `settings.admission.server` instead of `cluster`."
            );
            None
        }
    }
}

/// Returns the properties of the API server. Those that cannot be read are left out.
async fn facts(cluster: &dyn Cluster) -> ServerFacts {
    let mut facts = match cluster.certificate().await {
        Ok(certificate) => certificate.map(|it| peer::facts(&it.into())).unwrap_or_default(),
        Err(error) => {
            tracing::warn!(target: TARGET, "Cannot read the certificate of the API server: {error}");
            ServerFacts::default()
        }
    };
    facts.version = cluster.version().await.ok().and_then(|it| local_cluster::version(&it));
    facts
}

/// Returns the address of this machine in the network of the node where the API server runs.
async fn own_address(cluster: &dyn Cluster) -> Result<String, String> {
    let slices = Resource {
        group: "discovery.k8s.io".into(),
        version: "v1".into(),
        plural: "endpointslices".into(),
        kind: "EndpointSlice".into(),
        namespaced: true,
        ..Resource::default()
    };
    let address = Address { resource: &slices, namespace: Some("default"), name: SERVERS };
    let slice = cluster.get(address).await.map_err(|it: ApiError| it.to_string())?;
    let node = local_cluster::node_address(slice.body());
    let node: IpAddr = node
        .and_then(|it| it.parse().ok())
        .ok_or("the EndpointSlice default/kubernetes has no address")?;
    // Nothing is sent: the system only chooses the interface.
    let any: IpAddr = match node {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let own = UdpSocket::bind((any, 0)).and_then(|it| {
        it.connect((node, ANY_PORT))?;
        it.local_addr()
    });
    own.map(|it| it.ip().to_string()).map_err(|it| format!("no route to {node}: {it}"))
}
