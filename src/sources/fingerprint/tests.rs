//! Comparison of sets of sources.

use super::Fingerprint;
use crate::scripting::Digest;

fn fingerprint(texts: &[(&str, &str)], problem: Option<&str>) -> Fingerprint {
    let mut fingerprint = problem.map(Fingerprint::of_problem).unwrap_or_default();
    for (name, text) in texts {
        fingerprint.add(name, text);
    }
    fingerprint
}

#[test]
fn equal_texts_have_equal_fingerprints() {
    assert_eq!(
        fingerprint(&[("a", "1"), ("b", "2")], None),
        fingerprint(&[("b", "2"), ("a", "1")], None)
    );
    assert_ne!(fingerprint(&[("a", "1")], None), fingerprint(&[("a", "2")], None));
    assert_ne!(fingerprint(&[("a", "1")], None), fingerprint(&[("b", "1")], None));
}

#[test]
fn missing_empty_or_unreadable_files_may_be_an_incomplete_save() {
    let before = fingerprint(&[("a", "1"), ("b", "")], None);
    let cases = [
        (fingerprint(&[("a", "2"), ("b", "")], None), false),
        (fingerprint(&[("a", "1"), ("b", ""), ("c", "")], None), false),
        (fingerprint(&[("a", ""), ("b", "")], None), true),
        (fingerprint(&[("b", "")], None), true),
        // It was empty before.
        (fingerprint(&[("a", "1")], None), false),
        (fingerprint(&[("a", "1"), ("b", "")], Some("no")), true),
    ];
    for (now, expected) in cases {
        assert_eq!(now.may_be_halfway(&before), expected, "{now:?}");
    }
    let broken = fingerprint(&[], Some("no"));
    assert!(!broken.may_be_halfway(&broken), "that was known");
    assert!(fingerprint(&[], Some("worse")).may_be_halfway(&broken));
    assert!(!before.may_be_halfway(&broken), "it is whole again");
}

#[test]
fn a_difference_names_what_changed() {
    let before = fingerprint(&[("a", "1"), ("b", "1"), ("c", "1")], None);
    let after = fingerprint(&[("a", "1"), ("b", "2"), ("d", "1")], None);
    assert_eq!(after.since(&before).to_string(), "b, d (new), c (gone)");
    assert_eq!(before.since(&before).to_string(), "");
    let names: Vec<_> = (0..9).map(|it| format!("f{it}")).collect();
    let many: Vec<_> = names.iter().map(|it| (it.as_str(), "1")).collect();
    let many = fingerprint(&many, None).since(&Fingerprint::default());
    assert_eq!(many.to_string(), "f0 (new), f1 (new), f2 (new), f3 (new), f4 (new) and 4 more");
}

#[test]
fn a_module_is_distinguished_by_the_script_that_loads_it() {
    let modules = |of_a: &str, of_b: &str| {
        let mut fingerprint = Fingerprint::default();
        for (script, text) in [("a", of_a), ("b", of_b)] {
            fingerprint.add_module("lib.lua".into(), script, Some(Digest::of(text)));
        }
        fingerprint
    };
    assert_eq!(modules("2", "2").since(&modules("1", "2")).to_string(), "lib.lua");
    assert_eq!(modules("1", "2").of_scripts(), Fingerprint::default());
    let mut missing = Fingerprint::default();
    missing.add_module("lib.lua".into(), "a", None);
    assert_eq!(missing, Fingerprint::default());
}

#[test]
fn scripts_agree_if_their_texts_do() {
    let (one, other) = (
        fingerprint(&[("a", "1"), ("b", "1")], None),
        fingerprint(&[("a", "1"), ("b", "2")], None),
    );
    assert!(one.agrees_on("a", &other));
    assert!(!one.agrees_on("b", &other));
    assert!(!one.agrees_on("a", &Fingerprint::default()));
}
