-- Filters select the objects of a handler: by labels, annotations, fields, and functions.

-- A filter function is called with the value and the same `ctx` as handlers.
local function say_yes(value, ctx)
    return value == "somevalue" and ctx.spec.field ~= nil
end

local function say_no(value, ctx)
    return value == "somevalue" and ctx.spec.field == "not-this-value-for-sure"
end

function create_with_labels_matching(ctx)
    ctx.logger:info("Label is matching.")
end

function create_with_labels_present(ctx)
    ctx.logger:info("Label is present.")
end

function create_with_labels_absent(ctx)
    ctx.logger:info("Label is absent.")
end

function create_with_labels_callback_matching(ctx)
    ctx.logger:info("Label callback matching.")
end

function create_with_annotations_matching(ctx)
    ctx.logger:info("Annotation is matching.")
end

function create_with_annotations_present(ctx)
    ctx.logger:info("Annotation is present.")
end

function create_with_annotations_absent(ctx)
    ctx.logger:info("Annotation is absent.")
end

function create_with_annotations_callback_matching(ctx)
    ctx.logger:info("Annotation callback mismatch.")
end

function create_with_filter_satisfied(ctx)
    ctx.logger:info("Filter satisfied.")
end

function create_with_filter_not_satisfied(ctx)
    ctx.logger:info("Filter not satisfied.")
end

function create_with_field_value_satisfied(ctx)
    ctx.logger:info("Field value is satisfied.")
end

function create_with_field_value_not_satisfied(ctx)
    ctx.logger:info("Field value is not satisfied.")
end

function create_with_field_presence_satisfied(ctx)
    ctx.logger:info("Field presence is satisfied.")
end

function create_with_field_presence_not_satisfied(ctx)
    ctx.logger:info("Field presence is not satisfied.")
end

function update_with_field_change_satisfied(ctx)
    ctx.logger:info("Field change is satisfied.")
end

function daemon_with_field(ctx)
    repeat
        ctx.logger:info("Field daemon is satisfied.")
    until ctx.stopped:wait(1)
end

local function on_create(options, fn)
    kopf.on_create("kopfexamples", options, fn)
end

on_create({ labels = { somelabel = "somevalue" } }, create_with_labels_matching)
on_create({ labels = { somelabel = kopf.PRESENT } }, create_with_labels_present)
on_create({ labels = { nonexistent = kopf.ABSENT } }, create_with_labels_absent)
on_create({ labels = { somelabel = say_yes } }, create_with_labels_callback_matching)

on_create({ annotations = { someannotation = "somevalue" } }, create_with_annotations_matching)
on_create({ annotations = { someannotation = kopf.PRESENT } }, create_with_annotations_present)
on_create({ annotations = { nonexistent = kopf.ABSENT } }, create_with_annotations_absent)
on_create({ annotations = { someannotation = say_no } }, create_with_annotations_callback_matching)

on_create({ when = function(_ctx) return true end }, create_with_filter_satisfied)
on_create({ when = function(_ctx) return false end }, create_with_filter_not_satisfied)

on_create({ field = "spec.field", value = "value" }, create_with_field_value_satisfied)
on_create({ field = "spec.field", value = "something-else" }, create_with_field_value_not_satisfied)
on_create({ field = "spec.field", value = kopf.PRESENT }, create_with_field_presence_satisfied)
on_create({ field = "spec.inexistent", value = kopf.PRESENT }, create_with_field_presence_not_satisfied)

kopf.on_update("kopfexamples", { field = "spec.field", old = "value", new = "changed" },
    update_with_field_change_satisfied)

kopf.daemon("kopfexamples", { field = "spec.field", value = "value" }, daemon_with_field)
