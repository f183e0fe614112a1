//! Comparison of sets of texts.

use super::Print;
use crate::scripting::Digest;

fn print(texts: &[(&str, &str)], problem: Option<&str>) -> Print {
    let mut print = problem.map(Print::of_problem).unwrap_or_default();
    for (name, text) in texts {
        print.add(name, text);
    }
    print
}

#[test]
fn equal_texts_have_equal_prints() {
    assert_eq!(print(&[("a", "1"), ("b", "2")], None), print(&[("b", "2"), ("a", "1")], None));
    assert_ne!(print(&[("a", "1")], None), print(&[("a", "2")], None));
    assert_ne!(print(&[("a", "1")], None), print(&[("b", "1")], None));
}

#[test]
fn what_is_away_empty_or_unreadable_may_be_the_middle_of_a_save() {
    let before = print(&[("a", "1"), ("b", "")], None);
    let cases = [
        (print(&[("a", "2"), ("b", "")], None), false),
        (print(&[("a", "1"), ("b", ""), ("c", "")], None), false),
        (print(&[("a", ""), ("b", "")], None), true),
        (print(&[("b", "")], None), true),
        // It was empty before.
        (print(&[("a", "1")], None), false),
        (print(&[("a", "1"), ("b", "")], Some("no")), true),
    ];
    for (now, expected) in cases {
        assert_eq!(now.may_be_halfway(&before), expected, "{now:?}");
    }
    let broken = print(&[], Some("no"));
    assert!(!broken.may_be_halfway(&broken), "that was known");
    assert!(print(&[], Some("worse")).may_be_halfway(&broken));
    assert!(!before.may_be_halfway(&broken), "it is whole again");
}

#[test]
fn a_difference_names_what_changed() {
    let before = print(&[("a", "1"), ("b", "1"), ("c", "1")], None);
    let after = print(&[("a", "1"), ("b", "2"), ("d", "1")], None);
    assert_eq!(after.since(&before).to_string(), "b, d (new), c (gone)");
    assert_eq!(before.since(&before).to_string(), "");
    let names: Vec<_> = (0..9).map(|it| format!("f{it}")).collect();
    let many: Vec<_> = names.iter().map(|it| (it.as_str(), "1")).collect();
    let many = print(&many, None).since(&Print::default());
    assert_eq!(many.to_string(), "f0 (new), f1 (new), f2 (new), f3 (new), f4 (new) and 4 more");
}

#[test]
fn a_module_is_told_apart_by_the_script_that_loads_it() {
    let module = |script: &str, text: &str| {
        let mut print = Print::default();
        print.add_module("lib.lua".into(), script, Some(Digest::of(text)));
        print
    };
    let mut both = module("a", "1");
    both.extend(module("b", "2"));
    let mut now = module("a", "2");
    now.extend(module("b", "2"));
    assert_eq!(now.since(&both).to_string(), "lib.lua");
    let mut missing = Print::default();
    missing.add_module("lib.lua".into(), "a", None);
    assert_eq!(missing, Print::default());
}

#[test]
fn scripts_agree_if_their_texts_do() {
    let (one, other) =
        (print(&[("a", "1"), ("b", "1")], None), print(&[("a", "1"), ("b", "2")], None));
    assert!(one.agrees_on("a", &other));
    assert!(!one.agrees_on("b", &other));
    assert!(!one.agrees_on("a", &Print::default()));
}
