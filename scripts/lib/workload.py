"""What a typical operator does, in both languages: what scripts/function-order and scripts/record-profile record."""
import os, signal, time

from control_plane import DEADLINE, OBJECTS

LUA = """
local function handled(ctx) print("HANDLED") return { name = ctx.name } end
kopf.on_create("kopfexamples", { id = "create" }, handled)
kopf.on_update("kopfexamples", { id = "update" }, function(ctx) ctx.patch.status.seen = ctx.spec.duration end)
kopf.on_delete("kopfexamples", { id = "delete" }, function(ctx) ctx.logger:info("gone") end)
kopf.on_event("kopfexamples", function(ctx) ctx.memo.seen = true end)
kopf.timer("kopfexamples", { id = "timer", interval = 1 }, function(ctx) ctx.patch.status.ticked = true end)
kopf.reconcile("kopfexamples", { id = "children", owns = { "configmaps" } }, function(ctx)
    local child = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = ctx.name .. "-lua" }, data = { name = ctx.name } }
    return { children = { child }, status = { children = 1 } }
end)
"""
RHAI = """
kopf.on_create("kopfexamples", #{ id: "create" }, |ctx| { print("HANDLED"); #{ name: ctx.name } });
kopf.on_update("kopfexamples", #{ id: "update" }, |ctx| { ctx.patch.status.seen = ctx.spec.duration; });
kopf.on_delete("kopfexamples", #{ id: "delete" }, |ctx| { ctx.logger.info("gone"); });
kopf.on_event("kopfexamples", |ctx| { ctx.memo.seen = true; });
kopf.timer("kopfexamples", #{ id: "timer", interval: 1 }, |ctx| { ctx.patch.status.ticked = true; });
kopf.reconcile("kopfexamples", #{ id: "children", owns: ["configmaps"] }, |ctx| {
    let child = #{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: ctx.name + "-rhai" }, data: #{ name: ctx.name } };
    #{ children: [child], status: #{ children: 1 } }
});
"""
# As LUA of control_plane.
RHAI_CREATION = 'kopf.on_create("kopfexamples", #{ id: "create" }, |ctx| { print("HANDLED"); #{ name: ctx.name } });\n'
SCRIPTS = {"handlers.lua": LUA, "handlers.rhai": RHAI}
OBJECTS_PER_RUN = 200


def work(plane, pid, objects=OBJECTS_PER_RUN):
    """Creates, changes and deletes objects, then ends the operator."""
    names = [f"object-{it}" for it in range(objects)]
    plane.create(names, 0)
    plane.wait_for(objects)
    for name in names[:objects // 10]:
        plane.ask("PATCH", f"{OBJECTS}/{name}", {"spec": {"duration": "2m"}}, "application/merge-patch+json")
    # The timers' second call, and what is given back after five seconds without work.
    time.sleep(8)
    plane.clear()
    deadline = time.monotonic() + DEADLINE
    while plane.ask("GET", OBJECTS)["items"] and time.monotonic() < deadline:
        time.sleep(0.5)
    os.kill(pid, signal.SIGTERM)
