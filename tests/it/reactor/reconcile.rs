//! Reconcile handlers in combination with replicas, each other, refused requests, and namespaces that are not served.

use std::sync::Arc;

use kopf::{
    logic::discovery::namespaces::NamespacePattern,
    reactor::{NamespaceScope, Operator},
    settings::Settings,
    testing::{self, examples},
};
use kopf_apiserver::{Fault, FaultEffect};
use parking_lot::Mutex;
use serde_json::json;

use super::scripted::{PLACE, World, in_both};

const LUA: &str = r#"
kopf.reconcile("kopfexamples", { id = "maps", owns = "configmaps", finalizer = true }, function(ctx)
    ctx.logger:info("SAYS called")
    local children = {}
    for _, name in ctx.spec.names do
        local place, own = string.match(name, "(.*)/(.*)")
        local meta = { name = own or name, namespace = place }
        table.insert(children, { apiVersion = "v1", kind = "ConfigMap", metadata = meta, data = { x = ctx.spec.x } })
    end
    return { children = children }
end)
"#;

const RHAI: &str = r#"
kopf::reconcile("kopfexamples", #{ id: "maps", owns: "configmaps", finalizer: true }, |ctx| {
    ctx.logger.info("SAYS called");
    let children = [];
    for name in ctx.spec.names {
        let parts = name.split("/");
        let meta = if parts.len() == 2 { #{ name: parts[1], namespace: parts[0] } } else { #{ name: name } };
        children.push(#{ apiVersion: "v1", kind: "ConfigMap", metadata: meta, data: #{ x: ctx.spec.x } });
    }
    #{ children: children }
});
"#;

fn replica(identity: &'static str) -> impl FnOnce(Operator) -> Operator {
    move |operator| {
        let mut settings = Settings::default();
        settings.leadership.enabled = true;
        settings.posting.failures = false;
        let settings = Arc::new(Mutex::new(settings));
        Operator { settings, identity: testing::identity(identity), ..operator }
    }
}

fn edit(world: &World, spec: &serde_json::Value) {
    world.env.edit(&examples().qualified(), &format!("{PLACE}/one"), json!({ "spec": spec }));
}

#[test]
fn a_new_leader_keeps_the_children_and_repairs_what_was_changed_meanwhile() {
    in_both(|world| async move {
        let source = world.source(LUA, RHAI);
        world.create("one", &json!({ "names": ["a", "b"], "x": "1" }));
        let a = world.start_as(&source, replica("a")).await;
        world.env.until(5).await;
        let b = world.start_as(&source, replica("b")).await;
        world.env.until(10).await;
        assert_eq!(world.configs("x"), ["a=1", "b=1"], "{}", world.log.text());
        let calls = world.said().len();
        world.env.until(100).await;
        assert_eq!(world.said().len(), calls, "a standby calls nothing: {}", world.log.text());
        drop(a); // kill -9
        world.env.delete("configmaps", &format!("{PLACE}/a"));
        edit(&world, &json!({ "names": ["a", "c"] }));
        world.env.until(110).await;
        assert_eq!(world.configs("x"), ["b=1"], "the lease of the dead leader still counts");
        world.env.until(140).await;
        assert_eq!(world.configs("x"), ["a=1", "c=1"], "{}", world.log.text());
        let patches = world.env.requests("PATCH", "/configmaps/").len();
        world.env.until(1000).await;
        assert_eq!(world.env.requests("PATCH", "/configmaps/").len(), patches);
        b.running.stop().await;
    });
}

#[test]
fn a_leader_that_loses_the_lease_applies_nothing_more() {
    in_both(|world| async move {
        let source = world.source(LUA, RHAI);
        let a = world.start_as(&source, replica("a")).await;
        world.env.until(5).await;
        world.create("one", &json!({ "names": ["a"], "x": "1" }));
        world.env.until(10).await;
        assert_eq!(world.configs("x"), ["a=1"]);
        // The lease cannot be renewed, so the leader ends before another one may begin.
        world.env.refuse(503, "", "/leases");
        world.env.until(40).await;
        edit(&world, &json!({ "x": "2" }));
        world.env.until(100).await;
        assert_eq!(world.configs("x"), ["a=1"], "{}", world.log.text());
        drop(a.running.end().await);
    });
}

#[test]
fn a_deletion_that_is_in_conflict_once_is_repeated() {
    in_both(|world| async move {
        world.create("one", &json!({ "names": ["a", "b", "far/c"], "x": "1" }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        assert_eq!(world.configs("x"), ["c=1", "a=1", "b=1"], "{}", world.log.text());
        let effect = FaultEffect::Refuse { code: 409, retry_after_seconds: None };
        world
            .env
            .server
            .fault(Fault::always(effect.clone()).times(1).on("DELETE", "/configmaps/a"));
        edit(&world, &json!({ "names": ["b", "far/c"] }));
        world.env.until(30).await;
        assert_eq!(world.configs("x"), ["c=1", "b=1"], "{}", world.log.text());
        // The child in another namespace has no owner: the operator deletes it with its parent.
        world.env.server.fault(Fault::always(effect).times(1).on("DELETE", "/configmaps/c"));
        world.env.delete(&examples().qualified(), &format!("{PLACE}/one"));
        world.env.until(60).await;
        assert_eq!(world.configs("x"), ["b=1"], "{}", world.log.text());
        assert!(world.env.server.list(&examples().qualified()).is_empty());
        process.running.stop().await;
    });
}

#[test]
fn a_function_that_is_undone_by_the_finalization_is_not_called_before_the_finalizer_is_there() {
    in_both(|world| async move {
        world.env.server.fault({
            let effect = FaultEffect::Refuse { code: 403, retry_after_seconds: None };
            Fault::always(effect).times(1).on("PATCH", "/kopfexamples/one")
        });
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        world.create("one", &json!({ "names": ["far/c"], "x": "1" }));
        world.env.until_moment(std::time::Duration::from_millis(5100)).await;
        world.env.delete(&examples().qualified(), &format!("{PLACE}/one"));
        world.env.until(60).await;
        assert_eq!(world.said(), [""; 0], "{}", world.log.text());
        assert_eq!(world.configs("x"), [""; 0], "{}", world.log.text());
        process.running.stop().await;
    });
}

#[test]
fn an_edited_handler_deletes_a_child_of_another_namespace_that_its_watch_has_not_shown() {
    in_both(|world| async move {
        world.create("one", &json!({ "names": ["a"], "x": "1" }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        // The watch stays open, but shows no more events.
        world.env.server.fault(Fault::always(FaultEffect::Stall).times(1).on("GET", "/configmaps"));
        edit(&world, &json!({ "names": ["a", "far/c"] }));
        world.env.until(10).await;
        assert_eq!(world.configs("x"), ["c=1", "a=1"], "{}", world.log.text());
        // The new function applies nothing before it fails.
        let lua = LUA.replace("local children = {}", "error(\"broken\")");
        let rhai = RHAI.replace(
            "let children = [];",
            "let children = []; if ctx.name != \"\" { throw \"broken\"; }",
        );
        process.reload(world.source(&lua, &rhai)).await;
        world.env.until(15).await;
        assert!(world.log.text().contains("broken"), "{}", world.log.text());
        world.env.delete(&examples().qualified(), &format!("{PLACE}/one"));
        world.env.until(20).await;
        assert_eq!(world.configs("x"), ["a=1"], "{}", world.log.text());
        assert!(world.env.server.list(&examples().qualified()).is_empty());
        process.running.stop().await;
    });
}

#[test]
fn an_object_that_has_replaced_a_child_is_not_changed_although_the_watch_has_not_shown_it() {
    in_both(|world| async move {
        world.create("one", &json!({ "names": ["a", "b"], "x": "1" }));
        let process = world.start(&world.source(LUA, RHAI)).await;
        world.env.until(5).await;
        world.env.server.fault(Fault::always(FaultEffect::Stall).times(1).on("GET", "/configmaps"));
        let config = |name: &str| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "namespace": PLACE, "name": name }, "data": { "x": "theirs" },
            })
        };
        for name in ["a", "b"] {
            world.env.delete("configmaps", &format!("{PLACE}/{name}"));
        }
        world.env.create(config("a"));
        edit(&world, &json!({ "names": ["a", "b"], "x": "2" }));
        world.env.until(10).await;
        // The other deleted child is created again, once the first one does not fail any more.
        assert_eq!(world.configs("x"), ["a=theirs"], "{}", world.log.text());
        let told =
            "belongs to another owner, so it is not changed; choose another name, or delete it";
        assert!(world.log.text().contains(told), "{}", world.log.text());
        edit(&world, &json!({ "names": ["b"], "x": "2" }));
        world.env.until(15).await;
        assert_eq!(world.configs("x"), ["a=theirs", "b=2"], "{}", world.log.text());
        process.running.stop().await;
    });
}

#[test]
fn two_handlers_that_undo_each_other_are_slowed_down_and_reported() {
    in_both(|world| async move {
        let source = world.source(
            r#"
            local function other(id, of)
                kopf.reconcile("kopfexamples", { id = id, owns = "configmaps", watches = { "configmaps" } }, function(ctx)
                    ctx.logger:info("SAYS " .. id)
                    local found = kube.get("configmaps", { name = of, namespace = ctx.namespace })
                    local n = found and tonumber(found.data.n) or 0
                    local child = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = id }, data = { n = tostring(n + 1) } }
                    return { children = { child } }
                end)
            end
            other("left", "right")
            other("right", "left")
            "#,
            r#"
            fn other(id, of) {
                kopf::reconcile("kopfexamples", #{ id: id, owns: "configmaps", watches: ["configmaps"] }, |ctx| {
                    ctx.logger.info(`SAYS ${id}`);
                    let found = kube::get("configmaps", #{ name: of, namespace: ctx.namespace });
                    let n = if found == () { 0 } else { parse_int(found.data.n) };
                    let child = #{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: id }, data: #{ n: `${n + 1}` } };
                    #{ children: [child] }
                });
            }
            other("left", "right");
            other("right", "left");
            "#,
        );
        world.create("one", &json!({}));
        let process = world.start(&source).await;
        world.env.until(600).await;
        let said = world.said().len();
        for id in ["left", "right"] {
            let warning = format!("Reconciler '{id}' has changed ConfigMap ns1/{id} 13 times");
            assert_eq!(world.log.count(&warning), 1, "{}", world.log.text());
        }
        // At most one call per minute and handler, plus those that have led to the warning.
        assert!(said < 100, "{said} calls: {}", world.log.text());
        world.env.until(1200).await;
        let more = world.said().len() - said;
        assert!((10..=40).contains(&more), "{more} more calls: {}", world.log.text());
        process.running.stop().await;
    });
}

