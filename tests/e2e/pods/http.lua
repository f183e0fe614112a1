-- The API server as any other server: who signs its certificate must be known.

kopf.on_startup(function(ctx)
    local url = env.get("SERVER_URL") .. "/version"
    local _, problem = pcall(http.get, url)
    ctx.logger:info("TOLD unknown: " .. tostring(problem.reason))
    ctx.logger:info("TOLD ca: " .. tostring(http.get(url, { ca = env.get("SERVER_CA") }).headers["content-type"]))
    ctx.logger:info("TOLD insecure: " .. tostring(http.get(url, { insecure = true }).headers["content-type"]))
end)
