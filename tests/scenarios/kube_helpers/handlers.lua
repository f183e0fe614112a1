-- What saves lines: objects that exist, Secrets, CRDs.

local function crd(kind, plural)
    return {
        apiVersion = "apiextensions.k8s.io/v1",
        kind = "CustomResourceDefinition",
        metadata = { name = plural .. ".example.com" },
        spec = {
            group = "example.com",
            names = { kind = kind, plural = plural, singular = string.lower(kind) },
            scope = "Namespaced",
            versions = {
                { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object" } } },
            },
        },
    }
end

local function config(value)
    return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "made" }, data = { value = value } }
end

function create_fn(ctx)
    local log = ctx.logger
    local function refused(what, f, ...)
        local ok, problem = pcall(f, ...)
        log:info(what .. ": " .. tostring(ok) .. " " .. tostring(problem))
    end
    log:info("created: " .. kube.create(config("1"), { exists_ok = true }).data.value)
    log:info("exists: " .. kube.create(config("2"), { exists_ok = true }).data.value)
    refused("exists", kube.create, config("3"))

    local login = kube.secret("login")
    log:info("secret: " .. login.user .. " '" .. login.empty .. "' " .. tostring(login.none == nil))
    log:info("bytes: " .. base64.encode(login.key))
    log:info("absent: " .. tostring(kube.secret("none") == nil))
    log:info("elsewhere: " .. tostring(kube.secret("login", { namespace = "ns2" }) == nil))

    log:info("crd: " .. kube.apply_crd(crd("Apple", "apples")).metadata.name)
    kube.create({ apiVersion = "example.com/v1", kind = "Apple", metadata = { name = "first" } })
    log:info("crd: " .. kube.apply_crd(yaml.encode(crd("Fig", "figs")), "5s").metadata.name)
    log:info("crds: " .. tostring(#kube.apply_crd("tests/scenarios/kube_helpers/config/crds.yaml")))
    kube.create({ apiVersion = "example.com/v1", kind = "Plum", metadata = { name = "first" } })
    refused("not granted", kube.apply_crd, "/etc/crds.yaml")
    refused("another kind", kube.apply_crd, config("4"))
    refused("nothing", kube.apply_crd, "---\n")
    refused("a number", kube.apply_crd, 5)
    local taken = crd("Apple", "quinces")
    refused("taken", kube.apply_crd, taken)
end

kopf.on_create("kopfexamples", create_fn)
