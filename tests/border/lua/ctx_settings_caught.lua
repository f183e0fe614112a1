-- An error of the host is one line, as all others.
-- says: INFO caught hostile.lua:[0-9]+: there is no setting settings.posting.levle; did you mean `level`.

kopf.on_startup(function(ctx)
    local fine, problem = pcall(function() ctx.settings.posting.levle = 3 end) -- HERE
    ctx.logger:info("caught " .. problem)
end)
