-- What a field was and is: which transitions a handler gets.

local function on(kind, id, options)
    options.id = id
    kopf[kind]("kopfexamples", options, function(ctx)
        ctx.logger:info(`{id}: {ctx.old or "absent"} to {ctx.new or "absent"}`)
    end)
end

local PRESENT, ABSENT = kopf.PRESENT, kopf.ABSENT

local function big(value, ctx) return value ~= nil and value > 5 end

on("on_field", "any", { field = "spec.x" })
on("on_field", "was-1", { field = "spec.x", old = 1 })
on("on_field", "is-1", { field = "spec.x", new = 1 })
on("on_field", "1-to-10", { field = "spec.x", old = 1, new = 10 })
on("on_field", "appears", { field = "spec.x", old = ABSENT, new = PRESENT })
on("on_field", "disappears", { field = "spec.x", old = PRESENT, new = ABSENT })
on("on_field", "becomes-big", { field = "spec.x", old = kopf.not_(big), new = big })
on("on_field", "value-1", { field = "spec.x", value = 1 })
on("on_field", "value-absent", { field = "spec.x", value = ABSENT })
on("on_field", "value-big", { field = "spec.x", value = big })
on("on_update", "update-value-1", { field = "spec.x", value = 1 })
on("on_update", "update-is-1", { field = "spec.x", new = 1 })
on("on_update", "update-anything", { field = "spec" })
