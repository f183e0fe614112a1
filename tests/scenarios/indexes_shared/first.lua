-- One of two scripts of one operator: it fills an index that the other one reads.

function sizes(ctx)
    return { [ctx.name] = { size = ctx.spec.size, list = { 1, "two", true } } }
end

kopf.index("kopfexamples", sizes)
