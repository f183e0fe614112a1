//! The code at one position of a source, for editors.

use super::super::{tree::Span, types::Type};
use crate::scripting::surface::Signature;

/// The code at a position.
#[derive(Clone, Debug)]
pub(in crate::checker) struct Spot<'a> {
    pub(in crate::checker) span: Span,
    pub(in crate::checker) name: &'a str,
    pub(in crate::checker) kind: SpotKind<'a>,
}

/// The kinds of positions.
#[derive(Clone, Debug)]
pub(in crate::checker) enum SpotKind<'a> {
    /// A member of a value.
    Member(Type),
    /// A name without a path: its type, the visible variables, and where it is declared.
    Name(Type, Vec<&'a str>, Option<usize>),
    /// The name of an option.
    Option(&'static Signature),
    /// A word of a selector.
    Selector,
}

/// Returns the offset of a part of a source.
pub(in crate::checker) fn offset(text: &str, part: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + part.len() <= text.len()).then_some(at)
}
