//! `kopf check` inside of functions, as a user meets it.

use expect_test::expect;
use serde_json::json;

use super::check::{Directory, is};

#[test]
fn mistakes_inside_of_functions_are_told_all_at_once() {
    let lua = "kopf.on_create('kex', function(ctx)\n\tctx.patch.staus.ready = kube.aply(ctx.body)\n\thelpr()\n    json.decode()\nend)";
    let rhai = "kopf::on_event(\"kex\", |ctx| {\n    ctx.logger.inform(ctx.diff); // kopf: allow(other-handler)\n});";
    let files = [("a.lua", lua), ("b.rhai", rhai), ("c.lua", "kopf.on_startup(function() x() end")];
    let here = Directory::with("inside", &files);
    let (code, stdout, stderr) = here.check(&["."]);
    assert_eq!(code, 1);
    assert!(stdout.ends_with("3 scripts, 2 handlers, 5 errors, 1 warning\n"), "{stdout}");
    is(
        &stderr,
        &expect![[r"
        warning: ./a.lua:4:5: json.decode takes (text), got 0 arguments
          |
        4 |     json.decode()
          |     ^^^^^^^^^^^
        error: ./c.lua:1: Expected ')' (to close '(' at column 16), got <eof>
          |
        1 | kopf.on_startup(function() x() end
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        error: ./a.lua:2:12: there is no ctx.patch.staus
          |
        2 |     ctx.patch.staus.ready = kube.aply(ctx.body)
          |               ^^^^^
        hint: did you mean `ctx.patch.status`?
        error: ./a.lua:2:31: there is no kube.aply
          |
        2 |     ctx.patch.staus.ready = kube.aply(ctx.body)
          |                                  ^^^^
        hint: did you mean `kube.apply`?
        error: ./a.lua:3:2: there is no function `helpr`
          |
        3 |     helpr()
          |     ^^^^^
        error: ./b.rhai:2:16: there is no ctx.logger.inform
          |
        2 |     ctx.logger.inform(ctx.diff); // kopf: allow(other-handler)
          |                ^^^^^^
        hint: did you mean `ctx.logger.info`?
    "]],
    );
    let (code, answer) = here.json(&["b.rhai"]);
    assert_eq!((code, &answer["ok"]), (1, &json!(false)));
    assert_eq!(answer["errors"][0]["column"], 16);
    assert_eq!(answer["mistakes"][0]["rule"], "unknown-member");
    let lax = |strict: &str| {
        let setting = format!("--set=reload.strict={strict}");
        let (code, _, stderr) = here.check(&["a.lua", "b.rhai", &setting]);
        let count = |title: &str| stderr.lines().filter(|it| it.starts_with(title)).count();
        (code, count("error:"), count("warning:"))
    };
    assert_eq!([lax("off"), lax("names"), lax("types")], [(0, 0, 5), (1, 4, 1), (1, 5, 0)]);
    let (code, stdout, _) = here.check(&["--explain", "unknown-member"]);
    assert!(code == 0 && stdout.starts_with("unknown-member: "), "{stdout}");
    let (code, _, stderr) = here.check(&["--explain", "unknown-membr"]);
    assert!(code == 2 && stderr.contains("unknown-member"), "{stderr}");
}

const CRD: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: sites.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: sites, singular: site, kind: Site, shortNames: [st] }
  versions:
  - name: v1
    served: true
    storage: true
    subresources: { status: {} }
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              host: { type: string }
              tls: { type: object, properties: { enabled: { type: boolean } } }
              ports: { type: array, items: { type: object, properties: { name: { type: string } } } }
              labels: { type: object, additionalProperties: { type: string } }
              free: { type: object, x-kubernetes-preserve-unknown-fields: true, properties: { a: { type: string } } }
          status: { type: object, properties: { phase: { type: string } } }
";

#[test]
fn fields_are_those_of_the_schemas() {
    let lua = r#"
local function look(ctx)
    print(ctx.spec.hosst, ctx.spec.tls.enabeld, ctx.spec.labels.any, ctx.spec.free.any.thing, ctx.meta.nmae)
    for _, port in ctx.spec.ports do print(port.name, port.nmae) end
    ctx.patch.status.fase = "Ready"
    ctx.patch.spec = { host = "x", tls = { enabled = true, enabld = false } }
    ctx.patch.data = { a = "b" }
    ctx.patch.metadata.labels.a = "b"
    ctx.patch.meta.annotations = { a = "b" }
    ctx.patch.fns:append(function(body) body.spec.any = 1 end)
    return ctx.body.spec.host:upper(), ctx.status.phase, ctx.body.metadata.name, ctx.body.kind
end
kopf.on_create("sites", look)
kopf.on_update("example.com/v1", "Site", function(ctx) look(ctx) end)
kopf.on_event("st.v1.example.com", function(ctx) print(ctx.spec.host, ctx.spec.hst) end)
kopf.on_event("pods", function(ctx)
    print(ctx.spec.nodeNmae, ctx.status.phase, ctx.spec.containers[1].imag, ctx.meta.labels.any)
end)
kopf.on_event("apps/v1", "Deployment", function(ctx) print(ctx.spec.template.spec.volumes, ctx.spec.replcas) end)
kopf.on_event("others", function(ctx) print(ctx.spec.anything, ctx.patch.anything) end)
"#;
    let rhai = r#"
kopf::on_create("sites", |ctx| {
    print(ctx.spec.hosst ?? ctx.spec?.tls?.enabeld);
    ctx.patch.status = #{ phase: "x", fase: "y" };
    print(ctx.spec.len() + ctx.spec.ports.len + ctx.status.keys());
    ()
});
"#;
    let here = Directory::with("fields", &[("a.lua", lua), ("b.rhai", rhai), ("crd.yaml", CRD)]);
    let (code, answer) = here.json(&["a.lua", "b.rhai"]);
    assert_eq!((code, &answer["ok"]), (0, &json!(true)), "{answer:#}");
    let found = answer["mistakes"].as_array().expect("a list").iter();
    let found: Vec<_> = found
        .map(|it| {
            format!(
                "{}:{}:{} {}",
                it["file"].as_str().expect("a file"),
                it["line"],
                it["column"],
                it["message"].as_str().expect("a message")
            )
        })
        .collect();
    is(
        &(found.join("\n") + "\n"),
        &expect![[r"
            a.lua:3:20 the schema has no field ctx.spec.hosst
            a.lua:3:40 the schema has no field ctx.spec.tls.enabeld
            a.lua:3:104 the schema has no field ctx.meta.nmae
            a.lua:4:60 the schema has no field port.nmae
            a.lua:5:22 the schema has no field ctx.patch.status.fase
            a.lua:6:60 the schema has no field enabld here
            a.lua:7:15 the schema has no field ctx.patch.data
            a.lua:15:80 the schema has no field ctx.spec.hst
            a.lua:17:20 the schema has no field ctx.spec.nodeNmae
            a.lua:17:71 the schema has no field ctx.spec.containers[1].imag
            a.lua:19:101 the schema has no field ctx.spec.replcas
            b.rhai:3:20 the schema has no field ctx.spec.hosst
            b.rhai:3:44 the schema has no field ctx.spec?.tls.enabeld
            b.rhai:4:39 the schema has no field fase here
        "]],
    );
    // Without the CRD, the fields of its objects are not known.
    let alone = Directory::with("fields-alone", &[("b.rhai", rhai)]);
    assert_eq!(alone.json(&["b.rhai"]).1["mistakes"], json!([]));
    let odd = Directory::with("fields-odd", &[("b.rhai", rhai), ("crd.yaml", "kind: [")]);
    assert_eq!(odd.json(&["b.rhai"]).1["mistakes"], json!([]));
}

#[test]
fn a_mistyped_part_of_the_patch_is_an_error_also_if_the_schema_is_known() {
    let lua = "kopf.on_create('pods', function(ctx)\n    ctx.patch.staus.phase = 'x'\n    ctx.patch.status.phse = 'x'\nend)";
    let here = Directory::with("patch", &[("a.lua", lua)]);
    let (code, _, stderr) = here.check(&["a.lua"]);
    assert_eq!(code, 1);
    for told in [
        "error: a.lua:2:15: there is no ctx.patch.staus",
        "warning: a.lua:3:22: the schema has no field ctx.patch.status.phse",
    ] {
        assert!(stderr.contains(told), "{stderr}");
    }
}
