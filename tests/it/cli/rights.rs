//! All examples: `kopf rbac generate` finds exactly the permissions that their tests use.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use super::install::granted;

/// An example, its CRDs and its test; paths are below `examples/`, and `LANGUAGE` is either language.
struct Case {
    operator: &'static str,
    crd: &'static str,
    test: &'static str,
    /// The permissions that are unknown before the calls, and which the command suggests to add.
    also: &'static [&'static str],
}

const KOPF_EXAMPLES: [&str; 17] = [
    "01-minimal",
    "02-children",
    "03-exceptions",
    "04-events",
    "05-handlers",
    "06-peering",
    "07-subhandlers",
    "08-events",
    "09-testing",
    "10-builtins",
    "11-filtering-handlers",
    "12-embedded",
    "13-hooks",
    "14-daemons",
    "15-timers",
    "16-indexing",
    "99-all-at-once",
];

const fn case(operator: &'static str, crd: &'static str, test: &'static str) -> Case {
    Case { operator, crd, test, also: &[] }
}

const OPERATORS: [Case; 5] = [
    case(
        "database-claim/handlers",
        "database-claim/crd.yaml",
        "../tests/permissions/database-claim_test.lua",
    ),
    case("migration/handlers", "migration/crd.yaml", "../tests/permissions/migration_test.lua"),
    Case {
        operator: "namespace-provisioner/handlers",
        crd: "namespace-provisioner/crd.yaml",
        test: "../tests/permissions/namespace-provisioner_test.lua",
        also: &["bind:clusterroles.rbac.authorization.k8s.io"],
    },
    Case {
        operator: "replicator/handlers",
        crd: "",
        test: "../tests/permissions/replicator_test.lua",
        also: &["get,create,update,delete:secrets", "get,create,update,delete:configmaps"],
    },
    case("ttl-cleaner/handlers", "", "../tests/permissions/ttl-cleaner_test.lua"),
];

const TESTED: [Case; 4] = [
    case("17-admission/handlers", "crd.yaml", "17-admission/tests/handlers_test.LANGUAGE"),
    case("policy/handlers", "", "policy/tests/handlers_test.LANGUAGE"),
    case("conversion/handlers", "conversion/crd.yaml", "conversion/tests/handlers_test.LANGUAGE"),
    case("schedules/handlers", "", "schedules/tests/handlers_test.LANGUAGE"),
];

const PORTS: [Case; 5] = [
    case(
        "ports/appliances/handlers",
        "ports/appliances/crd.yaml",
        "ports/appliances/tests/handlers_test.LANGUAGE",
    ),
    case("ports/keystores/handlers", "", "ports/keystores/tests/handlers_test.LANGUAGE"),
    case(
        "ports/memcached/handlers",
        "ports/memcached/crd.yaml",
        "ports/memcached/tests/handlers_test.LANGUAGE",
    ),
    case("ports/setup/handlers", "", "ports/setup/tests/handlers_test.LANGUAGE"),
    Case {
        operator: "ports/user-namespaces/handlers",
        crd: "ports/user-namespaces/crd.yaml",
        test: "ports/user-namespaces/tests/handlers_test.LANGUAGE",
        also: &["create,patch:resourcequotas", "create,patch:configmaps"],
    },
];

const RECONCILE: [Case; 5] = [
    case("reconcile/blue-green", "reconcile/crd.yaml", "reconcile/tests/blue-green_test.LANGUAGE"),
    case("reconcile/catset", "reconcile/crd.yaml", "reconcile/tests/catset_test.LANGUAGE"),
    Case {
        operator: "reconcile/clustered-parent",
        crd: "reconcile/crd.yaml",
        test: "reconcile/tests/clustered-parent_test.LANGUAGE",
        also: &["bind:clusterroles.rbac.authorization.k8s.io"],
    },
    case(
        "reconcile/indexed-job",
        "reconcile/crd.yaml",
        "reconcile/tests/indexed-job_test.LANGUAGE",
    ),
    case(
        "reconcile/service-per-pod",
        "reconcile/crd.yaml",
        "reconcile/tests/service-per-pod_test.LANGUAGE",
    ),
];

/// The permissions that the operator itself may need, whatever its scripts do: for events about failures, the Lease by which it detects
/// another operator, and the certificates and CRDs of webhooks, which `kopf test` calls in its process.
const OF_REACTOR: [&str; 9] = [
    "create events.",
    "patch events.",
    "get leases.coordination.k8s.io",
    "create leases.coordination.k8s.io",
    "update leases.coordination.k8s.io",
    "get secrets.",
    "create secrets.",
    "update secrets.",
    "get customresourcedefinitions.apiextensions.k8s.io",
];

/// Runs a command of the binary on the examples. Returns its output and its warnings.
fn kopf(args: &[&str]) -> (String, String) {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    let output = command.args(args).env_clear().current_dir(examples).output().expect("it runs");
    let text = |it: &[u8]| String::from_utf8_lossy(it).into_owned();
    let (told, warned) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{args:?}: {told}{warned}");
    (told, warned)
}

