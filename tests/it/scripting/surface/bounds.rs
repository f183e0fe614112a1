//! The limits of arguments are in the documentation, and are enforced: the maximum is accepted, and one more is not.

use std::{fmt::Write as _, fs, process::Command};

use kopf::scripting::surface::{Surface, entry};

/// A function, the documentation of its limit, the limit, and a call with `N` of it.
const BOUNDS: &[(&str, &str, usize, &str)] = &[
    ("strings.trim", "at most 256 characters", 256, "strings.trim('x', string.rep('a', N))"),
    (
        "strings.trim_start",
        "at most 256 characters",
        256,
        "strings.trim_start('x', string.rep('a', N))",
    ),
    (
        "strings.trim_end",
        "at most 256 characters",
        256,
        "strings.trim_end('x', string.rep('a', N))",
    ),
    ("strings.slug", "at most 65536 bytes", 65536, "strings.slug(string.rep('a', N))"),
    ("strings.kebab", "at most 65536 bytes", 65536, "strings.kebab(string.rep('a', N))"),
    ("strings.snake", "at most 65536 bytes", 65536, "strings.snake(string.rep('a', N))"),
    ("strings.camel", "at most 65536 bytes", 65536, "strings.camel(string.rep('a', N))"),
    ("url.parse", "at most 65536 bytes", 65536, "url.parse('http://a/' .. string.rep('a', N - 9))"),
    ("url.join", "at most 65536 bytes", 65536, "url.join('http://a/', string.rep('a', N))"),
    ("time.format", "At most 1000 bytes", 1000, "time.format(0, string.rep('a', N))"),
    ("metrics.counter", "at most 100 bytes", 100, "metrics.counter(string.rep('a', N))"),
    (
        "metrics.counter",
        "at most 1000 bytes",
        1000,
        "metrics.counter('a', { help = string.rep('a', N) })",
    ),
    (
        "metrics.gauge",
        "at most 200 bytes",
        200,
        "metrics.gauge('b', 1, { labels = { a = string.rep('a', N) } })",
    ),
    (
        "metrics.gauge_add",
        "at most 20 labels",
        20,
        "metrics.gauge_add('c', 1, { labels = numbered(N) })",
    ),
    (
        "metrics.histogram",
        "at most 50",
        50,
        "metrics.histogram('d', 1, { buckets = lists.range(1, N) })",
    ),
    ("re.test", "at most 8192 bytes", 8192, "re.test(string.rep('a', N), 'a')"),
    ("deep.get", "at most 128 steps", 128, "deep.get({}, lists.range(1, N))"),
    (
        "yaml.decode_all",
        "At most 10000 documents",
        10_000,
        "yaml.decode_all(string.rep('--- 1\\n', N))",
    ),
    ("quantity.parse", "30 digits", 30, "quantity.parse(string.rep('0', N))"),
];

/// The helpers of the calls.
const NUMBERED: &str = "local function numbered(count)
    local map = {}
    for number = 1, count do
        map['a' .. number] = 'x'
    end
    return map
end
";

#[test]
fn bounds_of_arguments_are_documented_and_hold() {
    let surface = Surface::new();
    let mut script = NUMBERED.to_owned();
    for (path, said, bound, call) in BOUNDS {
        let items = surface.items();
        let found = items.iter().find(|(it, _)| it == path);
        let (_, item) = found.unwrap_or_else(|| panic!("{path} is documented"));
        assert!(entry(path, item).contains(said), "{path}: {said}");
        let (within, beyond) =
            (call.replace('N', &bound.to_string()), call.replace('N', &(bound + 1).to_string()));
        let added = write!(
            script,
            "do local ok, problem = pcall(function() return {within} end) if not ok then error(problem, 0) end end\n\
            if pcall(function() return {beyond} end) then error({path:?} .. ' takes more', 0) end\n"
        );
        added.expect("memory takes it");
    }
    let directory = std::env::temp_dir().join(format!("kopf-bounds-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join("handlers.lua");
    fs::write(&path, script).expect("a script");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kopf"));
    let output = command.env_clear().arg("check").arg(&path).output().expect("the binary runs");
    drop(fs::remove_dir_all(directory));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
