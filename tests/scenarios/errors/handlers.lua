-- How handlers fail, when they are tried again, and what is stored of it.

function temporary_fn(ctx)
    if ctx.retry == 0 then
        error(kopf.TemporaryError("not yet", 2))
    elseif ctx.retry == 1 then
        error(kopf.TemporaryError("not yet", "1.5s"))
    elseif ctx.retry == 2 then
        kopf.retry("in a moment", "500ms")
    end
    ctx.logger:info("done after " .. ctx.retry)
end

function default_delay_fn(ctx)
    if ctx.retry == 0 then
        kopf.retry("in a minute")
    end
end

function no_message_fn(ctx)
    if ctx.retry == 0 then
        error(kopf.TemporaryError())
    end
    error(kopf.PermanentError())
end

function permanent_fn(ctx)
    error(kopf.PermanentError("never: " .. ctx.name))
end

function fail_fn(ctx)
    kopf.fail("no way")
end

function admission_fn(ctx)
    error(kopf.AdmissionError("not allowed", 400))
end

function plain_fn(ctx)
    error("something is wrong")
end

function number_fn(ctx)
    error(42)
end

function table_fn(ctx)
    error({ class = "OwnError", message = "with a class" })
end

function odd_table_fn(ctx)
    error({ code = 7 })
end

function caught_fn(ctx)
    local ok, problem = pcall(function() error(kopf.TemporaryError("inner", 5)) end)
    ctx.logger:info("caught " .. tostring(ok) .. " " .. problem.message .. " " .. tostring(problem.delay == 5))
    local ok, problem = pcall(function() error({ message = "own" }) end)
    ctx.logger:info("caught " .. problem.message)
end

function rethrown_fn(ctx)
    local ok, problem = pcall(function() kopf.fail("passed on") end)
    error(problem)
end

function patched_fn(ctx)
    ctx.patch.status.reached = true
    kopf.fail("after a change")
end

for _, fn in ipairs({ temporary_fn, default_delay_fn, no_message_fn, permanent_fn, fail_fn, admission_fn, caught_fn, rethrown_fn, patched_fn }) do
    kopf.on_create("kopfexamples", { backoff = 3 }, fn)
end
for _, fn in ipairs({ plain_fn, number_fn, table_fn, odd_table_fn }) do
    kopf.on_create("kopfexamples", { backoff = 3, retries = 2 }, fn)
end
