//! What the user reads.

use expect_test::expect;

use super::Report;
use crate::scripting::LoadError;

fn broken(file: &str) -> LoadError {
    LoadError {
        file: file.into(),
        line: Some(12),
        source_line: Some("local x = = 1".into()),
        message: "unexpected symbol near '='".into(),
        hint: Some("one '=' assigns".into()),
    }
}

#[test]
fn a_report_is_an_error_line_and_a_hint_line() {
    let report = Report::failure("cannot do it").with_hint("do it otherwise");
    assert_eq!(report.to_string(), "error: cannot do it\nhint: do it otherwise");
    assert_eq!(Report::usage("no").to_string(), "error: no");
}

#[test]
fn errors_of_scripts_show_the_line_as_a_compiler_does() {
    let unknown = LoadError { line: None, source_line: None, hint: None, ..broken("b.rhai") };
    let report = Report::of_scripts(&[broken("a.lua"), unknown]);
    expect![[r"
        error: a.lua:12: unexpected symbol near '='
            |
         12 | local x = = 1
            |
        hint: one '=' assigns
        error: b.rhai: unexpected symbol near '='"]]
    .assert_eq(&report.to_string());
}
