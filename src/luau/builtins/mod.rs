//! Replacements of built-ins: they know unfilled levels, and neither run long without a time check nor allocate too much at once.

use memchr::memmem;
use mlua::{Lua, LuaString, Table, Value as LuaValue};

use crate::levels;

/// The characters that make a string a pattern.
const SPECIALS: &[u8] = b"^$*+?.([%-";

/// Maximum length of a format of `os.date`, in bytes.
const DATE_FORMAT_MAX: usize = 1000;

/// The limits of built-ins, with the messages of errors.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum length of a string or a buffer that is made at once, in bytes.
    pub string_size: usize,
    /// The message if a string or a buffer is longer.
    pub too_long: String,
    /// Maximum number of coroutines that are neither dead nor collected.
    pub coroutines: usize,
    /// The message if there are more.
    pub too_many: String,
}

/// Replaces built-ins of a new VM, before other Lua code of the host keeps references to them.
///
/// Adds two functions to `host` that this code must use: `fill(value)` returns its argument, and fills it if it is an unfilled
/// [level](levels); to be called before a table is passed to a built-in that is not replaced and reads it raw. `ended(coroutine)` must be
/// called when a coroutine has ended, so that it no longer counts.
///
/// # Errors
/// If the memory of the VM is full.
pub fn install(lua: &Lua, host: &Table, limits: Limits) -> mlua::Result<()> {
    levels::install(lua, host)?;
    host.set("search", lua.create_function(|_, it| Ok(search(it)))?)?;
    host.set("string_size", limits.string_size)?;
    host.set("too_long", limits.too_long)?;
    host.set("date_format", DATE_FORMAT_MAX)?;
    host.set(
        "too_long_format",
        format!("os.date: the format is longer than {DATE_FORMAT_MAX} bytes"),
    )?;
    host.set("coroutines_max", limits.coroutines)?;
    host.set("too_many", limits.too_many)?;
    host.set("collect", lua.create_function(|lua, ()| lua.gc_collect())?)?;
    lua.load(include_str!("natives.lua")).set_name("=kopf").call(host)
}

type Arguments = (LuaString, LuaString, Option<i64>, Option<LuaValue>);
/// Whether it was a search for a plain string, and the first and last index of the match.
type Match = (bool, Option<usize>, Option<usize>);

/// Implements `string.find` for a plain string, in linear time. Indexes count from 1; negative ones count from the end.
fn search((text, part, init, plain): Arguments) -> Match {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let is_plain = plain.is_some_and(|it| !matches!(it, LuaValue::Nil | LuaValue::Boolean(false)));
    if !is_plain && part.iter().any(|it| SPECIALS.contains(it)) {
        return (false, None, None);
    }
    let init = init.unwrap_or(1);
    let skipped = if init < 0 {
        let back = usize::try_from(init.unsigned_abs()).unwrap_or(usize::MAX);
        text.len().saturating_sub(back)
    } else {
        usize::try_from(init).unwrap_or(usize::MAX).saturating_sub(1)
    };
    let found = text.get(skipped..).and_then(|it| memmem::find(it, &part));
    let first = found.map(|it| it + skipped + 1);
    (true, first, first.map(|it| it + part.len() - 1))
}

#[cfg(test)]
mod tests {
    use super::{Limits, Lua, install};

    /// Runs a script with these built-ins; `host` is what the host's own Lua code gets.
    fn run(script: &str) -> mlua::Result<String> {
        let lua = Lua::new();
        let limits = Limits {
            string_size: 1000,
            too_long: "too long".into(),
            coroutines: 2,
            too_many: "too many".into(),
        };
        let host = lua.create_table()?;
        install(&lua, &host, limits)?;
        lua.globals().set("host", host)?;
        lua.load(script).eval()
    }

    #[test]
    fn strings_and_coroutines_have_limits() {
        let fails = |script: &str| run(script).expect_err("it fails").to_string();
        assert!(fails("return string.rep('ab', 501)").contains("too long"));
        assert!(fails("return buffer.create(1001)").contains("too long"));
        let create = "local kept = {} for i = 1, 3 do kept[i] = coroutine.create(print) end";
        assert!(fails(create).contains("too many"));
        let end = "for _ = 1, 3 do host.ended(coroutine.create(print)) end return 'ended'";
        assert_eq!(run(end).expect("it runs"), "ended");
    }

    #[test]
    fn long_searches_find_what_the_original_finds() {
        let script = "
            local text = string.rep('a', 900) .. 'b'
            local long = text .. text .. text
            local part = string.rep('a', 800) .. 'b'
            local first, last = string.find(long, part, 200, true)
            return table.concat({ first, last, #string.split(long, part) }, ' ')";
        assert_eq!(run(script).expect("it runs"), "1002 1802 4");
    }
}
