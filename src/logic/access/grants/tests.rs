//! Granted and denied access: hosts, variables, paths, scripts.

use std::path::{Component, Path};

use super::{Access, Denied, Grants, Permission, files::normal};

/// Returns the access that one rule grants.
fn access(what: Permission, text: &str) -> Access {
    let mut access = Access::default();
    access.allow(what, text, Path::new("/base")).unwrap_or_else(|it| panic!("{text}: {it}"));
    access
}

fn wrong(what: Permission, text: &str) -> String {
    Access::default().allow(what, text, Path::new("/base")).expect_err(text)
}

#[test]
fn nothing_is_granted_by_default() {
    let access = Access::default();
    assert!(!access.allows_net("localhost", 80));
    assert!(!access.allows_env("HOME"));
    assert!(!access.allows_read(Path::new("/")));
    assert!(access.is_empty());
}

#[test]
fn hosts_are_granted_by_name_address_and_port() {
    // The rule, what it allows, what it denies.
    for (rule, allowed, denied) in [
        (
            "api.example.com:443",
            vec![("api.example.com", 443), ("API.Example.COM", 443), ("api.example.com.", 443)],
            vec![("api.example.com", 80), ("example.com", 443), ("x.api.example.com", 443)],
        ),
        (
            "*.example.com:443",
            vec![("api.example.com", 443), ("a.b.EXAMPLE.com", 443), ("a.example.com.", 443)],
            vec![("example.com", 443), ("badexample.com", 443), (".example.com", 443)],
        ),
        ("localhost:*", vec![("localhost", 1), ("localhost", 65535)], vec![("127.0.0.1", 80)]),
        ("*:443", vec![("anything", 443), ("10.0.0.1", 443)], vec![("anything", 80), ("", 443)]),
        ("*:*", vec![("anything", 80), ("::1", 80)], vec![("", 80)]),
        (
            "10.0.0.1:80",
            vec![("10.0.0.1", 80), ("::ffff:10.0.0.1", 80), ("[::ffff:10.0.0.1]", 80)],
            vec![("10.0.0.2", 80), ("010.0.0.1", 80), ("10.0.1", 80)],
        ),
        (
            "[::1]:8080",
            vec![("::1", 8080), ("[::1]", 8080), ("0:0:0:0:0:0:0:1", 8080)],
            vec![("::2", 8080), ("localhost", 8080), ("127.0.0.1", 8080)],
        ),
        ("[::ffff:127.0.0.1]:*", vec![("127.0.0.1", 1)], vec![("127.0.0.2", 1)]),
        ("EXAMPLE.com.:443", vec![("example.com", 443)], vec![]),
        ("my_service.ns-1:80", vec![("my_service.ns-1", 80)], vec![]),
    ] {
        let access = access(Permission::Net, rule);
        for (host, port) in allowed {
            assert!(access.allows_net(host, port), "{rule} allows {host} {port}");
        }
        for (host, port) in denied {
            assert!(!access.allows_net(host, port), "{rule} denies {host} {port}");
        }
    }
}

#[test]
fn an_address_does_not_match_a_name() {
    assert!(!access(Permission::Net, "*.0.0.1:80").allows_net("10.0.0.1", 80));
}

