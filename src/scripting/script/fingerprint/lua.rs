//! Splits Luau into the statements of its top level.
//!
//! Not a parser: source that loads is well-formed, and source that does not is never fingerprinted. It must be right about where a
//! statement begins, and what is inside of functions.

use super::{
    Dialect,
    scan::{EXPRESSION, STRING_CONTINUES, Scanner, Token, TokenKind},
    statements::{Inside, Placed, Splitter, Statement},
};

/// The syntax of Luau.
pub(super) const DIALECT: Dialect = Dialect {
    declaring: &["local"],
    assigning: &["=", "+=", "-=", "*=", "/=", "//=", "%=", "^=", "..="],
    accessing: &[".", ":"],
    method: ":",
    member: ".",
    keyed: "=",
    calls_with_literals: true,
    names_functions: None,
    fresh: &["{"],
    harmless: &[
        "kopf", "string", "math", "os", "bit32", "utf8", "tostring", "tonumber", "type", "typeof",
        "ipairs", "pairs", "next", "select", "require", "rawget", "rawlen", "rawequal", "unpack",
        "assert", "error", "print", "json", "yaml", "base64", "hash", "time", "quantity", "semver",
    ],
    harmless_members: &[
        "table.concat",
        "table.pack",
        "table.unpack",
        "table.clone",
        "table.create",
        "table.find",
    ],
    harmless_methods: &[
        "format", "rep", "upper", "lower", "sub", "gsub", "match", "gmatch", "find", "split",
        "len", "byte", "reverse",
    ],
    changing: &[
        "table.insert",
        "table.remove",
        "table.sort",
        "table.clear",
        "table.move",
        "rawset",
        "setmetatable",
    ],
    opaque: &["_G", "_ENV", "getfenv", "setfenv"],
    wrapping: &["setmetatable", "table.freeze"],
};

/// Returns whether this word is reserved.
#[rustfmt::skip] // one line for each would be long
fn is_keyword(text: &str) -> bool {
    matches!(text, "and" | "break" | "do" | "else" | "elseif" | "end" | "false" | "for" |
        "function" | "if" | "in" | "local" | "nil" | "not" | "or" | "repeat" | "return" | "then" |
        "true" | "until" | "while")
}

/// Returns whether this is an operator or punctuation.
#[rustfmt::skip] // one line for each would be long
fn is_symbol(text: &str) -> bool {
    matches!(text, "+" | "-" | "*" | "/" | "%" | "^" | "#" | "=" | "<" | ">" | "(" | ")" | "{" |
        "}" | "[" | "]" | ";" | ":" | "," | "." | "==" | "~=" | "<=" | ">=" | "//" | ".." | "..."
        | "::" | "->" | "+=" | "-=" | "*=" | "/=" | "//=" | "%=" | "^=" | "..=" | "&" | "|" | "?"
        | "@" | "~" | "!")
}

/// Returns the statements of the top level; `None` if this is not Lua.
pub(super) fn statements(text: &str) -> Option<Vec<Statement<'_>>> {
    split(&lex(Scanner::new(text))?.finish()?)
}

/// Reads a source to its end; `None` if that is not possible.
pub(super) fn lex(mut scanner: Scanner<'_>) -> Option<Scanner<'_>> {
    if scanner.rest().starts_with("#!") {
        scanner.eat_while(|it| it != '\n');
    }
    while let Some(next) = scanner.peek() {
        let mark = scanner.mark();
        match next {
            _ if next.is_whitespace() => drop(scanner.bump()),
            _ if scanner.eat("--") => match long_bracket(scanner.rest()) {
                Some(level) => long(&mut scanner, level)?,
                None => scanner.eat_while(|it| it != '\n'),
            },
            '"' | '\'' => {
                scanner.bump();
                scanner.quoted(next, mark)?;
            }
            '`' => {
                scanner.bump();
                scanner.in_backticks("{", Some('\\'))?;
            }
            '[' if long_bracket(scanner.rest()).is_some() => {
                let level = long_bracket(scanner.rest())?;
                long(&mut scanner, level)?;
                scanner.push(TokenKind::Text, mark);
            }
            _ if next.is_ascii_alphabetic() || next == '_' => scanner.word(is_keyword),
            _ if is_number(scanner.rest()) => number(&mut scanner),
            _ => {
                scanner.symbol(is_symbol)?;
                if scanner.is_in_text() {
                    scanner.in_backticks("{", Some('\\'))?;
                }
            }
        }
    }
    Some(scanner)
}

/// Returns the level of a long bracket that begins here: the number of `=` in it.
fn long_bracket(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('[')?;
    let level = inner.chars().take_while(|it| *it == '=').count();
    inner.chars().nth(level).is_some_and(|it| it == '[').then_some(level)
}

fn long(scanner: &mut Scanner<'_>, level: usize) -> Option<()> {
    scanner.eat_past(&format!("]{}]", "=".repeat(level)))
}

fn is_number(rest: &str) -> bool {
    let digits = rest.strip_prefix('.').unwrap_or(rest);
    digits.starts_with(|it: char| it.is_ascii_digit())
}

fn number(scanner: &mut Scanner<'_>) {
    let is_hexadecimal = scanner.rest().starts_with("0x") || scanner.rest().starts_with("0X");
    // `1..2` is a concatenation.
    scanner.number(!is_hexadecimal, |after| !after.starts_with('.'));
}

/// A construct that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LuaConstruct {
    Parens,
    Brackets,
    Table,
    /// Between `function` and its parameters.
    Name,
    Parameters,
    Function,
    /// `if`, `do`, or a loop after its `do`.
    Block,
    /// A loop before its `do`.
    Head,
    Repeat,
    /// `if` as an expression, which has no `end`, before its `else`.
    Choice,
}

