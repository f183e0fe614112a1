-- expect: longer than 65536 bytes
-- limit: none
-- A list of words for each letter of a megabyte.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    strings.snake(string.rep("aB ", 300000))
end)
