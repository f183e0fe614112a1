-- expect: kube functions can only be called in handlers
-- limit: none
-- at: load
-- Nothing else could be loaded meanwhile.
kube.wait({ apiVersion = "v1", kind = "Pod", metadata = { name = "a" } }, "deleted", "1d")
