-- What Luau has beyond Lua 5.1.

---The parts of a text between separators.
---@param text string
---@param separator? string The default is a comma.
---@return string[]
function string.split(text, separator) end

---A list of so many items.
---@param count integer
---@param value? any
---@return any[]
function table.create(count, value) end

---The place of a value in a list, from 1.
---@param list any[]
---@param value any
---@param from? integer
---@return integer|nil
function table.find(list, value, from) end

---Removes everything from a table.
---@param t table
function table.clear(t) end

---A copy of a table; tables inside of it are shared.
---@generic T: table
---@param t T
---@return T
function table.clone(t) end

---Makes a table read-only.
---@generic T: table
---@param t T
---@return T
function table.freeze(t) end

---Whether a table is read-only.
---@param t table
---@return boolean
function table.isfrozen(t) end

---Copies items of a list to another place, or into another list.
---@param source any[]
---@param first integer
---@param last integer
---@param place integer
---@param target? any[]
---@return any[]
function table.move(source, first, last, place, target) end

---A list of the arguments, and their number as `n`.
---@param ... any
---@return { n: integer, [integer]: any }
function table.pack(...) end

---The items of a list.
---@param list any
---@param first? integer
---@param last? integer
---@return any ...
function table.unpack(list, first, last) end

---A number, moved into these bounds.
---@param number number
---@param least number
---@param most number
---@return number
function math.clamp(number, least, most) end

---The nearest whole number.
---@param number number
---@return integer
function math.round(number) end

---1, 0 or -1.
---@param number number
---@return integer
function math.sign(number) end

---Smooth noise.
---@param x number
---@param y? number
---@param z? number
---@return number
function math.noise(x, y, z) end

---A number in one range, moved to its place in another.
---@param x number
---@param in_least number
---@param in_most number
---@param out_least number
---@param out_most number
---@return number
function math.map(x, in_least, in_most, out_least, out_most) end

---A number between two others.
---@param a number
---@param b number
---@param t number
---@return number
function math.lerp(a, b, t) end

---@param x number
---@return boolean
function math.isnan(x) end

---@param x number
---@return boolean
function math.isinf(x) end

---@param x number
---@return boolean
function math.isfinite(x) end

---The type of a value; for a value of the host its name, such as `"logger"`.
---@param value any
---@return string
function typeof(value) end

---Loads a module beside the script, or of the standard library.
---@param name string Such as `lib.naming`.
---@return any
function require(name) end
