//! Errors of scripts that cannot be loaded, formatted like those of a compiler.

use std::fmt;

/// The heading above the calls that led to an error, in both languages.
pub(crate) const STACK_TITLE: &str = "stack traceback:";
/// Maximum number of calls in a shown stack.
pub(crate) const FRAMES_MAX: usize = 40;
/// Maximum number of characters in a shown source line.
const LINE_CHARS_MAX: usize = 160;

/// Returns the part of a source line around a column, which counts from 1; 0 means unknown.
pub(crate) fn excerpt(line: &str, column: usize) -> String {
    let line = line.trim_end();
    let first = column.saturating_sub(LINE_CHARS_MAX / 2);
    let place = |chars: usize| line.char_indices().nth(chars).map(|(place, _)| place);
    let Some(end) = place(LINE_CHARS_MAX) else { return line.to_owned() };
    let start = place(first).unwrap_or_default();
    let end = if start == 0 { Some(end) } else { place(first + LINE_CHARS_MAX) };
    let shown = line.get(start..end.unwrap_or(line.len())).unwrap_or_default();
    let (before, after) = (if start == 0 { "" } else { "…" }, if end.is_none() { "" } else { "…" });
    format!("{before}{shown}{after}")
}

/// A part of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The first character, from 1.
    pub first: u32,
    /// The number of characters.
    pub length: u32,
}

impl Columns {
    /// Returns the columns of the first name in back-ticks of a message, if the line contains it exactly once as a whole word.
    pub(crate) fn named(message: &str, line: &str) -> Option<Columns> {
        let word = message.split('`').nth(1).filter(|it| !it.is_empty())?;
        let is_part = |it: char| it.is_alphanumeric() || it == '_';
        let places = line.match_indices(word).map(|(place, _)| place).filter(|place| {
            let (before, after) = (line.get(..*place), line.get(place + word.len()..));
            !before.is_some_and(|it| it.ends_with(is_part))
                && !after.is_some_and(|it| it.starts_with(is_part))
        });
        let mut places = places.fuse();
        let (place, None) = (places.next()?, places.next()) else { return None };
        let count = |it: &str| u32::try_from(it.chars().count()).ok();
        Some(Columns { first: count(line.get(..place)?)? + 1, length: count(word)? })
    }
}

/// Why a script cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadError {
    /// The file, as the user gave it.
    pub file: String,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// The affected part of the line; `None`: the whole line.
    pub columns: Option<Columns>,
    /// The source of that line.
    pub source_line: Option<String>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What to do next, if known.
    pub hint: Option<String>,
}

/// Returns a line as it is shown, the start of the marks below it, and their number. A tab would shift the marks.
fn marked(source: &str, columns: Option<Columns>) -> (String, usize, usize) {
    const TAB: &str = "    ";
    let size = |it: u32| usize::try_from(it).unwrap_or(usize::MAX);
    if let Some(columns) = columns
        && source.chars().count() <= LINE_CHARS_MAX
    {
        let before = source.chars().take(size(columns.first).saturating_sub(1));
        let indent = before.map(|it| if it == '\t' { TAB.len() } else { 1 }).sum();
        return (source.trim_end().replace('\t', TAB), indent, size(columns.length));
    }
    let source = excerpt(source, columns.map_or(0, |it| size(it.first))).replace('\t', TAB);
    let indent = source.len() - source.trim_start().len();
    let marks = source.trim_start().chars().count();
    (source, indent, marks)
}

impl fmt::Display for LoadError {
    /// Formats the error like a compiler:
    ///
    /// ```text
    /// error: handlers.lua:12: kopf.on_create: unknown option `retry`
    ///    |
    /// 12 | kopf.on_create("kex", {retry = 3}, create_fn)
    ///    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
    /// hint: …
    /// ```
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(columns) = self.line.and(self.columns) {
            write!(f, ":{}", columns.first)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some((line, source)) = self.line.zip(self.source_line.as_deref()) {
            let number = line.to_string();
            let gutter = " ".repeat(number.len());
            let (source, indent, marks) = marked(source, self.columns);
            let marks = "^".repeat(marks);
            write!(f, "\n{gutter} |\n{number} | {source}\n{gutter} | {:indent$}{marks}", "")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LoadError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_a_message_is_marked_if_it_occurs_once() {
        let named = |message, line| Columns::named(message, line).map(|it| (it.first, it.length));
        let line = "kopf.timer('kexs', { é = 1, exclusiv = true, exclusivity = 2 }, fn)";
        assert_eq!(named("kopf.timer has no option `exclusiv`", line), Some((29, 8)));
        assert_eq!(named("there is no `kopf.timer`: `fn`", line), Some((1, 10)));
        assert_eq!(named("`true`: expected `1`", line), Some((40, 4)));
        assert_eq!(named("`x` is not there", line), None);
        assert_eq!(named("twice: `a`", "a = a"), None);
        assert_eq!(named("no name", line), None);
        assert_eq!(named("empty: ``", line), None);
    }

    #[test]
    fn a_long_line_is_shown_around_the_column() {
        assert_eq!(excerpt("local x = 1  ", 0), "local x = 1");
        let long = format!("{}é{}", "a".repeat(1000), "b".repeat(1000));
        assert_eq!(excerpt(&long, 0), format!("{}…", "a".repeat(160)));
        let middle = excerpt(&long, 1001);
        assert_eq!(middle.chars().count(), 162);
        assert!(middle.starts_with("…aaa") && middle.contains('é') && middle.ends_with("bbb…"));
        assert_eq!(excerpt(&long, 2001), format!("…{}", "b".repeat(80)));
        let error = LoadError {
            file: "x.lua".into(),
            line: Some(1),
            columns: None,
            source_line: Some("x".repeat(7 << 20)),
            message: "no".into(),
            hint: None,
        };
        assert!(error.to_string().len() < 1000);
    }
}
