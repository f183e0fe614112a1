-- Which objects a handler gets: every filter, each matching and not.

local SELECTOR = "kopfexamples"

local function handler(id, options)
    options.id = id
    kopf.on_create(SELECTOR, options, function(ctx)
        ctx.logger:info("created: " .. id)
    end)
end

local function changes(id, options)
    options.id = id
    kopf.on_update(SELECTOR, options, function(ctx)
        ctx.logger:info("updated: " .. id .. " " .. tostring(ctx.old) .. " " .. tostring(ctx.new))
    end)
end

local function yes(ctx) return true end
local function no(ctx) return false end
local function is_big(ctx) return ctx.spec.size > 5 end
local function is_blue(value, ctx) return value == "blue" end
local function is_absent(value, ctx) return value == nil end
local function grows(value, ctx) return value ~= nil and value > 1 end

handler("label-value", { labels = { color = "blue" } })
handler("label-present", { labels = { color = kopf.PRESENT } })
handler("label-absent", { labels = { shape = kopf.ABSENT } })
handler("label-callback", { labels = { color = is_blue } })
handler("label-absent-callback", { labels = { shape = is_absent } })
handler("labels-both", { labels = { color = "blue", ["app/name"] = "x" } })
handler("annotation-value", { annotations = { ["a/b.c"] = "x" } })
handler("annotation-present", { annotations = { ["a/b.c"] = kopf.PRESENT } })
handler("annotation-absent", { annotations = { other = kopf.ABSENT } })
handler("when-yes", { when = yes })
handler("when-no", { when = no })
handler("when-spec", { when = is_big })
handler("when-closure", { when = function(ctx) return ctx.name == "one" end })
handler("when-truthy", { when = function(ctx) return 0 end })
handler("when-nothing", { when = function(ctx) end })
handler("all", { when = kopf.all_({ yes, is_big }) })
handler("any", { when = kopf.any_({ no, is_big }) })
handler("none", { when = kopf.none_({ no, is_big }) })
handler("not", { when = kopf.not_(is_big) })
handler("all-of-nothing", { when = kopf.all_({}) })
handler("any-of-nothing", { when = kopf.any_({}) })
handler("none-of-nothing", { when = kopf.none_({}) })
handler("all-some", { when = kopf.all_({ yes, no }) })
handler("any-some", { when = kopf.any_({ no, yes }) })
handler("none-some", { when = kopf.none_({ no, yes }) })
handler("none-no", { when = kopf.none_({ no, no }) })
handler("nested", { when = kopf.all_({ kopf.not_(no), kopf.any_({ no, yes }) }) })
handler("value-combined", { labels = { color = kopf.not_(is_blue) } })
handler("field", { field = "spec.size" })
handler("field-list", { field = { "spec", "a.b" } })
handler("field-value", { field = "spec.size", value = 10 })
handler("field-present", { field = "spec.size", value = kopf.PRESENT })
handler("field-absent", { field = "spec.nothing", value = kopf.ABSENT })
handler("field-callback", { field = "spec.size", value = grows })
handler("field-map", { field = "spec.map", value = { x = 1 } })
handler("field-array", { field = "spec.list", value = { 1, 2 } })

changes("any-change", {})
changes("size", { field = "spec.size" })
changes("old", { field = "spec.size", old = 10 })
changes("new", { field = "spec.size", new = 20 })
changes("old-new", { field = "spec.size", old = 10, new = 20 })
changes("appears", { field = "spec.extra", old = kopf.ABSENT, new = kopf.PRESENT })
changes("disappears", { field = "spec.extra", old = kopf.PRESENT, new = kopf.ABSENT })
changes("new-callback", { field = "spec.size", new = grows })
changes("old-callback", { field = "spec.extra", old = is_absent })
changes("value", { field = "spec.size", value = 20 })
