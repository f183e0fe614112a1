//! Errors in the form for users.

use std::path::PathBuf;

use super::{Exit, Report};
use crate::scripting::LoadError;
use crate::sources;

fn broken(file: &str) -> LoadError {
    LoadError {
        file: file.into(),
        line: Some(12),
        columns: None,
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
fn errors_of_scripts_are_combined_in_one_report() {
    let errors = [broken("a.lua"), broken("b.rhai")];
    let report = Report::of_scripts(&errors);
    assert_eq!(report.to_string(), format!("{}\n{}", errors[0], errors[1]));
    assert!(report.message.starts_with("a.lua:12: "), "{report}");
}

#[test]
fn a_command_line_without_scripts_is_a_usage_error() {
    let missing = sources::Error::Missing(PathBuf::from("nope.lua"));
    let cases = [(sources::Error::NothingNamed, Exit::Usage), (missing, Exit::Failure)];
    for (error, exit) in cases {
        let report = Report::from(error);
        assert_eq!(report.exit, exit, "{report}");
        assert!(report.hint.is_some(), "{report}");
    }
}

#[test]
fn a_report_cannot_move_the_cursor_of_a_terminal() {
    let report = Report::failure("no\u{1b}[2J\r\u{9b}1A\tx\ny").with_hint("\u{7}");
    assert_eq!(report.to_string(), "error: no\\u{1b}[2J\\r\\u{9b}1A\tx\ny\nhint: \\u{7}");
}