/// Returns the number of calls after an edit of the parent, a deletion and an edit of a child by others, and a label of another child.
async fn calls_after_changes(world: &World, lua: &str, rhai: &str) -> [usize; 4] {
    let process = world.start(&world.source(lua, rhai)).await;
    world.create("one", &json!({ "names": ["a", "b"], "x": "1" }));
    let calls = async || {
        let before = world.said().len();
        testing::pass(5).await;
        world.said().len() - before
    };
    let child = |name: &str| format!("{PLACE}/{name}");
    calls().await;
    edit(world, &json!({ "x": "2" }));
    let after_edit = calls().await;
    world.env.delete("configmaps", &child("a"));
    let after_deletion = calls().await;
    world.env.edit("configmaps", &child("a"), json!({ "data": { "x": "9" } }));
    let after_change = calls().await;
    world.env.edit("configmaps", &child("b"), json!({ "metadata": { "labels": { "x": "y" } } }));
    let after_label = calls().await;
    assert_eq!(world.configs("x"), ["a=2", "b=2"], "{}", world.log.text());
    process.running.stop().await;
    [after_edit, after_deletion, after_change, after_label]
}

#[test]
fn children_as_they_were_applied_do_not_call_a_function_that_has_not_read_them() {
    in_both(|world| async move {
        let calls = calls_after_changes(&world, LUA, RHAI).await;
        assert_eq!(calls, [1, 1, 1, 1], "{}", world.log.text());
    });
}

