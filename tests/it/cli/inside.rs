//! The checks of function bodies by `kopf check`, as users see them.

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

/// Loading ends at the first declaration that is rejected; the checker reports the others, with the same hints.
#[test]
fn every_option_that_a_declaration_does_not_have_gets_its_hint() {
    let lua = |options: &str| format!("kopf.on_create('kex', {{ {options} }}, function() end)\n");
    let rhai = |options: &str| format!("kopf::on_create(\"kex\", #{{ {options} }}, || {{}});\n");
    let cases = [
        ("retires", "did you mean `retries`?"),
        ("parent", "this is an option of kopf.on_event"),
        ("interval", "this is an option of kopf.timer"),
        ("side_effects", "this is an option of kopf.on_validate, kopf.on_mutate"),
    ];
    for (option, hint) in cases {
        let in_lua = [lua("retires = 1"), lua(&format!("{option} = 1"))].concat();
        let in_rhai = [rhai("retires: 1"), rhai(&format!("{option}: 1"))].concat();
        let files = [("a.lua", in_lua.as_str()), ("a.rhai", in_rhai.as_str())];
        let here = Directory::with("options", &files);
        for file in ["a.lua", "a.rhai"] {
            let (code, _, stderr) = here.check(&[file]);
            let place = format!("error: {file}:2:");
            let second = stderr.split(&place).nth(1).unwrap_or_default();
            assert!(code == 1 && second.contains(&format!("hint: {hint}\n")), "{stderr}");
        }
    }
}

#[test]
fn a_misspelt_interval_is_one_error_and_no_warning() {
    // The load stops at the first error; the checker reports the second.
    let lua = "kopf.timer('kex', { intervall = 5 }, function() end)\n".repeat(2);
    let rhai = "kopf::timer(\"kex\", #{ intervall: 5 }, || {});\n".repeat(2);
    let files = [("a.lua", lua.as_str()), ("a.rhai", rhai.as_str())];
    let here = Directory::with("interval", &files);
    for file in ["a.lua", "a.rhai"] {
        let (code, _, stderr) = here.check(&[file]);
        let errors = stderr.matches("kopf.timer has no option `intervall`").count();
        assert_eq!((code, errors), (1, 2), "{stderr}");
        assert!(!stderr.contains("warning"), "{stderr}");
    }
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

#[test]
fn missing_permissions_are_reported_and_suggested() {
    let lua = r#"
local function f(ctx)
    http.get("https://api.example.com/items/" .. ctx.name)
    http.request("PURGE", "http://[::1]:8080/x")
    env.get("MYAPP_TOKEN", "none")
    files.read("/etc/myapp/config")
    files.read("beside"); env.get(ctx.name); http.get("https://granted.example.com")
    env.get("PGHOST") -- kopf: allow(not-granted)
end
kopf.on_create("kex", { retries = 3 }, f)"#;
    let rhai = r#"
kopf::on_create("kex", #{ retries: 3 }, |ctx| { env::get("MYAPP_TOKEN"); http.get("https://api.example.com:9999"); });"#;
    let here = Directory::with("grants", &[("a.lua", lua), ("b.rhai", rhai)]);
    let granted = "--allow-net=granted.example.com:443";
    let (code, stdout, stderr) = here.check(&[".", granted, "--suggest-grants"]);
    assert_eq!((code, stderr.matches("is not granted to this script").count()), (0, 6), "{stderr}");
    assert!(stderr.contains("a.lua:5:13: the variable MYAPP_TOKEN is not granted"), "{stderr}");
    assert!(stderr.contains("hint: --allow-env=MYAPP_TOKEN would allow it"), "{stderr}");
    let suggested = stdout.split_once("warnings\n").expect("a list").1;
    is(
        suggested,
        &expect![[r#"
            missing permissions, as options:
              --allow-env=MYAPP_TOKEN
              --allow-net=[::1]:8080
              --allow-net=api.example.com:443
              --allow-net=api.example.com:9999
              --allow-read=/etc/myapp/config
            in kopf.yaml:
              allow-env: ["MYAPP_TOKEN"]
              allow-net: ["[::1]:8080","api.example.com:443","api.example.com:9999"]
              allow-read: ["/etc/myapp/config"]
        "#]],
    );
    // With these options, nothing is missing.
    let options = suggested.lines().filter_map(|it| it.strip_prefix("  --"));
    let options = options.map(|it| format!("--{it}")).chain([granted.to_owned(), ".".to_owned()]);
    let options: Vec<String> = options.chain(["--suggest-grants".to_owned()]).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (_, stdout, stderr) = here.check(&options);
    assert!(stdout.contains("no permission is missing") && stderr.is_empty(), "{stdout}{stderr}");
    let (_, answer) = here.json(&["b.rhai"]);
    let expected = json!({"allow-env": ["MYAPP_TOKEN"], "allow-net": ["api.example.com:9999"]});
    assert_eq!(answer["suggestedGrants"], expected);
}

#[test]
fn a_status_that_is_no_subresource_is_reported_once() {
    let crd = CRD.replace("    subresources: { status: {} }\n", "");
    let lua = "kopf.on_create('sites', function(ctx) print(ctx.status.phase)\nctx.patch.status.phase = 'a'\nctx.patch.status.phase = 'b' end)";
    let rhai = "kopf::on_update(\"sites\", |ctx| {\n    ctx.patch.status.phase = \"a\";\n});\n";
    let files = [("a.lua", lua), ("b.rhai", rhai), ("crd.yaml", crd.as_str())];
    let here = Directory::with("subresources", &files);
    let (code, _, stderr) = here.check(&["."]);
    let told: Vec<_> = stderr.lines().filter(|it| it.starts_with("warning")).collect();
    let expected = [
        "warning: ./a.lua:2:11: the CRD of sites has no `subresources.status`",
        "warning: ./b.rhai:2:15: the CRD of sites has no `subresources.status`",
    ];
    assert_eq!((code, told), (0, expected.to_vec()));
    let here = Directory::with("subresource", &[("a.lua", lua), ("crd.yaml", CRD)]);
    assert_eq!(here.check(&["."]).2, "");
}

#[test]
fn warnings_about_declarations_can_be_allowed() {
    let lua = "kopf.on_update('secrets', function(ctx) end) -- kopf: allow(plain-secrets)\n\
        -- kopf: allow(own-writes)\nkopf.on_validate('leases', function(ctx) end)";
    let setting = "--set=persistence.plain_secrets=true";
    let here = Directory::with("allowed", &[("a.lua", lua)]);
    assert_eq!(here.check(&["a.lua", setting]).2, "");
    let lua = lua.replace("kopf: allow", "allowed");
    let here = Directory::with("reported", &[("a.lua", &lua)]);
    assert_eq!(here.check(&["a.lua", setting]).2.matches("warning:").count(), 2);
    for rule in ["plain-secrets", "always-true"] {
        let (code, stdout, _) = here.check(&["--explain", rule]);
        assert!(code == 0 && stdout.starts_with(&format!("{rule}: a warning\n")), "{stdout}");
    }
}
