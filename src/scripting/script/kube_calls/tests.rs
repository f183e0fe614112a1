//! Calls of `kube` in both languages.

use super::*;

fn object(api_version: &str, kind: &str) -> KubeTarget {
    KubeTarget::Object { api_version: api_version.into(), kind: kind.into() }
}

fn resource(words: &[&str]) -> KubeTarget {
    KubeTarget::Resource(words.iter().map(|it| (*it).to_owned()).collect())
}

/// Returns the line, the function and the targets of each call.
fn found(extension: &str, text: &str) -> Vec<(u32, String, Vec<KubeTarget>)> {
    let calls = kube_calls(extension, text).calls.into_iter();
    calls.map(|it| (it.line, it.function, it.targets.into_iter().collect())).collect()
}

#[test]
fn some_functions_are_for_one_kind_and_some_read_what_they_write() {
    let text = "kube.secret('pods')\nkube.apply_crd(text)\nkube.create({ apiVersion = 'v1', kind = 'Pod' }, { exists_ok = true })";
    let crds = "customresourcedefinitions.apiextensions.k8s.io";
    assert_eq!(
        found("lua", text),
        [
            (1, "secret".to_owned(), vec![resource(&["secrets"])]),
            (2, "apply_crd".to_owned(), vec![resource(&[crds])]),
            (3, "create".to_owned(), vec![object("v1", "Pod")]),
            (3, "get".to_owned(), vec![object("v1", "Pod")]),
        ]
    );
}

#[test]
fn arguments_name_resources_and_objects() {
    let text = r#"
kube.get("pods", { name = "x" })
kube.list("apps/v1", "Deployment")
kube.create({ apiVersion = "v1", kind = "Secret", metadata = { kind = "no" } })
kube.can_i("delete", "nodes")
-- kube.get("comments")
print("kube.get('strings')")
kube.delete(ctx.body)
kube.patch(unknown, {})
kube.version()"#;
    let expected = [
        (2, "get", vec![resource(&["pods"])]),
        (3, "list", vec![resource(&["apps/v1", "Deployment"])]),
        (4, "create", vec![object("v1", "Secret")]),
        (5, "can_i", vec![resource(&["nodes"])]),
        (8, "delete", vec![KubeTarget::Handled]),
        (9, "patch", vec![]),
        (10, "version", vec![]),
    ];
    assert_eq!(found("lua", text), expected.map(|(line, it, all)| (line, it.to_owned(), all)));
}

#[test]
fn variables_are_followed_to_their_objects() {
    let lua = r#"
local all = { quota = { apiVersion = "v1", kind = "ResourceQuota" } }
local function pod(ctx)
    return { apiVersion = "v1", kind = "Pod" }
end
local made = pod(ctx)
local text = yaml.decode([[
apiVersion: batch/v1
kind: Job
]])
kube.apply(all.quota)
kube.create(made)
kube.create(pod(ctx))
kube.create(text)
for _, it in kube.list("nodes") do kube.delete(it) end
local me = ctx.body
kube.delete(me)"#;
    let targets: Vec<_> = found("lua", lua).into_iter().flat_map(|it| it.2).collect();
    let expected = [
        object("v1", "ResourceQuota"),
        object("v1", "Pod"),
        object("v1", "Pod"),
        object("batch/v1", "Job"),
        resource(&["nodes"]),
        resource(&["nodes"]),
        KubeTarget::Handled,
    ];
    assert_eq!(targets, expected);
}

