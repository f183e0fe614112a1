-- expect: `format`: longer than 1000 bytes
-- limit: none
-- Each letter of a format may be two hundred of the text.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    time.format(0, string.rep("%255Y", 100000))
end)
