//! Which Lua scripts have only calls that can be suspended at any time.

use crate::scripting::{
    functions::LIBRARIES,
    script::fingerprint::{self, Token, TokenKind},
    terms::Language,
};

/// Libraries whose functions are short, or wait.
const SHORT_LIBRARIES: &str = "env http kube log metrics quantity semver time uuid";
/// Global functions and libraries that load code, compute long, or let native code call functions of the script.
const UNSUSPENDABLE: &str =
    "buffer coroutine debug getfenv newproxy require setfenv setmetatable vector xpcall";
/// The same for members of `string` and `table`.
const UNSUSPENDABLE_MEMBERS: &str = "find foreach foreachi gmatch gsub match move sort split";

/// Returns whether calls of this script can be suspended at any time. It is enough that the names of other functions do not occur: a script
/// that hides them is aborted ([`super::ABORTED_AFTER`]).
pub(in crate::scripting) fn can_be_suspended(text: &str) -> bool {
    let Some(tokens) = fingerprint::lex(Language::Lua, text) else { return false };
    let at = |place: Option<usize>| place.and_then(|it| tokens.get(it));
    let names = tokens.iter().enumerate().filter(|(_, it)| it.kind == TokenKind::Name);
    let is_unsuspendable = |(place, name): (usize, &Token<'_>)| {
        let (before, after) = (at(place.checked_sub(1)), at(Some(place + 1)));
        if before.is_some_and(|it| it.is_one_of(&[".", ":"])) {
            let is_called =
                |it: &Token<'_>| it.is_one_of(&["(", "{"]) || it.kind == TokenKind::Text;
            let library = at(place.checked_sub(2)).filter(|it| is_one_of("string table", it.text));
            let is_used = library.is_some() || after.is_some_and(is_called);
            return is_used && is_one_of(UNSUSPENDABLE_MEMBERS, name.text);
        }
        // The key of a table is no use of a library.
        let is_key = after.is_some_and(|it| it.is("="));
        let is_long =
            LIBRARIES.iter().any(|it| it.name == name.text && !is_one_of(SHORT_LIBRARIES, it.name));
        !is_key && (is_long || is_one_of(UNSUSPENDABLE, name.text))
    };
    !names.into_iter().any(is_unsuspendable)
}

fn is_one_of(words: &str, name: &str) -> bool {
    words.split(' ').any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use super::can_be_suspended;

    #[test]
    fn scripts_that_cannot_always_be_suspended_are_known_by_names() {
        for text in [
            "",
            "ctx.spec.template.sort = { json = 1, match = 2 }",
            "local x = { sort = ctx.spec.json, url = 1 }",
            "string.sub(x, 1) .. ('x'):upper() .. table.concat(t) .. math.max(1, 2)",
            "for _, it in ipairs(ctx.spec.items) do pcall(f, it) end",
            "-- json.encode\nlocal s = 'yaml.decode'",
        ] {
            assert!(can_be_suspended(text), "{text}");
        }
        for text in [
            "table.sort(t)",
            "local sort = table.sort",
            "s:match('x')",
            "s:gsub'x'",
            "local find = string.find; find(s, 'x')",
            "setmetatable({}, m)",
            "local wrap = coroutine.wrap",
            "json.encode(ctx.spec)",
            "local encode = json",
            "`{yaml.encode(x)}`",
            "require('./x')",
            "not Lua '",
        ] {
            assert!(!can_be_suspended(text), "{text}");
        }
    }
}
