-- expect: the cluster can be used in handlers only
-- limit: none
-- at: load
-- Nothing else could be loaded meanwhile.
kube.wait({ apiVersion = "v1", kind = "Pod", metadata = { name = "a" } }, "deleted", "1d")
