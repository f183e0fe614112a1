-- After the creation: the object is known, and held until its deletion is handled.

function resume_fn(_ctx) end

function delete_fn(_ctx) end

kopf.on_resume("kopfexamples", resume_fn)
kopf.on_delete("kopfexamples", delete_fn)
