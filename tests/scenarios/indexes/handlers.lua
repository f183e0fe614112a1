-- What index functions may return, and how handlers read what they returned.

-- A map: a value under each key.
function by_color(ctx)
    ctx.patch.status.never = "sent"
    return { [ctx.labels.color] = ctx.name }
end

-- Anything else: a value without a key.
function sizes(ctx)
    return ctx.spec.size
end

-- Values of all types, under several keys; an empty list and a null are values, too.
function details(ctx)
    return { [ctx.name] = { size = ctx.spec.size, tags = ctx.spec.tags }, all = ctx.name, empty = kopf.array(), null = kopf.null }
end

-- One index of several kinds of objects, and under the name of another kwarg.
function retry(ctx)
    return { [ctx.resource.plural] = ctx.name }
end

function read(ctx)
    local function say(text) ctx.logger:info(text) end
    say("colors " .. tostring(ctx.by_color) .. " sizes " .. tostring(ctx.sizes))
    say("retry " .. tostring(ctx.retry))
    say("lengths " .. #ctx.by_color .. " " .. #ctx.by_color.blue .. " " .. #ctx.sizes .. " " .. #ctx.sizes[kopf.null])
    for key, store in pairs(ctx.by_color) do
        say(key .. " = " .. tostring(store))
    end
    for key in ctx.by_color do
        say("key " .. key)
    end
    for place, name in ipairs(ctx.by_color["blue"]) do
        say("blue " .. place .. " " .. name)
    end
    for _, size in kopf.values(ctx.sizes) do
        say("size " .. size)
    end
    say("all " .. tostring(kopf.values(ctx.by_color)) .. " " .. tostring(#kopf.values(ctx.details)))
    say("absent " .. tostring(ctx.by_color["pink"] == nil) .. " present " .. tostring(ctx.by_color["red"] ~= nil))
    say("first " .. ctx.by_color["blue"][1] .. " last " .. ctx.by_color["blue"][#ctx.by_color["blue"]])
    say("joined " .. table.concat(ctx.by_color["blue"], "+"))
    say("found " .. tostring(table.find(ctx.by_color["blue"], "three") ~= nil) .. " " .. tostring(table.find(ctx.by_color["blue"], "two") ~= nil))
    say("deep " .. tostring(ctx.details["one"]) .. " " .. ctx.details["one"][1].tags[2])
    say("odd " .. tostring(ctx.details["empty"]) .. " " .. tostring(ctx.details["null"]) .. " " .. #ctx.details["null"])
    say("get " .. kopf.get(ctx.details, "one[0].tags[0]", "-") .. " " .. kopf.get(ctx.details, "none[0]", "-") .. " " .. kopf.get(ctx.details, "one[7].size", "-"))
    local copy = kopf.copy(ctx.by_color)
    copy.green = { "mine" }
    table.insert(copy.red, "mine")
    say("copy " .. tostring(kopf.get(copy, "red")) .. " of " .. tostring(ctx.by_color.red))
    local writes = {
        function() ctx.by_color.green = { "x" } end,
        function() ctx.by_color.blue = nil end,
        function() ctx.by_color.blue[1] = "x" end,
        function() ctx.by_color = {} end,
    }
    for _, write in ipairs(writes) do
        say(if pcall(write) then "written" else "refused")
    end
    ctx.memo.colors = ctx.by_color
    ctx.patch.status.colors = ctx.by_color
    return ctx.by_color["blue"]
end

function write(ctx)
    ctx.by_color.green = { "x" }
end

function no_index(ctx)
    kopf.values(ctx.spec)
end

kopf.index("kopfexamples", by_color)
kopf.index("kopfexamples", sizes)
kopf.index("kopfexamples", details)
kopf.index("kopfexamples", retry)
kopf.index("configmaps", retry)
kopf.on_update("kopfexamples", { labels = { reads = kopf.PRESENT } }, read)
kopf.on_update("kopfexamples", { errors = "permanent", labels = { reads = kopf.PRESENT } }, write)
kopf.on_update("kopfexamples", { errors = "permanent", labels = { reads = kopf.PRESENT } }, no_index)
