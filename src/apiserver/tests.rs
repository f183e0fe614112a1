//! Pure functions that requests do not reach one by one.

use crate::{
    Refusal,
    refusal::ValidationProblem,
    request::query::{Query, percent_decode},
    request::route::{self, RequestTarget, Route},
};

fn target(path: &str) -> Option<RequestTarget> {
    match route::parse(path)? {
        Route::Objects(target) => Some(target),
        Route::ServerVersion
        | Route::CoreVersions
        | Route::Groups
        | Route::Group(_)
        | Route::Resources(..) => None,
    }
}

/// Returns namespace, plural, name and subresource of a path.
fn brief(path: &str) -> String {
    let Some(target) = target(path) else { return "-".into() };
    let or_none = |part: Option<String>| part.unwrap_or_else(|| "-".into());
    let parts = [
        or_none(target.namespace),
        target.plural,
        or_none(target.name),
        or_none(target.subresource),
    ];
    parts.join(" ")
}

#[test]
fn invalid_encodings_are_kept() {
    for (text, decoded) in [
        ("a%2Fb", "a/b"),
        ("%d1%8f", "я"),
        ("100%", "100%"),
        ("%2", "%2"),
        ("%zz%41", "%zzA"),
        ("%%41", "%A"),
        ("%ff", "\u{fffd}"),
    ] {
        assert_eq!(percent_decode(text), decoded, "{text}");
    }
}

#[test]
fn the_first_parameter_counts_if_it_has_a_value() {
    let query = Query::parse("a=1&a=2&b&c=&d=x+y%2B&&watch=1;e=no&f=False&g=%zz");
    assert_eq!(query.text("a"), Some("1"));
    assert_eq!([query.text("b"), query.text("c"), query.text("z")], [None; 3]);
    assert_eq!(query.text("d"), Some("x y+"));
    let flags = ["watch", "e", "b", "f", "g", "z"].map(|it| query.flag(it));
    assert_eq!(flags, [true, true, true, false, false, false]);
}

#[test]
fn a_namespace_is_part_of_paths_and_an_object() {
    assert_eq!(brief("/api/v1/namespaces"), "- namespaces - -");
    assert_eq!(brief("/api/v1/namespaces/n"), "- namespaces n -");
    assert_eq!(brief("/api/v1/namespaces/n/status"), "- namespaces n status");
    assert_eq!(brief("/api/v1/namespaces/n/pods"), "n pods - -");
    assert_eq!(brief("/api/v1/namespaces/n/pods/p/status"), "n pods p status");
    // A proxied path; other subresources have no paths below them.
    assert_eq!(brief("/api/v1/namespaces/n/pods/p/proxy/x"), "n pods p proxy/x");
    // Only the core group has namespaces as objects: in other groups they can only contain them.
    assert_eq!(brief("/apis/g/v1/namespaces/n/status"), "n status - -");
}

#[test]
fn paths_that_are_too_long_are_unknown() {
    assert_eq!(route::parse("/"), None);
    assert_eq!(route::parse("/healthz/x"), None);
    assert_eq!(route::parse("/apis/g"), Some(Route::Group("g".into())));
    assert_eq!(route::parse("/apis/g/v1/"), Some(Route::Resources("g".into(), "v1".into())));
}

#[test]
#[expect(clippy::disallowed_types, reason = "it measures the time of the machine")]
fn many_problems_are_reported_quickly() {
    let problem =
        |it: usize| ValidationProblem::invalid(format!("spec.a[{}]", it % 50_000), "x", "bad");
    let problems: Vec<ValidationProblem> = (0..100_000).map(problem).collect();
    let started = std::time::Instant::now();
    let refusal = Refusal::invalid("a.dev", "A", "a", &problems);
    assert!(started.elapsed().as_secs() < 20, "it is quadratic");
    assert_eq!(refusal.message.matches("spec.a[7]:").count(), 1, "each is told once");
}
