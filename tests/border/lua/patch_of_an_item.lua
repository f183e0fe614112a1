-- A merge-patch replaces lists as a whole.
-- says: this value is read-only: change the object through ctx.patch
kopf.on_create("kopfexamples", { id = "hostile", labels = { role = "hostile" } }, function(ctx)
    ctx.patch.spec.items = { 1 }
    ctx.patch.spec.items[1] = 2 -- HERE
end)
