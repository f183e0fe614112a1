//! Literals, and the types that accept them.

use super::super::{
    known,
    tree::{Expr, ExprKind, ItemKey, TableItem},
};
use crate::logic::text::duration;
use crate::scripting::{Language, surface::Ty};

/// A literal, as far as it is known.
#[derive(Clone, Copy)]
enum Literal<'e, 'a> {
    Nothing,
    Boolean,
    Number(&'a str),
    /// A string, with its content if it is plain.
    Text(Option<&'a str>),
    Table(&'e [TableItem<'a>]),
    List,
    Function,
}

/// Returns whether a parameter of this type accepts this expression. An expression that is not a literal may have any type.
pub(super) fn accepts(ty: Ty, given: &Expr<'_>, language: Language) -> bool {
    literal(given).is_none_or(|it| fits(ty, it, language))
}

/// Returns whether a parameter of this type accepts a map.
pub(super) fn takes_maps(ty: Ty) -> bool {
    fits(ty, Literal::Table(&[]), Language::Rhai)
}

/// Returns the description of a literal.
pub(super) fn described(given: &Expr<'_>) -> &'static str {
    match literal(given) {
        None => "a value",
        Some(Literal::Nothing) => "nil",
        Some(Literal::Boolean) => "true or false",
        Some(Literal::Number(_)) => "a number",
        Some(Literal::Text(_)) => "a string",
        Some(Literal::Table(items)) if items.iter().all(|it| matches!(it.key, ItemKey::Place)) => {
            if items.is_empty() {
                "an empty table"
            } else {
                "a list"
            }
        }
        Some(Literal::Table(_)) => "a map",
        Some(Literal::List) => "a list",
        Some(Literal::Function) => "a function",
    }
}

/// Returns the hint about what to write instead.
pub(super) fn hint(ty: Ty, given: &Expr<'_>) -> Option<String> {
    let Some(Literal::Text(Some(text))) = literal(given) else { return None };
    match ty {
        Ty::Words(words) => known::hint("", text, words.iter().copied()),
        Ty::Integer | Ty::Number if text.parse::<f64>().is_ok() => {
            Some(format!("remove the quotes: {text}"))
        }
        Ty::Boolean if matches!(text, "true" | "false") => {
            Some(format!("remove the quotes: {text}"))
        }
        Ty::Maybe(inner) => hint(*inner, given),
        Ty::Integer
        | Ty::Number
        | Ty::Boolean
        | Ty::Any
        | Ty::Nothing
        | Ty::Text
        | Ty::Duration
        | Ty::Map
        | Ty::List
        | Ty::ListOf(_)
        | Ty::Object
        | Ty::Class(_)
        | Ty::Iterator
        | Ty::Either(_)
        | Ty::Function(_)
        | Ty::Handler(_) => None,
    }
}

fn literal<'e, 'a>(given: &'e Expr<'a>) -> Option<Literal<'e, 'a>> {
    let given = given.bare();
    match &given.kind {
        ExprKind::Nil => Some(Literal::Nothing),
        ExprKind::Bool(_) => Some(Literal::Boolean),
        ExprKind::Number(text) => Some(Literal::Number(text)),
        ExprKind::Text(_) => Some(Literal::Text(given.literal())),
        ExprKind::Interpolated(_) => Some(Literal::Text(None)),
        ExprKind::Table(items) => Some(Literal::Table(items)),
        ExprKind::List(_) => Some(Literal::List),
        ExprKind::Function(_) => Some(Literal::Function),
        ExprKind::Unary(inner) => match &inner.bare().kind {
            ExprKind::Number(text) => Some(Literal::Number(text)),
            _ => None,
        },
        ExprKind::Name(_)
        | ExprKind::Member(..)
        | ExprKind::Index(..)
        | ExprKind::Call(..)
        | ExprKind::Method(..)
        | ExprKind::Not(_)
        | ExprKind::Binary(..)
        | ExprKind::Parens(_)
        | ExprKind::Choice(_)
        | ExprKind::Block(_)
        | ExprKind::Rest => None,
    }
}

fn fits(ty: Ty, given: Literal<'_, '_>, language: Language) -> bool {
    match ty {
        Ty::Any | Ty::Iterator => true,
        Ty::Nothing => matches!(given, Literal::Nothing),
        Ty::Boolean => matches!(given, Literal::Boolean),
        Ty::Text => matches!(given, Literal::Text(_)),
        Ty::Words(words) => match given {
            Literal::Text(Some(text)) => words.iter().any(|it| it.eq_ignore_ascii_case(text)),
            Literal::Text(None) => true,
            _ => false,
        },
        Ty::Integer => matches!(given, Literal::Number(text) if is_whole(text)),
        Ty::Number => matches!(given, Literal::Number(_)),
        Ty::Duration => match given {
            Literal::Number(_) | Literal::Text(None) => true,
            Literal::Text(Some(text)) => duration::parse(&text.into()).is_some(),
            _ => false,
        },
        Ty::Map | Ty::Object => match given {
            Literal::Table(items) => !items.iter().any(|it| matches!(it.key, ItemKey::Place)),
            _ => false,
        },
        Ty::List | Ty::ListOf(_) => match given {
            Literal::List => true,
            Literal::Table(items) => {
                let is_named = |it: &TableItem<'_>| matches!(it.key, ItemKey::Name(_));
                language == Language::Lua && !items.iter().any(is_named)
            }
            _ => false,
        },
        Ty::Class(_) => !matches!(given, Literal::Text(_) | Literal::Number(_) | Literal::Boolean),
        Ty::Maybe(inner) => matches!(given, Literal::Nothing) || fits(*inner, given, language),
        Ty::Either(all) => all.iter().any(|it| fits(*it, given, language)),
        Ty::Function(_) | Ty::Handler(_) => matches!(given, Literal::Function),
    }
}

fn is_whole(text: &str) -> bool {
    let is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    is_hexadecimal || text.replace('_', "").parse::<f64>().map_or(true, |it| it.fract() == 0.0)
}