#[test]
fn children_as_they_were_applied_call_a_function_that_has_read_them() {
    in_both(|world| async move {
        let lua = LUA.replace("local children", "local seen = ctx.children\n    local children");
        let rhai = RHAI.replace("let children", "let seen = ctx.children; let children");
        let calls = calls_after_changes(&world, &lua, &rhai).await;
        assert_eq!(calls, [2, 2, 2, 1], "{}", world.log.text());
    });
}

#[test]
fn a_child_in_a_namespace_that_is_not_served_is_refused_and_nothing_is_pruned() {
    in_both(|world| async move {
        world.create("one", &json!({ "names": ["a"], "x": "1" }));
        let source = world.source(LUA, RHAI);
        let scope = |operator| {
            let patterns = vec![NamespacePattern::new(PLACE)];
            Operator { scope: NamespaceScope::Namespaces(patterns), ..operator }
        };
        world.env.create(testing::namespace(PLACE));
        let process = world.start_as(&source, scope).await;
        world.env.until(5).await;
        assert_eq!(world.configs("x"), ["a=1"], "{}", world.log.text());
        edit(&world, &json!({ "names": ["b", "far/c"] }));
        world.env.until(10).await;
        assert_eq!(world.configs("x"), ["a=1"], "{}", world.log.text());
        let path =
            ".metadata.namespace: the operator does not serve the namespace \"far\", only ns1";
        assert!(world.log.has(path), "{}", world.log.text());
        edit(&world, &json!({ "names": ["b"] }));
        world.env.until(15).await;
        assert_eq!(world.configs("x"), ["b=1"], "{}", world.log.text());
        process.running.stop().await;
    });
}

const OWNED_LUA: &str = r#"
kopf.on_startup(function(ctx)
    local persistence = ctx.settings.persistence
    persistence.finalizer = "NAME.example.com/finalizer"
    persistence.progress_storage = kopf.AnnotationsProgressStorage({ prefix = "NAME.example.com" })
    persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage({ prefix = "NAME.example.com" })
end)

