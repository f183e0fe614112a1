//! All served native kinds: their names, as the real discovery lists them, and their rules.

use std::collections::BTreeMap;

use super::{Native, Subresource, rules};
use crate::resource::{
    ResourceDef,
    kind::{Kind, Scale, Version},
};

const ALL: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
/// Namespaces and services are deleted one by one.
const SINGLE: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];
const READ: &[&str] = &["get", "list"];

/// A line of the table.
struct Row {
    group: &'static str,
    /// Stored in the first one.
    versions: &'static [&'static str],
    plural: &'static str,
    kind: &'static str,
    namespaced: bool,
    verbs: &'static [&'static str],
    short: &'static [&'static str],
    categories: &'static [&'static str],
    subresources: &'static [Subresource],
    rules: &'static Native,
}

const STATUS: Subresource = Subresource {
    name: "status",
    kind: "",
    group: "",
    version: "",
    verbs: &["get", "patch", "update"],
};
const SCALE: Subresource = Subresource {
    name: "scale",
    kind: "Scale",
    group: "autoscaling",
    version: "v1",
    verbs: &["get", "patch", "update"],
};
const PROXY: &[&str] = &["create", "delete", "get", "patch", "update"];

const fn sub(
    name: &'static str,
    kind: &'static str,
    verbs: &'static [&'static str],
) -> Subresource {
    Subresource { name, kind, group: "", version: "", verbs }
}

const fn of(group: &'static str, version: &'static str, it: Subresource) -> Subresource {
    Subresource { group, version, ..it }
}

const PODS: &[Subresource] = &[
    sub("attach", "PodAttachOptions", &["create", "get"]),
    sub("binding", "Binding", CREATE),
    of("policy", "v1beta1", sub("eviction", "Eviction", CREATE)),
    sub("exec", "PodExecOptions", &["create", "get"]),
    sub("log", "", &["get"]),
    sub("portforward", "PodPortForwardOptions", &["create", "get"]),
    sub("proxy", "PodProxyOptions", PROXY),
    STATUS,
];

/// A kind in a group, with rules; the rest is usual.
const fn row(
    group: &'static str,
    plural: &'static str,
    kind: &'static str,
    rules: &'static Native,
) -> Row {
    Row {
        group,
        versions: &["v1"],
        plural,
        kind,
        namespaced: true,
        verbs: ALL,
        short: &[],
        categories: &[],
        subresources: &[],
        rules,
    }
}

impl Row {
    const fn global(self) -> Self {
        Self { namespaced: false, ..self }
    }

    const fn verbs(self, verbs: &'static [&'static str]) -> Self {
        Self { verbs, ..self }
    }

    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }

    const fn category(self, categories: &'static [&'static str]) -> Self {
        Self { categories, ..self }
    }

    const fn subs(self, subresources: &'static [Subresource]) -> Self {
        Self { subresources, ..self }
    }

    const fn versions(self, versions: &'static [&'static str]) -> Self {
        Self { versions, ..self }
    }
}

const LIST: &[&str] = &["all"];
const EXTENSIONS: &[&str] = &["api-extensions"];

