-- Functions of Luau that Lua 5.1 does not have.

---Splits a string at a separator.
---@param text string
---@param separator? string Default: a comma.
---@return string[]
function string.split(text, separator) end

---Creates a list with this number of items.
---@param count integer
---@param value? any
---@return any[]
function table.create(count, value) end

---Returns the index of a value in a list, counted from 1.
---@param list any[]
---@param value any
---@param from? integer
---@return integer|nil
function table.find(list, value, from) end

---Removes all items from a table.
---@param t table
function table.clear(t) end

---Returns a shallow copy of a table.
---@generic T: table
---@param t T
---@return T
function table.clone(t) end

---Makes a table read-only.
---@generic T: table
---@param t T
---@return T
function table.freeze(t) end

---Returns whether a table is read-only.
---@param t table
---@return boolean
function table.isfrozen(t) end

---Copies items of a list to another index, or into another list.
---@param source any[]
---@param first integer
---@param last integer
---@param place integer
---@param target? any[]
---@return any[]
function table.move(source, first, last, place, target) end

---Returns a list of the arguments, with their number as `n`.
---@param ... any
---@return { n: integer, [integer]: any }
function table.pack(...) end

---Returns the items of a list.
---@param list any
---@param first? integer
---@param last? integer
---@return any ...
function table.unpack(list, first, last) end

---Limits a number to a range.
---@param number number
---@param least number
---@param most number
---@return number
function math.clamp(number, least, most) end

---Rounds a number to the nearest integer.
---@param number number
---@return integer
function math.round(number) end

---Returns the sign of a number: 1, 0 or -1.
---@param number number
---@return integer
function math.sign(number) end

---Returns Perlin noise.
---@param x number
---@param y? number
---@param z? number
---@return number
function math.noise(x, y, z) end

---Maps a number from one range to another.
---@param x number
---@param in_least number
---@param in_most number
---@param out_least number
---@param out_most number
---@return number
function math.map(x, in_least, in_most, out_least, out_most) end

---Interpolates linearly between two numbers.
---@param a number
---@param b number
---@param t number
---@return number
function math.lerp(a, b, t) end

---Returns whether a number is NaN.
---@param x number
---@return boolean
function math.isnan(x) end

---@param x number
---@return boolean
function math.isinf(x) end

---@param x number
---@return boolean
function math.isfinite(x) end

---Returns the type of a value; for a value of the host its name, such as `"logger"`.
---@param value any
---@return string
function typeof(value) end

---Loads a module next to the script, or from the standard library.
---@param name string Such as `lib.naming`.
---@return any
function require(name) end

---Returns the length of a table or a string without calling metamethods.
---@param value table|string
---@return integer
function rawlen(value) end

---Closes a coroutine.
---@param co thread
---@return boolean, any?
function coroutine.close(co) end

---Returns whether the running coroutine can yield.
---@return boolean
function coroutine.isyieldable() end

---Returns information about a function: its source `s`, line `l`, name `n`, itself `f`, arguments `a`.
---@param level integer|function
---@param what string
---@return any ...
function debug.info(level, what) end

---Packs values into a binary string.
---@param format string
---@param ... any
---@return string
function string.pack(format, ...) end

---Returns the number of bytes of a format.
---@param format string
---@return integer
function string.packsize(format) end

---Unpacks values from a binary string.
---@param format string
---@param text string
---@param place? integer
---@return any ...
function string.unpack(format, text, place) end

---Euler's number.
---@type number
math.e = 0

---Not a number.
---@type number
math.nan = 0

---The golden ratio.
---@type number
math.phi = 0

---The square root of two.
---@type number
math.sqrt2 = 0

---Two pi.
---@type number
math.tau = 0

---Bitwise operations on integers from 0 to 2^32 - 1.
bit32 = {}

---@param ... integer
---@return integer
function bit32.band(...) end

---@param ... integer
---@return integer
function bit32.bor(...) end

---@param ... integer
---@return integer
function bit32.bxor(...) end

---@param ... integer
---@return boolean
function bit32.btest(...) end

---@param n integer
---@return integer
function bit32.bnot(n) end

---@param n integer
---@return integer
function bit32.byteswap(n) end

---@param n integer
---@return integer
function bit32.countlz(n) end

---@param n integer
---@return integer
function bit32.countrz(n) end

---@param n integer
---@param by integer
---@return integer
function bit32.arshift(n, by) end

---@param n integer
---@param by integer
---@return integer
function bit32.lrotate(n, by) end

---@param n integer
---@param by integer
---@return integer
function bit32.lshift(n, by) end

---@param n integer
---@param by integer
---@return integer
function bit32.rrotate(n, by) end

---@param n integer
---@param by integer
---@return integer
function bit32.rshift(n, by) end

---@param n integer
---@param from integer
---@param width? integer
---@return integer
function bit32.extract(n, from, width) end

---@param n integer
---@param value integer
---@param from integer
---@param width? integer
---@return integer
function bit32.replace(n, value, from, width) end

---UTF-8 functions.
utf8 = {}

---A pattern that matches one character.
---@type string
utf8.charpattern = ""

---@param ... integer
---@return string
function utf8.char(...) end

---@param text string
---@param from? integer
---@param to? integer
---@return integer ...
function utf8.codepoint(text, from, to) end

---@param text string
---@return fun(): integer, integer
function utf8.codes(text) end

---@param text string
---@param from? integer
---@param to? integer
---@return integer|nil, integer?
function utf8.len(text, from, to) end

