-- Tests of the operator. Each has an API server of its own, and a clock that does not wait: kopf test

local object = yaml.decode([[
OBJECT]])

-- Where the operator remembers what it has handled.
local handled = { "metadata", "annotations", "kopf.zalando.org/last-handled-configuration" }

kopf.test("a new KIND is handled", function()
    local created = kube.create(object)
    kube.wait(created, function(it)
        return deep.has(it, handled)
    end)
end)

kopf.test("a KIND can be deleted", function()
    local created = kube.create(object)
    kopf.sleep("10s")
    kube.delete(created)
    kube.wait(created, "deleted")
end)
