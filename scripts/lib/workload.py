"""What operators do most of the time, for tools that watch a running one: scripts/function-order, scripts/profile."""
import time

from control_plane import DEADLINE, OBJECTS

LUA = """
local function handled(ctx) print("HANDLED") return { name = ctx.name } end
kopf.on_create("kopfexamples", { id = "create" }, handled)
kopf.on_update("kopfexamples", { id = "update" }, function(ctx) ctx.patch.status.seen = ctx.spec.duration end)
kopf.on_delete("kopfexamples", { id = "delete" }, function(ctx) ctx.logger:info("gone") end)
kopf.on_event("kopfexamples", function(ctx) ctx.memo.seen = true end)
kopf.timer("kopfexamples", { id = "timer", interval = 1 }, function(ctx) ctx.patch.status.ticked = true end)
kopf.daemon("kopfexamples", { id = "daemon" }, function(ctx) ctx.stopped:wait() end)
kopf.index("kopfexamples", { id = "by_duration" }, function(ctx) return { [ctx.spec.duration] = ctx.name } end)
kopf.reconcile("kopfexamples", { id = "children", owns = { "configmaps" } }, function(ctx)
    return { children = { { apiVersion = "v1", kind = "ConfigMap", metadata = { name = ctx.name }, data = { size = ctx.spec.duration } } } }
end)
kopf.on_validate("kopfexamples", { id = "validate", ignore_failures = true }, function(ctx)
    if ctx.spec.duration == "" then error(kopf.AdmissionError("no duration")) end
end)
"""
RHAI = """
kopf.on_create("kopfexamples", #{ id: "create" }, |ctx| { print("HANDLED"); #{ name: ctx.name } });
kopf.on_update("kopfexamples", #{ id: "update" }, |ctx| { ctx.patch.status.seen = ctx.spec.duration; });
kopf.on_delete("kopfexamples", #{ id: "delete" }, |ctx| { ctx.logger.info("gone"); });
kopf.on_event("kopfexamples", |ctx| { ctx.memo.seen = true; });
kopf.timer("kopfexamples", #{ id: "timer", interval: 1 }, |ctx| { ctx.patch.status.ticked = true; });
kopf.daemon("kopfexamples", #{ id: "daemon" }, |ctx| { ctx.stopped.wait(); });
kopf.index("kopfexamples", #{ id: "by_duration" }, |ctx| { let it = #{}; it[ctx.spec.duration] = ctx.name; it });
kopf.reconcile("kopfexamples", #{ id: "children", owns: ["configmaps"] }, |ctx| {
    #{ children: [#{ apiVersion: "v1", kind: "ConfigMap", metadata: #{ name: ctx.name }, data: #{ size: ctx.spec.duration } }] }
});
kopf.on_validate("kopfexamples", #{ id: "validate", ignore_failures: true }, |ctx| {
    if ctx.spec.duration == "" { throw kopf::AdmissionError("no duration"); }
});
"""
# Reviews come from the API server, to a free port.
OPTIONS = ["run", "-A", "--standalone", "--webhook-url", "https://127.0.0.1:18443", "--webhook-port", "18443"]
SCRIPTS = {"handlers.lua": LUA, "handlers.rhai": RHAI}


def work(plane, count=200):
    """Creates, changes and deletes objects."""
    names = [f"object-{it}" for it in range(count)]
    plane.create(names, 0)
    plane.wait_for(count)
    for name in names[:20]:
        plane.ask("PATCH", f"{OBJECTS}/{name}", {"spec": {"duration": "2m"}}, "application/merge-patch+json")
    # The timers' second call, and what is given back after five seconds without work.
    time.sleep(8)
    plane.clear()
    deadline = time.monotonic() + DEADLINE
    while plane.ask("GET", OBJECTS)["items"] and time.monotonic() < deadline:
        time.sleep(0.5)
