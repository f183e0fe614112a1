-- A watch that lasts as long as its object.

function watch_fn(ctx)
    for event in kube.watch("configmaps", { label_selector = "watched=yes" }) do
        ctx.logger:info("saw " .. event.type .. " " .. event.object.metadata.name)
    end
end

kopf.daemon("kopfexamples", watch_fn)
