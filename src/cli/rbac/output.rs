//! The output of the commands: YAML and warnings.

use std::io::Write as _;

/// Joins YAML documents into one file, separated by `---`.
pub(in crate::cli) fn joined<'a>(documents: impl IntoIterator<Item = &'a str>) -> String {
    documents.into_iter().collect::<Vec<_>>().join("---\n")
}

/// Prints warnings to stderr. A closed stderr is ignored.
pub(in crate::cli) fn warn(warnings: &[String]) {
    for warning in warnings {
        let _closed = writeln!(std::io::stderr(), "warning: {warning}");
    }
}

/// Prints to stdout. A closed stdout is ignored.
pub(in crate::cli) fn print(text: &str) {
    let _closed = std::io::stdout().write_all(text.as_bytes());
}