const CORE: &[Row] = &[
    row("", "bindings", "Binding", &rules::BINDING).verbs(CREATE),
    row("", "componentstatuses", "ComponentStatus", &rules::COMPONENT_STATUS)
        .global()
        .verbs(READ)
        .short(&["cs"]),
    row("", "configmaps", "ConfigMap", &rules::CONFIG_MAP).short(&["cm"]),
    row("", "endpoints", "Endpoints", &rules::ENDPOINTS).short(&["ep"]),
    row("", "events", "Event", &rules::EVENT).short(&["ev"]),
    row("", "limitranges", "LimitRange", &rules::LIMIT_RANGE).short(&["limits"]),
    row("", "namespaces", "Namespace", &rules::NAMESPACE)
        .global()
        .verbs(SINGLE)
        .short(&["ns"])
        .subs(&[sub("finalize", "", &["update"]), STATUS]),
    row("", "nodes", "Node", &rules::NODE)
        .global()
        .short(&["no"])
        .subs(&[sub("proxy", "NodeProxyOptions", PROXY), STATUS]),
    row("", "persistentvolumeclaims", "PersistentVolumeClaim", &rules::CLAIM)
        .short(&["pvc"])
        .subs(&[STATUS]),
    row("", "persistentvolumes", "PersistentVolume", &rules::VOLUME)
        .global()
        .short(&["pv"])
        .subs(&[STATUS]),
    row("", "pods", "Pod", &rules::POD).short(&["po"]).category(LIST).subs(PODS),
    row("", "podtemplates", "PodTemplate", &rules::POD_TEMPLATE),
    row("", "replicationcontrollers", "ReplicationController", &rules::REPLICATION_CONTROLLER)
        .short(&["rc"])
        .category(LIST)
        .subs(&[SCALE, STATUS]),
    row("", "resourcequotas", "ResourceQuota", &rules::QUOTA).short(&["quota"]).subs(&[STATUS]),
    row("", "secrets", "Secret", &rules::SECRET),
    row("", "serviceaccounts", "ServiceAccount", &rules::SERVICE_ACCOUNT)
        .short(&["sa"])
        .subs(&[of("authentication.k8s.io", "v1", sub("token", "TokenRequest", CREATE))]),
    row("", "services", "Service", &rules::SERVICE)
        .verbs(SINGLE)
        .short(&["svc"])
        .category(LIST)
        .subs(&[sub("proxy", "ServiceProxyOptions", PROXY), STATUS]),
];

const WORKLOADS: &[Row] = &[
    row("apps", "controllerrevisions", "ControllerRevision", &rules::CONTROLLER_REVISION),
    row("apps", "daemonsets", "DaemonSet", &rules::DAEMON_SET)
        .short(&["ds"])
        .category(LIST)
        .subs(&[STATUS]),
    row("apps", "deployments", "Deployment", &rules::DEPLOYMENT)
        .short(&["deploy"])
        .category(LIST)
        .subs(&[SCALE, STATUS]),
    row("apps", "replicasets", "ReplicaSet", &rules::REPLICA_SET)
        .short(&["rs"])
        .category(LIST)
        .subs(&[SCALE, STATUS]),
    row("apps", "statefulsets", "StatefulSet", &rules::STATEFUL_SET)
        .short(&["sts"])
        .category(LIST)
        .subs(&[SCALE, STATUS]),
    row("autoscaling", "horizontalpodautoscalers", "HorizontalPodAutoscaler", &rules::AUTOSCALER)
        .short(&["hpa"])
        .category(LIST)
        .subs(&[STATUS]),
    row("batch", "cronjobs", "CronJob", &rules::CRON_JOB)
        .versions(&["v1", "v1beta1"])
        .short(&["cj"])
        .category(LIST)
        .subs(&[STATUS]),
    row("batch", "jobs", "Job", &rules::JOB).category(LIST).subs(&[STATUS]),
    row("policy", "poddisruptionbudgets", "PodDisruptionBudget", &rules::DISRUPTION_BUDGET)
        .versions(&["v1", "v1beta1"])
        .short(&["pdb"])
        .subs(&[STATUS]),
];

const ADMIN: &str = "admissionregistration.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";
const STORAGE: &str = "storage.k8s.io";
const NETWORKING: &str = "networking.k8s.io";

