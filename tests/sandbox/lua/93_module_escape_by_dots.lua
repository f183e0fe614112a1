-- expect: outside of the script's directory
-- limit: none
-- Modules above the script.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    require("../../../Cargo")
end)
