-- expect: used more than 0.2 s
-- limit: cpu
-- Hashes and codes of long texts.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    local text = string.rep("x", 20000)
    while true do hash.hmac(hash.sha512(text), base64.encode(text)) end
end)