const SYSTEM: &[Row] = &[
    row(ADMIN, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", &rules::MUTATING)
        .global()
        .category(EXTENSIONS),
    row(
        ADMIN,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        &rules::VALIDATING,
    )
    .global()
    .category(EXTENSIONS),
    row(
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        &rules::DEFINITION,
    )
    .versions(&["v1", "v1beta1"])
    .global()
    .short(&["crd", "crds"])
    .category(EXTENSIONS)
    .subs(&[STATUS]),
    row("authentication.k8s.io", "tokenreviews", "TokenReview", &rules::TOKEN_REVIEW)
        .global()
        .verbs(CREATE),
    row(
        AUTHORIZATION,
        "localsubjectaccessreviews",
        "LocalSubjectAccessReview",
        &rules::LOCAL_ACCESS,
    )
    .verbs(CREATE),
    row(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview", &rules::OWN_ACCESS)
        .global()
        .verbs(CREATE),
    row(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview", &rules::OWN_RULES)
        .global()
        .verbs(CREATE),
    row(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview", &rules::ACCESS)
        .global()
        .verbs(CREATE),
    row("coordination.k8s.io", "leases", "Lease", &rules::LEASE),
    row("discovery.k8s.io", "endpointslices", "EndpointSlice", &rules::ENDPOINT_SLICE)
        .versions(&["v1", "v1beta1"]),
    row("events.k8s.io", "events", "Event", &rules::MODERN_EVENT).short(&["ev"]),
    row(NETWORKING, "ingressclasses", "IngressClass", &rules::INGRESS_CLASS).global(),
    row(NETWORKING, "ingresses", "Ingress", &rules::INGRESS).short(&["ing"]).subs(&[STATUS]),
    row(NETWORKING, "networkpolicies", "NetworkPolicy", &rules::NETWORK_POLICY).short(&["netpol"]),
    row("node.k8s.io", "runtimeclasses", "RuntimeClass", &rules::RUNTIME_CLASS).global(),
    row(RBAC, "clusterrolebindings", "ClusterRoleBinding", &rules::CLUSTER_ROLE_BINDING).global(),
    row(RBAC, "clusterroles", "ClusterRole", &rules::CLUSTER_ROLE).global(),
    row(RBAC, "rolebindings", "RoleBinding", &rules::ROLE_BINDING),
    row(RBAC, "roles", "Role", &rules::ROLE),
    row("scheduling.k8s.io", "priorityclasses", "PriorityClass", &rules::PRIORITY_CLASS)
        .global()
        .short(&["pc"]),
    row(STORAGE, "csidrivers", "CSIDriver", &rules::CSI_DRIVER).global(),
    row(STORAGE, "csinodes", "CSINode", &rules::CSI_NODE).global(),
    row(STORAGE, "storageclasses", "StorageClass", &rules::STORAGE_CLASS).global().short(&["sc"]),
    row(STORAGE, "volumeattachments", "VolumeAttachment", &rules::ATTACHMENT)
        .global()
        .subs(&[STATUS]),
];

/// All kinds that are compiled into Kubernetes.
pub(crate) fn kinds() -> Vec<Kind> {
    rows().map(kind).collect()
}

/// The endpoints below the objects of a native resource.
pub(crate) fn subresources(group: &str, plural: &str) -> &'static [Subresource] {
    rows().find(|it| it.group == group && it.plural == plural).map_or(&[], |it| it.subresources)
}

fn rows() -> impl Iterator<Item = &'static Row> {
    [CORE, WORKLOADS, SYSTEM].into_iter().flatten()
}

fn kind(row: &Row) -> Kind {
    let texts = |list: &[&str]| list.iter().copied().map(String::from).collect::<Vec<_>>();
    let has = |name: &str| row.subresources.iter().any(|it| it.name == name);
    let scale = has("scale").then(|| Scale {
        wanted: ".spec.replicas".into(),
        present: ".status.replicas".into(),
        selector: None,
    });
    let version = Version { scale, ..Version::default() };
    let versions = row.versions.iter().map(|it| ((*it).into(), version.clone()));
    Kind {
        def: ResourceDef {
            versions: texts(row.versions),
            short_names: texts(row.short),
            categories: texts(row.categories),
            namespaced: row.namespaced,
            status_subresource: has("status"),
            native: true,
            verbs: texts(row.verbs),
            ..ResourceDef::new(row.group, "v1", row.plural, row.kind)
        },
        native: Some(row.rules),
        versions: versions.collect::<BTreeMap<_, _>>(),
    }
}