/// Returns whether a permission is one of the operator itself that its tests need not use.
fn is_of_reactor(right: &str, all: &BTreeSet<String>, operator: &str) -> bool {
    let Some((verb, resource)) = right.split_once(' ') else { return false };
    let has = |right: String| all.contains(&right);
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    match verb {
        // After a conflict.
        "get" => has(format!("patch {resource}")) || has(format!("patch {plural}/status.{group}")),
        // Results of handlers, and the records of older operators.
        "patch" => {
            plural.strip_suffix("/status").is_some_and(|it| has(format!("patch {it}.{group}")))
        }
        // For a child that a function no longer returns; these always return the same ones.
        "delete" => operator.starts_with("reconcile/"),
        _ => false,
    }
}

fn check(case: &Case) {
    for language in ["lua", "rhai"] {
        let operator = format!("{}.{language}", case.operator);
        let test = case.test.replace("LANGUAGE", language);
        let crd = if case.crd.is_empty() { vec![] } else { vec!["--crd", case.crd] };
        let also: Vec<_> = case.also.iter().flat_map(|it| ["--also", *it]).collect();
        let generate = ["rbac", "generate", "--name", "op", "--replicas", "1", &operator];
        let (roles, warned) = kopf(&[&generate[..], &crd, &also].concat());
        let is_known = case.also.iter().all(|it| it.starts_with("bind:"));
        assert_eq!(warned.is_empty(), is_known, "{operator}: {warned}");

        let place = std::env::temp_dir().join(format!(
            "kopf-rights-{}-{}",
            std::process::id(),
            operator.replace('/', "-")
        ));
        fs::create_dir_all(&place).expect("a directory");
        let file = |name: &str| place.join(name).display().to_string();
        let (granting, used) = (file("granting.yaml"), file("used.yaml"));
        fs::write(&granting, &roles).expect("a file");
        let run = [&["test", "--operator", &operator][..], &crd, &[&test]].concat();
        let account = "system:serviceaccount:default:op";
        // The tests of this one count the bindings on the server, including those of `--rbac`.
        if case.operator != "reconcile/clustered-parent" {
            kopf(&[&run[..], &["--rbac", &granting, "--as", account]].concat());
        }
        kopf(&[&run[..], &["--record-rbac", &used]].concat());
        let used = granted(&fs::read_to_string(&used).expect("the record"));
        fs::remove_dir_all(&place).ok();

        let generated = granted(&roles);
        let missing: Vec<_> = used.difference(&generated).collect();
        assert!(missing.is_empty(), "{operator} lacks {missing:?}");
        let mut unused: Vec<_> = generated.difference(&used).cloned().collect();
        unused.retain(|it| !OF_REACTOR.contains(&it.as_str()));
        unused.retain(|it| !is_of_reactor(it, &generated, &operator));
        // The server checks the account for this permission: it is not a request.
        unused.retain(|it| !it.starts_with("bind "));
        // It is unknown which of its handlers deletes `ctx.body`.
        unused.retain(|it| {
            !(case.operator.starts_with("migration/") && it == "delete persistentvolumeclaims.")
        });
        assert_eq!(unused, [""; 0], "{operator} does not use these");
    }
}

#[test]
fn of_the_examples_of_kopf() {
    for name in KOPF_EXAMPLES {
        let operator: &'static str = format!("{name}/handlers").leak();
        check(&case(operator, "crd.yaml", "../tests/permissions/life_test.lua"));
    }
}

#[test]
fn of_whole_operators() {
    OPERATORS.iter().for_each(check);
}

#[test]
fn of_webhooks_and_schedules() {
    TESTED.iter().for_each(check);
}

#[test]
fn of_ports() {
    PORTS.iter().for_each(check);
}

#[test]
fn of_reconcile_handlers() {
    RECONCILE.iter().for_each(check);
}

#[test]
fn every_example_is_checked() {
    fn collect(directory: &Path, found: &mut BTreeSet<String>) {
        for entry in fs::read_dir(directory).expect("a directory").flatten() {
            let path = entry.path();
            if path.is_dir() && entry.file_name() != "tests" {
                collect(&path, found);
            } else if path.is_file()
                && path.extension().is_some_and(|it| it == "lua" || it == "rhai")
            {
                found.insert(path.with_extension("").display().to_string());
            }
        }
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut found = BTreeSet::new();
    collect(&examples, &mut found);
    let cases = OPERATORS.iter().chain(&TESTED).chain(&PORTS).chain(&RECONCILE);
    let names = cases.map(|it| it.operator.to_owned());
    let names = names.chain(KOPF_EXAMPLES.map(|it| format!("{it}/handlers")));
    let checked: BTreeSet<_> = names.map(|it| examples.join(it).display().to_string()).collect();
    assert_eq!(found, checked);
}