local function is_owned(ctx)
    return kopf.get(ctx.meta, "ownerReferences.0.kind") == "KopfExample"
end

kopf.on_event("configmaps", { parent = "kopfexamples" }, function(ctx)
    if ctx.type == "ADDED" then
        ctx.logger:info("SAYS NAME event " .. ctx.parent.metadata.name)
    end
end)

kopf.on_create("configmaps", { id = "made", when = is_owned }, function(ctx)
    if ctx.retry == 0 then
        kopf.retry("not yet", 60)
    end
    ctx.logger:info("SAYS NAME create")
end)

kopf.on_update("configmaps", { id = "edited", when = is_owned }, function(ctx)
    ctx.logger:info("SAYS NAME update")
end)

kopf.on_delete("configmaps", { id = "gone", when = is_owned }, function(ctx)
    ctx.logger:info("SAYS NAME delete")
end)
"#;

const OWNED_RHAI: &str = r#"
kopf::on_startup(|ctx| {
    ctx.settings.persistence.finalizer = "NAME.example.com/finalizer";
    ctx.settings.persistence.progress_storage = kopf::AnnotationsProgressStorage(#{ prefix: "NAME.example.com" });
    ctx.settings.persistence.diffbase_storage = kopf::AnnotationsDiffBaseStorage(#{ prefix: "NAME.example.com" });
});

fn is_owned(ctx) {
    kopf::get(ctx.meta, "ownerReferences.0.kind") == "KopfExample"
}

kopf::on_event("configmaps", #{ parent: "kopfexamples" }, |ctx| {
    if ctx.type == "ADDED" {
        ctx.logger.info("SAYS NAME event " + ctx.parent.metadata.name);
    }
});

kopf::on_create("configmaps", #{ id: "made", when: is_owned }, |ctx| {
    if ctx.retry == 0 {
        kopf::retry("not yet", 60);
    }
    ctx.logger.info("SAYS NAME create");
});

kopf::on_update("configmaps", #{ id: "edited", when: is_owned }, |ctx| {
    ctx.logger.info("SAYS NAME update");
});

kopf::on_delete("configmaps", #{ id: "gone", when: is_owned }, |ctx| {
    ctx.logger.info("SAYS NAME delete");
});
"#;

/// Two operators handle the same child: handlers with `parent` store nothing, and change handlers have a storage for each operator.
#[test]
fn two_operators_that_handle_the_children_of_a_kind_do_not_collide() {
    in_both(|world| async move {
        let mut running = Vec::new();
        for name in ["one", "two"] {
            let text = |it: &str| it.replace("NAME", name);
            let source = world.source(&text(OWNED_LUA), &text(OWNED_RHAI));
            let named = |operator| Operator { identity: testing::identity(name), ..operator };
            running.push(world.start_as(&source, named).await);
        }
        world.create("owner", &json!({}));
        world.env.until(5).await;
        let said = |from: usize| {
            let mut lines = world.said().split_off(from);
            lines.sort();
            lines
        };
        let owner = json!({ "apiVersion": "kopf.dev/v1", "kind": "KopfExample", "name": "owner", "uid": "owner" });
        let child = |name: &str, owners: serde_json::Value| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "namespace": PLACE, "name": name, "ownerReferences": owners },
            })
        };
        world.env.create(child("child", json!([owner])));
        world.env.create(child("other", json!([])));
        world.env.until(30).await;
        assert_eq!(said(0), ["one event owner", "two event owner"], "{}", world.log.text());
        let metadata = |name: &str| {
            world.env.server.get("configmaps", PLACE, name).expect("it is there")["metadata"]
                .clone()
        };
        for name in ["one", "two"] {
            let progress =
                metadata("child")["annotations"][format!("{name}.example.com/made")].clone();
            assert!(progress.as_str().is_some_and(|it| it.contains("\"retries\":1")), "{progress}");
        }
        world.env.until(100).await;
        assert_eq!(said(2), ["one create", "two create"], "{}", world.log.text());
        world.env.edit("configmaps", &format!("{PLACE}/child"), json!({ "data": { "x": "1" } }));
        world.env.until(200).await;
        assert_eq!(said(4), ["one update", "two update"], "{}", world.log.text());
        let finalizers = metadata("child")["finalizers"].to_string();
        for name in ["one", "two"] {
            assert!(
                finalizers.contains(&format!("\"{name}.example.com/finalizer\"")),
                "{finalizers}"
            );
        }
        assert_eq!(metadata("other")["annotations"], json!(null), "it has no parent");
        world.env.delete("configmaps", &format!("{PLACE}/child"));
        world.env.until(300).await;
        assert_eq!(said(6), ["one delete", "two delete"], "{}", world.log.text());
        assert!(world.env.server.get("configmaps", PLACE, "child").is_none());
        for process in running {
            process.running.stop().await;
        }
    });
}
