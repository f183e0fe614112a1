-- expect: os.date: the format is longer than 1000 bytes
-- limit: none
-- Each letter of a format is a call of the system's library.
kopf.on_update("kopfexamples", { id = "hostile" }, function(ctx)
    return os.date(string.rep("%c", 500000))
end)