#[test]
fn calls_in_rhai_are_found_as_in_lua() {
    let rhai = r#"
fn pod(ctx) { return #{ apiVersion: "v1", kind: "Pod" }; }
let made = pod(ctx);
kube::create(made);
kube::get("configmaps", #{ name: "x" });
kube::delete(ctx.body);"#;
    let targets: Vec<_> = found("rhai", rhai).into_iter().flat_map(|it| it.2).collect();
    let expected = [object("v1", "Pod"), resource(&["configmaps"]), KubeTarget::Handled];
    assert_eq!(targets, expected);
}

#[test]
fn constants_and_yaml_strings_are_followed() {
    let lua = r#"
local CONFIGS = "configs.example.com"
local NAME = "a" .. suffix
local JOB = [[
apiVersion: batch/v1
kind: Job
metadata: { name: {{ name }} }
]]
kube.get(CONFIGS, { name = "x" })
kube.get(NAME)
local job = kopf.adopt(yaml.decode(template.render(JOB, { name = "x" })))
kube.create(job)
kube.apply(kopf.adopt({ apiVersion = "v1", kind = "Pod" }))
local text = template.render('{% include "templates/' .. file .. '" %}', {})
for _, it in yaml.decode_all(text) do kube.apply(it) end
kube.apply(yaml.decode(ctx.spec.manifest))"#;
    let targets: Vec<_> = found("lua", lua).into_iter().map(|it| it.2).collect();
    let expected = [
        vec![resource(&["configs.example.com"])],
        vec![],
        vec![object("batch/v1", "Job")],
        vec![object("v1", "Pod")],
        vec![KubeTarget::Files],
        vec![],
    ];
    assert_eq!(targets, expected);
    let rhai = "const KIND = \"sites\";\nlet file = template::render(`{%- import 'x.j2' as x %}`, #{});\nkube::list(KIND);\nkube::apply(yaml::decode(file));";
    let targets: Vec<_> = found("rhai", rhai).into_iter().map(|it| it.2).collect();
    assert_eq!(targets, [vec![resource(&["sites"])], vec![KubeTarget::Files]]);
}

#[test]
fn functions_that_create_objects_are_followed() {
    let lua = r#"
local function part(apiVersion, kind, name) return { apiVersion = apiVersion, kind = kind } end
local function job(ctx)
    return at_home(ctx, "batch/v1", "Job", "x", { spec = {} })
end
local all = { quota = part("v1", "ResourceQuota", "x") }
local made = job(ctx)
kube.apply(all.quota)
kube.get(made)
pcall(kube.create, made)
kube.get("v1", it.kind, { name = "x" })
kube.apply(part("v1", kind))"#;
    let job = object("batch/v1", "Job");
    let expected = [
        (8, "apply", vec![object("v1", "ResourceQuota")]),
        (9, "get", vec![job.clone()]),
        (10, "create", vec![job]),
        (11, "get", vec![]),
        (12, "apply", vec![]),
    ];
    assert_eq!(found("lua", lua), expected.map(|(line, it, all)| (line, it.to_owned(), all)));
}

#[test]
fn fields_hold_no_objects_and_blocks_of_rhai_return_them() {
    let lua = r#"
local admins = { { kind = "User", name = user } }
for _, user in admins do end
local all = { admins = part("rbac.authorization.k8s.io/v1", "RoleBinding") }
local namespace = kube.get("namespaces", { name = ctx.name })
local wanted = { apiVersion = "v1", kind = "Pod", metadata = { namespace = ctx.name, name = user } }
local made = kube.get(wanted) or kube.create(wanted)
kube.delete(namespace)
kube.delete(made)"#;
    let targets: Vec<_> = found("lua", lua).into_iter().skip(3).map(|it| it.2).collect();
    assert_eq!(targets, [vec![resource(&["namespaces"])], vec![object("v1", "Pod")]]);
    let rhai = r#"
fn job(ctx) {
    let x = 1;
    at_home(ctx, "batch/v1", "Job", #{ spec: #{} })
}
fn claim(ctx) { #{ apiVersion: "v1", kind: "PersistentVolumeClaim" } }
fn other(ctx) { #{ apiVersion: "v1", kind: "Pod" }; }
kube::create(job(ctx));
kube::patch(claim(ctx), #{});
kube::get(other(ctx));"#;
    let targets: Vec<_> = found("rhai", rhai).into_iter().map(|it| it.2).collect();
    let expected =
        [vec![object("batch/v1", "Job")], vec![object("v1", "PersistentVolumeClaim")], vec![]];
    assert_eq!(targets, expected);
}

#[test]
fn a_file_may_have_several_objects() {
    let text = "{% from 'labels.j2' import labels -%}\napiVersion: v1\nkind: Service\n---\napiVersion: apps/v1\nkind: Deployment\n";
    let kinds = kinds_in_yaml(text).into_iter().collect::<Vec<_>>();
    assert_eq!(kinds, [object("apps/v1", "Deployment"), object("v1", "Service")]);
    assert!(kinds_in_yaml("apiVersion: v1\nkind: {{ kind }}\n").is_empty());
}
