-- One sub-handler for each item of the spec: each succeeds, fails and is retried separately.

function create_fn(ctx)
    for _, item in ctx.spec.items do
        kopf.subhandler({ id = item }, function(sub)
            print(`=== Handling creation for {item}. ===`)
        end)
    end
end

kopf.on_create("kopfexamples", create_fn)
