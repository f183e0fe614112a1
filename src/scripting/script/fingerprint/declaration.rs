//! The parts of a declaration that stands alone: `kopf.on_create(SELECTOR…, [OPTIONS], FUNCTION)`, as a statement of the top level.
//!
//! Other declarations (in a loop, through a function of the script) have no parts: there, one piece of source declares several
//! handlers.

use super::{
    Dialect,
    statements::{Inside, Placed, Statement},
};

/// The options that are filters. All others define how a handler is called, not for which changes.
const FILTERS: &[&str] = &["labels", "annotations", "field", "value", "old", "new", "when"];

/// A part of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::scripting) enum DeclarationPart {
    /// The arguments that select the resources.
    Selector,
    /// The options that select objects and their changes.
    Filters,
}

/// Returns the tokens of a part; `None` if the statement is not a declaration that stands alone.
pub(super) fn part<'a>(
    statement: &Statement<'a>,
    dialect: &Dialect,
    part: DeclarationPart,
) -> Option<Vec<Placed<'a>>> {
    let arguments = arguments(statement, dialect)?;
    let (_function, before) = arguments.split_last()?;
    let is_options =
        |it: &&&[Placed<'a>]| it.first().is_some_and(|it| it.token.is_one_of(&["{", "#{"]));
    match part {
        // Options may be in a variable, which looks like a selector: they count as part of it then.
        DeclarationPart::Selector => {
            let selectors = before.iter().filter(|it| !is_options(it));
            Some(selectors.flat_map(|it| it.iter().copied()).collect())
        }
        DeclarationPart::Filters => {
            let options = before.iter().filter(is_options).flat_map(|it| entries(it));
            let filters = options.filter(|it| !is_other_option(it, dialect));
            let literal = filters.flatten().copied();
            let variables = before.iter().skip(1).filter(|it| !is_options(it));
            Some(literal.chain(variables.flat_map(|it| it.iter().copied())).collect())
        }
    }
}

/// Returns the arguments of a call that is the whole statement.
fn arguments<'s, 'a>(
    statement: &'s Statement<'a>,
    dialect: &Dialect,
) -> Option<Vec<&'s [Placed<'a>]>> {
    let tokens = &*statement.tokens;
    let open = tokens.iter().position(|it| it.token.is("("))?;
    let (head, call) = tokens.split_at(open);
    let (host, path) = head.split_first()?;
    let is_path = path.chunks(2).all(|it| {
        it.first().is_some_and(|it| it.token.is_one_of(dialect.accessing)) && it.len() == 2
    });
    let last = call.last()?;
    let is_whole = last.token.is(")") && last.inside == Inside::Nothing;
    // A call of the result of a call has several closing parentheses at the top level.
    let closing = call.iter().filter(|it| it.token.is(")") && it.inside == Inside::Nothing);
    if host.token.text != "kopf" || path.is_empty() || !is_path || !is_whole || closing.count() != 1
    {
        return None;
    }
    Some(split(call.get(1..call.len() - 1)?, &[","]))
}

/// Returns the entries of a table literal.
fn entries<'s, 'a>(table: &'s [Placed<'a>]) -> Vec<&'s [Placed<'a>]> {
    let inner = table.get(1..table.len().saturating_sub(1));
    split(inner.unwrap_or_default(), &[",", ";"])
}

/// Returns whether an entry of a table is certainly not a filter.
fn is_other_option(entry: &[Placed<'_>], dialect: &Dialect) -> bool {
    let [name, keyed, ..] = entry else { return false };
    keyed.token.is(dialect.keyed)
        && name.token.kind == super::scan::TokenKind::Name
        && !FILTERS.contains(&name.token.text)
}

/// Splits tokens at separators that are not inside of brackets.
fn split<'s, 'a>(tokens: &'s [Placed<'a>], separators: &[&str]) -> Vec<&'s [Placed<'a>]> {
    let outside = tokens.first().map(|it| it.inside);
    let mut depth = 0_usize;
    let pieces = tokens.split(|it| {
        if it.token.is_one_of(&[")", "]", "}"]) {
            depth = depth.saturating_sub(1);
        }
        let is_cut = depth == 0
            && Some(it.inside) == outside
            && !it.in_function
            && it.token.is_one_of(separators);
        if it.token.is_one_of(&["(", "[", "?[", "{", "#{"]) {
            depth += 1;
        }
        is_cut
    });
    pieces.filter(|it| !it.is_empty()).collect()
}
