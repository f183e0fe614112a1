//! `kopf rbac` and `kopf manifests`: the permissions and objects that an operator needs in a cluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::check::Directory;

const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: sites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: sites, singular: site, kind: Site}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";
const HANDLERS: &str = r#"
local naming = require("lib/naming")
kopf.on_create("sites", function(ctx)
    local config = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = naming.of(ctx) } }
    kopf.adopt(config)
    kube.apply(config)
end)
kopf.index("pods", function(ctx) return { [ctx.name] = 1 } end)
kopf.on_event("nodes", function(ctx) print(ctx.name) end)
"#;
const NAMING: &str = r#"
local naming = {}
function naming.of(ctx)
    return (kube.get("secrets", { name = "prefix" }) or ctx).metadata.name
end
return naming
"#;

fn operator(test: &str, more: &[(&str, &str)]) -> Directory {
    let files = [("handlers.lua", HANDLERS), ("crd.yaml", CRD), ("lib/naming.lua", NAMING)];
    Directory::with(&format!("install-{test}"), &[&files[..], more].concat())
}

/// Returns `verb resource.group` of all rules in a text.
pub(super) fn granted(text: &str) -> BTreeSet<String> {
    let mut granted = BTreeSet::new();
    for document in documents(text) {
        for rule in document["rules"].as_array().into_iter().flatten() {
            let all = |key: &str| {
                let items = rule[key].as_array().into_iter().flatten();
                items.filter_map(|it| it.as_str().map(str::to_owned)).collect::<Vec<_>>()
            };
            for (verb, resource) in all("verbs")
                .iter()
                .flat_map(|verb| all("resources").into_iter().map(move |it| (verb, it)))
            {
                granted.insert(format!("{verb} {resource}.{}", all("apiGroups").join(",")));
            }
        }
    }
    granted
}

fn documents(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML documents")
}

