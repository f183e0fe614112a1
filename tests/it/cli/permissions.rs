//! `--as`, `--rbac`, and CRDs that the operator creates, in `kopf test` and `kopf dev`.

use super::check::Directory;

const OPERATOR: &str = r#"
kopf.on_create("volumes.example.com", function(ctx)
    ctx.patch.status.phase = "Ready"
end)
"#;
const TEST: &str = r#"
kopf.test("a volume gets ready", { timeout = "5m" }, function()
    local volume = kube.create({ apiVersion = "example.com/v1", kind = "Volume", metadata = { name = "one" } })
    kube.wait(volume, function(it) return kopf.get(it, "status.phase") end, "1m")
    check.equal(#kube.list("v1", "secrets"), 0)
end)
"#;
/// Manifests of an operator, with a Deployment that the tests ignore.
const MANIFESTS: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: op, namespace: ops}
spec: {}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: op}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
subjects: [{kind: ServiceAccount, namespace: ops, name: op}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: op}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [list, watch]}
- {apiGroups: [\"\"], resources: [namespaces], verbs: [list, watch]}
- {apiGroups: [\"\"], resources: [events], verbs: [create]}
- {apiGroups: [example.com], resources: [volumes, VOLUMES], verbs: [list, watch, get, patch]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: op, namespace: ops}
";

fn directory(test: &str, more: &[(&str, &str)]) -> Directory {
    let files = [("handlers.lua", OPERATOR), ("tests/volume_test.lua", TEST)];
    Directory::with(&format!("permissions-{test}"), &[&files[..], more].concat())
}

fn granting(status: &str) -> String {
    MANIFESTS.replace("VOLUMES", status)
}

#[test]
fn an_operator_with_its_permissions_works_and_its_test_may_do_more() {
    let own = directory("enough", &[("deploy/op.yaml", &granting("volumes/status"))]);
    let (code, told, problem) = own.kopf(&["test", "--rbac", "deploy", "--verbose"], &[]);
    assert_eq!(code, 0, "{told}{problem}");
    assert!(!told.contains("forbidden"), "{told}");
}

#[test]
fn a_missing_permission_fails_the_test_with_the_words_of_kubernetes() {
    let own = directory("missing", &[("deploy/op.yaml", &granting("volumes/scale"))]);
    let (code, told, problem) = own.kopf(&["test", "--rbac", "deploy"], &[]);
    assert_eq!(code, 1, "{told}{problem}");
    let user = "User \"system:serviceaccount:ops:op\" cannot patch resource \"volumes/status\" in API group \"example.com\"";
    assert!(told.contains(user), "{told}");
    let other = "system:serviceaccount:ops:other";
    let (code, told, problem) = own.kopf(&["test", "--rbac", "deploy", "--as", other], &[]);
    assert_eq!(code, 1, "{told}{problem}");
    assert!(told.contains("system:serviceaccount:ops:other"), "{told}");
}

#[test]
fn roles_may_be_among_the_objects_of_the_test() {
    let account = "system:serviceaccount:ops:op";
    let roles = granting("volumes/status");
    let (_, roles) = roles.split_once("---\n").expect("several documents");
    let own = directory("roles", &[("roles.yaml", roles)]);
    let (code, told, problem) = own.kopf(&["test", "--as", account, "--apply", "roles.yaml"], &[]);
    assert_eq!(code, 0, "{told}{problem}");
}

#[test]
fn the_user_must_be_a_service_account_that_is_certain() {
    let two = format!(
        "{MANIFESTS}---\n{{apiVersion: v1, kind: ServiceAccount, metadata: {{name: b}}}}\n"
    );
    let (head, _) = MANIFESTS.rsplit_once("---\n").expect("several documents");
    let (deployment, _) = MANIFESTS.split_once("---\n").expect("several documents");
    let own = directory(
        "user",
        &[("two.yaml", &two), ("none.yaml", head), ("deployment.yaml", deployment)],
    );
    for command in ["test", "dev"] {
        for (args, code, expected) in [
            (
                &["--as", "ops/op"][..],
                2,
                "error: --as: not a service account: 'ops/op'\nhint: write system:serviceaccount:NAMESPACE:NAME\n",
            ),
            (
                &["--rbac", "two.yaml"],
                1,
                "error: the files of --rbac contain 2 service accounts\n\
                 hint: name the account of the operator with --as, such as --as system:serviceaccount:default:b\n",
            ),
            (
                &["--rbac", "none.yaml"],
                1,
                "error: the files of --rbac contain no service account\n\
                 hint: name the account of the operator with --as system:serviceaccount:NAMESPACE:NAME\n",
            ),
            (
                &["--rbac", "deployment.yaml"],
                1,
                "error: the files of --rbac contain no service accounts, roles or bindings\n\
                 hint: pass the manifests that grant the operator its permissions\n",
            ),
            (
                &["--rbac", "missing.yaml"],
                1,
                "error: there is no file or directory 'missing.yaml'\nhint: check the spelling and the current directory\n",
            ),
        ] {
            let (ended, told, problem) = own.kopf(&[&[command], args].concat(), &[]);
            assert_eq!((ended, problem.as_str()), (code, expected), "{command} {args:?}: {told}");
        }
    }
}

#[test]
fn crds_that_the_operator_creates_replace_generated_ones() {
    let operator = r#"
kopf.on_startup(function()
    kube.create({
        apiVersion = "apiextensions.k8s.io/v1",
        kind = "CustomResourceDefinition",
        metadata = { name = "monitors.example.com" },
        spec = {
            group = "example.com",
            scope = "Namespaced",
            names = { plural = "monitors", singular = "uptimemonitor", kind = "UptimeMonitor", listKind = "UptimeMonitorList" },
            versions = { {
                name = "v1", served = true, storage = true,
                schema = { openAPIV3Schema = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
            } },
        },
    })
end)
kopf.on_create("monitors", function(ctx)
    ctx.patch.phase = "Ready"
end)
"#;
    let test = r#"
kopf.test("a monitor gets ready", function()
    local monitor = kube.create({ apiVersion = "example.com/v1", kind = "UptimeMonitor", metadata = { name = "one" } })
    kube.wait(monitor, function(it) return it.phase end)
    check.equal(#kube.list("apiextensions.k8s.io/v1", "customresourcedefinitions"), 1)
end)
"#;
    let files = [("handlers.lua", operator), ("tests/monitor_test.lua", test)];
    let own = Directory::with("permissions-crds", &files);
    let (code, told, problem) = own.kopf(&["test"], &[]);
    assert_eq!(code, 0, "{told}{problem}");
}
