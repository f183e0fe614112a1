//! The names of Luau itself. A test compares them with those that the VM has.

use crate::checker::types::Member;

/// The maximum number of arguments of variadic functions.
const ANY: usize = usize::MAX;

const fn of(name: &'static str, least: usize, most: usize) -> Member {
    (name, Some((least, most)))
}

/// The global functions of Luau.
pub(in crate::checker) const FUNCTIONS: &[Member] = &[
    of("assert", 1, ANY),
    of("error", 0, 2),
    of("getmetatable", 1, 1),
    of("ipairs", 1, 1),
    of("next", 1, 2),
    of("pairs", 1, 1),
    of("pcall", 1, ANY),
    of("print", 0, ANY),
    of("rawequal", 2, 2),
    of("rawget", 2, 2),
    of("rawlen", 1, 1),
    of("rawset", 3, 3),
    of("require", 1, 1),
    of("select", 1, ANY),
    of("setmetatable", 2, 2),
    of("tonumber", 1, 2),
    of("tostring", 1, 1),
    of("type", 1, 1),
    of("typeof", 1, 1),
    of("unpack", 1, 3),
    of("xpcall", 2, ANY),
    ("_G", None),
    ("_VERSION", None),
];

/// Libraries whose members are known.
#[rustfmt::skip]
pub(in crate::checker) const LIBRARIES: &[(&str, &[Member])] = &[
    ("string", &[
        of("byte", 1, 3), of("char", 0, ANY), of("find", 2, 4), of("format", 1, ANY), of("gmatch", 2, 2), of("gsub", 3, 4),
        of("len", 1, 1), of("lower", 1, 1), of("match", 2, 3), of("pack", 1, ANY), of("packsize", 1, 1), of("rep", 2, 3),
        of("reverse", 1, 1), of("split", 1, 2), of("sub", 2, 3), of("unpack", 2, 3), of("upper", 1, 1),
    ]),
    ("table", &[
        of("clear", 1, 1), of("clone", 1, 1), of("concat", 1, 4), of("create", 1, 2), of("find", 2, 3), of("foreach", 2, 2),
        of("foreachi", 2, 2), of("freeze", 1, 1), of("getn", 1, 1), of("insert", 2, 3), of("isfrozen", 1, 1), of("maxn", 1, 1),
        of("move", 4, 5), of("pack", 0, ANY), of("remove", 1, 2), of("sort", 1, 2), of("unpack", 1, 3),
    ]),
    ("math", &[
        of("abs", 1, 1), of("acos", 1, 1), of("asin", 1, 1), of("atan", 1, 1), of("atan2", 2, 2), of("ceil", 1, 1),
        of("clamp", 3, 3), of("cos", 1, 1), of("cosh", 1, 1), of("deg", 1, 1), of("exp", 1, 1), of("floor", 1, 1),
        of("fmod", 2, 2), of("frexp", 1, 1), of("isfinite", 1, 1), of("isinf", 1, 1), of("isnan", 1, 1), of("ldexp", 2, 2),
        of("lerp", 3, 3), of("log", 1, 2), of("log10", 1, 1), of("map", 5, 5), of("max", 1, ANY), of("min", 1, ANY),
        of("modf", 1, 1), of("noise", 1, 3), of("pow", 2, 2), of("rad", 1, 1), of("random", 0, 2), of("randomseed", 1, 1),
        of("round", 1, 1), of("sign", 1, 1), of("sin", 1, 1), of("sinh", 1, 1), of("sqrt", 1, 1), of("tan", 1, 1),
        of("tanh", 1, 1), ("e", None), ("huge", None), ("nan", None), ("phi", None), ("pi", None), ("sqrt2", None), ("tau", None),
    ]),
    ("os", &[of("clock", 0, 0), of("date", 0, 2), of("difftime", 1, 2), of("time", 0, 1)]),
    ("coroutine", &[
        of("close", 1, 1), of("create", 1, 1), of("isyieldable", 0, 0), of("resume", 1, ANY), of("running", 0, 0),
        of("status", 1, 1), of("wrap", 1, 1), of("yield", 0, ANY),
    ]),
    ("utf8", &[
        of("char", 0, ANY), ("charpattern", None), of("codepoint", 1, 3), of("codes", 1, 1), of("len", 1, 3), of("offset", 2, 3),
    ]),
    ("debug", &[of("info", 1, 3), of("traceback", 0, 3)]),
];

/// Libraries whose members are not checked: few scripts use them.
pub(in crate::checker) const UNCHECKED: &[&str] = &["bit32", "buffer", "integer", "vector"];
