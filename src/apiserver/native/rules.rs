//! The rules of the native kinds, one static per kind. A kind without an entry is not served.

use super::{Native, autoscalers, check, defaults, events, lifecycle, reviews};
use crate::resource::definition;

/// Defines kinds with the defaults of their schema, and with the given fields.
macro_rules! rules {
    ($($name:ident = $schema:literal { $($field:ident: $value:expr),* $(,)? })*) => {
        static ALL: &[&Native] = &[$(&$name),*];

        $(static $name: Native = {
            const PLAIN: Native = Native {
                defaults: |it| defaults::fill($schema, it),
                ..Native::plain($schema)
            };
            Native { $($field: $value,)* ..PLAIN }
        };)*
    };
}

/// Returns the rules of the kind with this definition.
pub(super) fn of(definition: &str) -> Option<&'static Native> {
    ALL.iter().copied().find(|it| it.schema == definition)
}

rules! {
    BINDING = "io.k8s.api.core.v1.Binding" {}
    COMPONENT_STATUS = "io.k8s.api.core.v1.ComponentStatus" {}
    CONFIG_MAP = "io.k8s.api.core.v1.ConfigMap" { check: check::config::config_map }
    ENDPOINTS = "io.k8s.api.core.v1.Endpoints" {
        warning: Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        check: check::services::endpoints,
        put_creates: true,
    }
    EVENT = "io.k8s.api.core.v1.Event" {
        check: check::system::event,
        fields: &[
            ("involvedObject.kind", "/involvedObject/kind"),
            ("involvedObject.namespace", "/involvedObject/namespace"),
            ("involvedObject.name", "/involvedObject/name"),
            ("involvedObject.uid", "/involvedObject/uid"),
            ("involvedObject.apiVersion", "/involvedObject/apiVersion"),
            ("involvedObject.resourceVersion", "/involvedObject/resourceVersion"),
            ("involvedObject.fieldPath", "/involvedObject/fieldPath"),
            ("reason", "/reason"),
            ("reportingComponent", "/reportingComponent"),
            ("source", "/source/component"),
            ("type", "/type"),
        ],
        put_creates: true,
    }
    LIMIT_RANGE = "io.k8s.api.core.v1.LimitRange" {
        check: check::system::limit_range,
        put_creates: true,
    }
    NAMESPACE = "io.k8s.api.core.v1.Namespace" {
        defaults: lifecycle::read_namespace,
        created: lifecycle::namespace,
        updated: lifecycle::namespace_updated,
        check: check::system::namespace,
        fields: &[("status.phase", "/status/phase")],
    }
    NODE = "io.k8s.api.core.v1.Node" {
        defaults: lifecycle::read_node,
        created: lifecycle::node,
        check: check::system::node,
        fields: &[("spec.unschedulable", "/spec/unschedulable")],
        fields_missing: &[("spec.unschedulable", "false")],
    }
    CLAIM = "io.k8s.api.core.v1.PersistentVolumeClaim" {
        created: |it| lifecycle::fresh("io.k8s.api.core.v1.PersistentVolumeClaim", it),
        check: |new, old| check::twice(check::storage::claim, new, old),
    }
    VOLUME = "io.k8s.api.core.v1.PersistentVolume" {
        created: lifecycle::volume,
        status_updated: lifecycle::volume_status_updated,
        check: |new, old| check::twice(check::storage::volume, new, old),
    }
    POD = "io.k8s.api.core.v1.Pod" {
        defaults: lifecycle::read_pod,
        created: lifecycle::pod,
        updated: lifecycle::pod_updated,
        status_updated: lifecycle::pod_status_updated,
        check: check::pods::pod,
        generations: true,
        fields: &[
            ("spec.nodeName", "/spec/nodeName"),
            ("spec.restartPolicy", "/spec/restartPolicy"),
            ("spec.schedulerName", "/spec/schedulerName"),
            ("spec.serviceAccountName", "/spec/serviceAccountName"),
            ("status.phase", "/status/phase"),
            ("status.podIP", "/status/podIP"),
            ("status.podIPs", "/status/podIP"),
            ("status.nominatedNodeName", "/status/nominatedNodeName"),
        ],
    }
    POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplate" {
        check: check::pods::pod_template,
        generations: true,
        counted: &["/template"],
    }
    REPLICATION_CONTROLLER = "io.k8s.api.core.v1.ReplicationController" {
        created: |it| lifecycle::fresh("io.k8s.api.core.v1.ReplicationController", it),
        orphans: true,
        check: |new, old| check::twice(check::workloads::replication_controller, new, old),
        fields: &[("status.replicas", "/status/replicas")],
        fields_missing: &[("status.replicas", "0")],
        generations: true,
    }
    QUOTA = "io.k8s.api.core.v1.ResourceQuota" {
        created: |it| lifecycle::fresh("io.k8s.api.core.v1.ResourceQuota", it),
        check: |new, old| check::twice(check::system::quota, new, old),
    }
    SECRET = "io.k8s.api.core.v1.Secret" {
        defaults: lifecycle::secret,
        check: check::config::secret,
        fields: &[("type", "/type")],
    }
    SERVICE_ACCOUNT = "io.k8s.api.core.v1.ServiceAccount" { check: check::plain }
    SERVICE = "io.k8s.api.core.v1.Service" {
        created: lifecycle::service,
        updated: lifecycle::service_updated,
        check: check::services::service,
        put_creates: true,
    }

    CONTROLLER_REVISION = "io.k8s.api.apps.v1.ControllerRevision" {
        check: check::workloads::controller_revision,
    }
    DAEMON_SET = "io.k8s.api.apps.v1.DaemonSet" {
        defaults: lifecycle::read_daemon_set,
        created: lifecycle::daemon_set,
        updated: lifecycle::daemon_set_updated,
        status_updated: lifecycle::daemon_set_updated,
        check: |new, old| check::twice(check::workloads::daemon_set, new, old),
        generations: true,
    }
    DEPLOYMENT = "io.k8s.api.apps.v1.Deployment" {
        created: |it| lifecycle::fresh("io.k8s.api.apps.v1.Deployment", it),
        check: check::workloads::deployment,
        generations: true,
        counted: &["/spec", "/metadata/annotations"],
    }
    REPLICA_SET = "io.k8s.api.apps.v1.ReplicaSet" {
        created: |it| lifecycle::fresh("io.k8s.api.apps.v1.ReplicaSet", it),
        check: |new, old| check::twice(check::workloads::replica_set, new, old),
        fields: &[("status.replicas", "/status/replicas")],
        fields_missing: &[("status.replicas", "0")],
        generations: true,
    }
    STATEFUL_SET = "io.k8s.api.apps.v1.StatefulSet" {
        created: |it| lifecycle::fresh("io.k8s.api.apps.v1.StatefulSet", it),
        check: check::workloads::stateful_set,
        generations: true,
    }
    AUTOSCALER = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler" {
        defaults: autoscalers::fill,
        created: autoscalers::created,
        check: autoscalers::check,
        conversion: Some(&autoscalers::V1),
    }
    CRON_JOB = "io.k8s.api.batch.v1.CronJob" {
        generations: true,
        created: |it| lifecycle::fresh("io.k8s.api.batch.v1.CronJob", it),
        check: check::jobs::cron_job,
    }
    JOB = "io.k8s.api.batch.v1.Job" {
        created: lifecycle::job,
        generations: true,
        orphans: true,
        check: |new, old| check::twice(check::jobs::job, new, old),
        fields: &[("status.successful", "/status/succeeded")],
        fields_missing: &[("status.successful", "0")],
    }
    DISRUPTION_BUDGET = "io.k8s.api.policy.v1.PodDisruptionBudget" {
        created: |it| lifecycle::fresh("io.k8s.api.policy.v1.PodDisruptionBudget", it),
        check: check::workloads::disruption_budget,
        generations: true,
    }

    MUTATING = "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration" {
        check: check::webhooks::configuration,
        generations: true,
        counted: &["/webhooks"],
    }
    VALIDATING = "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration" {
        check: check::webhooks::configuration,
        generations: true,
        counted: &["/webhooks"],
    }
    DEFINITION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition" {
        generations: true,
        defaults: definition::defaults,
        updated: definition::updated,
        check: definition::check,
    }
    TOKEN_REVIEW = "io.k8s.api.authentication.v1.TokenReview" { review: Some(reviews::token) }
    LOCAL_ACCESS = "io.k8s.api.authorization.v1.LocalSubjectAccessReview" {
        review: Some(reviews::access),
    }
    OWN_ACCESS = "io.k8s.api.authorization.v1.SelfSubjectAccessReview" {
        review: Some(reviews::own_access),
    }
    OWN_RULES = "io.k8s.api.authorization.v1.SelfSubjectRulesReview" {
        review: Some(reviews::rules),
    }
    ACCESS = "io.k8s.api.authorization.v1.SubjectAccessReview" { review: Some(reviews::access) }
    LEASE = "io.k8s.api.coordination.v1.Lease" {
        check: check::system::lease,
        put_creates: true,
    }
    ENDPOINT_SLICE = "io.k8s.api.discovery.v1.EndpointSlice" {
        check: check::services::endpoint_slice,
        generations: true,
        counted: &["/addressType", "/endpoints", "/ports"],
    }
    MODERN_EVENT = "io.k8s.api.events.v1.Event" {
        check: check::system::modern_event,
        fields: &[
            ("regarding.kind", "/regarding/kind"),
            ("regarding.namespace", "/regarding/namespace"),
            ("regarding.name", "/regarding/name"),
            ("regarding.uid", "/regarding/uid"),
            ("regarding.apiVersion", "/regarding/apiVersion"),
            ("regarding.resourceVersion", "/regarding/resourceVersion"),
            ("regarding.fieldPath", "/regarding/fieldPath"),
            ("reason", "/reason"),
            ("reportingController", "/reportingController"),
            ("type", "/type"),
        ],
        put_creates: true,
        twin: Some(&events::TWIN),
    }
    INGRESS_CLASS = "io.k8s.api.networking.v1.IngressClass" {
        check: check::network::ingress_class,
        generations: true,
    }
    INGRESS = "io.k8s.api.networking.v1.Ingress" {
        created: |it| lifecycle::fresh("io.k8s.api.networking.v1.Ingress", it),
        check: check::network::ingress,
        generations: true,
    }
    NETWORK_POLICY = "io.k8s.api.networking.v1.NetworkPolicy" {
        check: |new, old| check::twice(check::network::policy, new, old),
        generations: true,
    }
    RUNTIME_CLASS = "io.k8s.api.node.v1.RuntimeClass" {
        check: check::system::runtime_class,
        put_creates: true,
    }
    CLUSTER_ROLE_BINDING = "io.k8s.api.rbac.v1.ClusterRoleBinding" {
        check: |new, old| check::twice(check::rbac::cluster_role_binding, new, old),
        put_creates: true,
    }
    CLUSTER_ROLE = "io.k8s.api.rbac.v1.ClusterRole" {
        check: check::rbac::cluster_role,
        put_creates: true,
    }
    ROLE_BINDING = "io.k8s.api.rbac.v1.RoleBinding" {
        check: |new, old| check::twice(check::rbac::role_binding, new, old),
        put_creates: true,
    }
    ROLE = "io.k8s.api.rbac.v1.Role" { check: check::rbac::role, put_creates: true }
    PRIORITY_CLASS = "io.k8s.api.scheduling.v1.PriorityClass" {
        check: check::system::priority_class,
        generations: true,
    }
    CSI_DRIVER = "io.k8s.api.storage.v1.CSIDriver" { check: check::plain }
    CSI_NODE = "io.k8s.api.storage.v1.CSINode" { check: check::plain }
    STORAGE_CLASS = "io.k8s.api.storage.v1.StorageClass" { check: check::storage::class }
    ATTACHMENT = "io.k8s.api.storage.v1.VolumeAttachment" { check: check::plain }
    VALIDATING_POLICY = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy" {
        created: |it| lifecycle::fresh("io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy", it),
        check: check::policies::validating,
        generations: true,
    }
    VALIDATING_POLICY_BINDING = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding" {
        check: check::policies::validating_binding,
        generations: true,
    }
    MUTATING_POLICY = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy" {
        check: check::plain,
        generations: true,
    }
    MUTATING_POLICY_BINDING = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding" {
        check: check::plain,
        generations: true,
    }
    API_SERVICE = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService" {
        check: check::plain,
        created: |it| lifecycle::fresh("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService", it),
    }
    OWN_USER = "io.k8s.api.authentication.v1.SelfSubjectReview" { review: Some(|it| Ok(reviews::own_user(it))) }
    SIGNING_REQUEST = "io.k8s.api.certificates.v1.CertificateSigningRequest" {
        created: |it| lifecycle::fresh("io.k8s.api.certificates.v1.CertificateSigningRequest", it),
        check: check::system::signing_request,
        updated: lifecycle::signing_request_updated,
        reset: &["spec"],
        fields: &[("spec.signerName", "/spec/signerName")],
    }
    FLOW_SCHEMA = "io.k8s.api.flowcontrol.v1.FlowSchema" {
        created: |it| lifecycle::fresh("io.k8s.api.flowcontrol.v1.FlowSchema", it),
        check: check::plain,
        generations: true,
    }
    PRIORITY_LEVEL = "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration" {
        created: |it| lifecycle::fresh("io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration", it),
        check: check::plain,
        generations: true,
    }
    IP_ADDRESS = "io.k8s.api.networking.v1.IPAddress" { check: check::plain }
    SERVICE_CIDR = "io.k8s.api.networking.v1.ServiceCIDR" {
        created: |it| lifecycle::fresh("io.k8s.api.networking.v1.ServiceCIDR", it),
        check: check::plain,
    }
    DEVICE_CLASS = "io.k8s.api.resource.v1.DeviceClass" { check: check::plain, generations: true }
    RESOURCE_CLAIM = "io.k8s.api.resource.v1.ResourceClaim" {
        created: |it| lifecycle::fresh("io.k8s.api.resource.v1.ResourceClaim", it),
        check: check::plain,
    }
    RESOURCE_CLAIM_TEMPLATE = "io.k8s.api.resource.v1.ResourceClaimTemplate" { check: check::plain }
    RESOURCE_SLICE = "io.k8s.api.resource.v1.ResourceSlice" { check: check::plain, generations: true }
    STORAGE_CAPACITY = "io.k8s.api.storage.v1.CSIStorageCapacity" { check: check::plain }
    VOLUME_ATTRIBUTES_CLASS = "io.k8s.api.storage.v1.VolumeAttributesClass" { check: check::plain }
}
