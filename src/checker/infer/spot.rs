//! What is at one place of a text, for editors.

use super::super::{tree::Span, types::Type};
use crate::scripting::surface::Signature;

/// What is at a place.
#[derive(Clone, Debug)]
pub(in crate::checker) struct Spot<'a> {
    pub(in crate::checker) span: Span,
    pub(in crate::checker) name: &'a str,
    pub(in crate::checker) kind: SpotKind<'a>,
}

/// The kinds of places.
#[derive(Clone, Debug)]
pub(in crate::checker) enum SpotKind<'a> {
    /// A member of a value.
    Member(Type),
    /// A name alone, with its value: the variables there, and where it is declared.
    Name(Type, Vec<&'a str>, Option<usize>),
    /// A key of options.
    Option(&'static Signature),
    /// A word of a selector.
    Selector,
}

/// Returns where a part of a text begins.
pub(in crate::checker) fn offset(text: &str, part: &str) -> Option<usize> {
    let at = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    (at + part.len() <= text.len()).then_some(at)
}
