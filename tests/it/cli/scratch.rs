//! Scratch files of handlers: they last for one call.

use super::check::Directory;

const LUA: [(&str, &str); 2] = [
    (
        "handlers.lua",
        r#"
kopf.on_create("configmaps", { labels = { app = "backup" } }, function(ctx)
    local got = http.get("https://api.example.com/backup", { to = "backup" })
    local sent = http.put("https://api.example.com/store", { from = "backup" })
    ctx.patch.data = { told = `{got.size} {got.body} {sent.status}` }
end)
-- The patch of the first call has changed the object.
kopf.on_update("configmaps", { labels = { app = "backup" }, field = "data" }, function(ctx)
    local ok, problem = pcall(http.put, "https://api.example.com/store", { from = "backup" })
    ctx.patch.metadata.annotations.told = tostring(problem)
end)"#,
    ),
    (
        "backup_test.lua",
        r#"
kopf.test("backup", function()
    local got
    fake.http("*/backup", function() return ("x"):rep(100) end)
    fake.http("*/store", function(request) got = request.body return { status = 201 } end)
    local map = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "one", labels = { app = "backup" } } }
    kube.create(map)
    kopf.sleep("10s")
    check.equal(got, ("x"):rep(100))
    local one = kube.get("configmaps", { name = "one" })
    check.equal(one.data.told, "100 nil 201")
    check.equal(#fake.calls("http"), 2)
    check.that(strings.contains(one.metadata.annotations.told, "`from`: there is no scratch file \"backup\"; create it with the option `to`"))
end)"#,
    ),
];
const RHAI: [(&str, &str); 2] = [
    (
        "handlers.rhai",
        r#"
kopf::on_create("configmaps", #{ labels: #{ app: "backup" } }, |ctx| {
    let got = http::get("https://api.example.com/backup", #{ to: "backup" });
    let sent = http::put("https://api.example.com/store", #{ from: "backup" });
    let body = if got.body == () { "nil" } else { got.body };
    ctx.patch.data = #{ told: `${got.size} ${body} ${sent.status}` };
});
// The patch of the first call has changed the object.
kopf::on_update("configmaps", #{ labels: #{ app: "backup" }, field: "data" }, |ctx| {
    try {
        http::put("https://api.example.com/store", #{ from: "backup" });
    } catch (problem) {
        ctx.patch.metadata.annotations.told = `${problem}`;
    }
});"#,
    ),
    (
        "backup_test.rhai",
        r#"
kopf::test("backup", || {
    fake::http("*/backup", || "0123456789" + "0123456789");
    fake::http("*/store", |request| { check::equal(request.body, "01234567890123456789"); #{ status: 201 } });
    let map = #{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: "one", labels: #{ app: "backup" } } };
    kube::create(map);
    kopf::sleep("10s");
    let one = kube::get("configmaps", #{ name: "one" });
    check::equal(one.data.told, "20 nil 201");
    check::equal(fake::calls("http").len(), 2);
    check::that(strings::contains(one.metadata.annotations.told, "`from`: there is no scratch file \"backup\"; create it with the option `to`"));
});"#,
    ),
];

#[test]
fn a_handler_sends_what_it_has_received() {
    for files in [LUA, RHAI] {
        let own = Directory::with("scratch", &files);
        let scratch = format!("--allow-scratch={}", std::env::temp_dir().display());
        let (code, told, problem) =
            own.kopf(&["test", "--allow-net=*.example.com:*", &scratch], &[]);
        assert_eq!(code, 0, "{told}{problem}");
    }
}