#[test]
fn errors_of_wrong_hosts_show_the_correct_form() {
    for (text, told) in [
        (
            "example.com",
            "'example.com' has no port: write example.com:443, or example.com:* for all ports",
        ),
        (
            "https://example.com/x",
            "'https://example.com/x' is a URL: pass only the host and its port: example.com:443",
        ),
        (
            "http://example.com:8080/",
            "'http://example.com:8080/' is a URL: pass only the host and its port: example.com:8080",
        ),
        ("::1", "'::1' has no brackets: write [::1]:443, or [::1]:*"),
        ("[::1]", "'[::1]' has no port: write [::1]:443, or [::1]:* for all ports"),
        ("[::1", "'[::1' has no closing bracket"),
        ("[example.com]:80", "'example.com' in '[example.com]:80' is not an IPv6 address"),
        (
            "example.com:0",
            "'0' in 'example.com:0' is not a port: expected a number from 1 to 65535, or *",
        ),
        (
            "example.com:+80",
            "'+80' in 'example.com:+80' is not a port: expected a number from 1 to 65535, or *",
        ),
        (
            "example.com:65536",
            "'65536' in 'example.com:65536' is not a port: expected a number from 1 to 65535, or *",
        ),
        (
            "example.com:",
            "'' in 'example.com:' is not a port: expected a number from 1 to 65535, or *",
        ),
        (
            "a.*.com:80",
            "'a.*.com:80': a star can only replace the first parts of a name, as in *.example.com:443",
        ),
        (
            "*example.com:80",
            "'*example.com:80': a star can only replace the first parts of a name, as in *.example.com:443",
        ),
        (
            "*.:80",
            "'*.:80': a star can only replace the first parts of a name, as in *.example.com:443",
        ),
        ("exa mple.com:80", "'exa mple.com' in 'exa mple.com:80' is not a host name"),
        ("a..b:80", "'a..b' in 'a..b:80' is not a host name"),
        ("bücher.de:443", "'bücher.de:443' is not ASCII: write the name as the DNS has it, xn--…"),
        (":80", "'' in ':80' is not a host name"),
        ("  ", "the value is empty"),
    ] {
        assert_eq!(wrong(Permission::Net, text), told);
    }
}

#[test]
fn variables_are_granted_by_name_or_pattern() {
    let app = access(Permission::Env, "MYAPP_*");
    assert!(app.allows_env("MYAPP_TOKEN") && app.allows_env("MYAPP_"));
    assert!(!app.allows_env("MYAPP") && !app.allows_env("XMYAPP_A") && !app.allows_env("myapp_a"));
    let one = access(Permission::Env, "TOKEN");
    assert!(one.allows_env("TOKEN") && !one.allows_env("TOKEN2") && !one.allows_env(""));
    assert!(access(Permission::Env, "*").allows_env("ANY"));
    assert!(access(Permission::Env, "A?").allows_env("AB"));
    for (text, told) in [
        ("A=1", "'A=1' has a value: pass only the name of a variable"),
        ("$HOME", "'$HOME' has a $: pass only the name of a variable"),
        ("A B", "'A B' is not the name of a variable"),
        ("A\0", "'A\\0' is not the name of a variable"),
        ("", "the value is empty"),
    ] {
        assert_eq!(wrong(Permission::Env, text), told);
    }
}

#[test]
fn paths_are_granted_by_whole_names() {
    for (rule, allowed, denied) in [
        (
            "/etc/app",
            vec!["/etc/app", "/etc/app/", "/etc/app/a/b", "/etc//app/./a", "/etc/x/../app/a"],
            vec![
                "/etc",
                "/etc/apples",
                "/etc/app/../passwd",
                "/etc/app/../../etc/passwd",
                "etc/app",
                "app",
            ],
        ),
        ("/etc/app/", vec!["/etc/app/a"], vec!["/etc/app2"]),
        ("conf", vec!["/base/conf/a", "/base/./conf"], vec!["/conf/a", "conf/a"]),
        ("../shared", vec!["/shared/a"], vec!["/base/shared"]),
        ("/", vec!["/", "/etc/passwd", "/../x"], vec!["etc", ""]),
        ("/a b,c", vec!["/a b,c/d"], vec![]),
    ] {
        let access = access(Permission::Read, rule);
        for path in allowed {
            assert!(access.allows_read(Path::new(path)), "{rule} allows {path}");
        }
        for path in denied {
            assert!(!access.allows_read(Path::new(path)), "{rule} denies {path}");
        }
    }
}

