local function example(fields)
    local object = {
        apiVersion = "kopf.dev/v1",
        kind = "KopfExample",
        metadata = { name = "one", labels = { somelabel = "somevalue" } },
        spec = { field = "value" },
    }
    for key, value in fields or {} do
        object.spec[key] = value
    end
    return object
end

local function refusal(create)
    local ok, problem = pcall(create)
    check.that(not ok, "the request was not denied")
    return problem
end

kopf.test("an object is changed before it is stored", function()
    check.equal(kube.create(example()).spec.injected, 123)
end)

kopf.test("an object is denied with the message of the handler", function()
    local problem = refusal(function()
        kube.create(example({ field = "wrong" }))
    end)
    check.equal(problem.status, 500)
    check.that(strings.contains(problem.message, "Meh! I don't like it. Change the field."))
    check.equal(#kube.list("kopfexamples"), 0)
end)

kopf.test("an object is denied with the code of the handler", function()
    local problem = refusal(function()
        kube.create(example({ field = "not-allowed" }))
    end)
    check.equal(problem.status, 555)
end)

kopf.test("an update of the status is checked", function()
    local object = kube.create(example())
    local problem = refusal(function()
        kube.patch(object, { status = { field = "other" } }, { subresource = "status" })
    end)
    check.that(strings.contains(problem.message, "status.field MUST be equal to spec.field!"))
    kube.patch(object, { status = { field = "value" } }, { subresource = "status" })
end)
