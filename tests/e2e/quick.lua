-- Short delays for the end-to-end tests; loaded before the script under test.

function quick_settings(ctx)
    ctx.settings.execution.default_backoff = 1
    ctx.settings.watching.server_timeout = 10
end

kopf.on_startup(quick_settings)