#[test]
fn single_scripts_are_granted_more() {
    let mut grants = Grants { all: access(Permission::Env, "ALL_*"), ..Grants::default() };
    grants.scripts.push(("a.lua".into(), access(Permission::Env, "A")));
    grants.scripts.push(("./deep/b.lua".into(), access(Permission::Env, "B")));
    let allows = |script: &str, name: &str| grants.of(script).allows_env(name);
    for script in ["a.lua", "./a.lua", "handlers/a.lua", "/etc/x/a.lua"] {
        assert!(allows(script, "A") && allows(script, "ALL_X") && !allows(script, "B"), "{script}");
    }
    for script in ["aa.lua", "a.lua.rhai", "a.lua/b.lua", "lua"] {
        assert!(!allows(script, "A") && allows(script, "ALL_X"), "{script}");
    }
    assert!(allows("deep/b.lua", "B") && !allows("b.lua", "B"));
    assert_eq!(grants.unused(&["x/a.lua", "b.lua"]), ["./deep/b.lua"]);
    assert!(grants.concern_env("A") && grants.concern_env("ALL_X") && !grants.concern_env("X"));
}

#[test]
fn a_denial_names_the_option_that_would_allow_it() {
    assert_eq!(
        Denied::net("::1", 80).to_string(),
        "the connection to [::1]:80 is not granted to this script; --allow-net=[::1]:80 would allow it"
    );
    assert_eq!(
        Denied::env("TOKEN").to_string(),
        "the variable TOKEN is not granted to this script; --allow-env=TOKEN would allow it"
    );
    assert_eq!(
        Denied::read(Path::new("/etc/x")).to_string(),
        "reading /etc/x is not granted to this script; --allow-read=/etc/x would allow it"
    );
}

/// Returns a random string of these pieces.
fn text(random: &mut fastrand::Rng, pieces: &[&str], most: usize) -> String {
    (0..random.usize(..most)).filter_map(|_| random.choice(pieces)).copied().collect()
}

#[test]
fn the_option_named_by_a_denial_allows_the_access() {
    let mut random = fastrand::Rng::with_seed(5);
    let parts = ["a", "b.", "example", ".com", "-", "_", "10.", "0.0.1", "::", "1", "f"];
    for _ in 0..5_000 {
        let (host, port) = (text(&mut random, &parts, 6), random.u16(1..));
        let denied = Denied::net(&host, port).to_string();
        let option =
            denied.split("--allow-net=").nth(1).and_then(|it| it.strip_suffix(" would allow it"));
        let mut access = Access::default();
        // Invalid hosts are reported.
        if access.allow(Permission::Net, option.unwrap(), Path::new("/")).is_ok() {
            assert!(access.allows_net(&host, port), "{denied}");
            assert!(!access.allows_net(&host, port ^ 1), "{denied}");
        }
    }
}

#[test]
fn rules_are_written_as_they_are_read() {
    let mut random = fastrand::Rng::with_seed(6);
    let parts =
        ["*", "*.", "a", "B", ".", "com", ":", "443", "[", "]", "::1", "10.0.0.1", "-", "é"];
    let mut read = 0;
    for _ in 0..50_000 {
        let mut access = Access::default();
        let rule = text(&mut random, &parts, 7);
        if access.allow(Permission::Net, &rule, Path::new("/")).is_ok() {
            read += 1;
            let [written] = &access.granted(Permission::Net)[..] else { panic!("{rule}") };
            let mut again = Access::default();
            assert_eq!(again.allow(Permission::Net, written, Path::new("/")), Ok(()), "{rule}");
            assert_eq!(again, access, "{rule}");
        }
    }
    assert!(read > 100, "the texts are worth it: {read}");
}

#[test]
fn no_path_leads_outside_of_the_granted_ones() {
    let mut random = fastrand::Rng::with_seed(7);
    let parts = ["/", "..", ".", "a", "b", "/../", "/./", "//"];
    for _ in 0..50_000 {
        let rule = format!("/{}", text(&mut random, &["a", "b", "/"], 5));
        let path = text(&mut random, &parts, 10);
        let clean = normal(Path::new(&path));
        let is_within = clean.starts_with(normal(Path::new(&rule)));
        let access = access(Permission::Read, &rule);
        assert_eq!(access.allows_read(Path::new(&path)), is_within, "{rule} {path}");
        assert_eq!(normal(&clean), clean, "{path}");
        if clean.is_absolute() {
            assert!(clean.components().all(|it| it != Component::ParentDir), "{path}");
        }
    }
}
