-- The same filters for handlers of other kinds than changes: these look at the object as it is now.

local function big(value, ctx)
    return value ~= nil and value > 5
end

local FILTERS = {
    ["labels"] = { labels = { color = "blue" } },
    ["no-label"] = { labels = { shape = kopf.ABSENT } },
    ["annotations"] = { annotations = { note = kopf.PRESENT } },
    ["when"] = { when = function(ctx) return ctx.spec.mode == "a" end },
    ["field"] = { field = "spec.extra" },
    ["value"] = { field = "spec.size", value = 10 },
    ["absent"] = { field = "spec.extra", value = kopf.ABSENT },
    ["callback"] = { field = { "spec", "size" }, value = big },
}

-- In the order of the alphabet: tables have none.
local names = {}
for name in pairs(FILTERS) do
    table.insert(names, name)
end
table.sort(names)

local function with(options, more)
    local all = table.clone(options)
    for key, value in pairs(more) do
        all[key] = value
    end
    return all
end

for number, name in ipairs(names) do
    kopf.on_event("kopfexamples", with(FILTERS[name], { id = `event-{name}` }), function(ctx) end)
    kopf.daemon("kopfexamples", with(FILTERS[name], { id = `daemon-{name}`, initial_delay = number / 10 }), function(ctx)
        ctx.stopped:wait()
    end)
    kopf.timer("kopfexamples", with(FILTERS[name], { id = `timer-{name}`, interval = 100, initial_delay = 1 + number / 10 }), function(ctx) end)
    kopf.index("kopfexamples", with(FILTERS[name], { id = `index_{string.gsub(name, "-", "_")}` }), function(ctx)
        return ctx.name
    end)
end

kopf.on_event("kopfexamples", { id = "tell" }, function(ctx)
    local seen = {}
    for _, name in ipairs(names) do
        local index = ctx[`index_{string.gsub(name, "-", "_")}`]
        if #index > 0 then
            table.insert(seen, name)
        end
    end
    ctx.logger:info(`indexed by {table.concat(seen, " ")}`)
end)
