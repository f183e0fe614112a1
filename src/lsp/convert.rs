//! Positions in documents, as editors count them: lines from 0, and columns in UTF-16 code units.

use lsp_types::{Position, Range};

/// Returns the offset of a position; the end of the line or of the document if there is no such position.
pub(super) fn offset(text: &str, position: Position) -> usize {
    let mut at = 0;
    for _ in 0..position.line {
        match text.get(at..).and_then(|it| it.find('\n')) {
            Some(end) => at += end + 1,
            None => return text.len(),
        }
    }
    let line = text.get(at..).unwrap_or_default();
    let line = line.split(['\n', '\r']).next().unwrap_or_default();
    let mut units = 0;
    for (inner, character) in line.char_indices() {
        if units >= position.character {
            return at + inner;
        }
        units += count(character.len_utf16());
    }
    at + line.len()
}

/// Returns the position of an offset.
pub(super) fn position(text: &str, at: usize) -> Position {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = text.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |it| it + 1);
    let line = count(before.matches('\n').count());
    let column = before.get(start..).unwrap_or_default();
    Position { line, character: column.chars().map(|it| count(it.len_utf16())).sum() }
}

/// Returns the range of a part of a document.
pub(super) fn range(text: &str, at: usize, len: usize) -> Range {
    Range { start: position(text, at), end: position(text, at.saturating_add(len)) }
}

/// Returns the range of a part of a line: its number and its first character, both from 1, and its length in characters.
pub(super) fn range_in_line(line: u32, source: &str, first: u32, length: u32) -> Range {
    let size = |it: u32| usize::try_from(it).unwrap_or(usize::MAX);
    let units = |characters: usize| {
        source.chars().take(characters).map(|it| count(it.len_utf16())).sum::<u32>()
    };
    let before = size(first).saturating_sub(1);
    let at = |characters| Position { line: line.saturating_sub(1), character: units(characters) };
    Range { start: at(before), end: at(before.saturating_add(size(length))) }
}

fn count(it: usize) -> u32 {
    u32::try_from(it).unwrap_or(u32::MAX)
}