---@param text string
---@param n integer
---@param from? integer
---@return integer|nil
function utf8.offset(text, n, from) end

---A block of bytes.
---@class buffer
buffer = {}

---@param size integer
---@return buffer
function buffer.create(size) end

---@param text string
---@return buffer
function buffer.fromstring(text) end

---@param b buffer
---@return string
function buffer.tostring(b) end

---@param b buffer
---@return integer
function buffer.len(b) end

---@param target buffer
---@param place integer
---@param source buffer
---@param from? integer
---@param count? integer
function buffer.copy(target, place, source, from, count) end

---@param b buffer
---@param place integer
---@param value integer
---@param count? integer
function buffer.fill(b, place, value, count) end

---@param b buffer
---@param place integer
---@return number
function buffer.readf32(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writef32(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readf64(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writef64(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readi8(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writei8(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readi16(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writei16(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readi32(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writei32(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readu8(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writeu8(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readu16(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writeu16(b, place, value) end

---@param b buffer
---@param place integer
---@return number
function buffer.readu32(b, place) end

---@param b buffer
---@param place integer
---@param value number
function buffer.writeu32(b, place, value) end

---@param b buffer
---@param bit integer
---@param count integer
---@return integer
function buffer.readbits(b, bit, count) end

---@param b buffer
---@param bit integer
---@param count integer
---@param value integer
function buffer.writebits(b, bit, count, value) end

---@param b buffer
---@param place integer
---@param count integer
---@return string
function buffer.readstring(b, place, count) end

---@param b buffer
---@param place integer
---@param text string
---@param count? integer
function buffer.writestring(b, place, text, count) end

---A vector of three numbers, with the fields x, y and z.
---@class vector
---@field x number
---@field y number
---@field z number
vector = {}

---@type vector
vector.zero = {}

---@type vector
vector.one = {}

---@param x number
---@param y number
---@param z? number
---@return vector
function vector.create(x, y, z) end

---@param v vector
---@return vector
function vector.abs(v) end

---@param v vector
---@return vector
function vector.ceil(v) end

---@param v vector
---@return vector
function vector.floor(v) end

---@param v vector
---@return vector
function vector.normalize(v) end

---@param v vector
---@return vector
function vector.sign(v) end

---@param v vector
---@return number
function vector.magnitude(v) end

---@param a vector
---@param b vector
---@return number
function vector.dot(a, b) end

---@param a vector
---@param b vector
---@param axis? vector
---@return number
function vector.angle(a, b, axis) end

---@param a vector
---@param b vector
---@return vector
function vector.cross(a, b) end

---@param v vector
---@param least vector
---@param most vector
---@return vector
function vector.clamp(v, least, most) end

---@param a vector
---@param b vector
---@param t number
---@return vector
function vector.lerp(a, b, t) end

---@param ... vector
---@return vector
function vector.max(...) end

---@param ... vector
---@return vector
function vector.min(...) end

---64-bit integers, which are a separate type.
integer = {}

---@type any
integer.maxsigned = 0

---@type any
integer.minsigned = 0

---@param value any
---@return any
function integer.create(value) end

---@param text string
---@param base? integer
---@return any
function integer.fromstring(text, base) end

---@param n any
---@return number
function integer.tonumber(n) end

---@param a any
---@param b any
---@return any
function integer.add(a, b) end

---@param a any
---@param b any
---@return any
function integer.sub(a, b) end

---@param a any
---@param b any
---@return any
function integer.mul(a, b) end

---@param a any
---@param b any
---@return any
function integer.div(a, b) end

---@param a any
---@param b any
---@return any
function integer.idiv(a, b) end

---@param a any
---@param b any
---@return any
function integer.udiv(a, b) end

---@param a any
---@param b any
---@return any
function integer.mod(a, b) end

---@param a any
---@param b any
---@return any
function integer.rem(a, b) end

---@param a any
---@param b any
---@return any
function integer.urem(a, b) end

---@param a any
---@param b any
---@return any
function integer.arshift(a, b) end

---@param a any
---@param b any
---@return any
function integer.lshift(a, b) end

---@param a any
---@param b any
---@return any
function integer.rshift(a, b) end

---@param a any
---@param b any
---@return any
function integer.lrotate(a, b) end

---@param a any
---@param b any
---@return any
function integer.rrotate(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.lt(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.le(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.gt(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.ge(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.ult(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.ule(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.ugt(a, b) end

---@param a any
---@param b any
---@return boolean
function integer.uge(a, b) end

---@param n any
---@return any
function integer.neg(n) end

---@param n any
---@return any
function integer.bnot(n) end

---@param n any
---@return any
function integer.bswap(n) end

---@param n any
---@return any
function integer.countlz(n) end

---@param n any
---@return any
function integer.countrz(n) end

---@param ... any
---@return any
function integer.band(...) end

---@param ... any
---@return any
function integer.bor(...) end

---@param ... any
---@return any
function integer.bxor(...) end

---@param ... any
---@return any
function integer.max(...) end

---@param ... any
---@return any
function integer.min(...) end

---@param ... any
---@return boolean
function integer.btest(...) end

---@param n any
---@param least any
---@param most any
---@return any
function integer.clamp(n, least, most) end

---@param n any
---@param from integer
---@param width? integer
---@return any
function integer.extract(n, from, width) end

---@param n any
---@param value any
---@param from integer
---@param width? integer
---@return any
function integer.replace(n, value, from, width) end