#[test]
fn roles_contain_what_handlers_calls_and_modules_need_and_nothing_else() {
    let own = operator("roles", &[]);
    let (code, told, problem) = own.kopf(&["rbac", "generate", "--namespace", "ops"], &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    let expected = [
        "create configmaps.",
        "create events.",
        "create leases.coordination.k8s.io",
        "get leases.coordination.k8s.io",
        "get secrets.",
        "get sites.example.com",
        "list customresourcedefinitions.apiextensions.k8s.io",
        "list nodes.",
        "list pods.",
        "list sites.example.com",
        "patch configmaps.",
        "patch events.",
        "patch sites.example.com",
        "patch sites/status.example.com",
        "update leases.coordination.k8s.io",
        "watch customresourcedefinitions.apiextensions.k8s.io",
        "watch nodes.",
        "watch pods.",
        "watch sites.example.com",
    ];
    assert_eq!(granted(&told), expected.map(str::to_owned).into());
    assert!(told.contains("# kube.apply (handlers.lua:6)\n"), "{told}");
    assert!(told.contains("# kube.get (lib/naming.lua:4)\n"), "{told}");
}

#[test]
fn commands_and_jobs_of_scripts_are_in_the_roles() {
    let rights = |call: &str| {
        let script = format!("kopf.on_create('sites', function(ctx)\n    {call}\nend)\n");
        let own = operator("commands", &[("handlers.lua", &script)]);
        let (code, told, problem) = own.kopf(&["rbac", "generate"], &[]);
        assert_eq!((code, problem.as_str()), (0, ""), "{told}");
        let plain = operator("commands", &[("handlers.lua", "kopf.on_create('sites', print)")]);
        let without = granted(&plain.kopf(&["rbac", "generate"], &[]).1);
        granted(&told).into_iter().filter(|it| !without.contains(it)).collect::<Vec<_>>()
    };
    let exec = ["create pods/exec.", "get pods/exec."].map(str::to_owned);
    assert_eq!(rights("kube.exec(ctx.name, { 'ls' })"), exec);
    assert_eq!(rights("kube.copy_to('p', '/a', 'b')"), exec);
    assert_eq!(rights("kube.copy_from('p', '/a')"), exec);
    let jobs =
        ["create jobs.batch", "delete jobs.batch", "get jobs.batch", "get pods/log.", "list pods."];
    assert_eq!(rights("kube.run('i', { 'x' })"), jobs);
    let secrets = ["create secrets.", "delete secrets.", "get secrets."];
    let mut all = [&jobs[..], &secrets].concat();
    all.sort_unstable();
    assert_eq!(rights("kube.run('i', { 'x' }, { files = { ['/a'] = 'b' } })"), all);
}

#[test]
fn what_is_not_known_before_the_call_is_reported_with_what_to_add() {
    let script = "kopf.on_create('sites', function(ctx)\n    kube.delete(ctx.memo.last)\nend)\n";
    let own = operator("dynamic", &[("handlers.lua", script)]);
    let (code, _, problem) = own.kopf(&["rbac", "generate"], &[]);
    let expected = "warning: handlers.lua:2: the kind that kube.delete uses is only known when it is called. \
                    Add its permissions with --also, such as --also delete:RESOURCE.\n";
    assert_eq!((code, problem.as_str()), (0, expected));
    let (_, told, _) = own.kopf(&["rbac", "generate", "--also", "delete:jobs.batch"], &[]);
    assert!(granted(&told).contains("delete jobs.batch"), "{told}");
}

#[test]
fn bad_input_gets_an_error_that_says_what_to_do() {
    let own = operator("bad", &[("broken.lua", "kopf.on_craete('sites', 1)")]);
    for (args, code, expected) in [
        (&["rbac", "generate", "--also", "secrets"][..], 2, "write it as VERBS:RESOURCE"),
        (&["rbac", "generate", "--name", "My_Op"][..], 2, "--name: not a name of an object"),
        (&["manifests", "--namespace", "a/b"][..], 2, "--namespace: not a name of a namespace"),
        (&["manifests", "--replicas", "0"][..], 2, "0 is not in 1"),
        (&["manifests", "broken.lua"][..], 1, "on_craete"),
        (&["manifests", "absent.lua"][..], 1, "absent.lua"),
        (&["rbac", "verify"][..], 2, "--file"),
        (&["rbac", "verify", "-f", "absent.yaml"][..], 1, "absent.yaml"),
    ] {
        let (actual, told, problem) = own.kopf(args, &[]);
        assert_eq!((actual, told.as_str()), (code, ""), "{args:?}: {problem}");
        assert!(problem.contains(expected), "{args:?}: {problem}");
    }
}

#[test]
fn verify_tells_each_missing_permission() {
    let own = operator("verify", &[]);
    let (_, roles, _) = own.kopf(&["rbac", "generate", "--name", "op"], &[]);
    let account = "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op}\n";
    own.write("rbac.yaml", &format!("{roles}{account}"));
    let (code, told, problem) = own.kopf(&["rbac", "verify", "-f", "rbac.yaml"], &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    assert!(told.ends_with("19 permissions, 0 missing\n"), "{told}");
    let fewer = roles.replace("\"configmaps\"", "\"endpoints\"");
    own.write("rbac.yaml", &format!("{fewer}{account}"));
    let (code, told, _) = own.kopf(&["rbac", "verify", "-f", "rbac.yaml"], &[]);
    let missing: Vec<_> = told.lines().filter(|it| it.starts_with("missing")).collect();
    let expected = ["create", "patch"]
        .map(|it| format!("missing  {it} configmaps  (kube.apply (handlers.lua:6))"));
    assert_eq!((code, missing), (1, expected.iter().map(String::as_str).collect()), "{told}");
}

#[test]
fn generated_permissions_are_enough_for_a_new_operator() {
    for language in ["--lua", "--rhai"] {
        let own = Directory::with(&format!("install-init{language}"), &[]);
        let (code, _, problem) = own.kopf(&["init", ".", language], &[]);
        assert_eq!(code, 0, "{problem}");
        let mut unused = check_generated(&own, language);
        // An object is read only after a conflict, which depends on the threads of the engine.
        unused.retain(|it| it != "get greetings.example.com");
        // The tests cause no events, and have one operator.
        unused.retain(|it| !it.ends_with(" leases.coordination.k8s.io"));
        assert_eq!(unused, ["create events.", "patch events."], "{language}");
    }
}

/// Children in two namespaces, a watched kind, an event handler with a parent, a schedule, and a lock.
const CHILDREN: [(&str, &str); 2] = [
    (
        "handlers.lua",
        r#"
kopf.reconcile("volumes.example.com", { id = "maps", owns = "configmaps", watches = { "secrets" }, finalizer = true }, function(ctx)
    local function map(place, name)
        return { apiVersion = "v1", kind = "ConfigMap", metadata = { namespace = place, name = name }, data = { x = ctx.spec.x } }
    end
    return kopf.lock("maps", function()
        local children = ctx.spec.x == "0" and {} or { map(nil, ctx.name), map("far", ctx.name) }
        return { children = children, status = { done = ctx.spec.x }, conditions = { { type = "Ready", status = true } } }
    end)
end)
kopf.on_event("configmaps", { parent = "volumes.example.com" }, function(ctx) end)
kopf.every("1m", { id = "often" }, function(ctx) end)
"#,
    ),
    (
        "handlers.rhai",
        r#"
kopf::reconcile("volumes.example.com", #{ id: "maps", owns: "configmaps", watches: ["secrets"], finalizer: true }, |ctx| {
    kopf::lock("maps", || {
        let children = [];
        if ctx.spec.x != "0" {
            for meta in [#{ name: ctx.name }, #{ name: ctx.name, namespace: "far" }] {
                children.push(#{ apiVersion: "v1", kind: "ConfigMap", metadata: meta, data: #{ x: ctx.spec.x } });
            }
        }
        #{ children: children, status: #{ done: ctx.spec.x }, conditions: [#{ type: "Ready", status: true }] }
    })
});
kopf::on_event("configmaps", #{ parent: "volumes.example.com" }, |ctx| {});
kopf::every("1m", #{ id: "often" }, |ctx| {});
"#,
    ),
];

const TEST_OF_CHILDREN: &str = r#"
kopf.test("children come, are repaired, pruned and deleted", { timeout = "30m" }, function()
    local volume = kube.create({ apiVersion = "example.com/v1", kind = "Volume", metadata = { name = "one" }, spec = { x = "1" } })
    kopf.sleep("3m")
    check.equal(kube.get("configmaps", { name = "one" }).data.x, "1")
    kube.patch(volume, { spec = { x = "0" } })
    kopf.sleep("1m")
    check.equal(kube.get("configmaps", { name = "one" }), nil)
    kube.patch(volume, { spec = { x = "2" } })
    kopf.sleep("1m")
    kube.delete(volume)
    kopf.sleep("1m")
    check.equal(kube.get(volume), nil)
    check.equal(kube.get("configmaps", { name = "one", namespace = "far" }), nil)
end)
"#;

#[test]
fn generated_permissions_are_enough_for_children_schedules_and_locks() {
    for (name, text) in CHILDREN {
        let files = [(name, text), ("tests/volume_test.lua", TEST_OF_CHILDREN)];
        let own = Directory::with(&format!("install-children-{name}"), &files);
        let mut unused = check_generated(&own, name);
        // An object is read only after a conflict.
        unused.retain(|it| it != "get volumes.example.com");
        assert_eq!(unused, ["create events.", "patch events."], "{name}");
    }
}

/// Runs the tests with the generated permissions. Returns those that the tests do not use.
fn check_generated(own: &Directory, what: &str) -> Vec<String> {
    let (code, roles, problem) =
        own.kopf(&["rbac", "generate", "--name", "op", "--replicas", "1"], &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{what}");
    own.write("rbac.yaml", &roles);
    let args = ["test", "--rbac", "rbac.yaml", "--as", "system:serviceaccount:default:op"];
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!(code, 0, "{what}: {told}{problem}");
    let (code, told, problem) = own.kopf(&["test", "--record-rbac", "used.yaml"], &[]);
    assert_eq!(code, 0, "{what}: {told}{problem}");
    let used = granted(&own.read("used.yaml"));
    let generated = granted(&roles);
    assert!(used.is_subset(&generated), "{what}: {used:?}");
    generated.difference(&used).cloned().collect()
}

#[test]
fn manifests_contain_the_scripts_as_they_are_and_a_restricted_pod() {
    let own = operator("manifests", &[("kopf.yaml", "leader-elect: true\n")]);
    let args = ["manifests", "--namespace", "ops", "--image", "example.com/kopf:1", "--name", "op"];
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    let all = documents(&told);
    let kinds: Vec<_> = all.iter().map(|it| it["kind"].as_str().unwrap_or_default()).collect();
    let expected = [
        "CustomResourceDefinition",
        "Namespace",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Deployment",
        "PodDisruptionBudget",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(all[7]["data"]["handlers.lua"], HANDLERS);
    assert_eq!(all[7]["data"]["lib..naming.lua"], NAMING);
    let pod = &all[8]["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    let command: Vec<_> = container["args"].as_array().into_iter().flatten().collect();
    let expected = [
        "run",
        "--all-namespaces",
        "--standalone",
        "--leader-elect",
        "--lease=op",
        "--health=:8081",
        "--config=/scripts/kopf.yaml",
        "/scripts/handlers.lua",
    ];
    assert_eq!(command, expected.iter().collect::<Vec<_>>());
}

#[test]
fn manifests_mount_the_directories_of_scratch_files() {
    let file = "allow-scratch: /scratch\nscripts:\n  handlers.lua:\n    allow-scratch: /more\n";
    let own = operator("scratch", &[("kopf.yaml", file)]);
    let (code, told, problem) = own.kopf(&["manifests", "--image", "example.com/kopf:1"], &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    let all = documents(&told);
    let deployment = all.iter().find(|it| it["kind"] == "Deployment").expect("a Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().expect("volumes");
    let mounts = pod["containers"][0]["volumeMounts"].as_array().expect("mounts");
    for (number, path) in [(0, "/more"), (1, "/scratch")] {
        let name = format!("scratch-{number}");
        assert!(volumes.contains(&json!({ "name": name, "emptyDir": {} })), "{volumes:?}");
        assert!(mounts.contains(&json!({ "name": name, "mountPath": path })), "{mounts:?}");
    }
}

#[test]
fn manifests_contain_the_files_of_templates() {
    let script = r#"
kopf.on_create("sites", function(ctx)
    local text = template.render('{% include "templates/' .. ctx.name .. '" %}{% include "page.html" %}')
    kube.apply(kopf.adopt(yaml.decode(text)))
end)
"#;
    let service = "{% import 'parts/labels' as labels %}\napiVersion: v1\nkind: Service\n";
    let files = [
        ("handlers.lua", script),
        ("templates/service.yaml.j2", service),
        ("templates/.hidden.j2", "no"),
        ("parts/labels.j2", "app: x"),
        ("page.html", "<b>"),
        ("other.html", "<i>"),
    ];
    let own = operator("templates", &files);
    let (code, told, problem) = own.kopf(&["manifests", "--image", "example.com/kopf:1"], &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    let map = documents(&told).into_iter().find(|it| it["kind"] == "ConfigMap").expect("scripts");
    let keys: Vec<_> =
        map["data"].as_object().into_iter().flatten().map(|it| it.0.as_str()).collect();
    assert_eq!(
        keys,
        ["handlers.lua", "page.html", "parts..labels.j2", "templates..service.yaml.j2"]
    );
    assert_eq!(map["data"]["templates..service.yaml.j2"], service);
    let granted = granted(&told);
    assert!(granted.contains("create services.") && granted.contains("patch services."), "{told}");
}

#[test]
fn bindings_of_roles_need_a_word() {
    let script = r#"
kopf.on_create("sites", function(ctx)
    kube.apply({ apiVersion = "rbac.authorization.k8s.io/v1", kind = "RoleBinding", metadata = { name = "x" } })
end)
"#;
    let own = operator("bindings", &[("handlers.lua", script)]);
    let (code, _, problem) = own.kopf(&["rbac", "generate"], &[]);
    let also = "bind:clusterroles.rbac.authorization.k8s.io";
    let expected = format!(
        "warning: handlers.lua:3: kube.apply writes rolebindings: an API server accepts only permissions that the operator has. \
         Add them, or --also {also}.\n"
    );
    assert_eq!((code, problem), (0, expected));
    let (code, told, problem) = own.kopf(&["rbac", "generate", "--also", also], &[]);
    assert_eq!((code, problem.as_str()), (0, ""));
    assert!(granted(&told).contains("bind clusterroles.rbac.authorization.k8s.io"), "{told}");
}

#[test]
fn a_kustomization_names_its_files() {
    let own = operator("kustomize", &[]);
    let args =
        ["manifests", "--image", "example.com/kopf:1", "--name", "op", "--kustomize", "deploy"];
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!((code, told.as_str(), problem.as_str()), (0, "", ""));
    let kustomization = &documents(&own.read("deploy/kustomization.yaml"))[0];
    for file in kustomization["resources"].as_array().into_iter().flatten() {
        let text = own.read(&format!("deploy/{}", file.as_str().unwrap_or_default()));
        assert_eq!(documents(&text).len(), 1, "{file}");
    }
}

/// Renders a template as Helm does, as far as charts of `kopf manifests` need it.
fn rendered(template: &str) -> String {
    let image = r#""example.com/kopf:1""#;
    let resources = r#"{"limits":{"memory":"256Mi"},"requests":{"cpu":"10m","memory":"32Mi"}}"#;
    template
        .replace("{{ .Release.Namespace }}", "ops")
        .replace("{{ toJson .Values.image }}", image)
        .replace("{{ toJson .Values.resources }}", resources)
        .replace(r#"{{ "{{" }}"#, "{{")
}

#[test]
fn a_chart_renders_to_the_manifests_without_the_namespace() {
    // A script with a separate template.
    let script = format!("{HANDLERS}\nlocal template = \"{{{{ spec.name }}}}\"\n");
    let own = operator("helm", &[("handlers.lua", &script)]);
    let common = ["--image", "example.com/kopf:1", "--name", "op", "--pod-monitor"];
    let args = [&["manifests", "--namespace", "ops"][..], &common].concat();
    let (code, told, problem) = own.kopf(&args, &[]);
    assert_eq!((code, problem.as_str()), (0, ""), "{told}");
    let args = [&["manifests", "--helm", "chart"][..], &common].concat();
    let (code, nothing, problem) = own.kopf(&args, &[]);
    assert_eq!((code, nothing.as_str(), problem.as_str()), (0, "", ""));
    let chart = &documents(&own.read("chart/Chart.yaml"))[0];
    assert_eq!((&chart["name"], &chart["type"]), (&json!("op"), &json!("application")));
    assert_eq!(documents(&own.read("chart/values.yaml"))[0]["image"], "example.com/kopf:1");
    let templates = own.files("chart/templates");
    let mut in_chart: Vec<_> =
        templates.iter().flat_map(|it| documents(&rendered(&own.read(it)))).collect();
    let mut printed = documents(&told);
    printed.retain(|it| it["kind"] != "Namespace");
    for all in [&mut in_chart, &mut printed] {
        all.sort_by_key(|it| (it["kind"].to_string(), it["metadata"]["name"].to_string()));
    }
    assert!(printed.iter().any(|it| it["kind"] == "PodMonitor"));
    assert_eq!(in_chart, printed);
}
