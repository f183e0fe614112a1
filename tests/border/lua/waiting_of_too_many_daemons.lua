-- says: the script declares more than 100 daemons
-- at: load
for i = 1, 101 do
    kopf.daemon("kopfexamples", { id = "d" .. i }, function(ctx) ctx.stopped:wait(1) end) -- HERE
end
