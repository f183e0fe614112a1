-- The functions of `kube` that take callbacks; `src/scripting/functions/kube/mod.rs` documents them. The predicate may wait, so it is
-- called from here, never by the host.
local host = ...
local kube = {}
local error, type = error, type

-- The level of the caller in the script, which errors refer to: skips the function of this file and the one that has checked the
-- arguments.
local CALLER = 3

function kube.wait(object, predicate, ...)
    local test = if type(predicate) == "function" then predicate else nil
    local problem, states = host.wait(object, if test then nil else predicate, ...)
    while not problem do
        local state
        problem, state = host.next(states)
        if problem then
            break
        elseif not state then
            return nil
        elseif not test or test(state.object) then
            host.finish(states)
            return if state.object == nil then true else state.object
        end
    end
    error(problem, CALLER)
end

return kube