fn split<'a>(tokens: &[Token<'a>]) -> Option<Vec<Statement<'a>>> {
    let mut splitter = Splitter::default();
    let mut open: Vec<LuaConstruct> = Vec::new();
    let mut before: Option<Token<'a>> = None;
    // Whether the last `then` or `else` belonged to an expression.
    let mut in_choice = false;
    for token in tokens.iter().copied() {
        if open.is_empty() && before.is_some_and(|it| begins(&it, &token)) {
            splitter.end();
        }
        close(&mut open, &token)?;
        if token.is(";") && open.is_empty() {
            splitter.end();
            before = None;
            continue;
        }
        splitter.push(place(token, &open));
        match token.text {
            "then" if token.is("then") => in_choice = open.last() == Some(&LuaConstruct::Choice),
            "else" if token.is("else") => {
                in_choice = open.pop_if(|it| *it == LuaConstruct::Choice).is_some();
            }
            "if" if token.is("if") => {
                let is_choice = before.is_some_and(|it| continues(&it, in_choice));
                open.push(if is_choice { LuaConstruct::Choice } else { LuaConstruct::Block });
            }
            "do" if token.is("do") => match open.last_mut() {
                Some(head @ LuaConstruct::Head) => *head = LuaConstruct::Block,
                Some(_) | None => open.push(LuaConstruct::Block),
            },
            "(" if token.is("(") && open.last() == Some(&LuaConstruct::Name) => {
                open.pop();
                open.extend([LuaConstruct::Function, LuaConstruct::Parameters]);
            }
            _ => open.extend(opened(&token)),
        }
        before = Some(token);
    }
    open.is_empty().then(|| splitter.finish())
}

/// Closes what the token closes; `None` if that is not open.
fn close(open: &mut Vec<LuaConstruct>, token: &Token<'_>) -> Option<()> {
    let closed: &[LuaConstruct] = match token.text {
        _ if !matches!(token.kind, TokenKind::Symbol | TokenKind::Keyword) => return Some(()),
        ")" | STRING_CONTINUES => &[LuaConstruct::Parens, LuaConstruct::Parameters],
        "]" => &[LuaConstruct::Brackets],
        "}" => &[LuaConstruct::Table],
        "end" => &[LuaConstruct::Function, LuaConstruct::Block],
        "until" => &[LuaConstruct::Repeat],
        _ => return Some(()),
    };
    open.pop_if(|it| closed.contains(it)).map(drop)
}

fn opened(token: &Token<'_>) -> Option<LuaConstruct> {
    if !matches!(token.kind, TokenKind::Symbol | TokenKind::Keyword) {
        return None;
    }
    match token.text {
        "(" | EXPRESSION => Some(LuaConstruct::Parens),
        "[" => Some(LuaConstruct::Brackets),
        "{" => Some(LuaConstruct::Table),
        "function" => Some(LuaConstruct::Name),
        "while" | "for" => Some(LuaConstruct::Head),
        "repeat" => Some(LuaConstruct::Repeat),
        _ => None,
    }
}

fn place<'a>(token: Token<'a>, open: &[LuaConstruct]) -> Placed<'a> {
    let in_function =
        open.iter().any(|it| matches!(it, LuaConstruct::Name | LuaConstruct::Function));
    let inside = match open.iter().rev().find(|it| **it != LuaConstruct::Choice) {
        None => Inside::Nothing,
        Some(LuaConstruct::Table) => Inside::Table,
        Some(LuaConstruct::Parens) => Inside::Parens,
        Some(LuaConstruct::Brackets) => Inside::Brackets,
        Some(LuaConstruct::Parameters) => Inside::Parameters,
        Some(
            LuaConstruct::Name
            | LuaConstruct::Function
            | LuaConstruct::Block
            | LuaConstruct::Head
            | LuaConstruct::Repeat
            | LuaConstruct::Choice,
        ) => Inside::Block,
    };
    Placed { token, in_function, inside }
}

/// Returns whether a statement can end with `before` and the next one begin with `token`.
fn begins(before: &Token<'_>, token: &Token<'_>) -> bool {
    // These are never part of an expression, even after the end of a type.
    if token.is_one_of(&["local", "while", "for", "repeat", "return", "break"]) {
        return true;
    }
    let ends = match before.kind {
        TokenKind::Name | TokenKind::Number | TokenKind::Text => true,
        TokenKind::Keyword => before.is_one_of(&["end", "nil", "true", "false", "break"]),
        TokenKind::Symbol => before.is_one_of(&[")", "]", "}", "..."]),
    };
    // A bracket or a string would be the argument of a call.
    ends && (token.kind == TokenKind::Name || token.is_one_of(&["function", "if", "do"]))
}

/// Returns whether an expression follows this token.
fn continues(before: &Token<'_>, in_choice: bool) -> bool {
    match before.kind {
        TokenKind::Name | TokenKind::Number | TokenKind::Text => false,
        TokenKind::Symbol => !before.is_one_of(&[")", "]", "}", ";", "...", STRING_CONTINUES]),
        TokenKind::Keyword => {
            before
                .is_one_of(&["return", "and", "or", "not", "in", "if", "while", "until", "elseif"])
                || (in_choice && before.is_one_of(&["then", "else"]))
        }
    }
}
