//! Resources and objects that many tests use.

use kopf_apiserver::ResourceDef;
use serde_json::{Value, json};

/// The name of [`examples`] in messages of the embedded server.
pub const EXAMPLES: &str = "kopfexamples.kopf.dev";

/// Returns the resource that most tests and benchmarks use.
pub fn examples() -> ResourceDef {
    ResourceDef::new("kopf.dev", "v1", "kopfexamples", "KopfExample")
}

/// Returns the peering resource of cluster-wide operators.
pub fn cluster_peering(group: &str) -> ResourceDef {
    let mut resource = ResourceDef::new(group, "v1", "clusterkopfpeerings", "ClusterKopfPeering");
    resource.namespaced = false;
    resource
}

/// Returns an object of [`examples`] with an empty spec. Its uid is its name.
pub fn object(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "KopfExample",
        "metadata": { "namespace": namespace, "name": name, "uid": name }, "spec": {},
    })
}

/// Returns a namespace. Its uid is its name.
pub fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "uid": name } })
}

/// Returns the CRD of a resource, which accepts any object.
pub fn definition(resource: &ResourceDef) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let version = |name: &String| {
        let schema = json!({ "openAPIV3Schema": schema });
        json!({ "name": name, "served": true, "storage": true, "schema": schema })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": resource.qualified() },
        "spec": {
            "group": resource.group,
            "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "plural": resource.plural, "singular": resource.singular,
                "kind": resource.kind, "categories": resource.categories,
            },
            "versions": resource.versions.iter().map(version).collect::<Vec<_>>(),
        },
    })
}
