-- Handles the cluster-scoped resource of tests/e2e/wide-crd.yaml.

function wide_fn(_ctx)
    return { served = true }
end

kopf.on_create("kopfwides", wide_fn)
