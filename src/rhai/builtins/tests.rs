//! Tests of the replacements in an engine with low limits.

use std::cell::Cell;

use rhai::{Dynamic, Engine, EvalAltResult};

use super::{Fallible, Limits, check_size, register};
use crate::problem;

thread_local! {
    /// How many more steps the running script may take.
    static STEPS: Cell<u32> = const { Cell::new(0) };
}

struct Low;

impl Limits for Low {
    const ITEMS_MAX: usize = 100;
    const DEPTH_MAX: usize = 10;

    fn step() -> Fallible<()> {
        let left = STEPS.get().checked_sub(1).ok_or_else(|| problem("no more steps"))?;
        STEPS.set(left);
        Ok(())
    }

    fn reserve(bytes: usize) -> Fallible<()> {
        if bytes > 1 << 20 { Err(problem("no more memory")) } else { Ok(()) }
    }

    fn string_size() -> usize {
        2000
    }

    fn too_long() -> Box<EvalAltResult> {
        problem("too long")
    }

    fn too_many(what: &'static str) -> Box<EvalAltResult> {
        problem(format!("too many items: {what}"))
    }
}

/// Returns the result of this script as a string, or its error.
fn run(text: &str, steps: u32) -> Result<String, String> {
    STEPS.set(steps);
    let mut engine = Engine::new();
    register::<Low>(&mut engine);
    let result = engine.eval::<Dynamic>(text);
    result.map(|it| it.to_string()).map_err(|error| error.to_string())
}

#[test]
fn results_are_those_of_rhai() {
    for text in [
        "[1, #{ a: [`x`, 1.5, ()] }] == [1, #{ a: [`x`, 1.5, ()] }]",
        "#{ a: 1 } != #{ a: 2 }",
        "[1, 2, [3]].contains([3])",
        "[1, 2, 1].index_of(1, -1)",
        "[3, 1, 2].index_of(4)",
        "let a = [3, 1, 2]; a.sort(); a",
        "let a = [3, 1, 2]; a.sort(|a, b| b - a); a",
        "let a = [1, 1, 2, 1]; a.dedup(); a",
        "`a b  c`.split()",
        "`a,b,c`.split(`,`, 2)",
        "`a,b,c`.split_rev(',')",
        "`äöü`.to_chars()",
        "`äöü`.sub_string(1, 1) + `abc`.sub_string(-2) + `abcd`.sub_string(1..=2)",
        "let a = `äöü`; a.crop(1..2); a",
        "let a = `aXbX`; a.replace(`X`, `--`); a.replace('b', 'c'); a.remove(`--`); a",
        "let a = `abc`; a.pop(2) + a",
        "let a = `abc`; a.pad(6, `xy`); a",
        "let a = [1]; a.pad(3, 0); a",
        "blob(3, 258).len()",
    ] {
        let ours = run(text, 1000);
        let rhai = Engine::new().eval::<Dynamic>(text).map(|it| it.to_string());
        assert_eq!(ours.as_ref(), rhai.map_err(|error| error.to_string()).as_ref(), "{text}");
    }
}

#[test]
fn large_results_are_refused() {
    for (text, error) in [
        ("let a = []; a.pad(101, 0)", "too many items: a list"),
        ("`,`.split(`,`); let a = ``; a.pad(200, ','); a.split(',')", "too many items: a list"),
        ("let a = ``; a.pad(101, ','); a.to_chars()", "too many items: a list"),
        ("let a = ``; a.pad(2001, ',')", "too long"),
        ("let a = `,`; a.pad(100, ','); a.replace(`,`, `0123456789012345678901`)", "too long"),
        ("blob(2001)", "too long"),
        ("let a = blob(1); a.pad(2001, 0)", "too long"),
    ] {
        let found = run(text, 1000).unwrap_err();
        assert!(found.contains(error), "{text}: {found}");
    }
}

#[test]
fn long_work_is_ended_even_if_a_function_of_the_script_does_it() {
    for text in [
        "let a = []; a.pad(50, 0); a == a",
        "let a = []; a.pad(30, 0); a.sort(|a, b| 0)",
        "let a = []; a.pad(30, 0); a.dedup()",
        "let a = ``; a.pad(60, 'x'); a.replace('x', 'y')",
    ] {
        assert!(run(text, 50).unwrap_err().contains("no more steps"), "{text}");
    }
    let text = "[2, 1].sort(|a, b| throw `mine`)";
    assert!(run(text, 50).unwrap_err().contains("mine"));
}

#[test]
fn deep_values_are_not_compared() {
    let nested = |around| format!("let a = []; for i in 0..{around} {{ a = [a]; }} a == a");
    assert_eq!(run(&nested(10), 1000).unwrap(), "true");
    let found = run(&nested(11), 1000).unwrap_err();
    assert!(found.contains("==: nested deeper than 10 levels"), "{found}");
}

#[test]
fn the_size_of_a_variable_is_its_own() {
    let list = |len| Dynamic::from_array(vec![Dynamic::UNIT; len]);
    assert!(check_size::<Low>(&list(100)).is_ok() && check_size::<Low>(&list(101)).is_err());
    let nested = Dynamic::from_array(vec![list(101)]);
    assert!(check_size::<Low>(&nested).is_ok());
    // What is inside is not even looked at, so that a loop that fills a list does not take quadratic time.
    let mut inside = Dynamic::from_int(1).into_shared();
    let large = Dynamic::from_array(vec![inside.clone(); 101]);
    let locked = inside.write_lock::<i64>().unwrap();
    assert!(check_size::<Low>(&large).is_err());
    drop(locked);
    let text = |len| Dynamic::from("x".repeat(len));
    assert!(check_size::<Low>(&text(2000)).is_ok() && check_size::<Low>(&text(2001)).is_err());
}
