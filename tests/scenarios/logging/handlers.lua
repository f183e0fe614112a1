-- Lines of the log: levels, formats, fields.

function startup_fn(ctx)
    ctx.logger:info("about no object", { phase = "start" })
end

function create_fn(ctx)
    local log = ctx.logger
    log:debug("a debug line")
    log:dbg("another")
    log:info("an info line")
    log:warning("a warning")
    log:warn("a warning too")
    log:error("an error")
    log:info("100% sure")
    log:info("with fields", { number = 7, text = "x", list = { 1, 2 }, nested = { a = true } })
    log:info("a value", {})
    log:info(42)
    log:info(true)
    log:info(ctx.spec)
    log:info(ctx.spec.list)
    log:info("unicode žluťoučký 🐴")
    log:info("")
    log:exception("an exception")
    log:exception("an exception with fields", { code = 7 })
end

kopf.on_startup(startup_fn)
kopf.on_create("kopfexamples", create_fn)
