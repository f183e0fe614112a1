-- Tests of the operator. Each has an API server of its own, and a clock that does not wait: kopf test

-- Does what a user does, and gives the object that the operator has answered.
local function greeting(spec)
    local object = kube.create({
        apiVersion = "VERSION",
        kind = "KIND",
        metadata = { name = "NAME" },
        spec = spec,
    })
    return kube.wait(object, function(it)
        return kopf.get(it, "status.message")
    end)
end

kopf.test("somebody is greeted, in English if nothing else is said", function()
    check.equal(greeting({ name = "world" }).status.message, "Hello, world!")
    check.equal(kube.list("SELECTOR")[1].spec.language, "english")
end)

kopf.test("a change of the language is a new greeting", function()
    local object = greeting({ name = "world" })
    kube.patch(object, { spec = { language = "german" } })
    kube.wait(object, function(it)
        return it.status.message == "Hallo, world!"
    end)
end)

kopf.test("the operator looks every ten seconds", function()
    local object = greeting({ name = "world" })
    kopf.sleep("1m")
    check.that(kube.get(object).status.greeted >= 6, "it has looked six times in a minute")
end)

kopf.test("a language that nobody speaks is refused", function()
    ---@type boolean, any
    local ok, problem = pcall(greeting, { name = "world", language = "klingon" })
    check.equal(ok, false)
    check.equal(problem.status, 422)
end)
