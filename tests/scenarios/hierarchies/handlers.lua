-- Written so that it reads alike in both languages: what a function returns is assigned. In Lua the tables are changed in place too.

local function told(f)
    local ok, problem = pcall(f)
    return ok and "fine" or tostring(problem):match("kopf%.[%w_]+: [^\n]*")
end

-- A plain table has no text of its own; what is kept in a memo is shown as JSON.
local function shown(ctx, value)
    ctx.memo.shown = value
    return tostring(ctx.memo.shown)
end

kopf.on_startup(function(ctx)
    ctx.logger:info(told(function() kopf.adopt({kind = "Pod"}) end))
    local owner = {apiVersion = "v1", kind = "Pod", metadata = {name = "p", uid = "u", namespace = "ns", labels = {a = "2", b = "3"}}}
    local child = kopf.adopt({kind = "Job"}, owner)
    ctx.logger:info("explicit: " .. shown(ctx, child))
end)

kopf.on_create("kopfexamples", {id = "adopted"}, function(ctx)
    local pod = {kind = "Pod", spec = {containers = {{name = "c", args = kopf.array {}}}}}
    pod = kopf.adopt(pod)
    ctx.logger:info("adopted: " .. shown(ctx, pod))
    pod = kopf.adopt(pod)
    ctx.logger:info("again the same: " .. shown(ctx, pod))
    pod = kopf.remove_owner_reference(pod)
    ctx.logger:info("released: " .. shown(ctx, pod.metadata.ownerReferences))

    local named = {kind = "D", metadata = {name = "own", labels = {app = "own"}}, spec = {template = {}}}
    named = kopf.adopt(named, {nested = "spec.template"})
    ctx.logger:info("nested: " .. shown(ctx, named))
    named = kopf.adopt(named, nil, {forced = true, strict = true, nested = {"spec.template", {"spec", "absent"}}})
    ctx.logger:info("forced: " .. shown(ctx, named))
    ctx.logger:info("no options: " .. shown(ctx, kopf.adopt({kind = "X"}, {})))
    ctx.logger:info("no owner: " .. shown(ctx, kopf.adopt({kind = "X"}, {}, {strict = true})))
    ctx.logger:info("of its body: " .. shown(ctx, kopf.adopt({kind = "X"}, ctx.body)))

    local list = {{kind = "A"}, {{kind = "B", metadata = {ownerReferences = {}}}}}
    list = kopf.append_owner_reference(list, {controller = false, block_owner_deletion = kopf.null})
    ctx.logger:info("listed: " .. shown(ctx, list))
end)

kopf.on_create("kopfexamples", {id = "single"}, function(ctx)
    local x = {kind = "X"}
    x = kopf.label(x)
    x = kopf.label(x, {app = "other", more = "1"})
    ctx.logger:info("labelled: " .. shown(ctx, x))
    x = kopf.label(x, {app = "forced"}, {forced = true})
    ctx.logger:info("labelled by force: " .. shown(ctx, x.metadata.labels))
    x = kopf.harmonize_naming(x)
    ctx.logger:info("named: " .. shown(ctx, x.metadata.generateName))
    x = kopf.harmonize_naming(x, "strict", {forced = true, strict = true})
    ctx.logger:info("named strictly: " .. shown(ctx, x.metadata))
    x = kopf.adjust_namespace(x)
    x = kopf.adjust_namespace(x, "kept")
    ctx.logger:info("placed: " .. shown(ctx, x.metadata.namespace))
    x = kopf.adjust_namespace(x, {namespace = "elsewhere", forced = true})
    ctx.logger:info("placed by force: " .. shown(ctx, x.metadata.namespace))
    ctx.logger:info("reference: " .. shown(ctx, kopf.build_object_reference(ctx.body)))
    ctx.logger:info("owner: " .. shown(ctx, kopf.build_owner_reference(ctx.body, {controller = false})))
end)

kopf.on_create("kopfexamples", {id = "mistakes"}, function(ctx)
    local mistakes = {
        function() kopf.adopt("pod") end,
        function() kopf.adopt({kind = "X"}, "owner") end,
        function() kopf.adopt({kind = "X"}, {"owner"}) end,
        function() kopf.adopt({kind = "X"}, nil, {force = true}) end,
        function() kopf.adopt({kind = "X"}, nil, {forced = "yes"}) end,
        function() kopf.adopt({kind = "X"}, nil, {nested = 5}) end,
        function() kopf.label({kind = "X"}, "app") end,
        function() kopf.label({kind = "X", metadata = "none"}) end,
        function() kopf.harmonize_naming({kind = "X"}, 5) end,
        function() kopf.adjust_namespace({}, "a", {}, "b") end,
        function() kopf.build_owner_reference(ctx.body, {controler = true}) end,
    }
    for _, mistake in ipairs(mistakes) do
        ctx.logger:info(told(mistake))
    end
end)
